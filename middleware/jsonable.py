"""Any value as valid JSON: what a model or a store is given must parse, whatever a tool put into it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import orjson

from .arguments import type_name

MAX_DEPTH: Final = 32
_EXACT_INTEGER: Final = 2**63


def json_bytes(value: Any) -> bytes:
    """Return *value* as JSON; never raises for what the value is.

    Sets become lists, NaN and infinity become ``null``, integers beyond 64 bits become text, and what is no data
    becomes its type's name, ``"<module.Type>"``, since the ``repr`` of an object may hold anything.
    """
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return orjson.dumps(_plain(value, MAX_DEPTH))


def _plain(value: Any, depth: int) -> Any:  # noqa: PLR0911 - a table of types
    kind = type(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, str):
        return str.encode(value, "utf-8", "replace").decode()
    if isinstance(value, int):
        return value if -_EXACT_INTEGER <= value < _EXACT_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth == 0:
        return _opaque(value)
    if isinstance(value, Mapping):
        return {_key(key): _plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, Sequence | AbstractSet) and not isinstance(value, bytes | bytearray | memoryview):
        return [_plain(item, depth - 1) for item in value]
    return _foreign(value, depth)


def _foreign(value: Any, depth: int) -> Any:
    """Return what orjson knows by itself (dates, UUIDs, enums, dataclasses), or a model's own dump."""
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        return _plain(dump(value, mode="json"), depth - 1)
    try:
        return orjson.loads(orjson.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return _opaque(value)


def _key(key: object) -> str:
    if isinstance(key, str):
        return str.encode(key, "utf-8", "replace").decode()
    return orjson.dumps(key).decode() if key is None or isinstance(key, bool | int | float) else type_name(key)


def _opaque(value: object) -> str:
    return f"<{type_name(value)}>"
