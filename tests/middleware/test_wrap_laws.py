"""What holds for every value, and for every way in which a tool may be called."""

from __future__ import annotations

import concurrent.futures
import json
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import changeover

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
any_text = st.text(st.characters(exclude_categories=()))
laws = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)


@laws
@given(json_values | any_text)
def test_any_value_comes_back_itself_in_shadow_and_its_record_is_json(recording, value):
    recording.lines.clear()

    assert changeover.wrap(lambda given: given, name="tool")(value) is value
    assert len(recording.records) == 1
    assert recording.losses() == {}


@laws
@given(json_values)
def test_any_success_is_served_as_json_in_the_structured_arm(flagged, value):
    def tool() -> str:
        return value

    served = changeover.wrap(tool)()

    json.loads(served)


@laws
@given(any_text)
def test_any_message_is_recorded_as_text(recording, message):
    recording.lines.clear()

    def tool():
        raise ValueError(message)

    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is what varies
        changeover.wrap(tool)()
    assert caught.value.args == (message,)
    assert recording.attributes["changeover.legacy.payload"].startswith("ValueError")
    assert recording.losses() == {}


@pytest.fixture
def flagged(recording):
    recording.flag("tool")
    return recording


def test_equal_calls_have_equal_digests_however_they_are_spelled(recording):
    def tool(a, b=2, *, c=None):
        return None

    wrapped = changeover.wrap(tool)
    wrapped(1)
    wrapped(1.0, 2)
    wrapped(a=1, b=2, c=None)
    wrapped(True)

    digests = [record["attributes"]["changeover.args.digest"] for record in recording.records]
    assert len(set(digests[:3])) == 1
    assert digests[3] != digests[0]


def test_br_05_03_injected_and_ignored_arguments_do_not_make_calls_different(recording):
    class Agent:
        pass

    def tool(my_agent: Agent, q: str, nonce: int = 0):
        return q

    wrapped = changeover.wrap(tool, ignore=("nonce",))
    wrapped(Agent(), "x", nonce=1)
    wrapped(Agent(), "x", nonce=2)

    first, second = (record["attributes"]["changeover.args.digest"] for record in recording.records)
    assert first == second


def test_br_05_07_a_thread_without_the_callers_context_has_no_session(recording):
    wrapped = changeover.wrap(lambda n: n, name="tool")
    with changeover.session("conv-42"), concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(wrapped, 1).result()
        wrapped(2)

    first, second = (record["attributes"].get("gen_ai.conversation.id") for record in recording.records)
    assert (first, second) == (None, "conv-42")


def test_br_05_09_parallel_calls_overlap_in_their_records(recording):
    gate = threading.Barrier(4)
    wrapped = changeover.wrap(lambda n: gate.wait(10), name="tool")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(wrapped, range(4)))

    started = [record["start_time_unix_nano"] for record in recording.records]
    ended = [record["end_time_unix_nano"] for record in recording.records]
    assert max(started) <= min(ended)


def test_br_05_19_sub_agents_share_the_session_and_keep_their_names(recording):
    wrapped = changeover.wrap(lambda: 1, name="tool")
    with changeover.session("S", actor="coordinator"):
        for actor in ("a", "b"):
            with changeover.session(actor=actor):
                wrapped()

    found = [
        (record["attributes"]["gen_ai.conversation.id"], record["attributes"]["gen_ai.agent.name"])
        for record in recording.records
    ]
    assert found == [("S", "a"), ("S", "b")]


def test_br_02_20_a_result_that_is_no_data_has_no_digest(recording):
    for value in (object(), {1, 2}, (n for n in "x"), {"a": object()}, {1: 2}, "x" * 70_000, [0] * 5_000, b"x"):
        changeover.wrap(lambda value=value: value, name="tool")()

    assert [record["attributes"].get("changeover.result.digest") for record in recording.records] == [None] * 8


def test_a_spool_that_cannot_be_made_leaves_the_tool_alone(tmp_path, caplog):
    (tmp_path / "file").touch()
    changeover.configure(store=f"sqlite:///{tmp_path / 'calls.db'}", spool=tmp_path / "file" / "spool")
    wrapped = changeover.wrap(lambda n: n, name="tool")

    assert [wrapped(n) for n in range(3)] == [0, 1, 2]
    assert [record.levelname for record in caplog.records if "spool's folder" in record.message] == ["WARNING"]
    changeover.configure(recording=False)
