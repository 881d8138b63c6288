"""Bad input gets one line that names it and says what to do, exit code 2, and nothing half-written."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from changeover.store.engine import Store

    from .conftest import Ran

CHANGEOVER = (sys.executable, "-m", "changeover")


@pytest.mark.parametrize(
    "command",
    [
        ("report",),
        ("flag", "list"),
        ("flag", "history"),
        ("flag", "set", "find_order", "--stage", "shadow", "--reason", "x"),
        ("flag", "rollback", "find_order", "--reason", "x"),
        ("doctor",),
        ("db", "check"),
        ("db", "stats"),
    ],
    ids=" ".join,
)
def test_a_missing_store_is_named_and_not_made(command: tuple[str, ...], run_cli: Callable[..., Ran], tmp_path: Path):
    ran = run_cli(*command)

    assert ran.code == 2
    assert ran.out == ""
    assert ran.line.startswith(f"changeover: there is no store at {tmp_path}/changeover.db; ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "named", "advice"),
    [
        (("reprot",), "reprot", "did you mean 'report'?"),
        (("fly",), "fly", "use one of demo, replay, report"),
        (("report", "--stroe", "x"), "--stroe", "--store"),
        (("report", "--format", "pdf"), "--format", "markdown"),
        (("report", "--store", "changeover.db"), "changeover.db", "sqlite:///changeover.db"),
        (("report", "--store", "mysql://host/x"), "mysql", "sqlite or postgresql"),
        (("report", "--store", "sqlite://"), "sqlite://", "sqlite:///changeover.db"),
        (("serve", "--port", "99999"), "--port", "65535"),
        (("serve", "--host", "0.0.0.0"), "0.0.0.0", "CHANGEOVER_TOKEN"),
        (("flag", "set", "find_order"), "--stage", "flag set --help"),
        (("flag", "set", "t", "--stage", "cutover", "--reason", "x"), "--rollout", "--rollout 100 for all"),
        (("flag", "set", "t", "--stage", "shadow", "--rollout", "5", "--reason", "x"), "--rollout", "no meaning"),
        (("flag", "set", "t", "--stage", "live", "--reason", "x"), "live", "cutover"),
        (("flag", "history", "--limit", "0"), "--limit", "x>=1"),
        (("replay",), "PATH", "replay --help"),
        (("replay", "nowhere.json"), "nowhere.json", "exist"),
        (("replay", ""), "PATH", "name a recorded session"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_usage_is_named_with_what_to_do(
    command: tuple[str, ...], named: str, advice: str, run_cli: Callable[..., Ran], tmp_path: Path
):
    ran = run_cli(*command)

    assert ran.code == 2
    assert ran.line.startswith("changeover: ")
    assert named in ran.line
    assert advice in ran.line
    assert list(tmp_path.glob("*.db")) == []


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (("--stage", "cutover", "--rollout", "101", "--reason", "x"), "0 to 100"),
        (("--stage", "cutover", "--rollout", "nan", "--reason", "x"), "0 to 100"),
        (("--stage", "cutover", "--rollout", "5", "--reason", "  "), "reason"),
        (("--stage", "dual", "--rollout", "5", "--reason", "x"), "use cutover"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_flag_that_cannot_be_set_says_why_and_leaves_no_trace(
    options: tuple[str, ...], advice: str, busy_store: Store, run_cli: Callable[..., Ran]
):
    store = ("--store", busy_store.url.render_as_string())
    before = run_cli("flag", "history", *store, "--json").out
    ran = run_cli("flag", "set", "get_inventory", *options, *store)

    assert ran.code == 2
    assert advice in ran.line
    assert run_cli("flag", "history", *store, "--json").out == before


def test_an_unknown_tool_s_flag_names_the_known_ones(busy_store: Store, run_cli: Callable[..., Ran]):
    store = ("--store", busy_store.url.render_as_string())
    ran = run_cli("flag", "set", "serch_orders", "--stage", "shadow", "--reason", "x", *store)

    assert ran.code == 2
    assert "'serch_orders'" in ran.line
    assert "search_orders" in ran.line


def test_an_unknown_tool_s_report_suggests_near_names(busy_store: Store, run_cli: Callable[..., Ran]):
    ran = run_cli("report", "--tool", "serch_orders", "--store", busy_store.url.render_as_string())

    assert ran.code == 2
    assert "--tool" in ran.line
    assert "did you mean 'search_orders'?" in ran.line


def test_a_file_that_is_no_database_is_named_and_left_alone(run_cli: Callable[..., Ran], tmp_path: Path):
    (tmp_path / "notes.txt").write_text("not a database, just a long enough text")
    ran = run_cli("report", "--store", "sqlite:///notes.txt")

    assert ran.code == 2
    assert "notes.txt is no SQLite database" in ran.line
    assert (tmp_path / "notes.txt").read_text().startswith("not a database")


def test_a_password_in_a_store_url_is_never_shown(run_cli: Callable[..., Ran]):
    ran = run_cli("report", "--store", "oracle://scott:tiger@host/db")

    assert ran.code == 2
    assert "tiger" not in ran.err


def test_a_port_in_use_is_named(busy_store: Store, run_cli: Callable[..., Ran]):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = run_cli("serve", "--port", port, "--store", busy_store.url.render_as_string())

    assert ran.code == 2
    assert port in ran.line
    assert "--port" in ran.line


def broken(*_: object, **__: object) -> None:
    raise RuntimeError("cannot be")


def test_a_fault_of_ours_is_one_line_that_says_how_to_see_more(
    busy_store: Store, run_cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("changeover.store.report.report", broken)
    ran = run_cli("report", "--store", busy_store.url.render_as_string())

    assert ran.code == 70
    assert "RuntimeError: cannot be" in ran.line
    assert "--debug" in ran.line


@pytest.mark.parametrize("command", [("--debug", "report"), ("report", "--debug")], ids=" ".join)
def test_debug_shows_the_traceback_before_or_after_the_command(
    command: tuple[str, ...], busy_store: Store, run_cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("changeover.store.report.report", broken)

    with pytest.raises(RuntimeError, match="cannot be"):
        run_cli(*command, "--store", busy_store.url.render_as_string())


def test_without_a_command_the_help_goes_to_standard_error(run_cli: Callable[..., Ran]):
    ran = run_cli()

    assert ran.code == 2
    assert ran.out == ""
    assert "Usage: changeover" in ran.err


def test_a_reader_that_goes_away_ends_the_output_quietly(busy_store: Store, tmp_path: Path):
    command = (*CHANGEOVER, "report", "--json", "--store", busy_store.url.render_as_string())
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    complaint = process.stderr.read()
    process.stderr.close()

    assert (process.wait(), complaint) == (141, b"")


def test_ctrl_c_ends_quietly(tmp_path: Path):
    command = (*CHANGEOVER, "demo", "--no-serve")
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        while "Before" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        complaint = process.communicate()[1]

    assert process.returncode == 130
    assert complaint.strip() == ""


def test_a_recording_without_permission_is_named_and_the_rest_goes_on(
    run_cli: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "mine.json").write_text('[{"role": "assistant", "tool_calls": [{"id": "1", "name": "f"}]}]')
    (tmp_path / "theirs.json").write_text("[]")
    opened, permitted = Path.open, os.access

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == "theirs.json":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *arguments, **options)

    # Not by the file's mode: the superuser may read everything.
    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(os, "access", lambda path, *rest: "theirs" not in str(path) and permitted(path, *rest))
    ran = run_cli("replay", "theirs.json", "mine.json")

    assert ran.code == 0
    assert ran.line == "changeover: skipped theirs.json: permission denied"
    assert "mine.json" in ran.out
