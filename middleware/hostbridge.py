"""What the host's own tracing gets to see: its sampler decides, its processors receive the span, off the hot path.

Only a host that configured the OpenTelemetry SDK has either; it is recognised by what its provider can do, so that
nothing of the SDK is imported for a host without one.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from opentelemetry.trace import ProxyTracerProvider, SpanKind, Status, StatusCode, TraceState, get_tracer_provider

from .losses import Loss
from .quiet import quiet
from .spans import SAMPLED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import TracerProvider

    from .spans import LightSpan

_SDK: Final = "opentelemetry.sdk.trace"
_QUEUE_SPANS: Final = 8192
_BATCH_SECONDS: Final = 0.05
_STATUS: Final = {"ok": StatusCode.OK, "error": StatusCode.ERROR, "unset": StatusCode.UNSET}


class Sampling(NamedTuple):
    """The host sampler's word on one span.

    Attributes:
        flags: W3C trace flags for the children.
        state: trace state for the children.
        wanted: whether the host's processors get the span.
        attributes: what the sampler wants to stand on it.
    """

    flags: int
    state: TraceState
    wanted: bool
    attributes: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished call, as the host is to see it."""

    host: Host
    span: LightSpan
    attributes: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]
    status: str


class Host:
    """The host's tracer provider, as far as we use it.

    Args:
        provider: an SDK ``TracerProvider`` or something with the same parts.
    """

    def __init__(self, provider: TracerProvider) -> None:
        self.provider = provider
        self._sampler: Any = provider.sampler  # type: ignore[attr-defined] # checked by `recognised`
        self._processor: Any = provider._active_span_processor  # type: ignore[attr-defined] # noqa: SLF001 - there is no public way to hand over a finished span

    @staticmethod
    def recognised(provider: TracerProvider) -> bool:
        """Return whether *provider* can sample and has processors, and was not switched off by the environment."""
        parts = ("sampler", "resource", "_active_span_processor")
        return all(hasattr(provider, part) for part in parts) and not getattr(provider, "_disabled", False)

    def sample(self, context: Context, trace_id: int, name: str, attributes: Mapping[str, Any]) -> Sampling:
        """Ask the host's sampler, which may raise."""
        result = self._sampler.should_sample(context, trace_id, name, SpanKind.INTERNAL, attributes, ())
        flags = SAMPLED if result.decision.is_sampled() else 0
        return Sampling(flags, result.trace_state or TraceState(), result.decision.is_recording(), result.attributes)

    def deliver(self, finished: Finished) -> None:
        """Hand *finished* to the host's processors, which may raise."""
        self._processor.on_end(self._readable(finished))

    def _readable(self, finished: Finished) -> ReadableSpan:
        from opentelemetry.sdk.trace import Event, ReadableSpan
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        span = finished.span
        own = [Event(e["name"], e["attributes"], e["time_unix_nano"]) for e in finished.events]
        theirs = [Event(name, attributes, at) for name, at, attributes in span.events or ()]
        unset = finished.status == "unset" or (finished.status == "ok" and span.status is not None)
        return ReadableSpan(
            name=span.name,
            context=span.get_span_context(),
            parent=span.parent,
            resource=self.provider.resource,  # type: ignore[attr-defined] # checked by `recognised`
            attributes={**(span.extra or {}), **finished.attributes},
            events=sorted(own + theirs, key=lambda event: event.timestamp),
            kind=SpanKind.INTERNAL,
            status=(span.status or Status()) if unset else Status(_STATUS[finished.status]),
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=InstrumentationScope("changeover"),
        )


class HostBridge:
    """Finds the host's provider and carries spans to it in the background.

    Args:
        report: counts a drop or fault under a reason.
        find_provider: where the provider is; OpenTelemetry's global one.
    """

    def __init__(
        self,
        report: Callable[[str, BaseException | None], None],
        *,
        find_provider: Callable[[], TracerProvider] = get_tracer_provider,
    ) -> None:
        self._report = report
        self._find_provider = find_provider
        self._seen: TracerProvider | None = None
        self._host: Host | None = None
        self._reset()

    def _reset(self) -> None:
        self._items: deque[Finished] = deque()
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._stop = threading.Event()
        self._starting = threading.RLock()
        self._delivering = threading.Lock()
        self._thread: threading.Thread | None = None
        self._threadless = False

    def host(self) -> Host | None:
        """Return the host's tracing as it is now: a host may configure its SDK after the first call."""
        if _SDK not in sys.modules:
            return None
        provider = self._find_provider()
        if provider is self._seen:
            return self._host
        usable = not isinstance(provider, ProxyTracerProvider) and Host.recognised(provider)
        self._host = Host(provider) if usable else None
        self._seen = provider
        return self._host

    def hand_over(self, finished: Finished) -> None:
        """Queue *finished*; when the host's processors are too slow, it is dropped and counted."""
        if len(self._items) >= _QUEUE_SPANS:
            self._report(Loss.HOST_QUEUE_FULL, None)
            return
        self._items.append(finished)
        if self._thread is None:
            self._start()
        if not self._wake.is_set():
            self._wake.set()

    def flush(self, timeout: float) -> bool:
        """Return whether every queued span has reached the host's processors within *timeout* seconds."""
        deadline = time.monotonic() + timeout
        if self._threadless:
            self._deliver_all()
        self._hurry.set()
        while self._items or self._delivering.locked():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.001)
        return True

    def close(self) -> None:
        """End the thread once it has delivered what is queued."""
        with self._starting:
            self._thread = None
            self._stop.set()
            self._hurry.set()
            self._wake.set()

    def forget_parent(self) -> None:
        """Begin afresh in a forked child: what is queued is the parent's to deliver."""
        self._reset()

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None or self._threadless:
                return
            if sys.is_finalizing():
                self._threadless = True
                return
            self._stop = threading.Event()
            thread = threading.Thread(target=self._run, args=(self._stop,), name="changeover-host", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                self._threadless = True  # the interpreter is going down; `flush` delivers
            else:
                self._thread = thread

    def _run(self, stop: threading.Event) -> None:
        with quiet():
            while not stop.is_set():
                self._wake.wait()
                # A pause collects a batch, so that a busy tool is not disturbed for every single span.
                self._hurry.wait(_BATCH_SECONDS)
                self._hurry.clear()
                self._wake.clear()
                self._deliver_all()

    def _deliver_all(self) -> None:
        with self._delivering:
            while self._items:
                finished = self._items.popleft()
                try:
                    finished.host.deliver(finished)
                except Exception as fault:  # noqa: BLE001 - a processor of the host may raise anything
                    self._report(Loss.HOST_ERROR, fault)
