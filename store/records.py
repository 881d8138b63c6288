"""Read one record line: check every field, and make of it what the tables take.

A record comes from a file, perhaps from another program: nothing in it is trusted to have the right type.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from changeover import semconv
from changeover.contract import CODES
from changeover.semconv import Arm, LegacyKind, Outcome, Stage

from .text import clean, clean_name

RECORD_VERSION: Final = 1
MAX_INTEGER: Final = 2**63 - 1

_STAGES = frozenset(map(str, Stage))
_ARMS = frozenset(map(str, Arm))
_OUTCOMES = frozenset(map(str, Outcome))
_KINDS = frozenset(map(str, LegacyKind))
_SERVED = frozenset({"legacy", "structured"})
_NOTHING: Mapping[str, Any] = {}


class MalformedRecordError(ValueError):
    """A record cannot be stored; the argument is the reason under which it is counted as lost."""


class Payload(NamedTuple):
    """A text that an agent was given or would have been given."""

    digest: bytes
    size: int
    text: str


class Setup(NamedTuple):
    """What thousands of calls have in common; an empty word or 0 stands for absent."""

    service: str
    source: str
    flag_version: int
    flag_reason: str
    prompt_variant: str
    contract_version: int
    dialect: str


class CallRecord(NamedTuple):
    """One call as recorded; a tuple rather than a dataclass, since there is one for every line."""

    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes | None
    session: str
    session_source: str
    actor: str
    tool: str
    setup: Setup
    sequence: int
    turn: int | None
    user_turn: int | None
    started_at: int
    ended_at: int
    replayed: bool
    stage: str
    arm: str
    served: str
    outcome: str
    code: str | None
    category: str | None
    next_action: str | None
    retryable: bool | None
    unclassified: bool
    attempts: int
    call_id: str | None
    args_digest: bytes | None
    args_kind: str | None
    result_digest: bytes | None
    legacy_kind: str | None
    legacy: Payload | None
    structured: Payload | None
    sanitized: bool


@dataclass(frozen=True, slots=True)
class LossRecord:
    """So many records were lost, or so many faults of ours happened, for one reason."""

    process: str
    reason: str
    lost_at: int
    count: int


def parse(record: object) -> CallRecord | LossRecord:
    """Return *record* as what the store keeps of it.

    Raises:
        MalformedRecordError: with the reason; the record is then counted as lost under it.
    """
    if not isinstance(record, Mapping):
        raise MalformedRecordError("malformed_record")
    if record.get("v") != RECORD_VERSION:
        raise MalformedRecordError("unknown_record_version")
    kind = record.get("kind")
    if kind == "span":
        return _Reader(record).call()
    if kind == "loss":
        return _loss(record)
    raise MalformedRecordError("unknown_record_kind")


class _Reader:
    """Takes the fields of one span record, and notes whether some text had to be sanitized."""

    __slots__ = ("attributes", "record", "sanitized")

    def __init__(self, record: Mapping[str, Any]) -> None:
        attributes = record.get("attributes", _NOTHING)
        if not isinstance(attributes, Mapping):
            raise MalformedRecordError("malformed_attributes")
        if attributes.get(semconv.OPERATION_NAME, semconv.EXECUTE_TOOL) != semconv.EXECUTE_TOOL:
            raise MalformedRecordError("no_tool_call")
        self.record = record
        self.attributes = attributes
        self.sanitized = False

    def call(self) -> CallRecord:
        trace_id = _bytes(self.record.get("trace_id"), 16, "trace_id")
        conversation = self._name(semconv.CONVERSATION_ID)
        started_at = _integer(self.record.get("start_time_unix_nano"), "start_time")
        outcome = self._outcome()
        failed = outcome == "error"
        code = self._name(semconv.ERROR_TYPE) or None
        unclassified = self._boolean(semconv.UNCLASSIFIED) or False
        if failed and code is None:
            code, unclassified = "internal_error", True
        setup = self._setup()
        tool = self._name(semconv.TOOL_NAME)
        if not tool:
            raise MalformedRecordError("malformed_tool_name")
        return CallRecord(
            trace_id=trace_id,
            span_id=_bytes(self.record.get("span_id"), 8, "span_id"),
            parent_span_id=_optional_bytes(self.record.get("parent_span_id"), 8, "parent_span_id"),
            session=conversation or trace_id.hex(),
            session_source="conversation" if conversation else "trace",
            actor=self._name(semconv.AGENT_NAME),
            tool=tool,
            setup=setup,
            sequence=self._integer(semconv.SEQUENCE, started_at),
            turn=self._optional_integer(semconv.TURN),
            user_turn=self._optional_integer(semconv.USER_TURN),
            started_at=started_at,
            # A clock that was set back during the call must not make it end before it began.
            ended_at=max(started_at, _integer(self.record.get("end_time_unix_nano"), "end_time")),
            replayed=setup.source != semconv.LIVE,
            stage=self._word(semconv.STAGE, _STAGES, "legacy"),
            arm=self._word(semconv.ARM, _ARMS, "legacy"),
            served=self._word(semconv.SERVED, _SERVED, "legacy"),
            outcome=outcome,
            code=code,
            category=self._name(semconv.CATEGORY) or None,
            next_action=self._name(semconv.NEXT_ACTION) or None,
            retryable=self._retryable(code) if failed else None,
            unclassified=unclassified,
            attempts=self._integer(semconv.ATTEMPTS, 1),
            call_id=self._name(semconv.TOOL_CALL_ID) or None,
            args_digest=_optional_bytes(self.attributes.get(semconv.ARGS_DIGEST), 16, "args_digest"),
            args_kind=self._name(semconv.ARGS_KIND) or None,
            result_digest=_optional_bytes(self.attributes.get(semconv.RESULT_DIGEST), 16, "result_digest"),
            legacy_kind=self._optional_word(semconv.LEGACY_KIND, _KINDS),
            legacy=self._payload(semconv.LEGACY_PAYLOAD, semconv.LEGACY_DIGEST, semconv.LEGACY_BYTES),
            structured=self._payload(semconv.STRUCTURED_PAYLOAD, semconv.STRUCTURED_DIGEST, semconv.STRUCTURED_BYTES),
            sanitized=self.sanitized,
        )

    def _outcome(self) -> str:
        if semconv.OUTCOME in self.attributes:
            return self._word(semconv.OUTCOME, _OUTCOMES, "ok")
        return "error" if self.record.get("status") == "error" else "ok"

    def _setup(self) -> Setup:
        resource = self.record.get("resource") or _NOTHING
        if not isinstance(resource, Mapping):
            raise MalformedRecordError("malformed_resource")
        return Setup(
            service=self._text_name(resource.get(semconv.SERVICE_NAME), semconv.SERVICE_NAME),
            source=self._name(semconv.SOURCE) or semconv.LIVE,
            flag_version=self._integer(semconv.FLAG_VERSION, 0),
            flag_reason=self._name(semconv.FLAG_REASON),
            prompt_variant=self._name(semconv.PROMPT_VARIANT),
            contract_version=self._integer(semconv.CONTRACT_VERSION, 0),
            dialect=self._name(semconv.DIALECT),
        )

    def _payload(self, text_name: str, digest_name: str, size_name: str) -> Payload | None:
        text = self.attributes.get(text_name)
        if text is None:
            return None
        if not isinstance(text, str):
            raise MalformedRecordError(_malformed(text_name))
        cleaned = clean(text)
        self.sanitized |= cleaned != text
        digest = _optional_bytes(self.attributes.get(digest_name), 16, _short(digest_name))
        encoded = cleaned.encode()
        return Payload(
            digest=digest or hashlib.blake2b(encoded, digest_size=16).digest(),
            size=self._integer(size_name, len(encoded)),
            text=cleaned,
        )

    def _retryable(self, code: str | None) -> bool:
        said = self._boolean(semconv.RETRYABLE)
        if said is not None:
            return said
        spec = CODES.get(code or "")
        return spec is not None and spec.retryable

    def _name(self, name: str) -> str:
        value = self.attributes.get(name)
        return "" if value is None else self._text_name(value, name)

    def _text_name(self, value: object, name: str) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            raise MalformedRecordError(_malformed(name))
        cleaned = clean_name(value)
        self.sanitized |= cleaned != value
        return cleaned

    def _word(self, name: str, words: frozenset[str], default: str) -> str:
        value = self.attributes.get(name, default)
        if not isinstance(value, str) or value not in words:
            raise MalformedRecordError(_malformed(name))
        return str(value)

    def _optional_word(self, name: str, words: frozenset[str]) -> str | None:
        return None if self.attributes.get(name) is None else self._word(name, words, "")

    def _integer(self, name: str, default: int) -> int:
        value = self.attributes.get(name)
        return default if value is None else _integer(value, _short(name))

    def _optional_integer(self, name: str) -> int | None:
        value = self.attributes.get(name)
        return None if value is None else _integer(value, _short(name))

    def _boolean(self, name: str) -> bool | None:
        value = self.attributes.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise MalformedRecordError(_malformed(name))


def _loss(record: Mapping[str, Any]) -> LossRecord:
    process, reason = record.get("process"), record.get("reason")
    if not isinstance(process, str) or not isinstance(reason, str) or not reason:
        raise MalformedRecordError("malformed_loss")
    count = _integer(record.get("count"), "loss")
    if count == 0:
        raise MalformedRecordError("malformed_loss")
    return LossRecord(clean_name(process), clean_name(reason), _integer(record.get("time_unix_nano"), "loss"), count)


def _integer(value: object, what: str) -> int:
    # A boolean is an int in Python and none here; what does not fit 64 bits fits no column.
    if type(value) is not int or not 0 <= value <= MAX_INTEGER:
        raise MalformedRecordError(f"malformed_{what}")
    return value


def _bytes(value: object, length: int, what: str) -> bytes:
    try:
        found = bytes.fromhex(cast("str", value))
    except (TypeError, ValueError):
        raise MalformedRecordError(f"malformed_{what}") from None
    if len(found) != length or len(cast("str", value)) != 2 * length:
        raise MalformedRecordError(f"malformed_{what}")
    return found


def _optional_bytes(value: object, length: int, what: str) -> bytes | None:
    return None if value is None else _bytes(value, length, what)


def _malformed(name: str) -> str:
    return f"malformed_{_short(name)}"


def _short(name: str) -> str:
    return name.removeprefix("changeover.").replace(".", "_")
