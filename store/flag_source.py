"""The flags of a store, as the middleware asks for them: bounded reads that never create or change a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import case, select

from changeover.semconv import Arm

from . import tables
from .engine import Store, open_store
from .errors import EmptyStoreError, StoreError
from .flags import list_flags
from .text import clean_name
from .url import parse, sqlite_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from changeover.rollout import Flag


class StoreFlagSource:
    """Reads flags and pinned arms from the store at *url*.

    A database that is not there yet, or has no tables yet, has no flags; one that was there and is gone is a fault.

    Args:
        url: of the store.
        timeout: seconds to wait for a database that is busy.
    """

    def __init__(self, url: str, timeout: float = 0.25) -> None:
        self._url = url
        self._timeout = timeout
        self._store: Store | None = None

    def load(self) -> Mapping[str, Flag]:
        """Return the flag of every tool that has one.

        Raises:
            StoreError: when the store cannot be read.
        """
        store = self._opened()
        return {} if store is None else {flag.tool: flag for flag in list_flags(store)}

    def pinned(self, session: str, tool: str) -> Arm | None:
        """Return the arm that stored calls of this session and tool were given, the first one where it changed.

        Raises:
            StoreError: when the store cannot be read.
        """
        store = self._opened()
        if store is None:
            return None
        query = (
            select(tables.session_tool.c.arm)
            .join(tables.session, tables.session.c.id == tables.session_tool.c.session_id)
            .join(tables.tool, tables.tool.c.id == tables.session_tool.c.tool_id)
            .where(tables.session.c.name == clean_name(session), tables.tool.c.name == clean_name(tool))
            .order_by(case((tables.session.c.source == "conversation", 0), else_=1), tables.session_tool.c.first_at)
            .limit(1)
        )
        with store.read() as connection:
            found = connection.execute(query).scalar()
        return None if found is None else Arm(found)

    def close(self) -> None:
        """Close the connections."""
        if self._store is not None:
            self._store.close()

    def _opened(self) -> Store | None:
        path = sqlite_path(parse(self._url))
        if path is not None and not path.exists():
            if self._store is None:
                return None
            raise StoreError(f"the store {path} is gone")
        if self._store is None:
            try:
                self._store = open_store(self._url, upgrade=False, create=False, timeout=self._timeout)
            except EmptyStoreError:
                return None
        return self._store
