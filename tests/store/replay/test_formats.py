"""Each recorded format, recognised by content and read by its own rules; small made-up recordings."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from changeover.dashboard.cli.replay import FORMATS as NAMED
from changeover.store.replay.model import ReplayError
from changeover.store.replay.read import FORMATS, read

if TYPE_CHECKING:
    from pathlib import Path


def openai_call(call_id, name, arguments):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


CHAT = [
    {"role": "system", "content": "be good"},
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": None, "tool_calls": [openai_call("a", "find", '{"q": 1}')]},
    {"role": "tool", "tool_call_id": "a", "content": "Error: no such thing"},
    {"role": "assistant", "tool_calls": [openai_call("b", "find", '{"q":1.0}'), openai_call("c", "list", "")]},
    {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "one"}]},
    {"role": "tool", "tool_call_id": "b", "content": '{"error": null, "data": []}'},
]
FUNCTIONS = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": "{}"}},
    {"role": "function", "name": "find", "content": '{"error": "broken"}'},
]
BLOCKS = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"f": "x"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "gone", "is_error": True}]},
]
EVENTS = [
    {"type": "summary", "summary": "s"},
    {"type": "user", "uuid": "u1", "sessionId": "S", "message": {"role": "user", "content": "go"}},
    {"type": "assistant", "uuid": "u2", "timestamp": "2025-01-01T00:00:01Z", "message": {"id": "m", **BLOCKS[1]}},
    {"type": "user", "uuid": "u3", "timestamp": "2025-01-01T00:00:02Z", "message": BLOCKS[2]},
    {"type": "user", "uuid": "u4", "isMeta": True, "message": {"role": "user", "content": "a harness note"}},
    {"type": "assistant", "uuid": "u5", "message": {"id": "n", **BLOCKS[1]}},
]
SAMPLES = {
    "openai": {"messages": CHAT},
    "anthropic": BLOCKS,
    "claude-code": EVENTS,
    "tau-bench": [{"task_id": 1, "reward": 0.0, "traj": CHAT}],
    "tau2-bench": {
        "simulations": [
            {
                "id": "s",
                "messages": [
                    {"role": "assistant", "tool_calls": [{"id": "a", "name": "book", "arguments": {"x": 1}}]},
                    {"role": "tool", "id": "a", "content": "Error: full", "error": False},
                    {"role": "user", "content": None, "tool_calls": [{"id": "b", "name": "look", "arguments": {}}]},
                    {"role": "tool", "id": "b", "content": "no", "error": True},
                ],
            }
        ]
    },
    "livemcpbench": [
        {
            "task_id": "t",
            "Question": "?",
            "messages": [
                {"role": "assistant", "tool_calls": [openai_call("a", "route", "{}")]},
                {"role": "tool", "tool_call_id": "a", "content": "isError=False … isError=True"},
                {"role": "assistant", "tool_calls": [openai_call("a", "route", "{}")]},
                {"role": "tool", "tool_call_id": "a", "content": "Tool call timed out after 60 s"},
            ],
        }
    ],
    "swe-agent": {
        "trajectory": [
            {"action": "edit 1:2\nx\n", "observation": "Your proposed edit has introduced new errors"},
            {"action": "", "observation": ""},
            {"action": "ls", "observation": "a\nb"},
            {"action": "exit_cost", "observation": "Exited"},
        ]
    },
    "toolbench": {"answer_generation": {"train_messages": [CHAT[:2], FUNCTIONS]}},
    "intercode": {
        "0": {
            "environment": "ic_bash",
            "turn_history": {
                "actions": [" ls ", "ls", "cat"],
                "observations": ["x", "x", "bash: cat: nope"],
                "valid_action": [True, False, None],
            },
        }
    },
}


def written(folder: Path, value, name="recording.json") -> Path:
    path = folder / name
    lines = isinstance(value, list) and value is EVENTS
    path.write_text("\n".join(map(json.dumps, value)) if lines else json.dumps(value))
    return path


def calls_or_reason(path, form):
    try:
        return calls_of(read(path, form))
    except ReplayError as refusal:
        return refusal.reason


def calls_of(recording):
    return [call for session in recording.sessions for call in session.calls]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_is_recognised_by_content(name, tmp_path):
    assert read(written(tmp_path, SAMPLES[name], "nothing.to.see")).format == name


def test_the_command_line_names_every_format():
    assert list(NAMED) == list(FORMATS)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai", [("find", True), ("find", False), ("list", False)]),
        ("anthropic", [("Read", True)]),
        ("claude-code", [("Read", True), ("Read", None)]),
        ("tau-bench", [("find", True), ("find", False), ("list", False)]),
        ("tau2-bench", [("book", False), ("look", True)]),
        ("livemcpbench", [("route", True), ("route", True)]),
        ("swe-agent", [("edit", True), ("ls", False)]),
        ("toolbench", [("find", True)]),
        ("intercode", [("bash", False), ("bash", True), ("bash", True)]),
    ],
)
def test_calls_and_errors_are_read_as_the_source_says_them(name, expected, tmp_path):
    calls = calls_of(read(written(tmp_path, SAMPLES[name])))

    assert [(call.tool, call.is_error) for call in calls] == expected


def test_calls_of_one_message_are_one_turn(tmp_path):
    assert [call.turn for call in calls_of(read(written(tmp_path, CHAT)))] == [1, 2, 2]


def test_the_simulated_user_is_an_actor_of_its_own(tmp_path):
    assert [call.actor for call in calls_of(read(written(tmp_path, SAMPLES["tau2-bench"])))] == ["", "user"]


def test_a_harness_note_is_no_user_message_and_lines_with_times_keep_them(tmp_path):
    calls = calls_of(read(written(tmp_path, EVENTS)))

    assert [call.user_turn for call in calls] == [1, 1]
    assert (calls[0].started_ns, calls[0].ended_ns) == (1735689601 * 10**9, 1735689602 * 10**9)


def test_a_copied_line_counts_once(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(json.dumps(event) for event in [*EVENTS, *EVENTS]))

    assert len(calls_of(read(path))) == 2


def test_side_chains_are_actors_of_their_own(tmp_path):
    path = tmp_path / "s.jsonl"
    chain = [
        {"type": "user", "uuid": "c1", "parentUuid": None, "isSidechain": True, "message": {"content": "do this"}},
        {"type": "assistant", "uuid": "c2", "parentUuid": "c1", "isSidechain": True, "message": BLOCKS[1]},
        {"type": "assistant", "uuid": "c3", "isSidechain": True, "agentId": "x", "message": BLOCKS[1]},
    ]
    path.write_text("\n".join(json.dumps(event) for event in [*EVENTS, *chain]))

    assert [call.actor for call in calls_of(read(path))] == ["", "", "sidechain c1", "x"]


def test_a_result_belongs_to_the_oldest_unanswered_call_with_its_id(tmp_path):
    chat = [
        {"role": "assistant", "tool_calls": [openai_call("a", "one", "{}"), openai_call("a", "two", "{}")]},
        {"role": "tool", "tool_call_id": "a", "content": "first"},
        {"role": "tool", "tool_call_id": "a", "content": "second"},
        {"role": "tool", "tool_call_id": "a", "content": "orphan"},
        {"role": "tool", "tool_call_id": "z", "content": "orphan"},
    ]

    assert [call.result for call in calls_of(read(written(tmp_path, chat)))] == ["first", "second"]


def test_sessions_without_calls_are_no_sessions(tmp_path):
    assert read(written(tmp_path, {"messages": CHAT[:2]})).sessions == ()


def test_one_conversation_a_line_and_gzip_are_read(tmp_path):
    path = tmp_path / "logs.jsonl.gz"
    path.write_bytes(gzip.compress("\r\n".join(json.dumps({"messages": CHAT}) for _ in range(3)).encode("utf-8-sig")))

    assert len(read(path).sessions) == 3


def test_the_folder_after_results_is_the_tool(tmp_path):
    folder = tmp_path / "results" / "sql" / "gpt"
    folder.mkdir(parents=True)

    assert {call.tool for call in calls_of(read(written(folder, SAMPLES["intercode"])))} == {"sql"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"\xff\xfe{}", "is no UTF-8 text"),
        (b'{"messages": [', "is no complete JSON"),
        (b'{"a": 1}\n{"a": ', "line 2"),
        (b"[" * 200_000, "is nested too deeply"),
        (b'{"hello": "world"}', "is no recording of a known format"),
        (b"\x1f\x8bnot gzip", "cannot be decompressed"),
        (gzip.compress(b'{"messages": []}', mtime=0)[:-9], "cannot be decompressed"),
        (b'{"simulations": [{"messages": [7]}]}', "simulations[0].messages[0] must be an object, not a number"),
        (
            b'{"simulations": [{"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]}]}',
            "simulations[0].messages[0].tool_calls[0] has no name",
        ),
        (b'[{"role": "user", "content": "x"}, {"type": "function_call", "name": "f"}]', "OpenAI's Responses API"),
        (b'{"trajectory": [{"action": 5}]}', "trajectory[0].action must be a text"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(content, reason, tmp_path):
    path = tmp_path / "broken.json"
    path.write_bytes(content)

    with pytest.raises(ReplayError) as refusal:
        read(path)

    assert reason in refusal.value.reason


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ReplayError, match="directory"):
        read(tmp_path)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_another_format_than_the_one_asked_for_is_refused_or_empty(name, tmp_path):
    path = written(tmp_path, {"messages": "x", "turn_history": 1})

    assert calls_or_reason(path, name) in (
        [],
        f"is no {name} recording",
        "the task.turn_history must be an object, not a number",
    )


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just("assistant")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["role", "content", "id", "name", "type", "tool_calls"]), inner, max_size=3),
    ),
    max_leaves=6,
)


def mutated(value, path, replacement):
    """Put *replacement* where *path*, a list of numbers, leads inside *value*."""
    if not path or not isinstance(value, dict | list) or not value:
        return replacement
    keys = list(value) if isinstance(value, dict) else range(len(value))
    key = keys[path[0] % len(keys)]
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = mutated(value[key], path[1:], replacement)
    return copy


@pytest.mark.parametrize("name", SAMPLES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(path=st.lists(st.integers(0, 9), max_size=9), replacement=json_values)
def test_whatever_stands_anywhere_the_answer_is_a_recording_or_a_reason(name, path, replacement, tmp_path):
    file = tmp_path / "fuzzed.json"
    file.write_text(json.dumps(mutated(SAMPLES[name], path, replacement)))
    for form in (None, name):
        found = calls_or_reason(file, form)

        assert isinstance(found, str) or all(isinstance(call.tool, str) for call in found)
