"""Bring a database to this version's schema, once, however many processes open it at the same moment."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import OperationalError

from .engine import BUSY_SECONDS, translated
from .errors import EmptyStoreError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from alembic.config import Config
    from sqlalchemy.engine import URL

    from .engine import Store

HEAD: Final = "0001"
"""The newest revision; a test holds it equal to the head of the migrations."""

SCRIPT_LOCATION: Final = "changeover.migrations:"
_ADVISORY_LOCK: Final = 0x6368_616E_6765  # "change"
_OUR_TABLES: Final = frozenset({"call", "session_tool", "flag_change"})


def head_revision() -> str:
    """Return the revision that this version of the code works with."""
    return HEAD


def current_revision(store: Store) -> str | None:
    """Return the revision of the database, and ``None`` for one that is still empty.

    Raises:
        StoreError: when the database cannot be read, or belongs to something else.
    """
    with store.read() as connection:
        return _revision(connection, store.url)


def prepare(store: Store, *, upgrade_it: bool) -> None:
    """Make sure that *store* has this version's tables.

    Raises:
        EmptyStoreError: when it has no tables and may not be upgraded.
        StoreError: when it is newer than the code, belongs to something else, or is older and may not be upgraded.
    """
    revision = current_revision(store)
    if revision == HEAD:
        return
    if not upgrade_it:
        where = store.url.render_as_string()
        if revision is None:
            raise EmptyStoreError(f"{where} has no tables yet; run: changeover db upgrade")
        raise StoreError(f"{where} has the older schema {revision}; run: changeover db upgrade")
    upgrade(store)


def upgrade(store: Store, revision: str = "head") -> None:
    """Upgrade the database to *revision* in one transaction; a failure leaves it as it was.

    Raises:
        StoreError: when a migration fails or the database cannot be written.
    """
    _migrate(store, "upgrade", revision)


def downgrade(store: Store, revision: str) -> None:
    """Downgrade the database to *revision* (``base`` removes every table) in one transaction.

    Raises:
        StoreError: when a migration fails or the database cannot be written.
    """
    _migrate(store, "downgrade", revision)


def alembic_config(connection: Connection | None = None) -> Config:
    """Return Alembic's configuration, reading the migrations from inside the installed package."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", SCRIPT_LOCATION)
    config.attributes["connection"] = connection
    return config


def _migrate(store: Store, direction: str, revision: str) -> None:
    from alembic import command
    from alembic.util import CommandError

    with translated(store.url), _exclusive(store) as connection:
        if direction == "upgrade" and _revision(connection, store.url) == HEAD:
            return  # another process was faster
        try:
            getattr(command, direction)(alembic_config(connection), revision)
        except CommandError as error:
            raise StoreError(f"{store.url.render_as_string()} cannot be migrated: {error}") from error
        _check_references(connection)


@contextmanager
def _exclusive(store: Store) -> Iterator[Connection]:
    if store.dialect == "sqlite":
        with _exclusive_sqlite(store) as connection:
            yield connection
        return
    with store.engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        yield connection


@contextmanager
def _exclusive_sqlite(store: Store) -> Iterator[Connection]:
    with store.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        _use_write_ahead_log(driver)
        # Rebuilding a table in a batch migration must not follow references to the old one.
        driver.execute("PRAGMA foreign_keys=OFF")
        try:
            writing = connection.execution_options(changeover_write=True)
            with writing.begin():
                yield writing
        finally:
            driver.execute("PRAGMA foreign_keys=ON")


def _use_write_ahead_log(driver: Any) -> None:
    # Switching the mode does not wait for other connections as a write does, so the waiting is done here.
    import sqlite3

    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            driver.execute("PRAGMA journal_mode=WAL").fetchall()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise OperationalError("PRAGMA journal_mode=WAL", None, error) from error
            time.sleep(0.02)
        else:
            return


def _check_references(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        broken = connection.execute(text("PRAGMA foreign_key_check")).fetchall()
        if broken:
            raise StoreError(
                f"the migration would leave {len(broken)} rows without what they refer to; nothing changed"
            )


def _revision(connection: Connection, url: URL) -> str | None:
    names = set(inspect(connection).get_table_names())
    where = url.render_as_string()
    if "alembic_version" not in names:
        if names:
            raise StoreError(f"{where} holds other tables and is no changeover store; name an empty database")
        return None
    found = [row[0] for row in connection.execute(text("SELECT version_num FROM alembic_version"))]
    if not found and names == {"alembic_version"}:
        return None  # downgraded to its very beginning
    if not names >= _OUR_TABLES:
        raise StoreError(f"{where} holds the tables of another program; name an empty database")
    if found == [HEAD]:
        return HEAD
    if len(found) != 1 or found[0] not in _known_revisions():
        newest = ", ".join(found) or "none"
        raise StoreError(f"{where} was written by a newer changeover (schema {newest}); upgrade the package")
    return str(found[0])


def _known_revisions() -> set[str]:
    from alembic.script import ScriptDirectory

    return {script.revision for script in ScriptDirectory.from_config(alembic_config()).walk_revisions()}
