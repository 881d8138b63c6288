"""Generators and async generators: everything passes through, the record tells how they ended."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import types
from contextlib import aclosing
from typing import Any

import pytest
from opentelemetry import trace

import changeover


def run(main):
    return asyncio.run(main())


def echo():
    received = []
    try:
        while True:
            try:
                received.append((yield len(received)))
            except KeyError as error:
                received.append(type(error).__name__)
            if received[-1] == "stop":
                return received
    finally:
        received.append("closed")


def test_br_05_13_send_throw_close_and_return_pass_through(recording):
    bare, wrapped = echo(), changeover.wrap(echo)()

    for steps in (bare, wrapped):
        assert next(steps) == 0
        assert steps.send("x") == 1
        assert steps.throw(KeyError("k")) == 2
        with pytest.raises(StopIteration) as stop:
            steps.send("stop")
        assert stop.value.value == ["x", "KeyError", "stop", "closed"]
    assert inspect.isgenerator(wrapped)
    assert recording.outcomes == ["ok"]


def test_br_05_13_yield_from_gets_the_return_value(recording):
    def tool():
        yield 1
        return 2

    def outer():
        result = yield from changeover.wrap(tool)()
        yield result

    assert list(outer()) == [1, 2]


def test_closing_early_runs_the_tools_clean_up_and_is_no_error(recording):
    closed = []

    def tool():
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    steps = changeover.wrap(tool)()
    next(steps)
    steps.close()

    assert closed == [True]
    assert recording.outcomes == ["cancelled"]


def test_a_generator_that_ignores_closing_is_told_so_as_when_bare(recording):
    def tool():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    for make in (tool, changeover.wrap(tool)):
        steps = make()
        next(steps)
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            steps.close()


def test_an_error_after_some_items_propagates_itself_in_shadow(recording):
    raised = ValueError("no")

    def tool():
        yield 1
        raise raised

    steps = changeover.wrap(tool)()
    assert next(steps) == 1
    with pytest.raises(ValueError, match="no") as caught:
        next(steps)

    assert caught.value is raised
    assert raised.__context__ is None
    assert recording.outcomes == ["error"]


def test_a_generator_that_is_never_started_never_ran(recording):
    changeover.wrap(echo)()

    assert recording.records == []


def test_a_single_empty_item_or_nothing_said_is_told_apart(recording):
    def found_nothing():
        yield changeover.Empty()

    list(changeover.wrap(found_nothing)())

    assert recording.outcomes == ["empty"]


def test_a_last_item_of_an_explicit_failure_shape_is_an_error(recording):
    def tool():
        yield "working"
        yield {"isError": True, "message": "db refused"}

    assert len(list(changeover.wrap(tool)())) == 2
    assert recording.outcomes == ["error"]


def test_in_the_structured_arm_items_pass_and_a_failure_is_the_last_item(recording):
    recording.flag("tool")

    def tool():
        yield {"n": 1}
        raise changeover.ToolError("not_found", "There is no such order. Check the number.")

    first, last = list(changeover.wrap(tool)())

    assert first == {"n": 1}
    assert last["error"]["code"] == "not_found"
    assert recording.attributes["changeover.served"] == "structured"


def test_a_generator_based_coroutine_can_still_be_awaited(recording):
    @types.coroutine
    def tool():
        yield from asyncio.sleep(0).__await__()
        return 7

    async def main():
        return await changeover.wrap(tool)()

    assert run(main) == 7
    assert recording.outcomes == ["ok"]


async def async_echo():
    received = []
    while True:
        try:
            received.append((yield len(received)))
        except KeyError as error:
            received.append(type(error).__name__)
        if received[-1] == "stop":
            return


def test_br_05_13_asend_athrow_and_aclose_pass_through(recording):
    async def main():
        for make in (async_echo, changeover.wrap(async_echo)):
            steps = make()
            assert await steps.asend(None) == 0
            assert await steps.asend("x") == 1
            assert await steps.athrow(KeyError("k")) == 2
            with pytest.raises(StopAsyncIteration):
                await steps.asend("stop")
        assert inspect.isasyncgen(steps)
        closed = changeover.wrap(async_echo)()
        await anext(closed)
        await closed.aclose()

    run(main)
    assert recording.outcomes == ["ok", "cancelled"]


def test_an_async_generators_clean_up_runs_before_aclose_returns(recording):
    order = []

    async def tool():
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            order.append("cleaned")

    async def main():
        async with aclosing(changeover.wrap(tool)()) as steps:
            await anext(steps)
        order.append("closed")

    run(main)
    assert order == ["cleaned", "closed"]


def test_in_the_structured_arm_an_async_generator_ends_with_the_failure(recording):
    recording.flag("tool")

    async def tool():
        yield "one"
        raise ConnectionRefusedError

    async def main():
        return [item async for item in changeover.wrap(tool)()]

    items = run(main)
    assert items[0] == "one"
    assert items[1]["error"]["code"] == "upstream_unavailable"


def test_a_text_generator_ends_with_the_failure_as_text(recording):
    recording.flag("tool")

    async def tool() -> Any:
        yield "one"
        raise ConnectionRefusedError

    tool.__annotations__["return"] = "typing.AsyncIterator[str]"

    def sync_tool() -> Any:
        raise ConnectionRefusedError
        yield ""

    import typing

    sync_tool.__annotations__["return"] = typing.Iterator[str]
    (last,) = list(changeover.wrap(sync_tool, name="tool")())
    assert isinstance(last, str)
    assert '"upstream_unavailable"' in last


def test_br_06_01_closing_in_another_task_leaves_no_message(recording, caplog):
    async def tool():
        try:
            yield 1
        finally:
            await asyncio.sleep(0)

    async def main():
        steps = changeover.wrap(tool)()

        async def first():
            return await anext(steps)

        assert await asyncio.create_task(first()) == 1
        await asyncio.create_task(steps.aclose())

    with caplog.at_level(logging.DEBUG):
        run(main)
    assert "Failed to detach context" not in caplog.text
    assert recording.outcomes == ["cancelled"]


def test_the_span_is_current_inside_each_step_and_never_outside(recording):
    seen = []

    def tool():
        seen.append(trace.get_current_span().get_span_context().span_id)
        yield 1
        seen.append(trace.get_current_span().get_span_context().span_id)

    for _ in changeover.wrap(tool)():
        assert not trace.get_current_span().get_span_context().is_valid
    assert not trace.get_current_span().get_span_context().is_valid

    (record,) = recording.records
    assert seen == [int(record["span_id"], 16)] * 2


def test_what_a_step_attached_is_there_in_the_next_step_only(recording):
    from opentelemetry import context

    def tool():
        token = context.attach(context.set_value("k", "inside"))
        yield context.get_value("k")
        yield context.get_value("k")
        context.detach(token)
        yield context.get_value("k")

    steps = changeover.wrap(tool)()
    found = []
    for item in steps:
        found.append(item)
        assert context.get_value("k") is None
    assert found == ["inside", "inside", None]


def test_a_context_variable_set_by_the_caller_between_steps_is_seen(recording):
    word = contextvars.ContextVar("word", default="a")

    def tool():
        yield word.get()
        yield word.get()

    steps = changeover.wrap(tool)()
    assert next(steps) == "a"
    word.set("b")
    assert next(steps) == "b"
