"""``changeover replay``: figures, identity, what bad input gets; and the recorded sessions nobody here wrote."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import text

from changeover.dashboard.cli import cli
from changeover.store.engine import open_store
from changeover.store.report import report

TRANSCRIPTS = Path(os.environ.get("CHANGEOVER_TRANSCRIPTS") or Path(__file__).parents[3] / "shared" / "transcripts")
FIGURES = ("sessions", "calls", "errors", "loops", "loops_after_user", "runaways", "loop_rate")

needs_transcripts = pytest.mark.skipif(
    not (TRANSCRIPTS / "EXPECTED.json").is_file(), reason="the recorded sessions are not here: CHANGEOVER_TRANSCRIPTS"
)


def chat(*outcomes, tool="find", arguments="{}"):
    """Return chat messages with one call per outcome, each in a turn of its own."""
    messages = [{"role": "user", "content": "go"}]
    for number, outcome in enumerate(outcomes):
        function = {"name": tool, "arguments": arguments}
        messages.append({"role": "assistant", "tool_calls": [{"id": f"c{number}", "function": function}]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": outcome})
    return messages


@pytest.fixture
def url(tmp_path, monkeypatch):
    for name in ("CHANGEOVER_STORE", "CHANGEOVER_SPOOL"):
        monkeypatch.delenv(name, raising=False)
    return f"sqlite:///{tmp_path}/store/replayed.db"


@pytest.fixture
def run(url, tmp_path):
    (tmp_path / "store").mkdir()

    def run_it(*arguments, code=0):
        result = CliRunner().invoke(cli, ["replay", *map(str, arguments), "--store", url])
        assert result.exit_code == code, result.output
        return result

    return run_it


@pytest.fixture
def figures(run):
    return lambda *arguments: json.loads(run(*arguments, "--json").stdout)


@pytest.fixture
def rows(url):
    def count(query="SELECT count(*) FROM call"):
        with open_store(url) as store, store.read() as connection:
            return connection.execute(text(query)).scalar_one()

    return count


def saved(path, value):
    path.write_text(json.dumps(value))
    return path


def test_figures_of_a_recording(figures, tmp_path):
    found = figures(saved(tmp_path / "a.json", chat("Error: x", "Error: x", "fine")))

    assert {name: found[name] for name in FIGURES} == {
        "sessions": 1,
        "calls": 3,
        "errors": 2,
        "loops": 2,
        "loops_after_user": 0,
        "runaways": 0,
        "loop_rate": 1.0,
    }
    assert found["tools"] == {"find": {"calls": 3, "errors": 2, "loops": 2, "runaways": 0, "loop_rate": 1.0}}


def test_without_errors_there_is_no_rate(figures, run, tmp_path):
    path = saved(tmp_path / "a.json", chat("fine"))

    assert figures(path)["loop_rate"] is None
    assert "no errors" in run(path).stdout


def test_the_same_content_counts_once_in_the_store_and_in_one_run(figures, rows, tmp_path):
    first, second = (saved(tmp_path / name, chat("Error", "fine")) for name in ("a.json", "b.json"))
    once = figures(first, second)
    again = figures(first)

    assert (once["calls"], again["calls"], rows()) == (2, 2, 2)
    assert once["skipped"] == [{"path": str(second), "reason": f"same content as {first}"}]


def test_a_grown_claude_code_session_adds_what_is_new_and_answers_what_was_open(figures, rows, tmp_path):
    path = tmp_path / "session.jsonl"
    use = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"f": "x"}}
    events = [
        {"type": "user", "uuid": "u1", "sessionId": "S", "message": {"role": "user", "content": "go"}},
        {"type": "assistant", "uuid": "u2", "sessionId": "S", "message": {"id": "m", "content": [use]}},
    ]
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "gone", "is_error": True}
    later = [
        {"type": "user", "uuid": "u3", "message": {"content": [answer]}},
        {"type": "assistant", "uuid": "u4", "message": {"id": "n", "content": [{**use, "id": "t2"}]}},
    ]
    path.write_text("\n".join(map(json.dumps, events)))
    before = figures(path)
    path.write_text("\n".join(map(json.dumps, events + later)))
    after = figures(path)

    assert (before["calls"], before["errors"], after["calls"], after["errors"], after["loops"]) == (1, 0, 2, 1, 1)
    assert (rows(), rows("SELECT count(*) FROM call WHERE loop")) == (2, 1)


def test_a_broken_file_is_named_and_the_rest_goes_on(figures, run, rows, tmp_path):
    folder = tmp_path / "sessions"
    folder.mkdir()
    saved(folder / "good.json", chat("fine"))
    (folder / "torn.json").write_text('{"messages": [{"role": "user"')
    half = {"simulations": [{"messages": chat("fine")}, {"messages": [7]}]}
    saved(folder / "half.json", half)
    (folder / "notes.txt").write_text("not looked at")
    found = figures(folder)

    assert [Path(entry["path"]).name for entry in found["skipped"]] == ["half.json", "torn.json"]
    assert rows() == found["calls"] == 1
    assert "torn.json" in run(folder).stderr


def test_nothing_readable_is_bad_input(run, tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{}")

    assert "x.json: is no recording of a known format" in run(path, code=2).stderr


def test_a_skipped_file_beside_a_good_one_is_told_on_standard_error_and_is_no_failure(run, tmp_path):
    result = run(saved(tmp_path / "good.json", chat("fine")), saved(tmp_path / "x.json", {}), code=0)

    assert f"changeover: skipped {tmp_path / 'x.json'}: is no recording of a known format" in result.stderr
    assert "x.json" not in result.stdout


def test_the_table_for_people_shows_files_tools_and_where_to_look(run, tmp_path):
    lines = run(saved(tmp_path / "a.json", chat("Error", "Error", "fine"))).stdout.splitlines()
    cells = [line.replace("100.0 %", "100.0%").split() for line in lines]

    assert [str(tmp_path / "a.json"), "openai", "1", "3", "2", "2", "100.0%", "0"] in cells
    assert ["find", "1", "3", "2", "2", "100.0%", "0"] in cells
    assert lines[-1].startswith("3 new calls are in ")
    assert "changeover serve --store " in lines[-1]


def test_a_person_at_a_terminal_sees_a_progress_bar_and_the_json_stays_clean(url, tmp_path):
    (tmp_path / "store").mkdir()
    path = saved(tmp_path / "a.json", chat("fine"))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "changeover", "replay", str(path), "--store", url, "--json"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, check=True, cwd=tmp_path)
        shown = os.read(ours, 65536).decode()
    finally:
        os.close(theirs)
        os.close(ours)

    assert "Replaying" in shown
    assert json.loads(done.stdout)["calls"] == 1


@pytest.mark.parametrize("name", ["missing.json", "empty-folder"])
def test_a_path_without_recordings_is_bad_input_and_makes_no_store(name, run, tmp_path):
    (tmp_path / "empty-folder").mkdir()
    result = run(tmp_path / name, code=2)

    assert name in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "store" / "replayed.db").exists()


def test_both_payloads_of_a_recorded_error_are_stored_redacted(figures, url, rows, tmp_path):
    figures(saved(tmp_path / "a.json", chat("Error: 403 for https://h/p?api_key=sk-live-0123456789abcdefFAKE")))
    legacy = rows("SELECT text FROM call JOIN payload ON payload.id = legacy_payload_id")
    structured = json.loads(rows("SELECT text FROM call JOIN payload ON payload.id = structured_payload_id"))

    assert legacy.startswith("Error: 403 for https://h/p?api_key=")
    assert "0123456789" not in legacy
    assert structured["error"]["code"] == "internal_error"
    assert rows("SELECT count(*) FROM call WHERE unclassified") == 1


def test_odd_text_is_stored_visibly_sanitized(figures, rows, tmp_path):
    path = saved(tmp_path / "odd.json", chat("Error \x00 \ud800", tool="na\x00me", arguments="\ud800"))

    assert figures(path)["errors"] == rows("SELECT count(*) FROM call WHERE sanitized") == 1


@needs_transcripts
def test_recorded_sessions_give_the_expected_figures(figures, url):
    expected = json.loads((TRANSCRIPTS / "EXPECTED.json").read_text())
    found = figures(TRANSCRIPTS)
    files = {Path(entry["path"]).relative_to(TRANSCRIPTS).as_posix(): entry for entry in found["files"]}

    assert {name: found[name] for name in FIGURES} == {name: expected["total"][name] for name in FIGURES}
    assert {path: {name: entry[name] for name in FIGURES} for path, entry in files.items()} == expected["per_file"]
    assert [Path(entry["path"]).name for entry in found["skipped"]] == ["EXPECTED.json"]


@needs_transcripts
@pytest.mark.parametrize(
    "source", ["intercode", "tau2-bench", "livemcpbench", "swe-agent", "toolbench", "entire-skeleton"]
)
def test_the_store_says_the_same_as_the_expected_figures_of_each_source(source, figures, url):
    expected = json.loads((TRANSCRIPTS / "EXPECTED.json").read_text())["per_source"][source]
    found = figures(TRANSCRIPTS / source)
    with open_store(url) as store:
        stored = {entry["tool"]: entry["arms"]["legacy"] for entry in report(store)["tools"]}
    per_tool = ("calls", "errors", "loops", "runaways")

    assert {name: found[name] for name in FIGURES} == {name: expected[name] for name in FIGURES}
    assert {tool: {name: arm[name] for name in per_tool} for tool, arm in stored.items()} == expected["tools"]
    assert {tool: {name: entry[name] for name in per_tool} for tool, entry in found["tools"].items()} == expected[
        "tools"
    ]
