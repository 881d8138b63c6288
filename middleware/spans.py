"""How a call becomes a span: a light one of our own on the hot path, and the line that records it.

The span is a real one to everything inside the tool, with real ids and the host's sampling decision, so that whatever
the tool traces becomes its child. Nothing of the OpenTelemetry SDK is needed or touched while the tool runs.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import Span, SpanContext, Status, StatusCode, TraceFlags, TraceState

from . import ids
from .semconv import EXECUTE_TOOL, OPERATION_NAME, SERVICE_NAME, TOOL_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.util.types import Attributes, AttributeValue

RECORD_VERSION: Final = 1
SAMPLED: Final = int(TraceFlags.SAMPLED)
NOT_SAMPLED: Final = int(TraceFlags.DEFAULT)

_NO_STATE: Final = TraceState()


class LightSpan(Span):
    """An ``execute_tool`` span that costs next to nothing.

    It reports itself as recording only when the host's sampler wants it, since only then does anyone see what a tool
    adds to it. Our own record is written either way.

    Args:
        name: ``execute_tool <tool>``.
        trace_id: the trace it belongs to.
        parent: the span it is a child of; ``None`` for the root of a trace.
        flags: W3C trace flags that children inherit.
        state: the trace state that children inherit.
        host: whether the host's processors get this span.
    """

    def __init__(
        self,
        name: str,
        trace_id: int,
        parent: SpanContext | None,
        flags: int,
        state: TraceState | None = None,
        *,
        host: bool = False,
    ) -> None:
        self.name = name
        self.trace_id = trace_id
        self.span_id = ids.span_id()
        self.parent = parent
        self.flags = flags
        self.state = _NO_STATE if state is None else state
        self.host = host
        self.start_ns = time.time_ns()
        self.end_ns: int | None = None
        self.extra: dict[str, Any] | None = None
        self.events: list[tuple[str, int, Attributes]] | None = None
        self.status: Status | None = None
        self._context: SpanContext | None = None

    def get_span_context(self) -> SpanContext:
        """Return the ids that children refer to; built when first asked for, which most tools never do."""
        context = self._context
        if context is None:
            context = SpanContext(
                self.trace_id, self.span_id, is_remote=False, trace_flags=TraceFlags(self.flags), trace_state=self.state
            )
            self._context = context
        return context

    def is_recording(self) -> bool:
        """Return whether what is added to this span reaches anyone."""
        return self.host and self.end_ns is None

    def end(self, end_time: int | None = None) -> None:
        """End the span; only the first call counts."""
        if self.end_ns is None:
            self.end_ns = time.time_ns() if end_time is None else end_time

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        """Keep an attribute of the tool's own for the host's processors."""
        if self.is_recording():
            if self.extra is None:
                self.extra = {}
            self.extra[key] = value

    def set_attributes(self, attributes: Mapping[str, AttributeValue]) -> None:
        """Keep attributes of the tool's own for the host's processors."""
        for key, value in attributes.items():
            self.set_attribute(key, value)

    def add_event(self, name: str, attributes: Attributes = None, timestamp: int | None = None) -> None:
        """Keep an event of the tool's own for the host's processors."""
        if self.is_recording():
            if self.events is None:
                self.events = []
            self.events.append((name, time.time_ns() if timestamp is None else timestamp, attributes))

    def add_link(self, context: SpanContext, attributes: Attributes = None) -> None:
        """Take no link: what a tool call refers to is its parent."""

    def update_name(self, name: str) -> None:
        """Keep the name: it is how the store knows the tool."""

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        """Keep the tool's own view of how it went for the host's processors; our outcome decides over an unset one."""
        if self.is_recording():
            self.status = status if isinstance(status, Status) else Status(status, description)

    def record_exception(
        self,
        exception: BaseException,
        attributes: Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,  # noqa: ARG002, FBT001, FBT002 - OpenTelemetry's signature
    ) -> None:
        """Keep the type of an exception the tool handled; its text and stack may hold secrets and are left out."""
        self.add_event("exception", {**(attributes or {}), "exception.type": type(exception).__qualname__}, timestamp)


def parent_of(span: Span) -> SpanContext | None:
    """Return the context of *span* if it can be a parent, whatever kind of span the host put there."""
    context = span.get_span_context()
    # A foreign kind of span may hand out anything.
    known: object = context
    return context if isinstance(known, SpanContext) and context.is_valid else None


def span_name(tool: str) -> str:
    """Return ``execute_tool <tool>``, as the conventions for generative AI have it."""
    return f"{EXECUTE_TOOL} {tool}"


def build_record(
    *,
    tool: str,
    trace_id: str,
    span_id: str,
    start_ns: int,
    end_ns: int,
    status: str,
    attributes: Mapping[str, Any],
    parent_span_id: str | None = None,
    events: Sequence[Mapping[str, Any]] = (),
    service: str,
) -> dict[str, Any]:
    """Return one record as the spool holds it and the store takes it in; ``docs/record.md`` describes each field.

    Args:
        tool: the tool's name.
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits; with *trace_id* the identity of the call, stored once however often delivered.
        start_ns: nanoseconds since the epoch.
        end_ns: nanoseconds since the epoch.
        status: ``ok``, ``error`` or ``unset``.
        attributes: by the names of [`changeover.semconv`][changeover.semconv]; operation and tool name are added.
        parent_span_id: 16 hexadecimal digits, or ``None`` for the root of a trace.
        events: ``{"name", "time_unix_nano", "attributes"}`` each.
        service: the ``service.name``.
    """
    return {
        "kind": "span",
        "v": RECORD_VERSION,
        "trace_id": trace_id,
        "span_id": span_id,
        "parent_span_id": parent_span_id,
        "name": span_name(tool),
        "start_time_unix_nano": start_ns,
        "end_time_unix_nano": end_ns,
        "status": status,
        "resource": {SERVICE_NAME: service},
        "attributes": {OPERATION_NAME: EXECUTE_TOOL, TOOL_NAME: tool, **attributes},
        "events": list(events),
    }
