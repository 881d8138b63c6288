"""From a finished call to its record, and to what the host's tracing sees of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from . import semconv
from .annotate import describe
from .classify import is_empty, looks_like_failure
from .contract import CONTRACT_VERSION
from .hostbridge import Finished
from .losses import Loss
from .payloads import payload_attributes, recorded_json, recorded_text, result_digest
from .semconv import Arm, Outcome
from .spans import build_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .call import Call
    from .calls import Tool
    from .contract import ToolError
    from .flags import Decision
    from .semconv import LegacyKind

_EVENT_CHARACTERS: Final = 1024
_NO_EVENTS: Final[tuple[dict[str, Any], ...]] = ()
_TEXT: Final[dict[Outcome | Arm, str]] = {word: word.value for word in (*Outcome, *Arm)}  # `.value` is a slow property


@dataclass(slots=True)
class Failure:
    """A failed call, as far as it could be rendered.

    Args:
        error: in the words of the contract.
        kind: raised or returned.
        unclassified: nobody knew this failure.
        legacy: what the bare tool said; ``None`` in stage ``legacy``, where calls are only counted.
        structured: the structured payload; ``None`` in stage ``legacy``, or when it could not be rendered.
        served: which of the two was handed back.
    """

    error: ToolError
    kind: LegacyKind
    unclassified: bool
    legacy: str | None = None
    structured: bytes | None = None
    served: Arm = Arm.LEGACY


def record_success(tool: Tool, call: Call, value: Any, served: Arm) -> None:
    """Record a call that did what it was asked for."""
    try:
        attributes = _attributes(tool, call, Outcome.EMPTY if is_empty(value) else Outcome.OK, served)
        result = result_digest(value, call.runtime.key)
        if result is not None:
            attributes[semconv.RESULT_DIGEST] = result
        if looks_like_failure(value):
            attributes[semconv.UNCLASSIFIED] = True
        _write(tool, call, "ok", attributes, _NO_EVENTS)
    except Exception as fault:  # noqa: BLE001 - the boundary: the tool's result does not depend on its record
        call.runtime.fault(Loss.RECORD_ERROR, fault)


def record_cancelled(tool: Tool, call: Call) -> None:
    """Record a call that was called off, which is neither an error nor a success."""
    try:
        _write(tool, call, "unset", _attributes(tool, call, Outcome.CANCELLED, Arm.LEGACY), _NO_EVENTS)
    except Exception as fault:  # noqa: BLE001 - the same
        call.runtime.fault(Loss.RECORD_ERROR, fault)


def record_failure(tool: Tool, call: Call, failure: Failure) -> None:
    """Record a call that failed, with both payloads."""
    try:
        attributes = _attributes(tool, call, Outcome.ERROR, failure.served)
        attributes.update(_error_attributes(failure))
        events = _NO_EVENTS
        if failure.legacy is not None:
            events = _payloads(call, failure, attributes)
        _write(tool, call, "error", attributes, events)
    except Exception as fault:  # noqa: BLE001 - the same
        call.runtime.fault(Loss.RECORD_ERROR, fault)


def _attributes(tool: Tool, call: Call, outcome: Outcome, served: Arm) -> dict[str, Any]:
    decided, constant = tool.constant
    if decided is not call.decision:
        constant = _constant(tool, call.decision)
        tool.constant = (call.decision, constant)
    attributes = constant.copy()
    attributes[semconv.OUTCOME] = _TEXT[outcome]
    attributes[semconv.SERVED] = _TEXT[served]
    attributes[semconv.SEQUENCE] = call.sequence
    attributes[semconv.ARGS_KIND] = call.args_kind
    if call.args_digest is not None:
        attributes[semconv.ARGS_DIGEST] = call.args_digest
    session = call.session
    if session is not None:
        attributes[semconv.CONVERSATION_ID] = session.id
        if session.actor is not None:
            attributes[semconv.AGENT_NAME] = session.actor
        if session.current_turn is not None:
            attributes[semconv.TURN] = session.current_turn
        if session.current_user_turn is not None:
            attributes[semconv.USER_TURN] = session.current_user_turn
    return attributes


def _constant(tool: Tool, decision: Decision) -> dict[str, Any]:
    """Return what is the same for all calls of a tool under one decision, which a session sees again and again."""
    return {
        semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
        semconv.TOOL_NAME: tool.name,
        semconv.STAGE: decision.stage.value,
        semconv.ARM: decision.arm.value,
        semconv.FLAG_VERSION: decision.version,
        semconv.FLAG_REASON: decision.reason.value,
        # The descriptions of tools are not ours yet, so every model was shown the one that came with the tool.
        semconv.PROMPT_VARIANT: Arm.LEGACY.value,
        semconv.CONTRACT_VERSION: CONTRACT_VERSION,
        semconv.ATTEMPTS: 1,
        semconv.DIALECT: tool.options.dialect.value,
        semconv.SOURCE: semconv.LIVE,
    }


def _error_attributes(failure: Failure) -> dict[str, Any]:
    error = failure.error
    attributes: dict[str, Any] = {
        semconv.ERROR_TYPE: error.code,
        semconv.RETRYABLE: error.retryable,
        semconv.NEXT_ACTION: error.next_action.value,
        semconv.CATEGORY: error.category.value,
        semconv.LEGACY_KIND: failure.kind.value,
    }
    if failure.unclassified:
        attributes[semconv.UNCLASSIFIED] = True
    return attributes


def _payloads(call: Call, failure: Failure, attributes: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Add both payloads to *attributes*; return the event that tells of the exception, without its stack."""
    key, limit = call.runtime.key, call.runtime.payload_bytes
    legacy = recorded_text(failure.legacy or "", key, limit)
    structured = None if failure.structured is None else recorded_json(failure.structured, key, limit)
    attributes.update(payload_attributes(legacy, structured))
    if failure.kind is not semconv.LegacyKind.EXCEPTION:
        return _NO_EVENTS
    kind, _, message = legacy.text.partition(": ")
    told = {"exception.type": kind, "exception.message": message[:_EVENT_CHARACTERS]}
    return ({"name": "exception", "time_unix_nano": call.span.end_ns, "attributes": told},)


def _write(
    tool: Tool, call: Call, status: str, attributes: dict[str, Any], events: Sequence[Mapping[str, Any]]
) -> None:
    span = call.span
    parent = span.parent
    record = build_record(
        tool=tool.name,
        trace_id=f"{span.trace_id:032x}",
        span_id=f"{span.span_id:016x}",
        parent_span_id=None if parent is None else f"{parent.span_id:016x}",
        start_ns=span.start_ns,
        end_ns=span.end_ns or span.start_ns,
        status=status,
        attributes=attributes,
        events=events,
        service=call.runtime.service,
    )
    call.runtime.recorder.append(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))
    try:
        if call.host is not None:
            call.runtime.bridge.hand_over(Finished(call.host, span, attributes, events, status))
        elif call.host_span is not None:
            describe(call.host_span, attributes, events, failed=status == "error")
    except Exception as fault:  # noqa: BLE001 - the host's tracing may raise anything
        call.runtime.fault(Loss.HOST_ERROR, fault)
