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

from changeover.semconv import Outcome
from sqlalchemy import bindparam, delete, select, tuple_, update

from .figures import Counted, HourChanges, session_rows
from .interning import Names
from .loops import Call, Marks, mark
from .records import CallRecord, LossRecord, MalformedRecordError, parse
from .sql import chunks, insert, run_many, take_turns
from .tables import call, loss, session_tool
from .text import clean_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Connection, Row

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


class _Known:
    """A call on its way in, or one already stored: what is needed to mark and to count it."""

    __slots__ = ("call", "counted", "id", "record")

    def __init__(self, call: Call, counted: Counted, row_id: int | None, record: CallRecord | None) -> None:
        self.call = call
        self.counted = counted
        self.id = row_id
        self.record = record


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
        columns = (call.c.id, call.c.trace_id, call.c.span_id, call.c.outcome, call.c.session_id, call.c.actor_id)
        replaced: set[_Caller] = set()
        for chunk in chunks(list(self._calls)):
            query = select(*columns).where(tuple_(call.c.trace_id, call.c.span_id).in_(chunk))
            for row in self._connection.execute(query).all():
                identity = (row.trace_id, row.span_id)
                if row.outcome == _UNANSWERED != self._calls[identity].outcome:
                    replaced.add((row.session_id, row.actor_id))
                    self._remove(row.id)
                else:
                    del self._calls[identity]
        return replaced

    def _remove(self, row_id: int) -> None:
        row = self._connection.execute(_stored_calls().where(call.c.id == row_id)).one()
        self._hours.remove(_stored(row).counted)
        self._connection.execute(delete(call).where(call.c.id == row_id))

    def _load_earlier(self, sessions: frozenset[int] | set[int]) -> None:
        callers = [caller for caller in self._callers if caller[0] in sessions]
        for chunk in chunks(callers):
            query = _stored_calls().where(tuple_(call.c.session_id, call.c.actor_id).in_(chunk))
            for row in self._connection.execute(query):
                self._callers[row.session_id, row.actor_id].append(_stored(row))

    def _mark(self, names: Names) -> None:
        new_rows: list[dict[str, Any]] = []
        changed: list[dict[str, Any]] = []
        figures: list[dict[str, Any]] = []
        for (session_id, actor_id), known in self._callers.items():
            for one, marks in zip(known, mark([one.call for one in known]), strict=True):
                before = one.counted
                if one.record is None and before.marks == marks:
                    continue
                one.counted = before._replace(marks=marks)
                if one.record is None:
                    self._hours.mark(before, one.counted)
                    changed.append({"row_id": one.id, **marks._asdict()})
                else:
                    self._hours.add(one.counted)
                    new_rows.append(_row(one.record, one.counted, names, session_id, actor_id))
            figures += session_rows(session_id, actor_id, (one.counted for one in known))
        self._write(new_rows, changed, figures)

    def _write(
        self, new_rows: list[dict[str, Any]], changed: list[dict[str, Any]], figures: list[dict[str, Any]]
    ) -> None:
        run_many(self._connection, insert(self._connection, call), new_rows)
        run_many(self._connection, _UPDATE_MARKS, changed)
        callers = [{"session": session, "actor": actor} for session, actor in self._callers]
        run_many(self._connection, _DELETE_FIGURES, callers)
        run_many(self._connection, insert(self._connection, session_tool), figures)
        self._hours.apply(self._connection)


_UPDATE_MARKS = (
    update(call).where(call.c.id == bindparam("row_id")).values({name: bindparam(name) for name in Marks._fields})
)
_DELETE_FIGURES = delete(session_tool).where(
    session_tool.c.session_id == bindparam("session"), session_tool.c.actor_id == bindparam("actor")
)


def _order(sequence: int, started_at: int, ended_at: int, *, replayed: bool) -> tuple[int, int]:
    # A recording says what followed what by its turns; its times, if any, were written by another clock.
    return (sequence, sequence) if replayed else (started_at, ended_at)


def _incoming(record: CallRecord, tool_id: int) -> _Known:
    started, ended = _order(record.sequence, record.started_at, record.ended_at, replayed=record.replayed)
    seen = Call(
        identity=record.span_id + record.trace_id,
        sequence=record.sequence,
        tool=tool_id,
        args=record.args_digest,
        outcome=record.outcome,
        turn=record.turn,
        user_turn=record.user_turn,
        started=started,
        ended=ended,
        result=record.result_digest,
    )
    counted = Counted(
        tool_id, record.arm, record.started_at, record.outcome, record.unclassified, record.retryable, Marks()
    )
    return _Known(seen, counted, None, record)


def _stored_calls() -> Any:
    return select(
        call.c.id,
        call.c.trace_id,
        call.c.span_id,
        call.c.session_id,
        call.c.actor_id,
        call.c.tool_id,
        call.c.sequence,
        call.c.turn,
        call.c.user_turn,
        call.c.started_at,
        call.c.ended_at,
        call.c.replayed,
        call.c.arm,
        call.c.outcome,
        call.c.unclassified,
        call.c.retryable,
        call.c.args_digest,
        call.c.result_digest,
        call.c.loop,
        call.c.loop_after_user,
        call.c.runaway,
        call.c.episode,
        call.c.recovered,
    )


def _stored(row: Row[Any]) -> _Known:
    started, ended = _order(row.sequence, row.started_at, row.ended_at, replayed=row.replayed)
    seen = Call(
        identity=row.span_id + row.trace_id,
        sequence=row.sequence,
        tool=row.tool_id,
        args=row.args_digest,
        outcome=row.outcome,
        turn=row.turn,
        user_turn=row.user_turn,
        started=started,
        ended=ended,
        result=row.result_digest,
    )
    marks = Marks(row.loop, row.loop_after_user, row.runaway, row.episode, row.recovered)
    counted = Counted(row.tool_id, row.arm, row.started_at, row.outcome, row.unclassified, row.retryable, marks)
    return _Known(seen, counted, row.id, None)


def _row(record: CallRecord, counted: Counted, names: Names, session_id: int, actor_id: int) -> dict[str, Any]:
    row = record._asdict()
    for name in ("session", "session_source", "actor", "tool", "setup", "legacy", "structured"):
        del row[name]
    return row | {
        "session_id": session_id,
        "actor_id": actor_id,
        "tool_id": counted.tool_id,
        "setup_id": names.setups[tuple(record.setup)],
        "legacy_payload_id": names.payload(record.legacy),
        "structured_payload_id": names.payload(record.structured),
        **counted.marks._asdict(),
    }
