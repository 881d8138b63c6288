"""Stages legacy and shadow: the tool runs once, and its caller gets the very same result or exception."""

# ruff: noqa: PLW0108 - a plain function that returns an awaitable is what these are about
from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import sys

import pytest

import changeover


@pytest.fixture(params=["legacy", "shadow"])
def stage(request, recording):
    if request.param == "legacy":
        recording.flag("tool", "legacy", 0)
    return request.param


def test_the_identical_object_is_handed_back(stage, recording):
    value = {"a": [1]}
    wrapped = changeover.wrap(lambda: value, name="tool")

    assert wrapped() is value
    assert recording.attributes["changeover.stage"] == stage


def test_br_02_02_the_identical_exception_propagates(stage):
    cause = KeyError("cause")
    raised = ValueError("no")
    calls = []

    def tool():
        calls.append(1)
        raise raised from cause

    with pytest.raises(ValueError, match="no") as caught:
        changeover.wrap(tool)()

    assert caught.value is raised
    assert raised.__cause__ is cause
    assert raised.__context__ is None
    assert calls == [1]
    frames = [frame.name for frame in caught.traceback]
    assert frames[-1] == "tool"


def test_an_exception_raised_while_handling_another_keeps_its_context(stage):
    def tool():
        raise ValueError("no")

    wrapped = changeover.wrap(tool)
    outer = KeyError("outer")

    def handle():
        try:
            raise outer
        except KeyError:
            wrapped()

    with pytest.raises(ValueError, match="no") as caught:
        handle()
    assert caught.value.__context__ is outer
    assert sys.exception() is None


def test_a_coroutine_function_gives_the_identical_object_and_exception(stage):
    value, raised = object(), ValueError("no")

    async def tool(fail: bool):
        await asyncio.sleep(0)
        if fail:
            raise raised
        return value

    async def main():
        wrapped = changeover.wrap(tool)
        assert await wrapped(fail=False) is value
        with pytest.raises(ValueError, match="no") as caught:
            await wrapped(fail=True)
        assert caught.value is raised

    asyncio.run(main())


def test_a_failure_returned_as_a_value_stays_that_value(stage, recording):
    value = {"isError": True, "content": [{"type": "text", "text": "db refused"}], "structuredContent": {"answer": 42}}
    wrapped = changeover.wrap(lambda: value, name="tool")

    assert wrapped() is value
    assert recording.outcomes == ["error"]


def test_br_02_14_a_null_error_field_is_a_success(recording):
    for value in ({"results": [{"error": None}]}, {"error": None, "data": [1]}, {"status": "failed", "run": 9}):
        assert changeover.wrap(lambda value=value: value, name="tool")() is value

    assert recording.outcomes == ["ok", "ok", "ok"]
    assert [r["attributes"].get("changeover.unclassified") for r in recording.records] == [None, None, True]


def test_shadow_records_both_payloads_and_legacy_only_counts(stage, recording):
    def tool():
        raise TimeoutError("slow")

    with pytest.raises(TimeoutError):
        changeover.wrap(tool)()

    found = recording.attributes
    assert found["changeover.outcome"] == "error"
    assert found["error.type"] == "outcome_unknown"
    assert found["changeover.served"] == "legacy"
    assert found.get("changeover.legacy.payload") == ("TimeoutError: slow" if stage == "shadow" else None)
    assert ("changeover.structured.payload" in found) == (stage == "shadow")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_br_05_11_what_calls_off_propagates_and_is_no_error(kind, stage, recording):
    raised = kind("stop")

    def tool():
        raise raised

    with pytest.raises(kind) as caught:
        changeover.wrap(tool)()

    assert caught.value is raised
    assert recording.outcomes == ["cancelled"]
    assert "error.type" not in recording.attributes


def test_br_05_11_a_cancelled_task_and_a_timeout_around_it(recording):
    async def tool():
        await asyncio.sleep(30)

    wrapped = changeover.wrap(tool)

    async def main():
        task = asyncio.create_task(wrapped())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await wrapped()

    asyncio.run(main())
    assert recording.outcomes == ["cancelled", "cancelled"]


def test_a_future_or_task_is_handed_back_itself_and_recorded_when_done(recording):
    async def later(value):
        await asyncio.sleep(0)
        if value is None:
            raise ValueError("no")
        return value

    made = []

    def tool(value):
        made.append(asyncio.ensure_future(later(value)))
        return made[-1]

    async def main():
        wrapped = changeover.wrap(tool)
        task = wrapped(1)
        assert task is made[0]
        assert recording.records == []
        assert await task == 1
        with pytest.raises(ValueError, match="no"):
            await wrapped(None)
        called_off = wrapped(3)
        called_off.cancel()
        with pytest.raises(asyncio.CancelledError):
            await called_off
        await asyncio.sleep(0)

    asyncio.run(main())
    assert recording.outcomes == ["ok", "error", "cancelled"]


def test_watching_a_task_does_not_hide_that_its_error_was_never_seen(recording):
    complaints = []

    async def fail():
        raise ValueError("forgotten")

    def tool():
        return asyncio.ensure_future(fail())

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context["message"]))
        changeover.wrap(tool)()
        await asyncio.sleep(0.01)

    asyncio.run(main())
    import gc

    gc.collect()
    assert recording.outcomes == ["error"]
    assert complaints == ["Task exception was never retrieved"]


def test_a_future_of_a_thread_pool_is_recorded_when_done(recording):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = changeover.wrap(lambda: pool.submit(lambda: 7), name="tool")()
        assert future.result() == 7

    assert recording.outcomes == ["ok"]


def test_br_05_15_every_awaitable_gives_the_same_value(recording):
    async def value():
        return 7

    async def numbers():
        yield 7

    class Later:
        extra = "kept"

        def __await__(self):
            return value().__await__()

    async def main():
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        done.set_result(7)
        assert await changeover.wrap(lambda: value(), name="coroutine")() == 7
        assert await changeover.wrap(lambda: anext(numbers()), name="anext")() == 7
        assert await changeover.wrap(lambda: anext(numbers(), 1), name="anext default")() == 7
        assert await changeover.wrap(lambda: done, name="future")() == 7
        assert await changeover.wrap(lambda: asyncio.ensure_future(value()), name="task")() == 7
        assert await changeover.wrap(functools.partial(value), name="partial")() == 7
        later = changeover.wrap(lambda: Later(), name="object")()
        assert later.extra == "kept"
        assert await later == 7
        await asyncio.sleep(0)

    asyncio.run(main())
    assert recording.outcomes == ["ok"] * 7


def test_a_coroutine_that_a_plain_function_returned_is_recorded_as_it_ends(recording):
    async def fail():
        raise ValueError("no")

    async def main():
        with pytest.raises(ValueError, match="no"):
            await changeover.wrap(lambda: fail(), name="tool")()

    asyncio.run(main())
    assert recording.outcomes == ["error"]


def test_the_order_of_calls_is_unchanged_and_each_is_recorded_once(recording):
    order = []
    tools = [changeover.wrap(lambda n=n: order.append(n), name=f"t{n}") for n in range(5)]
    for tool in tools:
        tool()

    assert order == [0, 1, 2, 3, 4]
    assert [r["attributes"]["gen_ai.tool.name"] for r in recording.records] == ["t0", "t1", "t2", "t3", "t4"]
    sequences = [r["attributes"]["changeover.sequence"] for r in recording.records]
    assert sequences == sorted(set(sequences))


def test_a_wrong_call_is_told_from_a_bug_in_the_body(recording):
    def tool(x: int):
        return None + x

    wrapped = changeover.wrap(tool)
    with pytest.raises(TypeError):
        wrapped(1)
    with pytest.raises(TypeError):
        wrapped(y=1)

    codes = [(r["attributes"]["error.type"], r["attributes"]["changeover.next_action"]) for r in recording.records]
    assert codes == [("internal_error", "stop"), ("validation_error", "ask_user")]
    assert '"missing":["x"]' in recording.records[1]["attributes"]["changeover.structured.payload"]
