"""Cut what is too long, visibly, between characters, and JSON so that it stays JSON."""

from __future__ import annotations

import unicodedata
from typing import Any, Final

import orjson

ELLIPSIS: Final = "…"
_JOINERS: Final = frozenset("\u200d\ufe0e\ufe0f")
_MAX_MARKS: Final = 32
_STEPS: Final = ((2048, 100), (512, 40), (128, 20), (48, 8), (16, 3))
"""Successive bounds for characters of a string and members of a container, until the whole fits."""


def cut_text(text: str, limit: int, length: int | None = None) -> str:
    """Return *text* in at most *limit* characters; what was cut ends in ``…[cut: 31000 characters]``.

    Never cuts between a letter and its accents, or inside a joined emoji.

    Args:
        text: what to cut.
        limit: characters of the result, the note included.
        length: the characters that the note tells of, when they are not those of *text*; the note then always stands.
    """
    if length is None and len(text) <= limit:
        return text
    note = f"{ELLIPSIS}[cut: {len(text) if length is None else length} characters]"
    if len(note) > limit:
        return ELLIPSIS[: max(limit, 0)]
    # No half of a mask stays: redacting the result again would make it whole, and so too long.
    return f"{text[: _boundary(text, min(len(text), limit - len(note)))].rstrip('*')}{note}"


def _boundary(text: str, at: int) -> int:
    for back in range(min(at, _MAX_MARKS)):
        position = at - back
        if position >= len(text) or not (_continues(text[position]) or text[position - 1] == "\u200d"):
            return position
    return at


def _continues(character: str) -> bool:
    return character in _JOINERS or unicodedata.combining(character) != 0


def cut_json(value: Any, limit: int) -> Any:
    """Return plain JSON whose compact text has at most *limit* characters (and at least the 2 of ``""``).

    Strings are cut like texts; a container that lost members says how many in a last member.
    """
    if len(_compact(value)) <= limit:
        return value
    for characters, members in _STEPS:
        shorter = _shorter(value, characters, members)
        if len(_compact(shorter)) <= limit:
            return shorter
    return cut_text("", limit - 2, len(_compact(value)))


def _compact(value: Any) -> str:
    return orjson.dumps(value).decode()


def _shorter(value: Any, characters: int, members: int) -> Any:
    if isinstance(value, str):
        return cut_text(value, characters)
    if isinstance(value, list):
        kept = [_shorter(item, characters, members) for item in value[:members]]
        return [*kept, _note(len(value) - members)] if len(value) > members else kept
    if isinstance(value, dict):
        entries = list(value.items())
        kept_entries = {key: _shorter(item, characters, members) for key, item in entries[:members]}
        return kept_entries | {ELLIPSIS: _note(len(value) - members)} if len(value) > members else kept_entries
    return value


def _note(left_out: int) -> str:
    return f"{ELLIPSIS}[cut: {left_out} more]"
