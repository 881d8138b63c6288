"""The two shapes in which an agent can read a result, both rendered from one ``ToolError``."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from .error import ToolError


class Dialect(StrEnum):
    """The shape of a structured payload: ``envelope`` for plain functions, ``mcp`` for MCP tools."""

    ENVELOPE = "envelope"
    MCP = "mcp"


def envelope(error: ToolError) -> dict[str, Any]:
    """Return ``{"ok": false, "error": {…}}`` with exactly the five keys of the contract, in its order."""
    return {
        "ok": False,
        "error": {
            "code": error.code,
            "message": error.message,
            "retryable": error.retryable,
            "next_action": error.next_action.value,
            "context": error.context,
        },
    }


def mcp(error: ToolError) -> dict[str, Any]:
    """Return ``{"isError": true, …}``; a pillar without content is left out, since a required one gets fabricated."""
    payload: dict[str, Any] = {
        "isError": True,
        "errorCategory": error.category.value,
        "isRetryable": error.retryable,
        "message": error.message,
        "code": error.code,
        "next_action": error.next_action.value,
    }
    query = None if error.attempted_query is None else _plain(error.attempted_query)
    if query is not None:
        payload["attempted_query"] = query
    if error.partial_results:
        payload["partial_results"] = _plain(error.partial_results)
    if error.alternatives:
        payload["alternatives"] = _plain(error.alternatives)
    return payload


def render(error: ToolError, dialect: Dialect) -> dict[str, Any]:
    """Return *error* in the shape of *dialect*."""
    return envelope(error) if dialect is Dialect.ENVELOPE else mcp(error)


def wrap_success(data: Any) -> dict[str, Any]:
    """Return the success shape of the ``envelope`` dialect, so that one prompt describes both outcomes."""
    return {"ok": True, "data": data}


def _plain(value: Any) -> Any:
    """Return *value* as plain JSON: whatever a tool found so far must not keep its error from being sent."""
    try:
        return _read_back(value)
    except (TypeError, ValueError, RecursionError):
        # One member is at fault, usually; the others are still worth having.
        return [_member(item) for item in value] if isinstance(value, list) else _name(value)


def _member(value: Any) -> Any:
    try:
        return _read_back(value)
    except (TypeError, ValueError, RecursionError):
        return _name(value)


def _read_back(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value, default=_stand_in, option=orjson.OPT_NON_STR_KEYS))


def _stand_in(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return list(value)
    return _name(value)


def _name(value: Any) -> str:
    return f"<{type(value).__module__}.{type(value).__qualname__}>"
