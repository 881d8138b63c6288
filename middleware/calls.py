"""A tool's calls, end to end: arm, arguments, span, outcome, both payloads, record, what is served.

Nothing in here may change what the tool does. Every part of ours is fenced: a fault is counted, and the legacy result
stands. The tool itself runs in [`changeover.templates`][changeover.templates], never in here.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel
from opentelemetry.trace import get_current_span, set_span_in_context

from . import ids, runtime, semconv
from .annotate import claim
from .arguments import Binder, digest
from .call import Call
from .classify import Classified, Traits, classify_exception, classify_result
from .contract import ToolError
from .losses import Loss
from .payloads import exception_text, structured_json, value_text
from .quiet import is_ours
from .recording import Failure, record_cancelled, record_failure, record_success
from .semconv import Arm, LegacyKind, Stage
from .serving import Serving
from .session import current as current_session
from .spans import SAMPLED, LightSpan, parent_of, span_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, SpanContext

    from .flags import Decision
    from .hostbridge import Host
    from .kinds import Kind
    from .options import Options


class LegacyStands:
    """The answer for a failed call whose exception is to be raised as it is.

    The class itself is the answer: it stays the same one when a wrapped tool is pickled by value into another process.
    """


class Tool:
    """What is known about a tool once and for all its calls.

    Args:
        fn: the tool.
        name: under which flags and records know it.
        kind: how it is called.
        options: what its owner said.

    Attributes:
        constant: the attributes that were the same for the last call, with the decision they stand under.
    """

    def __init__(self, fn: Callable[..., Any], name: str, kind: Kind, options: Options) -> None:
        self.name = name
        self.options = options
        self.span_name = span_name(name)
        self._binder = Binder(fn, options.ignore)
        self._traits = Traits(name, idempotent=options.idempotent, rules=options.rules, detect=options.detect)
        self._serving = Serving(fn, kind, wraps_success=options.wrap_success)
        self.constant: tuple[Decision | None, dict[str, Any]] = (None, {})
        self._identity = {semconv.OPERATION_NAME: semconv.EXECUTE_TOOL, semconv.TOOL_NAME: name}

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call | None:
        """Begin a call; ``None`` when nothing of ours is to happen. The span is current from here on."""
        call = self.begin_steps(args, kwargs)
        if call is not None:
            call.enter()
        return call

    def begin_steps(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call | None:
        """Begin a call whose span is made current step by step, so that a generator's caller never runs inside it."""
        shared = runtime.current()
        if not shared.on or is_ours():
            return None
        try:
            call = self._begun(shared)
        except Exception as fault:  # noqa: BLE001 - the boundary: the tool runs bare
            shared.fault(Loss.SPAN_ERROR, fault)
            return None
        try:
            bound = self._binder.canonical(args, kwargs)
            call.args_digest = digest(bound.text, shared.key).hex()
            call.args_kind = bound.kind
            call.fault = bound.fault
        except Exception as fault:  # noqa: BLE001 - the boundary: recorded without its arguments
            shared.fault(Loss.ARGUMENTS_ERROR, fault)
        call.span.start_ns = time.time_ns()
        return call

    def _begun(self, shared: runtime.Runtime) -> Call:
        context = otel.get_current()
        outer = get_current_span(context)
        parent = parent_of(outer)
        session = current_session()
        key = session.id if session is not None else f"{parent.trace_id:032x}" if parent is not None else None
        decision = shared.flags.decide(self.name, key)
        if parent is not None and claim(outer, self.name, self.span_name):
            return Call(shared, decision, session, _borrowed(self.span_name, outer, parent), None, None, outer)
        host = shared.bridge.host()
        span = self._span(shared, context, parent, host)
        inside = set_span_in_context(span, context)
        return Call(shared, decision, session, span, inside, host if span.host else None, None)

    def _span(
        self, shared: runtime.Runtime, context: Context, parent: SpanContext | None, host: Host | None
    ) -> LightSpan:
        trace_id = ids.trace_id() if parent is None else parent.trace_id
        if host is None:
            # A root without any SDK: somebody does record it, namely we, which is what the flag says downstream.
            flags = SAMPLED if parent is None else int(parent.trace_flags)
            return LightSpan(self.span_name, trace_id, parent, flags, None if parent is None else parent.trace_state)
        try:
            word = host.sample(context, trace_id, self.span_name, self._identity)
        except Exception as fault:  # noqa: BLE001 - a sampler of the host may raise anything
            shared.fault(Loss.HOST_ERROR, fault)
            return LightSpan(self.span_name, trace_id, parent, 0)
        span = LightSpan(self.span_name, trace_id, parent, word.flags, word.state, host=word.wanted)
        if word.wanted and word.attributes and word.attributes is not self._identity:
            span.extra = dict(word.attributes)
        return span

    def failed(self, call: Call, exc: BaseException) -> Any:
        """Record a call that raised *exc*; return the structured payload to serve, or `LegacyStands`."""
        call.end()
        if not isinstance(exc, Exception):
            record_cancelled(self, call)
            return LegacyStands
        try:
            classified = classify_exception(exc, self._traits, fault=call.fault)
        except Exception as fault:  # noqa: BLE001 - the boundary: the exception stands
            classified = _unknown(call, fault)
        return self._failure(call, classified, LegacyKind.EXCEPTION, exc)

    def returned(self, call: Call, value: Any) -> Any:
        """Record a call that returned *value*; return what to hand back."""
        call.end()
        classified = self._classified_value(call, value)
        if classified is not None:
            answer = self._failure(call, classified, LegacyKind.VALUE, value)
            return value if answer is LegacyStands else answer
        answer, served = value, Arm.LEGACY
        if call.decision.arm is Arm.STRUCTURED:
            try:
                answer, served = self._serving.success(value), Arm.STRUCTURED
            except Exception as fault:  # noqa: BLE001 - the boundary: the bare value stands
                call.runtime.fault(Loss.RENDER_ERROR, fault)
        record_success(self, call, value, served)
        return answer

    def exhausted(self, call: Call, value: Any) -> None:
        """Record a generator that ended with the return *value*; its items were handed out as they were."""
        call.end()
        told = value if value is not None or call.items == 0 else call.last_item
        classified = self._classified_value(call, told)
        if classified is not None:
            self._failure(call, classified, LegacyKind.VALUE, told, final=True)
        else:
            # Only a single item is the whole result; of many, the last says nothing about the others.
            record_success(self, call, told if call.items <= 1 or value is not None else call.items, Arm.LEGACY)

    def _classified_value(self, call: Call, value: Any) -> Classified | None:
        try:
            return classify_result(value, self._traits, rule_failed=call.runtime.rule_failed)
        except Exception as fault:  # noqa: BLE001 - the boundary: a success, as the tool says
            call.runtime.fault(Loss.CLASSIFY_ERROR, fault)
            return None

    def _failure(self, call: Call, classified: Classified, kind: LegacyKind, raw: Any, *, final: bool = False) -> Any:
        if classified.rule_failed:
            call.runtime.rule_failed()
        failure = Failure(classified.error, kind, unclassified=classified.unclassified)
        answer = LegacyStands
        if call.decision.stage is not Stage.LEGACY:
            try:
                failure.legacy = exception_text(raw) if kind is LegacyKind.EXCEPTION else value_text(raw)
                failure.structured = structured_json(classified.error, self.options.dialect)
                if call.decision.arm is Arm.STRUCTURED and not final:
                    answer = self._answer(failure, raw)
                    failure.served = Arm.STRUCTURED
            except Exception as fault:  # noqa: BLE001 - the boundary: the legacy result stands
                call.runtime.fault(Loss.RENDER_ERROR, fault)
                answer = LegacyStands
        record_failure(self, call, failure)
        return answer

    def _answer(self, failure: Failure, raw: Any) -> Any:
        if failure.kind is LegacyKind.VALUE and failure.structured == (failure.legacy or "").encode():
            return raw  # the tool already speaks the contract
        return self._serving.failure(failure.structured or b"")


def _borrowed(name: str, host_span: Span, own: SpanContext) -> LightSpan:
    """Return a carrier of the ids of the host's own span."""
    span = LightSpan(name, own.trace_id, getattr(host_span, "parent", None), int(own.trace_flags))
    span.span_id = own.span_id
    return span


def _unknown(call: Call, fault: Exception) -> Classified:
    call.runtime.fault(Loss.CLASSIFY_ERROR, fault)
    return Classified(ToolError("internal_error"), unclassified=True)
