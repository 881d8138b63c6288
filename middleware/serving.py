"""In which Python shape the structured payload is handed back: an object where the tool may return one, else text."""

from __future__ import annotations

import functools
import types
import typing
from collections import abc
from typing import TYPE_CHECKING, Any, Final

import orjson

from .contract import wrap_success
from .jsonable import json_bytes
from .kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

_SUCCESS_KEYS: Final = {"ok", "data"}
_MAX_PARSED_CHARACTERS: Final = 65_536
_FUNCTIONS: Final = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools._lru_cache_wrapper)  # noqa: SLF001 - the only name of that type
_AWAITABLES: Final = (abc.Awaitable, abc.Coroutine)


class Serving:
    """Hands back structured payloads for one tool.

    Args:
        tool: its return annotation decides between an object and a text.
        kind: a generator's items are annotated, not its result.
        wraps_success: whether a success is wrapped too.
    """

    def __init__(self, tool: Callable[..., Any], kind: Kind, *, wraps_success: bool) -> None:
        self._tool = tool
        self._kind = kind
        self._wraps_success = wraps_success

    @functools.cached_property
    def as_text(self) -> bool:
        """Whether the tool promises text, so that its host cannot take an object; asked when first needed."""
        return _is_text(_promised(self._tool, self._kind))

    def failure(self, structured: bytes) -> Any:
        """Return a failed call's payload."""
        return structured.decode() if self.as_text else orjson.loads(structured)

    def success(self, value: Any) -> Any:
        """Return what a successful call hands back; a value that is already in our shape is not wrapped again."""
        if not self._wraps_success or _is_success(value):
            return value
        wrapped = wrap_success(value)
        return json_bytes(wrapped).decode() if self.as_text else wrapped


def _promised(tool: Callable[..., Any], kind: Kind) -> Any:
    annotated: Any = tool.func if isinstance(tool, functools.partial) else tool
    if not isinstance(annotated, _FUNCTIONS):
        # The annotations of an object are those of its fields; what a call of it gives is said elsewhere.
        annotated = type(annotated).__call__
    try:
        result = typing.get_type_hints(annotated).get("return")
    except Exception:  # noqa: BLE001 - a name that only a type checker can see
        result = getattr(annotated, "__annotations__", {}).get("return")
    if kind in (Kind.GENERATOR, Kind.ASYNC_GENERATOR):
        return next(iter(typing.get_args(result)), None)
    if typing.get_origin(result) in _AWAITABLES:  # a plain function that hands back a coroutine
        return typing.get_args(result)[-1]
    return result


def _is_text(annotation: Any) -> bool:
    if annotation is str or annotation in ("str", "'str'", '"str"'):
        return True
    if isinstance(annotation, typing.NewType):
        return _is_text(annotation.__supertype__)
    if typing.get_origin(annotation) is typing.Literal:
        return all(isinstance(member, str) for member in typing.get_args(annotation))
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(annotation) if member is not types.NoneType]
        return bool(members) and all(_is_text(member) for member in members)
    return isinstance(annotation, type) and issubclass(annotation, str)


def _is_success(value: Any) -> bool:
    if type(value) is str:
        if len(value) > _MAX_PARSED_CHARACTERS or not value.lstrip().startswith("{") or '"ok"' not in value:
            return False
        try:
            value = orjson.loads(value)
        except ValueError:
            return False
    return isinstance(value, dict) and value.keys() == _SUCCESS_KEYS and value["ok"] is True
