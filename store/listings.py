"""Single calls, newest errors first or one session in order, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, or_, select

from changeover.semconv import Arm, Outcome, Stage

from . import tables
from .clock import moment
from .errors import CursorError
from .record_fields import MAX_INTEGER
from .tables import actor, call, payload
from .text import clean_name

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Row, Select

    from .engine import Store

_CUT_SIGN: Final = "…[cut"
_LARGEST_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class CallRow:
    """One call of a session.

    Args:
        cursor: pass it as *before* to get the calls that follow this one in the list.
        at: when it began, UTC.
        duration_ms: how long it took.
        tool: which tool.
        actor: who called; empty for the session's unnamed caller.
        turn: the model response it belongs to; ``None`` when nobody said.
        user_turn: the user message it follows; ``None`` when nobody said.
        stage: the tool's stage at that moment.
        arm: what the session gets.
        served: which payload the model was handed.
        outcome: how it ended.
        code: the error's code; ``None`` for what is no error.
        args_digest: of the canonical arguments, in hex; ``None`` when unknown.
        loop: an error that the very next turn repeated.
        loop_after_user: an error that was repeated after a user message.
        runaway: a success that repeats a success.
        recovered: whether the actor's next call of the tool succeeded; ``None`` without one.
    """

    cursor: str
    at: datetime
    duration_ms: float
    tool: str
    actor: str
    turn: int | None
    user_turn: int | None
    stage: Stage
    arm: Arm
    served: str
    outcome: Outcome
    code: str | None
    args_digest: str | None
    loop: bool
    loop_after_user: bool
    runaway: bool
    recovered: bool | None


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One error with both its payloads.

    Args:
        cursor: pass it as *before* to get the errors that follow this one in the list.
        at: when the call began, UTC.
        session: the conversation's id, or the trace id that stands in for one.
        session_source: which of the two: ``conversation`` or ``trace``.
        actor: who called; empty for the session's unnamed caller.
        code: the error's code.
        category: the coarse kind.
        retryable: whether the same call may be repeated.
        next_action: what the contract says to do about the same call.
        unclassified: whether nothing recognised the error.
        stage: the tool's stage at that moment.
        arm: what the session gets.
        served: which of the payloads the model was handed.
        loop: whether the very next turn repeated the call.
        loop_after_user: whether it was repeated after a user message.
        recovered: whether the actor's next call of the tool succeeded; ``None`` without one.
        args_digest: of the canonical arguments, in hex; ``None`` when unknown.
        legacy_payload: what the model would have got without us; ``None`` when it was not recorded.
        structured_payload: ours; ``None`` when it was not recorded.
        legacy_bytes: size of the legacy payload before it was redacted and cut.
        structured_bytes: the same of the structured one.
        legacy_truncated: whether the text was cut for the record.
        structured_truncated: the same of the structured one.
    """

    cursor: str
    at: datetime
    session: str
    session_source: str
    actor: str
    code: str
    category: str | None
    retryable: bool
    next_action: str | None
    unclassified: bool
    stage: Stage
    arm: Arm
    served: str
    loop: bool
    loop_after_user: bool
    recovered: bool | None
    args_digest: str | None
    legacy_payload: str | None
    structured_payload: str | None
    legacy_bytes: int | None
    structured_bytes: int | None
    legacy_truncated: bool
    structured_truncated: bool


# The functions below have parameters of these names.
_session = tables.session
_tool = tables.tool
_legacy = payload.alias("legacy")
_structured = payload.alias("structured")


def recent_errors(store: Store, tool: str, limit: int = 25, before: str | None = None) -> list[ErrorRow]:
    """Return errors of *tool*, newest first.

    Args:
        store: whose calls.
        tool: the tool's name.
        limit: at most so many.
        before: the ``cursor`` of the last row of the page before; the newest errors when left out.

    Raises:
        CursorError: when *before* is no cursor.
        StoreError: when the database cannot be read.
    """
    query = _errors(tool)
    if before is not None:
        started_at, number = _place(before)
        earlier = and_(call.c.started_at == started_at, call.c.id < number)
        query = query.where(call.c.started_at <= started_at, or_(call.c.started_at < started_at, earlier))
    query = query.order_by(call.c.started_at.desc(), call.c.id.desc()).limit(max(1, min(limit, _LARGEST_PAGE)))
    with store.read() as connection:
        return [_error(row) for row in connection.execute(query)]


def session_calls(store: Store, session: str, limit: int = 200, before: str | None = None) -> list[CallRow]:
    """Return the calls of a session, newest first.

    Args:
        store: whose calls.
        session: the conversation's id, or the trace id that stands in for one.
        limit: at most so many.
        before: the ``cursor`` of the last row of the page before; the newest calls when left out.

    Raises:
        CursorError: when *before* is no cursor.
        StoreError: when the database cannot be read.
    """
    query = _calls(session)
    if before is not None:
        sequence, number = _place(before)
        earlier = and_(call.c.sequence == sequence, call.c.id < number)
        query = query.where(or_(call.c.sequence < sequence, earlier))
    query = query.order_by(call.c.sequence.desc(), call.c.id.desc()).limit(max(1, min(limit, _LARGEST_PAGE)))
    with store.read() as connection:
        return [_call(row) for row in connection.execute(query)]


def _calls(name: str) -> Select[Any]:
    numbers = select(_session.c.id).where(_session.c.name == clean_name(name))
    return (
        select(call, _tool.c.name.label("tool"), actor.c.name.label("actor"))
        .join(_tool, _tool.c.id == call.c.tool_id)
        .join(actor, actor.c.id == call.c.actor_id)
        .where(call.c.session_id.in_(numbers))
    )


def _call(row: Row[Any]) -> CallRow:
    return CallRow(
        cursor=f"{row.sequence}-{row.id}",
        at=moment(row.started_at),
        duration_ms=(row.ended_at - row.started_at) / 1_000_000,
        tool=row.tool,
        actor=row.actor,
        turn=row.turn,
        user_turn=row.user_turn,
        stage=Stage(row.stage),
        arm=Arm(row.arm),
        served=row.served,
        outcome=Outcome(row.outcome),
        code=row.code,
        args_digest=_hex(row.args_digest),
        loop=row.loop,
        loop_after_user=row.loop_after_user,
        runaway=row.runaway,
        recovered=row.recovered,
    )


def _errors(name: str) -> Select[Any]:
    number = select(_tool.c.id).where(_tool.c.name == clean_name(name)).scalar_subquery()
    return (
        select(
            call,
            _session.c.name.label("session"),
            _session.c.source.label("session_source"),
            actor.c.name.label("actor"),
            _legacy.c.text.label("legacy_text"),
            _legacy.c.size.label("legacy_size"),
            _structured.c.text.label("structured_text"),
            _structured.c.size.label("structured_size"),
        )
        .join(_session, _session.c.id == call.c.session_id)
        .join(actor, actor.c.id == call.c.actor_id)
        .outerjoin(_legacy, _legacy.c.id == call.c.legacy_payload_id)
        .outerjoin(_structured, _structured.c.id == call.c.structured_payload_id)
        .where(call.c.tool_id == number, call.c.outcome == "error")
    )


def _error(row: Row[Any]) -> ErrorRow:
    return ErrorRow(
        cursor=f"{row.started_at}-{row.id}",
        at=moment(row.started_at),
        session=row.session,
        session_source=row.session_source,
        actor=row.actor,
        code=row.code,
        category=row.category,
        retryable=row.retryable,
        next_action=row.next_action,
        unclassified=row.unclassified,
        stage=Stage(row.stage),
        arm=Arm(row.arm),
        served=row.served,
        loop=row.loop,
        loop_after_user=row.loop_after_user,
        recovered=row.recovered,
        args_digest=_hex(row.args_digest),
        legacy_payload=row.legacy_text,
        structured_payload=row.structured_text,
        legacy_bytes=row.legacy_size,
        structured_bytes=row.structured_size,
        legacy_truncated=_CUT_SIGN in (row.legacy_text or ""),
        structured_truncated=_CUT_SIGN in (row.structured_text or ""),
    )


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()


def _place(cursor: str) -> tuple[int, int]:
    started_at, _, number = cursor.partition("-")
    if not (started_at.isascii() and started_at.isdigit() and number.isascii() and number.isdigit()):
        raise CursorError(f"{cursor[:80]!r} is no place in this list; begin at its first page")
    if len(cursor) > 2 * len(str(MAX_INTEGER)) or max(int(started_at), int(number)) > MAX_INTEGER:
        raise CursorError(f"{cursor[:80]!r} is no place in this list; begin at its first page")
    return int(started_at), int(number)
