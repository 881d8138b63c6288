"""The report says the same to people and to programs, and never cuts what a pipe reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from changeover.contract import ToolError
from changeover.dashboard.cli import report_formats

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Ran

HOSTILE = "| <script>alert(1)</script> [red]\x1b[31m\n# x"


def test_without_errors_the_rate_is_no_errors_and_not_zero(
    store_of: Callable[..., str], record: Callable[..., Any], run_cli: Callable[..., Ran]
):
    store = store_of(record("find_order"))
    text = run_cli("report", "--store", store).out
    (tool,) = json.loads(run_cli("report", "--store", store, "--json").out)["tools"]

    assert "no errors" in text
    assert "0.0 %" not in text
    assert tool["arms"]["legacy"]["loop_rate"] is None


def test_a_rate_stands_beside_its_n_and_its_interval(
    store_of: Callable[..., str], record: Callable[..., Any], run_cli: Callable[..., Ran]
):
    error = ToolError("not_found")
    store = store_of(*(record("find_order", order=n, error=error) for n in range(4)))
    figures = run_cli("report", "--store", store).out.splitlines()[1].split()

    assert figures[:9] == ["find_order", "shadow", "legacy", "1", "4", "4", "3", "75.0", "%"]
    assert figures[10] == "to"


def test_a_store_without_calls_says_so(store_of: Callable[..., str], run_cli: Callable[..., Ran]):
    ran = run_cli("report", "--store", store_of())

    assert (ran.code, ran.out) == (0, "No calls have been recorded yet.\n")


def test_a_pipe_gets_long_names_uncut_on_one_line(
    store_of: Callable[..., str],
    record: Callable[..., Any],
    run_cli: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("COLUMNS", "40")
    name = "look_up_the_order_of_a_customer_by_" + "x" * 150
    lines = run_cli("report", "--store", store_of(record(name))).out.splitlines()

    assert lines[1].startswith(f"{name}  shadow  legacy")


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_a_hostile_tool_name_stays_text(
    form: str, store_of: Callable[..., str], record: Callable[..., Any], run_cli: Callable[..., Ran]
):
    out = run_cli("report", "--store", store_of(record(HOSTILE)), "--format", form).out

    assert "\x1b" not in out
    assert "\n# x" not in out
    assert form == "text" or "<script>" not in out
    assert form != "markdown" or "| <" not in out.replace("\\|", "")


def test_every_row_of_the_markdown_table_has_every_column(
    store_of: Callable[..., str], record: Callable[..., Any], run_cli: Callable[..., Ran]
):
    out = run_cli("report", "--store", store_of(record(HOSTILE), record("b")), "--format", "markdown").out
    rows = [line.replace("\\|", "") for line in out.splitlines() if line.startswith("|")]

    assert {row.count("|") for row in rows} == {len(report_formats.COLUMNS) + 1}


def test_json_is_the_same_by_option_and_by_format(
    store_of: Callable[..., str], record: Callable[..., Any], run_cli: Callable[..., Ran]
):
    store = store_of(record("find_order"))
    one, other = (
        json.loads(run_cli("report", "--store", store, *options).out) for options in (("--json",), ("--format", "json"))
    )

    assert one.pop("generated_at")
    assert other.pop("generated_at")
    assert one == other


def test_only_the_tool_that_was_asked_for_is_shown(
    store_of: Callable[..., str], record: Callable[..., Any], run_cli: Callable[..., Ran]
):
    out = run_cli("report", "--store", store_of(record("a_tool"), record("b_tool")), "--tool", "b_tool").out

    assert "b_tool" in out
    assert "a_tool" not in out


def leave_behind(spool: Path, *records: dict[str, Any]) -> None:
    spool.mkdir(parents=True)
    (spool / "1700000000000000000-1-1.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in records))


def test_what_a_dead_process_left_is_taken_in_first_even_without_a_store(
    record: Callable[..., Any], run_cli: Callable[..., Ran], tmp_path: Path
):
    leave_behind(tmp_path / "changeover.db.spool", record("find_order"), record("find_order", order=1))
    (tool,) = json.loads(run_cli("report", "--json").out)["tools"]

    assert tool["arms"]["legacy"]["calls"] == 2
    assert list((tmp_path / "changeover.db.spool").glob("*.jsonl")) == []


def test_lost_records_are_shown(record: Callable[..., Any], run_cli: Callable[..., Ran], tmp_path: Path):
    loss = {"kind": "loss", "v": 1, "reason": "spool_full", "count": 3, "time_unix_nano": 1, "process": "host:1"}
    leave_behind(tmp_path / "changeover.db.spool", record("find_order"), loss)

    assert "drops and faults, by reason: spool_full 3" in run_cli("report").out
