"""The functions that stand in for a tool, one for each kind of callable: the only place where a tool is run.

Their code reads closure variables only, builtins included, because it runs over the globals of the tool (see
[`changeover.identity`][changeover.identity]). Each runs the tool once, whatever ours does: what fails before it leaves
the bare call, what fails after it leaves the bare result. `BaseException` is caught to be recorded, and always goes on.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, cast

from .calls import LegacyStands
from .follow import followed
from .kinds import Kind, is_generator_based_coroutine

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator

    from .calls import Tool


def stand_in(fn: Callable[..., Any], tool: Tool, kind: Kind) -> types.FunctionType:
    """Return the function that is called in place of *fn*."""
    if kind is Kind.COROUTINE:
        template: Callable[..., Any] = _coroutine(fn, tool)
    elif kind is Kind.GENERATOR:
        template = _generator(fn, tool)
        if is_generator_based_coroutine(fn):
            template = types.coroutine(template)
    elif kind is Kind.ASYNC_GENERATOR:
        template = _async_generator(fn, tool)
    else:
        template = _function(fn, tool)
    return cast("types.FunctionType", template)


def _function(fn: Callable[..., Any], tool: Tool) -> Callable[..., Any]:
    begin, failed, finished = tool.begin, tool.failed, followed
    fault, anything, stands = Exception, BaseException, LegacyStands

    def call_tool(*args: Any, **kwargs: Any) -> Any:
        try:
            call = begin(args, kwargs)
        except fault:
            call = None
        if call is None:
            return fn(*args, **kwargs)
        try:
            result = fn(*args, **kwargs)
        except anything as error:
            try:
                answer = failed(call, error)
            except fault:
                call.abandon()
                answer = stands
            if answer is stands:
                raise
            return answer
        try:
            return finished(tool, call, result)
        except fault:
            call.abandon()
            return result

    return call_tool


def _coroutine(fn: Callable[..., Coroutine[Any, Any, Any]], tool: Tool) -> Callable[..., Any]:
    begin, failed, returned = tool.begin, tool.failed, tool.returned
    fault, anything, stands = Exception, BaseException, LegacyStands

    async def call_tool(*args: Any, **kwargs: Any) -> Any:
        try:
            call = begin(args, kwargs)
        except fault:
            call = None
        if call is None:
            return await fn(*args, **kwargs)
        try:
            result = await fn(*args, **kwargs)
        except anything as error:
            try:
                answer = failed(call, error)
            except fault:
                call.abandon()
                answer = stands
            if answer is stands:
                raise
            return answer
        try:
            return returned(call, result)
        except fault:
            call.abandon()
            return result

    return call_tool


def _generator(  # noqa: C901 - one state machine, which reads worse in pieces
    fn: Callable[..., Generator[Any, Any, Any]], tool: Tool
) -> Callable[..., Any]:
    begin, failed, exhausted = tool.begin_steps, tool.failed, tool.exhausted
    fault, anything, stands, end = Exception, BaseException, LegacyStands, StopIteration

    def call_tool(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:  # noqa: C901 - the same
        try:
            call = begin(args, kwargs)
        except fault:
            call = None
        if call is None:
            return (yield from fn(*args, **kwargs))
        steps: Any = None
        sent: Any = None
        thrown: Any = None
        while True:
            try:
                call.enter()
                try:
                    if steps is None:
                        steps = fn(*args, **kwargs)
                    item = steps.send(sent) if thrown is None else steps.throw(thrown)
                finally:
                    call.leave()
            except end as stop:
                result = stop.value
                break
            except anything as error:
                try:
                    answer = failed(call, error)
                except fault:
                    answer = stands
                if answer is stands:
                    raise
                yield answer
                return None
            thrown = None
            call.take_item(item)
            try:
                sent = yield item
            except anything as error:  # thrown in by the caller, closing included: the tool's own to handle
                thrown = error
        try:  # noqa: SIM105 - `suppress` would be a global
            exhausted(call, result)
        except fault:
            pass
        return result

    return call_tool


def _async_generator(  # noqa: C901 - the same
    fn: Callable[..., AsyncGenerator[Any, Any]], tool: Tool
) -> Callable[..., Any]:
    begin, failed, exhausted = tool.begin_steps, tool.failed, tool.exhausted
    fault, anything, stands, end = Exception, BaseException, LegacyStands, StopAsyncIteration

    async def call_tool(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:  # noqa: C901, PLR0912 - the same
        try:
            call = begin(args, kwargs)
        except fault:
            call = None
        steps: Any = None
        sent: Any = None
        thrown: Any = None
        while True:
            try:
                if call is not None:
                    call.enter()
                try:
                    if steps is None:
                        steps = fn(*args, **kwargs)
                    item = await (steps.asend(sent) if thrown is None else steps.athrow(thrown))
                finally:
                    if call is not None:
                        call.leave()
            except end:
                break
            except anything as error:
                answer = stands
                if call is not None:
                    try:
                        answer = failed(call, error)
                    except fault:
                        answer = stands
                if answer is stands:
                    raise
                yield answer
                return
            thrown = None
            if call is not None:
                call.take_item(item)
            try:
                sent = yield item
            except anything as error:  # thrown in by the caller, closing included: the tool's own to handle
                thrown = error
        if call is not None:
            try:  # noqa: SIM105 - the same
                exhausted(call, None)
            except fault:
                pass

    return call_tool
