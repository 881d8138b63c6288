"""Take secrets out of what is recorded, then cut it to size: in that order, so that no cut can save a secret's head.

    >>> redact_text("400 for url: https://api.example.com/y?key=AIzaFAKE123&q=1")
    '400 for url: https://api.example.com/y?key=***&q=1'

Recognised are the well-known shapes (keys of clouds, Git hosts, chat and model providers, JWTs, private keys), what
follows ``Bearer`` or ``Basic``, user names and passwords in URLs, and whatever stands under a name such as
``password``, ``api_key`` or ``X-Amz-Signature``, in JSON, in a query string or in prose. Words, numbers, UUIDs and
order numbers stay. The time needed is in proportion to the text, whatever it holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Final

import orjson

from .canonical import plain_nodes, type_name
from .cuts import ELLIPSIS, cut_json, cut_text
from .masking import MASK, is_clean, masked
from .secret_shapes import is_secret_name

MAX_DEPTH: Final = 64
MAX_NODES: Final = 100_000
_MAX_INTEGER: Final = 2**63 - 1
_WINDOW: Final = 65_536
_TAIL: Final = 4_096


def redact_text(text: str, limit: int | None = None) -> str:
    """Return *text* without its secrets, and encodable: half a surrogate pair becomes U+FFFD.

    Args:
        text: anything: an exception's text, a URL, a header, JSON, a whole page.
        limit: at most so many characters; what is cut ends in ``…[cut: 31000 characters]``. Much longer text is
            looked at only as far as is needed.
    """
    if limit is None:
        return masked(_encodable(text))
    window = 2 * max(limit, 0) + _WINDOW
    if len(text) <= window:
        redacted = masked(_encodable(text))
        return redacted if len(redacted) <= limit else cut_text(redacted, limit, len(text))
    # The window may end inside a secret that is not known by its head: what stands there is not used.
    return cut_text(masked(_encodable(text[:window]))[:-_TAIL], limit, len(text))


def redact_json(value: Any, limit: int | None = None) -> Any:
    """Return *value* as plain JSON without its secrets, in fields with telling names and in every string.

    The result always serializes: ``NaN`` is ``null``, a value that is no JSON is its type's name, integers beyond 64
    bits are strings, nesting ends at 64 levels and the whole at 100,000 values.

    Args:
        value: anything, usually a payload.
        limit: at most so many characters of compact JSON; strings and containers that were cut say so.
    """
    plain = _clean_copy(value)
    if plain is None:
        plain = _Walk().value(value, secret=False, depth=0)
    return plain if limit is None else cut_json(plain, limit)


def _clean_copy(value: Any) -> Any:
    """Return a plain copy of a value whose whole text holds nothing suspicious, which most do not; else ``None``."""
    try:
        if plain_nodes(value, MAX_DEPTH) < 0:
            return None
        raw = orjson.dumps(value)
    except (TypeError, ValueError):
        return None
    return orjson.loads(raw) if is_clean(raw.decode()) else None


def _encodable(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


@lru_cache(maxsize=4096)
def _shown_key(key: str) -> str:
    return redact_text(key)


class _Walk:
    """One pass over a value; knows how much of it may still be visited."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def value(self, value: Any, *, secret: bool, depth: int) -> Any:  # noqa: PLR0911 - a table of types
        self._left -= 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return MASK if secret and value else redact_text(str.__str__(value))
        if isinstance(value, int | float):
            return MASK if secret else _number(value)
        if depth >= MAX_DEPTH or self._left < 0:
            return ELLIPSIS
        try:
            if isinstance(value, Mapping):
                return self._object(value, secret=secret, depth=depth)
            if isinstance(value, list | tuple | AbstractSet):
                return self._array(value, secret=secret, depth=depth)
        except Exception:  # noqa: BLE001, S110 - an object may raise from anything it is asked: its name will do
            pass
        return f"<{type_name(value)}>"

    def _array(self, items: Any, *, secret: bool, depth: int) -> list[Any]:
        shown: list[Any] = []
        for item in items:
            if self._left < 0:
                return [*shown, ELLIPSIS]
            shown.append(self.value(item, secret=secret, depth=depth + 1))
        return shown

    def _object(self, entries: Mapping[Any, Any], *, secret: bool, depth: int) -> dict[str, Any]:
        named = next((entries[key] for key in ("name", "key") if isinstance(entries.get(key), str)), "")
        shown: dict[str, Any] = {}
        for key, item in entries.items():
            if self._left < 0:
                return shown | {ELLIPSIS: ELLIPSIS}
            name = key if isinstance(key, str) else str(self.value(key, secret=False, depth=MAX_DEPTH))
            hidden = secret or is_secret_name(name) or (name == "value" and is_secret_name(named))
            key_text = _shown_key(str.__str__(name))
            while key_text in shown:
                key_text += "~"
            shown[key_text] = self.value(item, secret=hidden, depth=depth + 1)
        return shown


def _number(value: int | float) -> Any:  # noqa: PYI041 - a float is not all that is meant here
    if isinstance(value, float):
        return float.__float__(value) if math.isfinite(value) else None
    number = int.__index__(value)
    return number if -_MAX_INTEGER <= number <= _MAX_INTEGER else f"{number:#x}"
