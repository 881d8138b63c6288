"""Shapes that recorded formats come in besides the usual one."""

from __future__ import annotations

import json

import pytest

from changeover.store.replay.model import ReplayError
from changeover.store.replay.read import read


@pytest.fixture
def recording(tmp_path):
    def write_and_read(*documents, name="recording.json"):
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, documents)))
        return read(path)

    return write_and_read


def calls(recording):
    return [call for session in recording.sessions for call in session.calls]


def asks(tool="find", call_id="a", arguments="{}"):
    return {"role": "assistant", "tool_calls": [{"id": call_id, "function": {"name": tool, "arguments": arguments}}]}


def answers(content, call_id="a", **more):
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


USES = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}


def test_intercode_tasks_under_logs(recording):
    task = {"environment": "ic_sql", "turn_history": {"actions": ["show"], "observations": ["x"], "valid_action": [1]}}
    found = recording({"meta": {"env": "sql"}, "logs": {"7": task, "8": task}})

    assert (found.format, len(found.sessions), {call.tool for call in calls(found)}) == ("intercode", 2, {"sql"})


def test_intercode_tasks_done_by_hand(recording):
    steps = [{"action": "ls", "observation": "a"}, {"action": "x", "observation": "bash: x"}, {"action": "exit"}]
    found = recording({"1": {"environment": "ic_bash", "query": "?", "trajectory": steps}})

    assert found.format == "intercode"
    assert [(call.tool, call.is_error) for call in calls(found)] == [("bash", False), ("bash", True), ("bash", None)]


def test_a_swe_agent_trajectory_names_its_environment_too(recording):
    found = recording({"environment": "swe_main", "trajectory": [{"action": "ls -a", "observation": "x"}]})

    assert (found.format, calls(found)[0].tool) == ("swe-agent", "ls")


def test_a_toolbench_answer_that_was_given_up_holds_no_session(recording):
    found = recording({"win": False, "tree": {}, "answer_generation": {"valid_data": False, "chain": []}})

    assert (found.format, found.sessions) == ("toolbench", ())


def test_a_tau_bench_run_that_broke_off_holds_no_session(recording):
    found = recording([{"task_id": 1, "info": {"error": "x"}, "traj": []}, {"traj": [asks(), answers("Error: x")]}])

    assert [call.is_error for call in calls(found)] == [True]


def test_grouped_tool_messages_of_tau2_bench(recording):
    two = {"role": "tool", "tool_messages": [{"role": "tool", "id": name, "content": name} for name in ("b", "a")]}
    found = recording({"simulations": [{"messages": [asks("one", "a"), asks("two", "b"), two]}, {"messages": None}]})

    assert [(call.tool, call.result) for call in calls(found)] == [("one", "a"), ("two", "b")]


def test_each_conversation_is_read_by_its_own_shape(recording):
    found = recording({"messages": [asks(), answers("x")]}, {"messages": []}, {"id": 1}, [USES, RESULT], name="l.jsonl")

    assert [(call.tool, call.result) for call in calls(found)] == [("find", "x"), ("Read", "x")]


def test_one_message_a_line_is_one_conversation(recording):
    assert len(recording(asks(), answers("x"), asks(), answers("y"), name="one.jsonl").sessions) == 1


def test_a_list_of_lists_is_a_list_of_conversations(recording):
    assert len(recording([[asks()], [], [asks()]]).sessions) == 2


def test_a_tool_that_takes_text_instead_of_arguments(recording):
    custom = {"id": "a", "type": "custom", "custom": {"name": "run", "input": "print(1)"}}
    (call,) = calls(recording([{"role": "assistant", "tool_calls": [custom]}, answers("1")]))

    assert (call.tool, call.arguments, call.result) == ("run", "print(1)", "1")


def test_the_id_of_a_function_message_is_its_own(recording):
    asked = {"role": "assistant", "function_call": {"name": "find", "arguments": "{}"}}
    (call,) = calls(recording([asked, {"role": "function", "id": "msg_1", "name": "find", "content": "x"}]))

    assert call.result == "x"


@pytest.mark.parametrize(
    ("message", "failed"),
    [
        (answers("fine", error=True), True),
        (answers("Error", error=False), False),
        (answers("fine", status="error"), True),
        (answers("Error", status="success"), False),
        (answers('{"isError": true}'), True),
        (answers('{"ok": false, "error": {}}'), True),
        (answers('{"ok": true, "error": "x"}'), False),
        (answers('{"error": null}'), False),
        (answers("Error: x"), True),
        (answers("an Error"), False),
        (answers(None), False),
        (answers([{"type": "text", "text": "Error"}]), True),
    ],
)
def test_how_a_chat_message_says_error(message, failed, recording):
    assert calls(recording([asks(), message]))[0].is_error is failed


@pytest.mark.parametrize("content", [None, "", " \n", [], [{"type": "image"}], [" "], [{"type": "text", "text": " "}]])
def test_a_user_message_without_text_is_none(content, recording):
    found = recording([asks(), {"role": "user", "content": content}, asks()])

    assert [call.user_turn for call in calls(found)] == [0, 0]


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ([[asks(), "hello"]], "messages[1] must be an object, not a text"),
        ([[{"messages": [asks()]}, 7]], "[1] must be a conversation"),
        ([[{"messages": [asks()]}, {"messages": 7}]], "[1].messages must be a list, not a number"),
        ([[{"role": "assistant", "tool_calls": {}}]], "messages[0].tool_calls must be a list, not an object"),
        ([[{"role": "assistant", "tool_calls": [None]}]], "messages[0].tool_calls[0] must be an object, not null"),
        ([[{"role": "assistant", "function_call": {}}]], "messages[0].function_call has no name"),
        ([[USES, {"role": "user", "content": 7}]], "messages[1].content must be a list, not a number"),
        ([{"answer_generation": {"train_messages": [[], 7]}}], "train_messages[1] must be a list, not a number"),
        ([{"1": {"turn_history": {"actions": [7]}}}], "1.turn_history.actions[0] must be a text"),
    ],
)
def test_what_breaks_is_named_by_its_place(documents, reason, recording):
    with pytest.raises(ReplayError) as refusal:
        recording(*documents)

    assert reason in refusal.value.reason


def test_lines_are_counted_with_the_blank_ones(tmp_path):
    event = {"type": "user", "uuid": "u", "message": {"content": "go"}}
    path = tmp_path / "session.jsonl"
    path.write_text(f"{json.dumps(event)}\n\n\r\n[]\n")

    with pytest.raises(ReplayError, match="line 4 must be an object, not a list"):
        read(path)


def test_times_of_a_recording_that_make_no_sense_are_left_out(recording):
    moments = ["2025-01-01T00:00:00Z", "yesterday", 7, "0001-01-01T00:00:00", "9999-12-31T23:59:59+00:00", None]
    found = recording({"simulations": [{"messages": [{**asks(), "timestamp": moment} for moment in moments]}]})

    assert [call.started_ns for call in calls(found)] == [1735689600 * 10**9, None, None, None, None, None]
