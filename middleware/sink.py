"""The one place where the middleware reaches the store: late, and behind a gate that a fork waits for."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .config import sqlite_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FORK_WAIT_SECONDS: Final = 10.0


class _ImportGate:
    """Keeps a fork from happening in the middle of our imports.

    The child of such a fork inherits half-made modules whose import locks belong to a thread it does not have, and
    would wait for them forever.
    """

    def __init__(self) -> None:
        # Reentrant, because a finalizer that runs during an import may call a wrapped tool.
        self._lock = threading.RLock()
        self._held = False
        os.register_at_fork(before=self._close, after_in_parent=self._reopen, after_in_child=self._renew)

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Hold forks back for the block."""
        with self._lock:
            yield

    def _close(self) -> None:
        self._held = self._lock.acquire(timeout=_FORK_WAIT_SECONDS)

    def _reopen(self) -> None:
        if self._held:
            self._held = False
            self._lock.release()

    def _renew(self) -> None:
        self._lock = threading.RLock()
        self._held = False


gate: Final = _ImportGate()


def warm_up(url: str) -> None:
    """Import the store's side and the driver of the database at *url*, without connecting.

    The first call does it, once, rather than go without its flags: they may hold a call up for a quarter of a second,
    which is enough for a database and too little for importing its driver.
    """
    with gate.passing():
        for module in ("changeover.store.drain", "changeover.store.flag_source", "changeover.store.schema"):
            import_module(module)
        from sqlalchemy import create_engine

        create_engine(url).dispose()


def _import_migrations(url: str) -> None:
    """Import what creates the schema, for a store that most likely has none yet."""
    file = sqlite_file(url)
    if file is None or not file.exists():
        with gate.passing():
            for module in ("alembic.command", "alembic.config"):
                import_module(module)


class StoreSink:
    """A connection to the store at *url*; the schema is created or upgraded when it is opened."""

    def __init__(self, url: str) -> None:
        warm_up(url)
        _import_migrations(url)
        from changeover.store.drain import drain, drain_segment
        from changeover.store.engine import open_store

        self._drain = drain
        self._drain_segment = drain_segment
        self._store: Any = open_store(url)

    def drain_segment(self, path: Path) -> None:
        """Commit one closed segment of this process and remove it."""
        self._drain_segment(path, self._store)

    def adopt(self, spool: Path) -> None:
        """Commit what dead processes left in *spool*."""
        self._drain(spool, self._store)

    def close(self) -> None:
        """Let go of the database."""
        self._store.close()
