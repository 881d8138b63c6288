"""Open a store and talk to it: one engine, short read transactions, and writes that queue instead of failing."""

from __future__ import annotations

import os
import sqlite3
import weakref
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError, InterfaceError, OperationalError, ProgrammingError

from .errors import StoreError
from .url import check_file, parse, sqlite_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from sqlalchemy.engine import URL

BUSY_SECONDS = 30.0
"""How long a writer waits for another one before it gives up."""

CONNECT_SECONDS = 5
"""How long a server may take to answer at all."""

_WRITE = "changeover_write"
_READING: Mapping[str, Mapping[str, Any]] = {
    # SQLite's reads always see one moment; PostgreSQL has to be asked.
    "postgresql": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
}
_OPEN_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


class Store:
    """A database that holds calls, flags and figures.

    Safe to share between threads. After a fork the child opens connections of its own.

    Args:
        url: as accepted by [`parse`][changeover.store.url.parse].
        timeout: seconds to wait for another writer.
    """

    def __init__(self, url: URL, *, timeout: float = BUSY_SECONDS) -> None:
        self.url = url
        path = sqlite_path(url)
        self._path = None if path is None else path.absolute()  # a host may change its working folder
        self._file: tuple[int, int] | None = None
        self.engine = _create_engine(url if path is None else url.set(database=str(self._path)), timeout)
        self._writing = self.engine.execution_options(**{_WRITE: True})
        self._reading = self.engine.execution_options(**_READING.get(self.engine.dialect.name, {}))
        self._pid = os.getpid()
        _OPEN_STORES.add(self)

    def __repr__(self) -> str:
        return f"<Store {self.url.render_as_string(hide_password=True)}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self.engine.dialect.name

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Give a connection whose reads all see one moment.

        Raises:
            StoreError: when the database cannot be reached or read.
        """
        self._leave_parent()
        self._follow_file()
        with translated(self.url), self._reading.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Give a connection in one write transaction: committed at the end, rolled back by any exception.

        Raises:
            StoreError: when the database cannot be reached or written, or another writer holds it for too long.
        """
        self._leave_parent()
        self._follow_file()
        with translated(self.url), self._writing.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close every connection; the store opens new ones when it is used again."""
        self.engine.dispose(close=self._pid == os.getpid())

    def _leave_parent(self) -> None:
        if self._pid != os.getpid():
            # The parent still uses the inherited connections: forget them here, close nothing.
            self.engine.dispose(close=False)
            self._pid = os.getpid()

    def _follow_file(self) -> None:
        """Leave a file that was removed or replaced: what is written there nobody will ever read."""
        if self._path is None:
            return
        try:
            status = self._path.stat()
        except FileNotFoundError:
            if self._file is None:
                return  # about to be made
            raise StoreError(
                f"{self._path} was removed while it was open; restore it, or open the store anew"
            ) from None
        found = status.st_dev, status.st_ino
        if self._file not in (None, found):
            self.engine.dispose()
        self._file = found


def open_store(url: str, *, upgrade: bool = True, create: bool = True, timeout: float = BUSY_SECONDS) -> Store:
    """Open the store at *url*, creating or upgrading its tables when needed.

    Args:
        url: ``sqlite:///file.db`` or ``postgresql://user:password@host/database``.
        upgrade: bring an empty or older database to this version's schema.
        create: whether a SQLite file that does not exist may be created.
        timeout: seconds to wait for another writer.

    Raises:
        StoreError: for a bad URL, a file that is no store, a newer schema, a folder that cannot be written.
    """
    from .schema import prepare

    parsed = parse(url)
    path = sqlite_path(parsed)
    if path is not None:
        check_file(path, create=create)
    store = Store(parsed, timeout=timeout)
    try:
        prepare(store, upgrade_it=upgrade)
    except BaseException:
        store.close()
        raise
    return store


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Turn a database's refusal into a ``StoreError`` that names the store."""
    try:
        yield
    except (OperationalError, InterfaceError, ProgrammingError, DatabaseError) as error:
        if isinstance(error, DatabaseError) and type(error) not in _REFUSALS:
            raise
        raise StoreError(f"{_place(url)}: {_reason(error)}") from error


_REFUSALS = (OperationalError, InterfaceError, ProgrammingError, DatabaseError)

_ADVICE = {
    "readonly": "it cannot be written; check the permissions of the file and of its folder",
    "unable to open": "the file cannot be opened; check the permissions of the file and of its folder",
    "lock timeout": "another process has been writing for too long; try again",
    "locked": "another process has been writing for too long; try again",
    "full": "the disk is full; make room and try again",
    "malformed": "the file is damaged; restore a copy or name another file",
    "not a database": "it is no SQLite database; name another file",
    "no such table": "it is no changeover store; name another database",
    "does not exist": "it is no changeover store, or the database does not exist; name another one",
    "password authentication": "user name or password is wrong",
    "refused": "no server answers there; check host and port",
    "failed to resolve": "the host is not known; check its name",
    "is the server running": "no server answers there; check host and port",
    "connection failed": "the server refuses the connection; check host, user and database",
}


def _reason(error: Exception) -> str:
    original = getattr(error, "orig", None)
    text = str(original or error)
    lowered = text.lower()
    for sign, advice in _ADVICE.items():
        if sign in lowered:
            return advice
    return " ".join(text.split())[:300]


def _place(url: URL) -> str:
    return str(sqlite_path(url) or url.render_as_string(hide_password=True))


def _create_engine(url: URL, timeout: float) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, connect_args={"timeout": timeout})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        engine = create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": CONNECT_SECONDS})
    except ModuleNotFoundError as error:
        raise StoreError("PostgreSQL needs a driver: pip install 'changeover[postgres]'") from error
    event.listen(engine, "connect", partial(_prepare_postgresql, max(1, round(timeout * 1000))))
    return engine


def _prepare_postgresql(milliseconds: int, connection: Any, _record: Any) -> None:
    # Not in the connection's options: the URL's own, such as a search_path, stand there.
    connection.execute(f"SET lock_timeout = {milliseconds}")
    connection.commit()


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver's own idea of when to begin a transaction is switched off, see _begin_sqlite:
    # https://docs.sqlalchemy.org/en/20/dialects/sqlite.html#pysqlite-serializable
    connection.isolation_level = None
    try:
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA foreign_keys=ON")
    except sqlite3.Error:
        connection.close()  # nobody else does: the pool has not got it yet
        raise


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later fails at once when another one wrote in between; taking the
    # write lock at the beginning makes it wait its turn instead.
    writes = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _close_idle_connections() -> None:
    # A SQLite connection must not be carried across a fork: https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_
    for store in list(_OPEN_STORES):
        store.engine.dispose()


os.register_at_fork(before=_close_idle_connections)
