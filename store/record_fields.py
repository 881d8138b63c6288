"""Check the fields of a record, none of which is trusted to have the right type.

Each function raises ``MalformedRecordError`` with the reason ``malformed_<what>``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from .text import MAX_NAME_CHARACTERS, clean_name

MAX_INTEGER: Final = 2**63 - 1
_REMEMBERED_NAMES: Final = 4_096


class MalformedRecordError(ValueError):
    """A record cannot be stored; the argument is the reason under which it is counted as lost."""


def name(value: object, what: str) -> tuple[str, bool]:
    """Return *value* as a name that a column takes, and whether it had to be changed; remembered, since names recur."""
    if isinstance(value, str) and len(value) > MAX_NAME_CHARACTERS:
        return unremembered_name(value, what)
    try:
        return _remembered_name(value, what)
    except TypeError:
        raise MalformedRecordError(f"malformed_{what}") from None


def unremembered_name(value: object, what: str) -> tuple[str, bool]:
    """Return *value* as a name that a column takes, and whether it had to be changed; nothing is an empty name."""
    if value is None:
        return "", False
    if not isinstance(value, str):
        raise MalformedRecordError(f"malformed_{what}")
    cleaned = clean_name(value)
    return cleaned, cleaned != value


_remembered_name = lru_cache(_REMEMBERED_NAMES, typed=True)(unremembered_name)


def word(value: object, words: tuple[str, ...], default: str, what: str) -> str:
    """Return *value*, which must be one of *words*; nothing is *default*."""
    if value is None:
        return default
    if not isinstance(value, str) or value not in words:
        raise MalformedRecordError(f"malformed_{what}")
    return str(value)


def boolean(value: object, what: str) -> bool | None:
    """Return *value*, which must be true, false or nothing."""
    if value is None or isinstance(value, bool):
        return value
    raise MalformedRecordError(f"malformed_{what}")


def integer(value: object, what: str) -> int:
    """Return *value*, which must be a whole number from 0 to 64 bits."""
    # A boolean is an int in Python and none here; what does not fit 64 bits fits no column.
    if type(value) is not int or not 0 <= value <= MAX_INTEGER:
        raise MalformedRecordError(f"malformed_{what}")
    return value


def fixed_bytes(value: object, length: int, what: str) -> bytes:
    """Return what *value* spells in hexadecimal, which must be *length* bytes."""
    if isinstance(value, str) and len(value) == 2 * length:
        try:
            found = bytes.fromhex(value)
        except ValueError:
            found = b""
        if len(found) == length:
            return found
    raise MalformedRecordError(f"malformed_{what}")


def optional_bytes(value: object, length: int, what: str) -> bytes | None:
    """Return what *value* spells in hexadecimal, or ``None`` for nothing."""
    return None if value is None else fixed_bytes(value, length, what)
