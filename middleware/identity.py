"""Make a wrapper look like the tool it wraps, to every inspector that agents' frameworks use."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# Methods of the C-made callables that `functools` returns; they stand on the type, where `update_wrapper` cannot see.
_CACHE_METHODS: Final = ("cache_info", "cache_clear", "cache_parameters")


def dressed(wrapper: types.FunctionType, tool: Callable[..., Any]) -> types.FunctionType:
    """Return *wrapper* in the clothes of *tool*: names, annotations, defaults, attributes, and globals.

    The globals are what frameworks resolve string annotations with, so the function is built again over those of the
    tool. Its code must therefore read closure variables only.
    """
    copy = types.FunctionType(
        wrapper.__code__, _globals_of(tool) or wrapper.__globals__, wrapper.__name__, None, wrapper.__closure__
    )
    functools.update_wrapper(copy, tool)
    inner = _function_of(tool)
    # Harmless on a function that takes anything: defaults fill named parameters only, and it has none.
    copy.__defaults__ = getattr(inner, "__defaults__", None)
    copy.__kwdefaults__ = getattr(inner, "__kwdefaults__", None)
    for name in _CACHE_METHODS:
        if hasattr(tool, name):
            setattr(copy, name, getattr(tool, name))
    if not hasattr(tool, "__name__"):
        named = inner if isinstance(tool, functools.partial) and hasattr(inner, "__name__") else type(tool)
        copy.__name__, copy.__qualname__ = named.__name__, named.__qualname__
    return copy


def _function_of(tool: Any) -> Any:
    """Return the Python function behind a partial or a callable object, where there is one."""
    while isinstance(tool, functools.partial):
        tool = tool.func
    if isinstance(tool, types.FunctionType | type):
        return tool
    return getattr(type(tool).__call__, "__func__", type(tool).__call__) if not hasattr(tool, "__code__") else tool


def _globals_of(tool: Any) -> dict[str, Any] | None:
    found = getattr(_function_of(tool), "__globals__", None)
    return found if isinstance(found, dict) else None
