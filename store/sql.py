"""The few statements that SQLite and PostgreSQL spell differently, and lists that may be longer than a statement."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import text
from sqlalchemy.dialects import postgresql, sqlite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection, Dialect, Table

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


def insert_rows(connection: Connection, table: Table, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """Insert *rows*, plain tuples of *columns*, as fast as the driver can: nothing converts them on their way."""
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_insert(table, columns, connection.dialect), rows)
        return
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(_copy(table, columns, connection.dialect)) as copy:
        for row in rows:
            copy.write_row(row)


def matching(
    connection: Connection,
    table: Table,
    key: tuple[str, ...],
    wanted: Iterable[tuple[Any, ...]],
    columns: tuple[str, ...],
) -> Iterator[tuple[Any, ...]]:
    """Yield *columns* of the rows whose *key* is one of *wanted*, each found through an index on *key*.

    SQLite reads the whole table for a list of pairs after ``IN``, and hardly anything for this join.
    Values come as the driver gives them: on SQLite a truth is 0 or 1.
    """
    for chunk in chunks(wanted):
        statement = _matching(table, key, columns, len(chunk), connection.dialect)
        for row in connection.exec_driver_sql(statement, tuple(value for values in chunk for value in values)):
            yield tuple(row)


@lru_cache
def _matching(table: Table, key: tuple[str, ...], columns: tuple[str, ...], count: int, dialect: Dialect) -> str:
    quote = dialect.identifier_preparer.quote
    mark, join = ("?", "CROSS JOIN") if dialect.name == "sqlite" else ("%s", "JOIN")
    places = [f"k{number}" for number in range(len(key))]
    values = ", ".join([f"({', '.join([mark] * len(key))})"] * count)
    equal = " AND ".join(f"wanted.{place} = found.{quote(name)}" for place, name in zip(places, key, strict=True))
    named = ", ".join(f"found.{quote(column)}" for column in columns)
    return (
        f"WITH wanted ({', '.join(places)}) AS (VALUES {values}) "  # noqa: S608 - names of ours only
        f"SELECT {named} FROM wanted {join} {quote(table.name)} AS found ON {equal}"
    )


def update_rows(connection: Connection, table: Table, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """Set *columns* of single rows; each of *rows* holds their values and then the row's ``id``."""
    if rows:
        connection.exec_driver_sql(_update(table, columns, connection.dialect), rows)


@lru_cache
def _update(table: Table, columns: tuple[str, ...], dialect: Dialect) -> str:
    quote = dialect.identifier_preparer.quote
    mark = "?" if dialect.name == "sqlite" else "%s"
    values = ", ".join(f"{quote(column)} = {mark}" for column in columns)
    return f"UPDATE {quote(table.name)} SET {values} WHERE id = {mark}"  # noqa: S608 - names of ours only


@lru_cache
def _insert(table: Table, columns: tuple[str, ...], dialect: Dialect) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {_target(table, columns, dialect)} VALUES ({marks})"  # noqa: S608 - names of ours only


@lru_cache
def _copy(table: Table, columns: tuple[str, ...], dialect: Dialect) -> str:
    return f"COPY {_target(table, columns, dialect)} FROM STDIN"


def _target(table: Table, columns: tuple[str, ...], dialect: Dialect) -> str:
    quote = dialect.identifier_preparer.quote
    return f"{quote(table.name)} ({', '.join(quote(column) for column in columns)})"


def run_many(connection: Connection, statement: Any, rows: list[dict[str, Any]]) -> None:
    """Execute *statement* once for every one of *rows*, if there are any."""
    if rows:
        connection.execute(statement, rows)
