"""What a wrapped call costs, beside a bare call and a bare OpenTelemetry span, in one interleaved run.

    python bench/wrapper.py [--rounds 15] [--calls 2000] [--json]

Every subject is run in every round, so that a noisy moment hits all of them; figures are medians over the rounds, and
the ratio to the span is the one to look at: absolute times belong to one machine.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Status, StatusCode

import changeover
from changeover import runtime, semconv
from changeover.flags import Decision
from changeover.semconv import Arm, Reason, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SPAN = "SDK span, 12 attributes"
TARGETS = {"shadow, ok": 1.5, "shadow, error": 2.5}


class RefusedError(Exception):
    """What the failing tool raises."""


def find_order(order_id: str, limit: int = 10) -> dict[str, Any]:
    return {"id": order_id, "limit": limit, "status": "shipped"}


def fail_order(order_id: str, limit: int = 10) -> dict[str, Any]:  # noqa: ARG001 - the same signature
    raise RefusedError(f"order {order_id} is closed")


@dataclass(frozen=True)
class Subject:
    """One line of the table: what is called, and how the process is set up for it."""

    name: str
    call: Callable[[], Any]
    decision: Decision | None = None
    recording: bool = True


class Nowhere(SpanExporter):
    """Takes every span and drops it: what is measured is the making of spans, not a backend."""

    def export(self, spans: Any) -> SpanExportResult:  # noqa: ARG002, D102 - the exporter's interface
        return SpanExportResult.SUCCESS


def span_call() -> Callable[[], Any]:
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    tracer = provider.get_tracer("bench")

    def call() -> Any:
        with tracer.start_as_current_span("execute_tool find_order") as span:
            result = find_order("O-7", limit=3)
            for name, value in ATTRIBUTES.items():
                span.set_attribute(name, value)
            span.set_status(Status(StatusCode.OK))
            return result

    return call


ATTRIBUTES: dict[str, Any] = {
    semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
    semconv.TOOL_NAME: "find_order",
    semconv.CONVERSATION_ID: "conv-42",
    semconv.STAGE: "shadow",
    semconv.ARM: "legacy",
    semconv.FLAG_VERSION: 1,
    semconv.FLAG_REASON: "cached",
    semconv.ARGS_DIGEST: "0123456789abcdef0123456789abcdef",
    semconv.OUTCOME: "ok",
    semconv.SERVED: "legacy",
    semconv.SEQUENCE: 1_796_096_813_283_635_181,
    semconv.RESULT_DIGEST: "0123456789abcdef0123456789abcdef",
}


def subjects() -> list[Subject]:
    ok, error = changeover.wrap(find_order), changeover.wrap(fail_order)

    def call_ok() -> Any:
        return ok("O-7", limit=3)

    def call_error() -> Any:
        with suppress(RefusedError):
            return error("O-7", limit=3)

    def bare_error() -> Any:
        with suppress(RefusedError):
            return fail_order("O-7", limit=3)

    legacy = Decision(Arm.LEGACY, Stage.LEGACY, Reason.STATIC, 1)
    shadow = Decision(Arm.LEGACY, Stage.SHADOW, Reason.CACHED, 1)
    cutover = Decision(Arm.STRUCTURED, Stage.CUTOVER, Reason.CACHED, 2)
    return [
        Subject("bare function", lambda: find_order("O-7", limit=3)),
        Subject("bare function, error", bare_error),
        Subject(SPAN, span_call()),
        Subject("legacy, recording off", call_ok, legacy, recording=False),
        Subject("legacy, ok", call_ok, legacy),
        Subject("shadow, ok", call_ok, shadow),
        Subject("shadow, error", call_error, shadow),
        Subject("cutover, ok", call_ok, cutover),
        Subject("cutover, error", call_error, cutover),
    ]


class _Runtimes:
    """The process's runtime with and without recording; switching between them costs nothing inside a round."""

    def __init__(self, folder: Path) -> None:
        changeover.configure(store=f"sqlite:///{folder / 'bench.db'}", service="bench")
        self.on = runtime.current()
        self.off = runtime.Runtime(None, self.on.losses)
        self.decide = self.on.flags.decide

    @contextmanager
    def set_up(self, subject: Subject) -> Iterator[None]:
        # The pin is set rather than looked up in a store: what is measured is the wrapper, as it is in a session that
        # has been seen, whose decision costs one look-up more.
        decision, decide = subject.decision, self.decide

        def decided(tool: str, session: str | None) -> Decision:
            decide(tool, session)
            return decision  # type: ignore[return-value] # only asked for subjects that have one

        runtime._runtime = self.on if subject.recording else self.off  # noqa: SLF001 - `configure` would flush
        self.on.flags.decide = decided if decision else decide  # type: ignore[method-assign]
        try:
            yield
        finally:
            runtime._runtime = self.on  # noqa: SLF001 - the same
            self.on.flags.decide = decide  # type: ignore[method-assign]


def measure(rounds: int, calls: int) -> dict[str, float]:
    """Return microseconds a call, by subject: medians over *rounds* of the mean over *calls*."""
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, changeover.session("conv-42", actor="bench"):
        runtimes = _Runtimes(Path(folder))
        everything = subjects()
        for subject in everything:
            _run(subject, runtimes, calls // 10)
        for _ in range(rounds):
            for subject in everything:
                times.setdefault(subject.name, []).append(_run(subject, runtimes, calls))
        changeover.flush(60)
        changeover.configure(recording=False)
    return {name: statistics.median(values) for name, values in times.items()}


def _run(subject: Subject, runtimes: _Runtimes, calls: int) -> float:
    call = subject.call
    with runtimes.set_up(subject):
        changeover.flush(30)  # what the others left to move into the store is theirs
        gc.collect()
        began = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - began) / calls * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    times = measure(options.rounds, options.calls)
    rows = [
        {"subject": name, "microseconds": round(t, 2), "ratio": round(t / times[SPAN], 2), "target": TARGETS.get(name)}
        for name, t in times.items()
    ]
    if options.json:
        print(json.dumps({"python": sys.version.split()[0], "rounds": options.rounds, "rows": rows}, indent=2))
        return 0
    print(f"{'':28}{'µs a call':>12}{'x SDK span':>12}{'target':>10}")
    for row in rows:
        target = "" if row["target"] is None else f"≤ {row['target']}"
        print(f"{row['subject']:28}{row['microseconds']:>12}{row['ratio']:>12}{target:>10}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
