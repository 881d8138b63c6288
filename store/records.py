"""Read one record line: check every field, and make of it what the tables take.

A record comes from a file, perhaps from another program: nothing in it is trusted to have the right type. What
thousands of records have in common is checked once and remembered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from changeover import semconv
from changeover.contract import CODES
from changeover.semconv import Arm, LegacyKind, Outcome, Stage

from .record_fields import (
    MalformedRecordError,
    boolean,
    fixed_bytes,
    integer,
    name,
    optional_bytes,
    unremembered_name,
    word,
)
from .text import clean, clean_name

RECORD_VERSION: Final = 1

_ERROR: Final = Outcome.ERROR.value
_SERVED: Final = ("legacy", "structured")
_REMEMBERED_WORDS: Final = 256
_NOTHING: Final[Mapping[str, Any]] = {}


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
    """One call as recorded; a tuple rather than a dataclass, since there is one for every line.

    The fields up to ``structured`` stand in the store once and are meant by a number; the others are columns as they
    are, see ``COLUMNS``.
    """

    session: str
    session_source: str
    actor: str
    tool: str
    setup: Setup
    legacy: Payload | None
    structured: Payload | None
    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes | None
    sequence: int
    turn: int | None
    user_turn: int | None
    started_at: int
    ended_at: int
    replayed: bool
    attempts: int
    call_id: str | None
    args_digest: bytes | None
    result_digest: bytes | None
    sanitized: bool
    stage: str
    arm: str
    served: str
    outcome: str
    code: str | None
    category: str | None
    next_action: str | None
    retryable: bool | None
    unclassified: bool
    args_kind: str | None
    legacy_kind: str | None


_FIRST_COLUMN: Final = CallRecord._fields.index("trace_id")
COLUMNS: Final = CallRecord._fields[_FIRST_COLUMN:]
"""The columns of ``call`` that a record fills by itself."""


def columns(record: CallRecord) -> tuple[Any, ...]:
    """Return the values of ``COLUMNS``."""
    return record[_FIRST_COLUMN:]


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
        return _call(record)
    if kind == "loss":
        return _loss(record)
    raise MalformedRecordError("unknown_record_kind")


def _call(record: Mapping[str, Any]) -> CallRecord:
    attributes = record.get("attributes", _NOTHING)
    if not isinstance(attributes, Mapping):
        raise MalformedRecordError("malformed_attributes")
    get = attributes.get
    if get(semconv.OPERATION_NAME, semconv.EXECUTE_TOOL) != semconv.EXECUTE_TOOL:
        raise MalformedRecordError("no_tool_call")
    trace_id = fixed_bytes(record.get("trace_id"), 16, "trace_id")
    started_at = integer(record.get("start_time_unix_nano"), "start_time")
    ended_at = integer(record.get("end_time_unix_nano"), "end_time")
    tool, tool_changed = name(get(semconv.TOOL_NAME), "tool_name")
    if not tool:
        raise MalformedRecordError("malformed_tool_name")
    session, session_changed = name(get(semconv.CONVERSATION_ID), "conversation_id")
    actor, actor_changed = name(get(semconv.AGENT_NAME), "agent_name")
    # Not remembered: a call's own id is seen once and would push out what is seen often.
    call_id, id_changed = unremembered_name(get(semconv.TOOL_CALL_ID), "tool_call_id")
    setup, setup_changed = _setup(record, get)
    words = _words(record, get)
    legacy, legacy_changed = _payload(
        get(semconv.LEGACY_PAYLOAD), get(semconv.LEGACY_DIGEST), get(semconv.LEGACY_BYTES), "legacy"
    )
    structured, structured_changed = _payload(
        get(semconv.STRUCTURED_PAYLOAD), get(semconv.STRUCTURED_DIGEST), get(semconv.STRUCTURED_BYTES), "structured"
    )
    sequence = get(semconv.SEQUENCE)
    turn = get(semconv.TURN)
    user_turn = get(semconv.USER_TURN)
    attempts = get(semconv.ATTEMPTS)
    return CallRecord(
        session or trace_id.hex(),
        "conversation" if session else "trace",
        actor,
        tool,
        setup,
        legacy,
        structured,
        trace_id,
        fixed_bytes(record.get("span_id"), 8, "span_id"),
        optional_bytes(record.get("parent_span_id"), 8, "parent_span_id"),
        started_at if sequence is None else integer(sequence, "sequence"),
        None if turn is None else integer(turn, "turn"),
        None if user_turn is None else integer(user_turn, "user_turn"),
        started_at,
        # A clock that was set back during the call must not make it end before it began.
        max(ended_at, started_at),
        setup.source != semconv.LIVE,
        1 if attempts is None else integer(attempts, "attempts"),
        call_id or None,
        optional_bytes(get(semconv.ARGS_DIGEST), 16, "args_digest"),
        optional_bytes(get(semconv.RESULT_DIGEST), 16, "result_digest"),
        tool_changed
        or session_changed
        or actor_changed
        or id_changed
        or setup_changed
        or words.changed
        or legacy_changed
        or structured_changed,
        *words[1:],
    )


class _Words(NamedTuple):
    """The words of a record; everything after *changed* is a column, in the order of ``CallRecord``."""

    changed: bool
    stage: str
    arm: str
    served: str
    outcome: str
    code: str | None
    category: str | None
    next_action: str | None
    retryable: bool | None
    unclassified: bool
    args_kind: str | None
    legacy_kind: str | None


def _words(record: Mapping[str, Any], get: Any) -> _Words:
    found = (
        record.get("status"),
        get(semconv.STAGE),
        get(semconv.ARM),
        get(semconv.SERVED),
        get(semconv.OUTCOME),
        get(semconv.ERROR_TYPE),
        get(semconv.CATEGORY),
        get(semconv.NEXT_ACTION),
        get(semconv.RETRYABLE),
        get(semconv.UNCLASSIFIED),
        get(semconv.ARGS_KIND),
        get(semconv.LEGACY_KIND),
    )
    try:
        return _checked_words(*found)
    except TypeError:  # something in it is a list or an object: that is no word, and nothing to remember
        return _checked_words.__wrapped__(*found)


# Typed, since True is no version although it equals 1.
@lru_cache(_REMEMBERED_WORDS, typed=True)
def _checked_words(  # noqa: PLR0917 - the key of a cache
    status: object,
    stage: object,
    arm: object,
    served: object,
    outcome: object,
    code: object,
    category: object,
    next_action: object,
    retryable: object,
    unclassified: object,
    args_kind: object,
    legacy_kind: object,
) -> _Words:
    ended = word(outcome, tuple(Outcome), "error" if status == "error" else "ok", "outcome")
    named = [
        unremembered_name(value, what)
        for value, what in (
            (code, "error_type"),
            (category, "category"),
            (next_action, "next_action"),
            (args_kind, "args_kind"),
        )
    ]
    code_name = named[0][0] or None
    unknown = boolean(unclassified, "unclassified") or False
    if ended == _ERROR and code_name is None:
        code_name, unknown = "internal_error", True
    return _Words(
        changed=any(changed for _, changed in named),
        stage=word(stage, tuple(Stage), "legacy", "stage"),
        arm=word(arm, tuple(Arm), "legacy", "arm"),
        served=word(served, _SERVED, "legacy", "served"),
        outcome=ended,
        code=code_name,
        category=named[1][0] or None,
        next_action=named[2][0] or None,
        retryable=_retryable(retryable, code_name) if ended == _ERROR else None,
        unclassified=unknown,
        args_kind=named[3][0] or None,
        legacy_kind=None if legacy_kind is None else word(legacy_kind, tuple(LegacyKind), "", "legacy_kind"),
    )


def _setup(record: Mapping[str, Any], get: Any) -> tuple[Setup, bool]:
    resource = record.get("resource") or _NOTHING
    if not isinstance(resource, Mapping):
        raise MalformedRecordError("malformed_resource")
    found = (
        resource.get(semconv.SERVICE_NAME),
        get(semconv.SOURCE),
        get(semconv.FLAG_VERSION),
        get(semconv.FLAG_REASON),
        get(semconv.PROMPT_VARIANT),
        get(semconv.CONTRACT_VERSION),
        get(semconv.DIALECT),
    )
    try:
        return _checked_setup(*found)
    except TypeError:
        return _checked_setup.__wrapped__(*found)


@lru_cache(_REMEMBERED_WORDS, typed=True)
def _checked_setup(  # noqa: PLR0917 - the key of a cache
    service: object,
    source: object,
    flag_version: object,
    flag_reason: object,
    prompt_variant: object,
    contract_version: object,
    dialect: object,
) -> tuple[Setup, bool]:
    words = [
        unremembered_name(value, what)
        for value, what in (
            (service, "service_name"),
            (source, "source"),
            (flag_reason, "flag_reason"),
            (prompt_variant, "prompt_variant"),
            (dialect, "dialect"),
        )
    ]
    setup = Setup(
        service=words[0][0],
        source=words[1][0] or semconv.LIVE,
        flag_version=0 if flag_version is None else integer(flag_version, "flag_version"),
        flag_reason=words[2][0],
        prompt_variant=words[3][0],
        contract_version=0 if contract_version is None else integer(contract_version, "contract_version"),
        dialect=words[4][0],
    )
    return setup, any(changed for _, changed in words)


def _payload(text: object, digest: object, size: object, side: str) -> tuple[Payload | None, bool]:
    if text is None:
        return None, False
    if not isinstance(text, str):
        raise MalformedRecordError(f"malformed_{side}_payload")
    cleaned = clean(text)
    known = optional_bytes(digest, 16, f"{side}_digest")
    if known is None or size is None:
        encoded = cleaned.encode()
        known = known or hashlib.blake2b(encoded, digest_size=16).digest()
        size = len(encoded) if size is None else size
    return Payload(known, integer(size, f"{side}_bytes"), cleaned), cleaned != text


def _retryable(said: object, code: str | None) -> bool:
    known = boolean(said, "retryable")
    if known is not None:
        return known
    spec = CODES.get(code or "")
    return spec is not None and spec.retryable


def _loss(record: Mapping[str, Any]) -> LossRecord:
    process, reason = record.get("process"), record.get("reason")
    if not isinstance(process, str) or not isinstance(reason, str) or not reason:
        raise MalformedRecordError("malformed_loss")
    count = integer(record.get("count"), "loss")
    if count == 0:
        raise MalformedRecordError("malformed_loss")
    return LossRecord(clean_name(process), clean_name(reason), integer(record.get("time_unix_nano"), "loss"), count)
