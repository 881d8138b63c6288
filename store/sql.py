"""The few statements that SQLite and PostgreSQL spell differently, and lists that may be longer than a statement."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import text
from sqlalchemy.dialects import postgresql, sqlite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection, Table

T = TypeVar("T")

CHUNK = 500
"""Values in one list of a statement: far below every database's limit on parameters."""

_INGEST_LOCK = 0x696E_6765_7374  # "ingest"


def insert(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Return an ``INSERT`` that can say what to do about a row that is there already."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


def chunks(values: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Yield *values* in lists of at most *size*."""
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk


def take_turns(connection: Connection) -> None:
    """Wait until no other process is ingesting; SQLite's write transaction has done so already."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _INGEST_LOCK})


def run_many(connection: Connection, statement: Any, rows: list[dict[str, Any]]) -> None:
    """Execute *statement* once for every one of *rows*, if there are any."""
    if rows:
        connection.execute(statement, rows)
