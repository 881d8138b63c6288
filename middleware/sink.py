"""The one place where the recorder reaches the store: imported late, and never in the middle of a fork."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .config import sqlite_file
from .forkgate import gate

if TYPE_CHECKING:
    from pathlib import Path

_STORE: Final = ("changeover.store.drain", "changeover.store.flag_source", "changeover.store.schema")
_MIGRATIONS: Final = ("alembic.command", "alembic.config")
_BUSY_SECONDS: Final = 5.0  # a fork waits for it at worst; the drainer tries again anyhow


def warm_up(url: str) -> None:
    """Import the store's side and the driver of the database at *url*, without connecting.

    The first call does it, once, rather than go without its flags: they may hold a call up for a quarter of a second,
    which is enough for a database and too little for importing its driver.
    """
    with gate.inside():
        for module in _STORE:
            import_module(module)
        from sqlalchemy import create_engine

        from changeover.store.url import parse

        create_engine(parse(url)).dispose()
    gate.come_first()


class StoreSink:
    """A connection to the store at *url*; the schema is created or upgraded when it is opened."""

    def __init__(self, url: str) -> None:
        warm_up(url)
        from changeover.store.drain import drain, drain_segment
        from changeover.store.engine import open_store

        self._drain = drain
        self._drain_segment = drain_segment
        with gate.inside():
            _import_migrations(url)
            self._store: Any = open_store(url, timeout=_BUSY_SECONDS)

    def drain_segment(self, path: Path) -> None:
        """Commit one closed segment of this process and remove it."""
        with gate.inside():
            self._drain_segment(path, self._store)

    def adopt(self, spool: Path) -> None:
        """Commit what dead processes left in *spool*."""
        with gate.inside():
            self._drain(spool, self._store)

    def close(self) -> None:
        """Let go of the database."""
        with gate.inside():
            self._store.close()


def _import_migrations(url: str) -> None:
    """Import what creates the schema, for a store that most likely has none yet."""
    file = sqlite_file(url)
    if file is None or not file.exists():
        for module in _MIGRATIONS:
            import_module(module)
