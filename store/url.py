"""Which databases can be a store: one SQLite file, or PostgreSQL."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from .errors import StoreError

_EXAMPLES = "use sqlite:///changeover.db or postgresql://user:password@host/database"
_SMALLEST_DATABASE_BYTES = 512  # one page of the smallest size
_SQLITE_DRIVERS = ("sqlite", "sqlite+pysqlite")
_POSTGRES_DRIVERS = ("postgres", "postgresql", "postgresql+psycopg")


def parse(url: str) -> URL:
    """Return *url* with the driver that the store uses.

    Raises:
        StoreError: for anything but a SQLite file or PostgreSQL; a password never enters the message.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise StoreError(f"this is no database URL: {_without_secret(url)!r}; {_EXAMPLES}") from error
    if parsed.drivername in _SQLITE_DRIVERS:
        return _sqlite(parsed)
    if parsed.drivername in _POSTGRES_DRIVERS:
        return parsed.set(drivername="postgresql+psycopg")
    raise StoreError(f"a store is a SQLite file or PostgreSQL, not {parsed.drivername!r}; {_EXAMPLES}")


def sqlite_path(url: URL) -> Path | None:
    """Return the file of a SQLite *url*, and ``None`` for PostgreSQL."""
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def check_file(path: Path, *, create: bool) -> None:
    """Refuse a SQLite file that cannot be opened, without touching it.

    Raises:
        StoreError: naming the file and what to do.
    """
    if path.is_dir():
        raise StoreError(f"{path} is a folder; name a file in it, for example sqlite:///{path / 'changeover.db'}")
    if not path.exists():
        _check_missing(path, create=create)
        return
    # Asked, not opened: closing any descriptor of the file gives up every lock that this process has on it, and the
    # next process to leave then takes the write-ahead log away under our connections:
    # https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
    # What is no database SQLite itself refuses unchanged, unless it is smaller than a page: then it overwrites it.
    if not os.access(path, os.R_OK):
        raise StoreError(f"{path} cannot be read; check its permissions")
    if 0 < path.stat().st_size < _SMALLEST_DATABASE_BYTES:
        raise StoreError(f"{path} is no SQLite database; name another file")


def _sqlite(parsed: URL) -> URL:
    if parsed.database in (None, "", ":memory:") or "mode" in parsed.query or "file:" in str(parsed.database):
        raise StoreError("a store is shared by several processes, so it needs a file: use sqlite:///changeover.db")
    return parsed.set(drivername="sqlite+pysqlite")


def _check_missing(path: Path, *, create: bool) -> None:
    if not create:
        raise StoreError(f"there is no store at {path}; check --store or CHANGEOVER_STORE, or record something first")
    if not path.parent.is_dir():
        raise StoreError(f"the folder {path.parent} does not exist; create it first, or name another file")


def _without_secret(url: str) -> str:
    return f"…@{url.rpartition('@')[2]}" if "@" in url else url
