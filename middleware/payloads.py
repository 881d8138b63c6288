"""The two payloads of a failed call as they are recorded, and the digest by which repeated results are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from . import semconv
from .arguments import digest
from .contract import render
from .jsonable import json_bytes
from .redact import redact_json, redact_text

if TYPE_CHECKING:
    from .contract import Dialect, ToolError

MAX_RESULT_BYTES: Final = 64 * 1024
MAX_RESULT_VALUES: Final = 2_000
_MAX_RESULT_DEPTH: Final = 64  # a result that holds itself has no end
_TEXT_ONLY: Final = frozenset({str})
_SCALARS: Final = frozenset({int, float, bool, type(None)})
_CONTAINERS: Final = frozenset({dict, list, tuple})


class Recorded(NamedTuple):
    """A payload as a record holds it.

    Attributes:
        text: redacted, then cut visibly.
        digest: keyed digest of the full, unredacted bytes, 32 hexadecimal digits.
        size: number of the full, unredacted bytes.
    """

    text: str
    digest: str
    size: int


def exception_text(exc: BaseException) -> str:
    """Return ``TypeName: message``: what the bare tool raised, before a framework puts its own words around it."""
    name = type(exc).__name__
    try:
        message = str(exc)
    except Exception:  # noqa: BLE001 - an exception's own __str__ may raise anything
        message = "<no message: its __str__ raised>"
    return f"{name}: {message}" if message else name


def value_text(value: Any) -> str:
    """Return a returned failure as the text a host would send: itself when it is text, else its JSON."""
    if isinstance(value, BaseException):
        return exception_text(value)
    return value if type(value) is str else json_bytes(value).decode()


def structured_json(error: ToolError, dialect: Dialect) -> bytes:
    """Return *error* as JSON in the shape of *dialect*."""
    return json_bytes(render(error, dialect))


def recorded_text(text: str, key: bytes, limit: int) -> Recorded:
    """Return plain *text* as a record holds it."""
    raw = text.encode("utf-8", "surrogatepass")
    return Recorded(redact_text(text, limit), digest(raw, key).hex(), len(raw))


def recorded_json(raw: bytes, key: bytes, limit: int) -> Recorded:
    """Return JSON as a record holds it; it stays JSON when it is cut."""
    shown = orjson.dumps(redact_json(orjson.loads(raw), limit)).decode()
    return Recorded(shown, digest(raw, key).hex(), len(raw))


def payload_attributes(legacy: Recorded, structured: Recorded | None) -> dict[str, Any]:
    """Return both payloads under their names; the structured one is missing when it could not be rendered."""
    attributes: dict[str, Any] = {
        semconv.LEGACY_PAYLOAD: legacy.text,
        semconv.LEGACY_DIGEST: legacy.digest,
        semconv.LEGACY_BYTES: legacy.size,
    }
    if structured is not None:
        attributes[semconv.STRUCTURED_PAYLOAD] = structured.text
        attributes[semconv.STRUCTURED_DIGEST] = structured.digest
        attributes[semconv.STRUCTURED_BYTES] = structured.size
    return attributes


def result_digest(value: Any, key: bytes) -> str | None:
    """Return the digest of a success's text, or ``None`` when it is no plain data or too large to look at.

    It tells that a model asked the same and was told the same, so plain JSON values are enough; their bound keeps the
    cost of a large result away from the call. Outer white space of a text says nothing and does not count.
    """
    if type(value) is str:
        if len(value) > MAX_RESULT_BYTES:
            return None
        return digest(value.strip().encode("utf-8", "surrogatepass"), key).hex()
    if _within(value, MAX_RESULT_VALUES) < 0:
        return None
    try:
        text = orjson.dumps(value)
    except (TypeError, ValueError):
        return None
    return digest(text, key).hex() if len(text) <= MAX_RESULT_BYTES else None


def _within(value: Any, budget: int, depth: int = _MAX_RESULT_DEPTH) -> int:
    """Return what is left of *budget* after the values in *value*, or a negative number when it is no small data.

    Text counts by its length, so that the bound holds for a few long texts as for many short ones.
    """
    kind = type(value)
    if kind is dict:
        if not _TEXT_ONLY.issuperset(map(type, value)):
            return -1
        members = value.values()
    elif kind is list or kind is tuple:
        members = value
    else:
        members = (value,)
    for item in members:
        kind = type(item)
        if kind is str:
            budget -= 1 + len(item) // 32
        elif kind in _SCALARS:
            budget -= 1
        elif kind in _CONTAINERS:
            budget = _within(item, budget - 1, depth - 1) if depth else -1
        else:
            return -1
        if budget < 0:
            return budget
    return budget
