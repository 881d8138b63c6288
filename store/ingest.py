"""Take records into the store: each call once, with everything that its order among the others says.

One transaction a batch. Only the sessions that a batch touches are looked at again, and whatever order records come
in, in whatever batches, the figures end the same.
"""

from __future__ import annotations

import os
import socket
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete

from changeover.semconv import Outcome

from .figures import SESSION_COLUMNS, Counted, HourChanges, places, session_rows
from .interning import NUMBERED_COLUMNS, Names
from .loops import NOTHING, Call, Marks, mark
from .record_fields import MalformedRecordError
from .records import COLUMNS, CallRecord, LossRecord, parse
from .sql import insert, insert_rows, matching, run_many, take_turns, update_rows
from .tables import call, loss, session_tool
from .text import clean_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Connection

    from .engine import Store

_UNANSWERED = Outcome.UNANSWERED.value
_Identity = tuple[bytes, bytes]
_Caller = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a batch.

    Args:
        stored: calls that are new, or answered now.
        duplicates: calls that were stored before, or stood in the batch twice.
        rejected: records that cannot be stored, by reason; they are in ``loss`` too.
        losses: loss records taken in.
    """

    stored: int
    duplicates: int
    rejected: dict[str, int] = field(default_factory=dict)
    losses: int = 0


def ingest(
    store: Store,
    records: Iterable[Mapping[str, Any]],
    *,
    process: str | None = None,
    at: int | None = None,
    lost: Mapping[str, int] = MappingProxyType({}),
) -> Ingested:
    """Store *records* in one transaction; delivering a record again changes nothing.

    Args:
        store: where to.
        records: record lines as objects; a malformed one is counted in ``loss`` and never fatal.
        process: who is said to have lost what is malformed; this host and process when left out. A caller that may
            deliver the same batch twice names the batch here and gives *at*, so that its losses count once.
        at: when that was, unix nanoseconds; now when left out.
        lost: what the caller could not even read, by reason; counted in ``loss`` with the batch's own.

    Raises:
        StoreError: when the database refuses; then nothing of the batch is stored.
    """
    calls, losses, rejected, duplicates = _read(records)
    rejected.update(lost)
    known = len(calls)
    lost_at = time.time_ns() if at is None else at
    where = clean_name(process or this_process())
    losses += [LossRecord(where, reason, lost_at, count) for reason, count in rejected.items()]
    with store.write() as connection:
        take_turns(connection)
        stored = _Batch(connection, calls).store() if calls else 0
        _store_losses(connection, losses)
    return Ingested(stored, duplicates + known - stored, dict(rejected), len(losses) - len(rejected))


def this_process() -> str:
    """Return the name under which this process counts its losses."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _read(
    records: Iterable[Mapping[str, Any]],
) -> tuple[dict[_Identity, CallRecord], list[LossRecord], Counter[str], int]:
    calls: dict[_Identity, CallRecord] = {}
    losses: list[LossRecord] = []
    rejected: Counter[str] = Counter()
    duplicates = 0
    for record in records:
        try:
            parsed = parse(record)
        except MalformedRecordError as error:
            rejected[str(error)] += 1
            continue
        if isinstance(parsed, LossRecord):
            losses.append(parsed)
            continue
        identity = (parsed.trace_id, parsed.span_id)
        earlier = calls.get(identity)
        duplicates += earlier is not None
        if earlier is None or (earlier.outcome == _UNANSWERED != parsed.outcome):
            calls[identity] = parsed
    return calls, losses, rejected, duplicates


def _store_losses(connection: Connection, losses: list[LossRecord]) -> None:
    rows = [asdict(record) for record in losses]
    run_many(connection, insert(connection, loss).on_conflict_do_nothing(), rows)


@dataclass(slots=True)
class _Known:
    """A call on its way in, or one already stored: what is needed to mark and to count it."""

    call: Call
    tool_id: int
    arm: str
    started_at: int
    unclassified: bool
    retryable: bool
    marks: Marks | None = None
    id: int | None = None
    record: CallRecord | None = None

    def counted(self, marks: Marks) -> Counted:
        """Return what the call counts for when it is marked so."""
        counts = places(self.call.outcome, marks, unclassified=self.unclassified, retryable=self.retryable)
        return Counted(self.tool_id, self.arm, self.started_at, counts)


class _Batch:
    """One batch of calls inside one write transaction."""

    def __init__(self, connection: Connection, calls: dict[_Identity, CallRecord]) -> None:
        self._connection = connection
        self._calls = calls
        self._hours = HourChanges()
        self._callers: dict[_Caller, list[_Known]] = defaultdict(list)

    def store(self) -> int:
        """Store what is new and return how many that were."""
        replaced = self._drop_known()
        if not self._calls:
            return 0
        names = Names(self._connection, self._calls.values())
        for record in self._calls.values():
            caller = (names.sessions[record.session, record.session_source], names.actors[record.actor,])
            self._callers[caller].append(_incoming(record, names.tools[record.tool,]))
        for caller in replaced:
            self._callers.setdefault(caller, [])
        self._load_earlier(names.old_sessions | {session for session, _ in replaced})
        self._mark(names)
        return len(self._calls)

    def _drop_known(self) -> set[_Caller]:
        # An answer replaces a call that was stored unanswered; every other call that is there already stays.
        replaced: set[_Caller] = set()
        found = matching(self._connection, call, ("trace_id", "span_id"), list(self._calls), _IDENTIFIED)
        for row_id, trace_id, span_id, outcome, session_id, actor_id in list(found):
            if outcome == _UNANSWERED != self._calls[trace_id, span_id].outcome:
                replaced.add((session_id, actor_id))
                self._remove(row_id)
            else:
                del self._calls[trace_id, span_id]
        return replaced

    def _remove(self, row_id: int) -> None:
        for row in matching(self._connection, call, ("id",), [(row_id,)], _STORED):
            stored = _stored(row)
            self._hours.remove(stored.counted(stored.marks or NOTHING))
        self._connection.execute(delete(call).where(call.c.id == row_id))

    def _load_earlier(self, sessions: frozenset[int] | set[int]) -> None:
        callers = [caller for caller in self._callers if caller[0] in sessions]
        for row in matching(self._connection, call, ("session_id", "actor_id"), callers, _STORED):
            self._callers[row[0], row[1]].append(_stored(row))

    def _mark(self, names: Names) -> None:
        new_rows: list[tuple[Any, ...]] = []
        changed: list[tuple[Any, ...]] = []
        figures: list[tuple[Any, ...]] = []
        for (session_id, actor_id), known in self._callers.items():
            counted: list[Counted] = []
            for one, marks in zip(known, mark([one.call for one in known]), strict=True):
                counts = one.counted(marks)
                counted.append(counts)
                if one.record is not None:
                    self._hours.add(counts)
                    new_rows.append(names.row(one.record, session_id, actor_id) + marks)
                elif one.marks != marks:
                    self._hours.mark(one.counted(one.marks or NOTHING), counts)
                    changed.append((*marks, one.id))
            figures += session_rows(session_id, actor_id, counted)
        insert_rows(self._connection, call, NUMBERED_COLUMNS + COLUMNS + Marks._fields, new_rows)
        update_rows(self._connection, call, Marks._fields, changed)
        self._write_figures(figures)

    def _write_figures(self, figures: list[tuple[Any, ...]]) -> None:
        callers = [{"session": session, "actor": actor} for session, actor in self._callers]
        run_many(self._connection, _DELETE_FIGURES, callers)
        insert_rows(self._connection, session_tool, SESSION_COLUMNS, figures)
        self._hours.apply(self._connection)


_DELETE_FIGURES = delete(session_tool).where(
    session_tool.c.session_id == bindparam("session"), session_tool.c.actor_id == bindparam("actor")
)


def _incoming(record: CallRecord, tool_id: int) -> _Known:
    started, ended = _order(record.sequence, record.started_at, record.ended_at, replayed=record.replayed)
    return _Known(
        Call(
            record.span_id + record.trace_id,
            record.sequence,
            tool_id,
            record.args_digest,
            record.outcome,
            record.turn,
            record.user_turn,
            started,
            ended,
            record.result_digest,
        ),
        tool_id,
        record.arm,
        record.started_at,
        record.unclassified,
        bool(record.retryable),
        record=record,
    )


def _order(sequence: int, started_at: int, ended_at: int, *, replayed: bool) -> tuple[int, int]:
    # A recording says what followed what by its turns; its times, if any, were written by another clock.
    return (sequence, sequence) if replayed else (started_at, ended_at)


_IDENTIFIED = ("id", "trace_id", "span_id", "outcome", "session_id", "actor_id")
_STORED = (
    "session_id",
    "actor_id",
    "id",
    "trace_id",
    "span_id",
    "tool_id",
    "sequence",
    "turn",
    "user_turn",
    "started_at",
    "ended_at",
    "replayed",
    "arm",
    "outcome",
    "unclassified",
    "retryable",
    "args_digest",
    "result_digest",
    *Marks._fields,
)


def _stored(row: tuple[Any, ...]) -> _Known:
    (
        _,
        _,
        row_id,
        trace_id,
        span_id,
        tool_id,
        sequence,
        turn,
        user_turn,
        started_at,
        ended_at,
        replayed,
        arm,
        outcome,
        unclassified,
        retryable,
        args,
        result,
        loop,
        loop_after_user,
        runaway,
        episode,
        recovered,
    ) = row
    started, ended = _order(sequence, started_at, ended_at, replayed=replayed)
    return _Known(
        Call(span_id + trace_id, sequence, tool_id, args, outcome, turn, user_turn, started, ended, result),
        tool_id,
        arm,
        started_at,
        bool(unclassified),
        bool(retryable),
        Marks(
            bool(loop),
            bool(loop_after_user),
            bool(runaway),
            bool(episode),
            None if recovered is None else bool(recovered),
        ),
        row_id,
    )
