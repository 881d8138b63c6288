"""Errors and sessions, a page at a time by key: no page view ever counts all rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from changeover.store.queries import recent_errors, session_calls

if TYPE_CHECKING:
    from changeover.store.engine import Store

ERRORS_A_PAGE = 25
CALLS_A_PAGE = 200


def error_figures(store: Store, tool: str, before: str | None, limit: int = ERRORS_A_PAGE) -> dict[str, Any]:
    """Return errors of *tool*, newest first; ``next`` leads to the page that follows, and is ``None`` on the last.

    Raises:
        CursorError: when *before* is no key of this list.
    """
    found = recent_errors(store, tool, limit=limit + 1, before=before)
    rows = [{"id": _number(row.cursor), **asdict(row)} for row in found[:limit]]
    return {"tool": tool, "rows": rows, "next": rows[-1]["cursor"] if len(found) > limit else None}


def session_figures(store: Store, session: str, before: str | None) -> dict[str, Any]:
    """Return the latest calls of a session in the order in which they were made; ``earlier`` leads to those before.

    Raises:
        CursorError: when *before* is no key of this list.
    """
    found = session_calls(store, session, limit=CALLS_A_PAGE + 1, before=before)
    shown = found[:CALLS_A_PAGE][::-1]
    rows = [{"id": _number(row.cursor), **asdict(row)} for row in shown]
    return {"session": session, "calls": rows, "earlier": rows[0]["cursor"] if len(found) > CALLS_A_PAGE else None}


def _number(cursor: str) -> str:
    # The call's own number, which stays the same in every list: anchors are named after it.
    return cursor.rpartition("-")[2]
