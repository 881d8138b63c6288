"""Text that every database takes: the same characters on SQLite and on PostgreSQL."""

from __future__ import annotations

import hashlib

MAX_NAME_CHARACTERS = 500
_HEAD_CHARACTERS = 400
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    """Return *text* with NUL and lone surrogates replaced by U+FFFD, since PostgreSQL stores neither.

    Halves of a surrogate pair that stand side by side become the one character they mean.
    """
    if text.isascii():
        return text.replace("\x00", _REPLACEMENT) if "\x00" in text else text
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\x00", _REPLACEMENT)


def clean_name(text: str) -> str:
    """Return *text* as a name that fits a unique index: cleaned, and past 500 characters cut with its hash in place.

    Two long names that differ anywhere stay two names.
    """
    text = clean(text)
    if len(text) <= MAX_NAME_CHARACTERS:
        return text
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return f"{text[:_HEAD_CHARACTERS]}…{digest}"
