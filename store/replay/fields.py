"""Take values out of recorded JSON, and say where it breaks when a value has the wrong type."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

from .model import StructureError

LATEST_NS: Final = 2**62
"""Latest time that is taken as one, in the year 2116: one may still add to it before 64 bits end."""

_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text", int: "a number", float: "a number"}


def an_object(value: Any, place: str) -> dict[str, Any]:
    """Return *value*, which must be a JSON object."""
    if not isinstance(value, dict):
        raise StructureError(f"{place} must be an object, not {_described(value)}")
    return value


def a_list(value: Any, place: str) -> list[Any]:
    """Return *value*, which must be a list; null counts as an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise StructureError(f"{place} must be a list, not {_described(value)}")
    return value


def a_name(value: Any, place: str) -> str:
    """Return *value*, which must be a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise StructureError(f"{place} has no name")
    return value


def an_id(value: Any) -> str | None:
    """Return an id as text; null and an empty text are none, a number is its digits."""
    if value is None or value == "" or isinstance(value, bool):
        return None
    return value if isinstance(value, str) else as_text(value)


def as_text(value: Any) -> str:
    """Return *value* as the model was given it: text as it is, text blocks joined, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(_is_text_block(block) for block in value):
        return "\n".join(block["text"] for block in value)
    return json.dumps(value, ensure_ascii=False)


def holds_text(content: Any) -> bool:
    """Return whether *content* of a message holds text that is not blank."""
    if isinstance(content, str):
        return bool(content.strip())
    if isinstance(content, list):
        texts = (block["text"] if _is_text_block(block) else block for block in content)
        return any(isinstance(text, str) and text.strip() for text in texts)
    return False


def a_time(value: Any) -> int | None:
    """Return an ISO 8601 time as nanoseconds since the epoch, without a zone as UTC; anything else as ``None``."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return int(seconds * 1_000_000) * 1000 if 0 <= seconds < LATEST_NS / 1e9 else None


def _is_text_block(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("text"), str)


def _described(value: Any) -> str:
    return "null" if value is None else _KINDS.get(type(value), type(value).__name__)
