"""One text for one meaning: the canonical JSON by which two calls are known to be the same call.

Changing anything here changes every digest ever stored, and with it which calls count as repeats. The rules:

- Object keys are sorted, ``1`` and ``1.0`` are one number, ``-0.0`` is ``0``, ``NaN`` is ``NaN``; integers are exact
  however large; ``true`` is not ``1`` and ``"1"`` is not ``1``.
- A tuple is a list, a set is a sorted list. An enum is its value; a dataclass, an attrs class, a pydantic model or a
  msgspec struct is an object of its fields; ``Decimal`` is a number; dates, paths and UUIDs are their usual text.
- A key that is no string stands unquoted, so ``{1: …}`` and ``{"1": …}`` differ.
- Bytes are their length and hash. Whatever is no data (a connection, a generator, a mock) is its type's name: its
  identity or ``repr`` would make every call unique.
- Nesting below `MAX_DEPTH`, everything after the first `MAX_NODES` values and a cycle are replaced by a mark.

The result is JSON in UTF-8, apart from ``NaN``, ``Infinity``, unquoted keys and, above 2,048 bits, hexadecimal
integers.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import fractions
import hashlib
import ipaddress
import json
import numbers
import pathlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from enum import Enum
from itertools import islice
from json.encoder import encode_basestring
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from .numerals import decimal_text, float_text, integer_text

if TYPE_CHECKING:
    from collections.abc import Iterable

_T = TypeVar("_T")

MAX_DEPTH: Final = 200
MAX_NODES: Final = 250_000

_SCALARS: Final = frozenset({str, int, bool, NoneType})
_AS_TEXT: Final = (
    pathlib.PurePath,
    uuid.UUID,
    fractions.Fraction,
    range,
    dt.timedelta,
    dt.tzinfo,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
)
_BYTES: Final = (bytes, bytearray, memoryview)


def canonical_json(value: Any) -> bytes:
    """Return the canonical text of *value*; never raises, whatever the value is or does when touched.

    Example:
        >>> canonical_json({"b": 1.0, "a": (True, "1")})
        b'{"a":[true,"1"],"b":1}'
    """
    try:
        if plain_nodes(value, MAX_DEPTH) >= 0:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except Exception:  # noqa: BLE001, S110 - big integers, lone surrogates: the exact path below takes them
        pass
    return exact_json(value)


def exact_json(value: Any) -> bytes:
    """Return what `canonical_json` returns, by the path that knows every rule; slower."""
    try:
        text = _Writer().text(value, 0)
    except Exception:  # noqa: BLE001 - for example a recursion limit that our caller had nearly reached
        text = _mark("deep")
    # A lone surrogate becomes its JSON escape; a backslash of the value is doubled, so the two cannot be confused.
    return text.encode("utf-8", "backslashreplace")


def canonical_recorded(raw: Any) -> bytes:
    """Return the canonical text of arguments as a recording holds them.

    A string that is JSON is parsed; ``None``, an empty string and JSON ``null`` mean no arguments; any other text is
    compared as text without outer white space.
    """
    if isinstance(raw, bytes | bytearray):
        raw = bytes(raw).decode("utf-8", "replace")
    if isinstance(raw, str):
        raw = _parsed(raw.strip())
    return b"{}" if raw is None else canonical_json(raw)


def _parsed(text: str) -> Any:
    if not text:
        return None
    try:
        # Not orjson: it turns integers beyond 64 bits into floats, and 2**64 + 1 into 2**64.
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def type_name(value: Any) -> str:
    """Return ``module.QualifiedName`` of the type of *value*, without running any code of the value."""
    kind: Any = type(value)
    try:
        module, name = kind.__module__, kind.__qualname__
    except Exception:  # noqa: BLE001 - a metaclass may do anything
        return "object"
    return f"{module}.{name}" if isinstance(module, str) and isinstance(name, str) else "object"


def plain_nodes(value: Any, depth: int) -> int:
    """Return how many values *value* holds, or -1 when the fast encoder would not give the canonical text."""
    kind = type(value)
    if kind in _SCALARS:
        return 1
    if kind is float:
        # Between these bounds both encoders write the shortest decimal fraction; outside they differ in the exponent.
        return 1 if 1e-4 <= abs(value) < 1e15 and not value.is_integer() else -1  # noqa: PLR2004
    items = _plain_items(value, kind) if depth else None
    if items is None:
        return -1
    total = len(value) + 1
    for item in items:
        if type(item) not in _SCALARS:
            inner = plain_nodes(item, depth - 1)
            if inner < 0:
                return -1
            total += inner
    # Checked at every level, so that a small object which holds itself many times over cannot grow without end.
    return total if total <= MAX_NODES else -1


def _plain_items(value: Any, kind: type) -> Iterable[Any] | None:
    """Return the members of a plain container, or ``None`` for anything else, a dict with odd keys included."""
    if kind is dict:
        for key in value:
            if type(key) is not str:
                return None
        return value.values()  # type: ignore[no-any-return]
    return value if kind is list or kind is tuple else None


def _mark(kind: str, detail: str = "") -> str:
    return f'{{"${kind}":{encode_basestring(detail)}}}'


class _Writer:
    """One rendering: remembers the containers it is inside of, and how many values it may still write."""

    def __init__(self) -> None:
        self._inside: set[int] = set()
        self._left = MAX_NODES

    def text(self, value: Any, depth: int) -> str:
        self._left -= 1
        if self._left < 0:
            return _mark("more")
        try:
            write = _EXACT_SCALARS.get(type(value))
            return self._compound(value, depth) if write is None else write(value)
        except RecursionError:
            return _mark("deep")
        except Exception:  # noqa: BLE001 - an object may raise from anything it is asked
            return _mark("object", type_name(value))

    def _compound(self, value: Any, depth: int) -> str:
        kind = type(value)
        if kind is not dict and kind is not list:
            if issubclass(kind, Enum):
                return self.text(value.value, depth)
            scalar = _scalar(value, kind)
            if scalar is not None:
                return scalar
        pairs = _pairs(value, kind)
        items = _elements(value, kind) if pairs is None else pairs
        if items is None:
            return _odd(value, kind)
        if depth >= MAX_DEPTH:
            return _mark("deep")
        if id(value) in self._inside:
            return _mark("cycle")
        self._inside.add(id(value))
        try:
            return self._array(items, kind, depth) if pairs is None else self._object(pairs, depth)
        finally:
            self._inside.discard(id(value))

    def _array(self, items: Iterable[Any], kind: type, depth: int) -> str:
        texts = [self.text(item, depth + 1) for item in self._bounded(items)]
        if issubclass(kind, AbstractSet):
            texts.sort()
        return f"[{','.join(texts)}]"

    def _object(self, pairs: Iterable[tuple[Any, Any]], depth: int) -> str:
        rows = sorted((*self._key(key, depth), self.text(item, depth + 1)) for key, item in self._bounded(pairs))
        return f"{{{','.join([f'{shown}:{text}' for _, _, shown, text in rows])}}}"

    def _bounded(self, items: Iterable[_T]) -> Iterable[_T]:
        """Return at most one item more than may be written: a class may call itself a sequence and never end."""
        return islice(items, max(self._left, 0) + 1)

    def _key(self, key: Any, depth: int) -> tuple[int, str, str]:
        """Return where a key stands among the others, and its text: strings first, by code point, as orjson sorts."""
        if isinstance(key, Enum):
            key = key.value
        text = self.text(key, depth + 1)
        return (0, str.__str__(key), text) if issubclass(type(key), str) else (1, text, text)


_EXACT_SCALARS: Final[Mapping[type, Callable[[Any], str]]] = {
    str: encode_basestring,
    NoneType: lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: integer_text,
    float: float_text,
}


def _scalar(value: Any, kind: type) -> str | None:
    """Return the text of a subclass of a built-in type, by what it holds rather than by what it says, or ``None``."""
    if issubclass(kind, int):
        return integer_text(int.__index__(value))
    if issubclass(kind, float):
        return float_text(float.__float__(value))
    if issubclass(kind, str):
        return encode_basestring(str.__str__(value))
    if issubclass(kind, Decimal):
        return decimal_text(value)
    return None


def _pairs(value: Any, kind: type) -> Iterable[tuple[Any, Any]] | None:
    """Return the entries of what is an object in JSON, past any override of a dict's class, or ``None``."""
    if issubclass(kind, dict):
        return dict.items(value)
    if issubclass(kind, list | tuple | set | frozenset):
        return None
    fields = _fields(value, kind)
    if fields is None and issubclass(kind, Mapping):
        return value.items()  # type: ignore[no-any-return]
    return fields


def _elements(value: Any, kind: type) -> Iterable[Any] | None:
    """Return the members of what is an array in JSON, past any override of a built-in's class, or ``None``."""
    for builtin in (list, tuple, set, frozenset):
        if issubclass(kind, builtin):
            return builtin.__iter__(value)
    if issubclass(kind, Sequence | AbstractSet) and not issubclass(kind, (*_BYTES, range)):
        return value  # type: ignore[no-any-return]
    return None


def _fields(value: Any, kind: type) -> Iterable[tuple[str, Any]] | None:
    """Return the fields of a record class; the class is asked, never the instance, since a mock answers everything."""
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif hasattr(kind, "__pydantic_fields__"):
        extra = object.__getattribute__(value, "__pydantic_extra__") or {}
        return [*object.__getattribute__(value, "__dict__").items(), *extra.items()]
    elif hasattr(kind, "__attrs_attrs__"):
        names = [attribute.name for attribute in kind.__attrs_attrs__]
    elif hasattr(kind, "__struct_fields__"):
        names = list(kind.__struct_fields__)
    else:
        return None
    return [(name, getattr(value, name)) for name in names]


def _odd(value: Any, kind: type) -> str:
    if issubclass(kind, dt.date | dt.time):
        return encode_basestring(value.isoformat())
    if issubclass(kind, _AS_TEXT):
        return encode_basestring(str(value))
    if issubclass(kind, _BYTES):
        return _mark("bytes", _memory(value))
    if issubclass(kind, numbers.Integral):
        return integer_text(int(value))
    if issubclass(kind, numbers.Real):
        return float_text(float(value))
    return _array_or_object(value)


def _memory(value: Any) -> str:
    data = memoryview(value)
    return f"{data.nbytes}:{hashlib.blake2b(data.tobytes(), digest_size=16).hexdigest()}"


def _array_or_object(value: Any) -> str:
    """Return a mark with the content of raw memory (a numeric array, say), else with the type's name alone."""
    try:
        return _mark("bytes", f"{type_name(value)}:{_memory(value)}")
    except TypeError:
        return _mark("object", type_name(value))
