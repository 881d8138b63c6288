"""What a replayed call is in the store: its identity, its times, what it was, and that all figures agree."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from changeover.config import Config
from changeover.dashboard.replay import find, replay
from changeover.store.engine import open_store
from changeover.store.replay.model import ReplayError

TRANSCRIPTS = Path(os.environ.get("CHANGEOVER_TRANSCRIPTS") or Path(__file__).parents[3] / "shared" / "transcripts")
SUMS = (
    "SELECT count(*), sum(CASE WHEN outcome = 'error' THEN 1 ELSE 0 END), sum(CASE WHEN loop THEN 1 ELSE 0 END),"
    " sum(CASE WHEN loop_after_user THEN 1 ELSE 0 END), sum(CASE WHEN runaway THEN 1 ELSE 0 END),"
    " count(DISTINCT session_id) FROM call"
)
KEY = bytes(32)

needs_transcripts = pytest.mark.skipif(
    not (TRANSCRIPTS / "EXPECTED.json").is_file(), reason="the recorded sessions are not here: CHANGEOVER_TRANSCRIPTS"
)


class Replays:
    """A folder of recordings and a store; what replaying says, and what the store says afterwards."""

    def __init__(self, folder):
        self.folder = folder
        self.url = f"sqlite:///{folder}/replayed.db"

    def save(self, name, *documents):
        path = self.folder / name
        path.write_text("\n".join(map(json.dumps, documents)))
        return path

    def __call__(self, *paths, **options):
        config = Config.resolve(store=self.url)
        with open_store(self.url) as store:
            return replay(find(paths), store, config, key=KEY, **options)

    def rows(self, query):
        with open_store(self.url) as store, store.read() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    def sums(self):
        return tuple(number or 0 for number in self.rows(SUMS)[0])


@pytest.fixture
def replays(tmp_path, monkeypatch):
    for name in ("CHANGEOVER_STORE", "CHANGEOVER_SPOOL"):
        monkeypatch.delenv(name, raising=False)
    return Replays(tmp_path)


def counted(replayed):
    total = replayed.held.total
    return (total.calls, total.errors, total.loops, total.loops_after_user, total.runaways, total.sessions)


def asks(tool="find", call_id="a", arguments="{}", **more):
    call = {"id": call_id, "function": {"name": tool, "arguments": arguments}}
    return {"role": "assistant", "tool_calls": [call], **more}


def answers(content, call_id="a", **more):
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def event(kind, uuid=None, **more):
    own = {} if uuid is None else {"uuid": uuid}
    return {"type": kind, "sessionId": "S", **own, **more}


def uses(call_id, **more):
    return {"content": [{"type": "tool_use", "id": call_id, "name": "Read", "input": {"f": "x"}}], **more}


def gives(call_id, content="x", **more):
    return {"content": [{"type": "tool_result", "tool_use_id": call_id, "content": content, **more}]}


def test_a_replayed_call_stands_in_the_legacy_arm_of_shadow(replays):
    replays(replays.save("chat.json", [asks(), answers("Error: x")]))
    query = "SELECT stage, arm, served, outcome, code, unclassified, call_id FROM call"

    assert replays.rows(query) == [("shadow", "legacy", "legacy", "error", "internal_error", 1, "a")]


def test_a_recorded_envelope_says_its_own_code(replays):
    error = {"code": "not_found", "message": "No.", "retryable": False, "next_action": "ask_user", "context": None}
    replays(replays.save("chat.json", [asks(), answers(json.dumps({"ok": False, "error": error}))]))

    assert replays.rows("SELECT code, unclassified, next_action FROM call") == [("not_found", 0, "ask_user")]


@pytest.mark.parametrize(
    ("result", "outcome", "unclassified"),
    [
        ("fine", "ok", 0),
        ("", "empty", 0),
        ("[]", "empty", 0),
        ('{"isError": false, "empty": true, "matches": 0}', "empty", 0),
        ("[1]", "ok", 0),
        ("[broken", "ok", 0),
        ('{"status": "failed"}', "ok", 1),
    ],
)
def test_a_recorded_success_is_looked_at_as_a_live_one(result, outcome, unclassified, replays):
    replays(replays.save("chat.json", [asks(), answers(result)]))

    assert replays.rows("SELECT outcome, unclassified FROM call") == [(outcome, unclassified)]


def test_recorded_times_are_kept_and_the_order_is_the_recorded_one(replays):
    moments = ["2025-01-01T00:00:02Z", None, "2025-01-01T00:00:01Z"]
    messages = [asks(call_id=str(number), timestamp=moment) for number, moment in enumerate(moments)]
    replays(replays.save("tau.json", {"simulations": [{"messages": messages}]}))
    second = 1735689600

    assert replays.rows("SELECT call_id, started_at / 1000000000 FROM call ORDER BY sequence") == [
        ("0", second + 2),
        ("1", second + 2),
        ("2", second + 1),
    ]


def test_without_recorded_times_calls_stand_at_the_files_own_time_in_order(replays):
    path = replays.save("chat.json", [asks(), asks(), asks()])
    os.utime(path, ns=(0, 1735689600 * 10**9))
    replays(path)

    assert replays.rows("SELECT started_at - 1735689600000000000 FROM call ORDER BY sequence") == [(0,), (1,), (2,)]


@pytest.mark.parametrize("seconds", [0, 2**40])
def test_a_files_own_time_may_be_anything(seconds, replays):
    path = replays.save("chat.json", [asks(), answers("x")])
    os.utime(path, (seconds, seconds))
    replayed = replays(path)

    assert counted(replayed) == replays.sums() == (1, 0, 0, 0, 0, 1)


def test_a_grown_session_without_ids_of_its_lines_only_adds(replays):
    begun = [event("user", message={"content": "go"}), event("assistant", message=uses("1"))]
    grown = [*begun, event("user", message=gives("1", is_error=True)), event("assistant", message=uses("2"))]
    replays(replays.save("s.jsonl", *begun))
    os.utime(replays.save("s.jsonl", *grown), (2**30, 2**30))
    replayed = replays(replays.folder / "s.jsonl")

    assert counted(replayed) == replays.sums() == (2, 1, 1, 0, 0, 1)


def test_the_answer_of_a_grown_session_does_not_move_its_call(replays):
    """Two calls of one turn, the first one answered later: it stays the first, so the second still is the twin."""
    both = {"id": "m", "content": [*uses("1")["content"], *uses("2")["content"]]}
    begun = [event("assistant", "a", message=both), event("user", "b", message=gives("2"))]
    later = [event("user", "c", message=gives("1")), event("assistant", "d", message=uses("3", id="n"))]
    last = event("user", "e", message=gives("3"))
    path = replays.save("s.jsonl", *begun)
    os.utime(path, (2**30, 2**30))
    replays(path)
    replayed = replays(replays.save("s.jsonl", *begun, *later, last))

    assert counted(replayed) == replays.sums() == (3, 0, 0, 0, 1, 1)
    assert replays.rows("SELECT call_id FROM call ORDER BY sequence") == [("1",), ("2",), ("3",)]


def test_an_agent_with_a_file_of_its_own_joins_its_session(replays):
    side = {"isSidechain": True, "agentId": "x"}
    replays.save("s.jsonl", event("assistant", message=uses("1")))
    replays.save("agent-x.jsonl", event("assistant", message=uses("2"), **side))
    replayed = replays(replays.folder)

    assert replayed.held.total.calls == 2
    assert replays.rows("SELECT count(*), count(DISTINCT session_id), count(DISTINCT actor_id) FROM call") == [
        (2, 1, 2)
    ]


def test_a_second_replay_changes_nothing(replays):
    replays.save("chat.json", [asks(), answers("Error"), asks(), answers("Error"), asks(), answers("x")])
    first = replays(replays.folder)
    before = replays.rows("SELECT * FROM call")
    second = replays(replays.folder)

    assert (first.stored, second.stored) == (3, 0)
    assert first.as_dict() == second.as_dict()
    assert replays.rows("SELECT * FROM call") == before


def test_the_same_recording_under_another_name_adds_nothing(replays):
    replays(replays.save("one.json", [asks(), answers("x")]))
    replayed = replays(replays.save("two.json", [asks(), answers("x")]))

    assert (replayed.held.total.calls, replayed.stored) == (1, 0)


def test_a_format_that_was_asked_for_is_held_to(replays):
    replayed = replays(replays.save("chat.json", [asks(), answers("x")]), form="swe-agent")

    assert [reason for _, reason in replayed.skipped] == ["is no swe-agent recording"]


def test_a_folder_is_searched_whole_but_links_are_not_followed(replays):
    deep = replays.folder / "a" / "b"
    deep.mkdir(parents=True)
    for name in ("UPPER.JSON", "c.jsonl.gz", "d.traj", "notes.md", "json"):
        (deep / name).touch()
    (deep / "round").symlink_to(replays.folder, target_is_directory=True)

    assert [path.name for path in find([replays.folder]).files] == ["UPPER.JSON", "c.jsonl.gz", "d.traj"]


def test_a_folder_without_recordings_is_named_beside_the_others(replays):
    (replays.folder / "empty").mkdir()
    found = find([replays.save("chat.json", [asks()]), replays.folder / "empty"])

    assert [path.name for path in found.files] == ["chat.json"]
    assert "holds no file that ends in" in found.skipped[0][1]


def test_a_link_that_leads_nowhere_does_not_exist_and_one_in_a_circle_is_skipped(replays):
    (replays.folder / "nowhere").symlink_to(replays.folder / "missing")
    (replays.folder / "circle").symlink_to(replays.folder / "circle")

    with pytest.raises(ReplayError, match="does not exist"):
        find([replays.folder / "nowhere"])
    assert "symbolic links" in find([replays.folder / "circle"]).skipped[0][1]


results = st.sampled_from(["x", "Error", "Error ", "[]", '{"error": "x"}', "\ud800", "\x00", None])
messages = st.lists(
    st.one_of(
        st.builds(
            asks,
            tool=st.sampled_from(
                ["find", "na\x00me", "na\N{REPLACEMENT CHARACTER}me", "x" * 600, "\ud83d\ude00", " f"]
            ),
            call_id=st.sampled_from(["a", "b", None, 7, "\x00", "y" * 600]),
            arguments=st.sampled_from(["{}", "", None, {}, '{"q": 1}', '{"q": 1.0}', "\ud800", 2**70, [[]]]),
        ),
        st.builds(answers, results, call_id=st.sampled_from(["a", "b", None, 7, "\x00", "y" * 600])),
        st.just({"role": "user", "content": "go on"}),
        st.just({"role": "user", "tool_calls": asks()["tool_calls"]}),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(conversations=st.lists(messages, min_size=1, max_size=3))
def test_whatever_is_replayed_the_store_counts_what_the_command_counts(conversations, tmp_path_factory):
    replays = Replays(tmp_path_factory.mktemp("law"))
    replayed = replays(replays.save("chat.json", [{"messages": [{"role": "system"}, *some]} for some in conversations]))

    assert counted(replayed) == replays.sums()
    assert set(replays.rows("SELECT name FROM tool")) == {(name,) for name in replayed.held.tools}
    assert replays.rows("SELECT count(*) FROM loss") == [(0,)]


@needs_transcripts
def test_the_stores_own_rows_add_up_to_the_expected_total(replays):
    expected = json.loads((TRANSCRIPTS / "EXPECTED.json").read_text())["total"]
    replays(TRANSCRIPTS)
    names = ("calls", "errors", "loops", "loops_after_user", "runaways", "sessions")

    assert dict(zip(names, replays.sums(), strict=True)) == {name: expected[name] for name in names}
