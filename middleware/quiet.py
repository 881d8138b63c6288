"""Our own work leaves no trace in anybody's telemetry: no spans of our SQL, no record of a tool that we call."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from opentelemetry import context as otel
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from . import ids

if TYPE_CHECKING:
    from collections.abc import Iterator

# Instrumentations read one spelling or the other, depending on their version; the last has a random part.
_SUPPRESS: Final = (
    "suppress_instrumentation",
    "suppress_http_instrumentation",
    getattr(otel, "_SUPPRESS_INSTRUMENTATION_KEY", "suppress_instrumentation"),
    getattr(otel, "_SUPPRESS_HTTP_INSTRUMENTATION_KEY", "suppress_http_instrumentation"),
)

_ours: ContextVar[bool] = ContextVar("changeover_ours", default=False)


def is_ours() -> bool:
    """Return whether the running code is our own background work."""
    return _ours.get()


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress tracing for the block.

    An instrumentation that knows none of the switches still makes its spans children of an unsampled parent, which
    every parent-based sampler (the default one) drops.
    """
    unsampled = SpanContext(ids.trace_id(), ids.span_id(), is_remote=False, trace_flags=TraceFlags(TraceFlags.DEFAULT))
    context = set_span_in_context(NonRecordingSpan(unsampled))
    for key in _SUPPRESS:
        context = otel.set_value(key, True, context)
    token = otel.attach(context)
    ours = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(ours)
        otel.detach(token)
