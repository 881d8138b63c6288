"""Results that are still on their way when a plain function returns: futures, and coroutines it did not await."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Final

from .calls import LegacyStands
from .kinds import is_opaque_awaitable
from .losses import Loss

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .call import Call
    from .calls import Tool

_PLAIN: Final = frozenset({dict, str, list, tuple, int, float, bool, type(None), bytes})


def followed(tool: Tool, call: Call, result: Any) -> Any:
    """Return what a plain function hands back for *result*, and see that the call is recorded when it has ended.

    A future or task is handed back itself and recorded when it is done. Something that can only be awaited is
    replaced by a coroutine that awaits it, as calling an ``async def`` gives one. Everything else is the result.
    """
    if type(result) in _PLAIN:
        return tool.returned(call, result)
    try:
        if _is_future(type(result)):
            call.leave()
            result.add_done_callback(lambda future: _settled(tool, call, future))
            return result
        if is_opaque_awaitable(type(result)):
            call.leave()
            return _awaited(tool, call, result)
    except Exception as fault:  # noqa: BLE001 - the boundary: the result is handed back as it is
        call.runtime.fault(Loss.RECORD_ERROR, fault)
    return tool.returned(call, result)


def _is_future(kind: type) -> bool:
    # The type is asked, never the value, which may answer anything or raise: https://docs.python.org/3/library/asyncio-future.html#asyncio.isfuture
    if hasattr(kind, "_asyncio_future_blocking"):
        return True
    # A future of a thread pool can only exist when its module was imported.
    futures = sys.modules.get("concurrent.futures")
    return futures is not None and issubclass(kind, futures.Future)


def _settled(tool: Tool, call: Call, future: Any) -> None:
    try:
        if future.cancelled():
            tool.failed(call, asyncio.CancelledError())
            return
        # Not `exception()`: asking marks the error as seen, and a host that forgets it would no longer be told.
        error = future._exception if hasattr(future, "_exception") else future.exception()  # noqa: SLF001
        if error is not None:
            tool.failed(call, error)
        else:
            tool.returned(call, future.result())
    except Exception as fault:  # noqa: BLE001 - the boundary: a callback that raises disturbs the host's loop
        call.runtime.fault(Loss.RECORD_ERROR, fault)


async def _awaited(tool: Tool, call: Call, pending: Awaitable[Any]) -> Any:
    call.enter()
    try:
        result = await pending
    except BaseException as error:
        try:
            answer = tool.failed(call, error)
        except Exception:  # noqa: BLE001 - the boundary: the tool's own error goes on
            answer = LegacyStands
        if answer is LegacyStands:
            raise
        return answer
    try:
        return tool.returned(call, result)
    except Exception:  # noqa: BLE001 - the same
        return result
