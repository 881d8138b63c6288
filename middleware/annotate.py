"""When the host already opened an ``execute_tool`` span for this very call, ours would only nest: describe theirs."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import Status, StatusCode

from .semconv import ERROR_TYPE, TOOL_NAME
from .spans import LightSpan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.trace import Span

_claimed: Final[weakref.WeakSet[Span]] = weakref.WeakSet()
_lock = threading.RLock()


def claim(span: Span, tool: str, name: str) -> bool:
    """Return whether *span* is the host's own span of this call, and take it: a second call inside gets its own.

    Args:
        span: the current span, a recording one.
        tool: the tool's name.
        name: ``execute_tool <tool>``.
    """
    if type(span) is LightSpan or not span.is_recording():
        return False
    if getattr(span, "name", None) != name and _tool_of(span) != tool:
        return False
    with _lock:
        if span in _claimed:
            return False
        _claimed.add(span)
    return True


def describe(span: Span, attributes: Mapping[str, Any], events: Sequence[Mapping[str, Any]], *, failed: bool) -> None:
    """Put what we know about a call on the host's *span*, which the host still ends."""
    span.set_attributes(attributes)
    for event in events:
        span.add_event(event["name"], event["attributes"], event["time_unix_nano"])
    if failed:
        span.set_status(Status(StatusCode.ERROR, attributes.get(ERROR_TYPE)))


def _tool_of(span: Span) -> object:
    attributes = getattr(span, "attributes", None)
    return attributes.get(TOOL_NAME) if attributes else None


def _in_child() -> None:
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it, and is not here to let go
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_in_child)
