"""Names and payloads that stand in the store once, and are meant by a number everywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from . import tables
from .records import Payload, Setup, columns
from .sql import chunks, insert, run_many

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy import Connection, Table

    from .records import CallRecord


NUMBERED_COLUMNS = ("session_id", "actor_id", "tool_id", "setup_id", "legacy_payload_id", "structured_payload_id")
"""The columns of ``call`` that hold numbers of what stands elsewhere."""


class Names:
    """The numbers of every name that a batch of records uses.

    Args:
        connection: in a write transaction, so that nobody else adds the same name.
        records: whose names are looked up and, where new, added.
    """

    def __init__(self, connection: Connection, records: Collection[CallRecord]) -> None:
        self.tools = _known(connection, tables.tool, {(record.tool,) for record in records})
        self.actors = _known(connection, tables.actor, {(record.actor,) for record in records})
        self.setups = _known(connection, tables.setup, {record.setup for record in records})
        wanted = {(record.session, record.session_source) for record in records}
        self.old_sessions = frozenset(_find(connection, tables.session, wanted).values())
        self.sessions = _known(connection, tables.session, wanted)
        texts = {payload.digest: payload for record in records for payload in _payloads(record)}
        self.payloads = _known_payloads(connection, texts.values())

    def row(self, record: CallRecord, session_id: int, actor_id: int) -> tuple[Any, ...]:
        """Return *record* as a row of ``call``: ``NUMBERED_COLUMNS``, then ``changeover.store.records.COLUMNS``."""
        legacy, structured = record.legacy, record.structured
        return (
            session_id,
            actor_id,
            self.tools[record.tool,],
            self.setups[record.setup],
            None if legacy is None else self.payloads[legacy.digest],
            None if structured is None else self.payloads[structured.digest],
            *columns(record),
        )


def tool_id(connection: Connection, name: str) -> int:
    """Return the number of the tool called *name*, adding it when it is new."""
    return _known(connection, tables.tool, {(name,)})[(name,)]


def _payloads(record: CallRecord) -> Iterable[Payload]:
    return (payload for payload in (record.legacy, record.structured) if payload is not None)


def _known(connection: Connection, table: Table, wanted: set[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    found = _find(connection, table, wanted)
    missing = sorted(wanted - found.keys())
    if missing:
        key = _natural_key(table)
        rows = [dict(zip(key, values, strict=True)) for values in missing]
        run_many(connection, insert(connection, table).on_conflict_do_nothing(), rows)
        found |= _find(connection, table, set(missing))
    return found


def _find(connection: Connection, table: Table, wanted: set[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    key = [table.c[name] for name in _natural_key(table)]
    found: dict[tuple[Any, ...], int] = {}
    for firsts in chunks({values[0] for values in wanted}):
        for row in connection.execute(select(table.c.id, *key).where(key[0].in_(firsts))):
            found[tuple(row[1:])] = row[0]
    return {values: found[values] for values in wanted & found.keys()}


def _natural_key(table: Table) -> tuple[str, ...]:
    if table is tables.session:
        return ("name", "source")
    return Setup._fields if table is tables.setup else ("name",)


def _known_payloads(connection: Connection, payloads: Collection[Payload]) -> dict[bytes, int]:
    found = _find_payloads(connection, [payload.digest for payload in payloads])
    missing = [payload for payload in payloads if payload.digest not in found]
    if missing:
        rows = [payload._asdict() for payload in missing]
        run_many(connection, insert(connection, tables.payload).on_conflict_do_nothing(), rows)
        found |= _find_payloads(connection, [payload.digest for payload in missing])
    return found


def _find_payloads(connection: Connection, digests: list[bytes]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for chunk in chunks(digests):
        query = select(tables.payload.c.digest, tables.payload.c.id).where(tables.payload.c.digest.in_(chunk))
        found.update({row.digest: row.id for row in connection.execute(query)})
    return found
