"""From a recording to the records of its calls, as live calls make them: who, when, both payloads, what it was."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from changeover import semconv
from changeover.arguments import canonical_recorded, digest
from changeover.classify import Classified, Traits, classify_result, is_empty, looks_like_failure
from changeover.contract import CONTRACT_VERSION, Dialect, ToolError
from changeover.payloads import payload_attributes, recorded_json, recorded_text, structured_json
from changeover.semconv import Arm, LegacyKind, Outcome, Reason, Stage
from changeover.spans import build_record

from .replay_counts import outcome, result_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from changeover.config import Config
    from changeover.store.replay.model import RecordedCall, RecordedSession, Recording

_STATUS = {Outcome.OK: "ok", Outcome.ERROR: "error", Outcome.UNANSWERED: "unset"}


def records(recording: Recording, config: Config, key: bytes) -> Iterator[dict[str, Any]]:
    """Yield one record for every call.

    A call's identity comes from what was recorded, never from the file's name or time, so that a recording that is
    replayed again adds nothing: from ids of the source's own where it has them (then a recording that has grown only
    adds what is new), else from the whole content and the place in it.

    Args:
        recording: what was read.
        config: the service's name and the limit of a payload's text.
        key: for the digests, the same as live calls use.
    """
    for index, session in enumerate(recording.sessions):
        place = f"{recording.digest}#{index}"
        name = session.key or f"{recording.path.name}#{index + 1}@{recording.digest[:8]}"
        trace_id = _hash(16, recording.format, session.key or place)
        moments = _moments(session, recording.modified_ns)
        for ordinal, (call, (sequence, start_ns)) in enumerate(zip(session.calls, moments, strict=True)):
            own = call.key or f"{call.actor}#{ordinal}"
            yield build_record(
                tool=call.tool,
                trace_id=trace_id,
                span_id=_hash(8, trace_id, own),
                start_ns=start_ns,
                end_ns=max(start_ns, call.ended_ns or 0),
                status=_STATUS[outcome(call)],
                attributes={
                    semconv.CONVERSATION_ID: name,
                    semconv.SEQUENCE: sequence,
                    semconv.SOURCE: f"replay:{recording.format}",
                    **_call_attributes(call, key),
                    **_result_attributes(call, key, config.payload_bytes),
                },
                service=config.service,
            )


def _moments(session: RecordedSession, modified_ns: int) -> Iterator[tuple[int, int]]:
    """Yield sequence and start of each call.

    The sequence follows the recorded order, whatever the recorded times say, and does not depend on the file's own
    time. A call without a time begins when the one before it did; where no call has one, they begin when the file was
    last changed, a nanosecond apart.
    """
    known = next((call.started_ns for call in session.calls if call.started_ns is not None), None)
    sequence, start_ns = 0, known or 0
    for ordinal, call in enumerate(session.calls):
        sequence = max(sequence + 1, call.started_ns or 0)
        start_ns = modified_ns + ordinal if known is None else call.started_ns or start_ns
        yield sequence, start_ns


def _call_attributes(call: RecordedCall, key: bytes) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        semconv.STAGE: Stage.SHADOW,
        semconv.ARM: Arm.LEGACY,
        semconv.SERVED: Arm.LEGACY,
        semconv.FLAG_VERSION: 0,
        semconv.FLAG_REASON: Reason.DEFAULT,
        semconv.CONTRACT_VERSION: CONTRACT_VERSION,
        semconv.DIALECT: Dialect.ENVELOPE,
        semconv.OUTCOME: outcome(call),
        semconv.TURN: call.turn,
        semconv.USER_TURN: call.user_turn,
        semconv.ARGS_DIGEST: digest(canonical_recorded(call.arguments), key).hex(),
        semconv.ARGS_KIND: "raw",
    }
    if call.actor:
        attributes[semconv.AGENT_NAME] = call.actor
    if call.call_id is not None:
        attributes[semconv.TOOL_CALL_ID] = call.call_id
    return attributes


def _result_attributes(call: RecordedCall, key: bytes, limit: int) -> dict[str, Any]:
    result = result_bytes(call)
    if result is not None:
        return _success_attributes(call.result or "", digest(result, key))
    return _error_attributes(call, key, limit) if call.is_error else {}


def _success_attributes(text: str, result_digest: bytes) -> dict[str, Any]:
    attributes: dict[str, Any] = {semconv.RESULT_DIGEST: result_digest.hex()}
    if is_empty(_value(text)):
        attributes[semconv.OUTCOME] = Outcome.EMPTY
    if looks_like_failure(text):
        attributes[semconv.UNCLASSIFIED] = True
    return attributes


def _error_attributes(call: RecordedCall, key: bytes, limit: int) -> dict[str, Any]:
    # A recorded text has no exception behind it: what is no explicit shape stays unclassified.
    unknown = Classified(ToolError("internal_error"), unclassified=True)
    found = classify_result(call.result, Traits(tool=call.tool)) or unknown
    error = found.error
    return {
        semconv.ERROR_TYPE: error.code,
        semconv.RETRYABLE: error.retryable,
        semconv.NEXT_ACTION: error.next_action.value,
        semconv.CATEGORY: error.category.value,
        semconv.UNCLASSIFIED: found.unclassified,
        semconv.LEGACY_KIND: LegacyKind.VALUE,
        **payload_attributes(
            recorded_text(call.result or "", key, limit),
            recorded_json(structured_json(error, Dialect.ENVELOPE), key, limit),
        ),
    }


def _value(text: str) -> Any:
    """Return what the tool returned before it was written as *text*: JSON of an object or a list, else the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _hash(size: int, *parts: str) -> str:
    text = "\x00".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=size).hexdigest()
