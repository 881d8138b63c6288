"""The demo from end to end, as people run it: what it shows comes from behaviour, and it can be run again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from changeover.dashboard.demo.tools import TOOLS

if TYPE_CHECKING:
    from pathlib import Path


def changeover(folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CHANGEOVER_")}
    done = subprocess.run(
        (sys.executable, "-m", "changeover", *arguments),
        cwd=folder,
        env={**environment, "TMPDIR": str(folder / "tmp")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A folder in which the demo ran twice, with what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "tmp").mkdir()
    first, second = (changeover(folder, "demo", "--sessions", "40", "--seed", seed) for seed in ("1", "2"))
    return folder, first, second


def figures(folder: Path) -> dict[str, Any]:
    report = json.loads(changeover(folder, "report", "--json", "--store", "sqlite:///changeover-demo.db"))
    return {tool["tool"]: tool for tool in report["tools"]}


def summed(folder: Path, arm: str, name: str) -> int:
    return sum(tool["arms"][arm][name] for tool in figures(folder).values())


def test_every_tool_was_called_in_both_arms_and_no_session_saw_both(ran: tuple[Path, str, str]):
    tools = figures(ran[0])

    assert set(tools) == set(TOOLS)
    assert all(tool["arms"][arm]["calls"] for tool in tools.values() for arm in ("legacy", "structured"))
    assert [tool["mixed_sessions"] for tool in tools.values()] == [0] * len(TOOLS)


def test_after_the_flip_the_script_repeats_only_what_it_was_asked_to(ran: tuple[Path, str, str]):
    assert summed(ran[0], "legacy", "futile_loops") > 0
    assert summed(ran[0], "structured", "futile_loops") == 0
    assert summed(ran[0], "structured", "loops") > 0


def test_no_failure_of_the_demo_lacks_a_code(ran: tuple[Path, str, str]):
    assert summed(ran[0], "legacy", "unclassified") + summed(ran[0], "structured", "unclassified") == 0


def test_the_second_run_adds_to_the_first_and_begins_with_a_rollback_on_record(ran: tuple[Path, str, str]):
    folder = ran[0]
    trail = json.loads(
        changeover(
            folder, "flag", "history", "--tool", "find_order", "--json", "--store", "sqlite:///changeover-demo.db"
        )
    )

    assert [(c["from_stage"], c["to_stage"]) for c in trail] == [
        ("shadow", "cutover"),
        ("cutover", "shadow"),
        ("shadow", "cutover"),
    ]
    assert {c["who"] for c in trail} == {"changeover demo"}
    assert trail[1]["reason"] == "the demo begins again"


def test_it_says_that_the_agent_is_a_script_and_how_to_read_the_figures(ran: tuple[Path, str, str]):
    assert "The agent is scripted, it is no model" in ran[1]
    assert "a retry that was asked for counts as a loop too" in ran[1]


def test_it_ends_with_the_address_and_the_command_that_serves_it(ran: tuple[Path, str, str]):
    last = ran[1].splitlines()[-1]

    assert last.startswith("Dashboard: http://127.0.0.1:8321/ once this runs: ")
    assert last.endswith(f"-m changeover serve --store sqlite:///{ran[0]}/changeover-demo.db")


def test_it_leaves_its_store_and_nothing_else(ran: tuple[Path, str, str]):
    left = {path.name for path in ran[0].iterdir()}

    assert list((ran[0] / "tmp").iterdir()) == []
    assert {name.partition(".db")[0] for name in left} == {"tmp", "changeover-demo"}
    assert tempfile.gettempdir() != str(ran[0])
