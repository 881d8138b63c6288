"""What sort of callable a tool is, since each sort has its own way of ending."""

from __future__ import annotations

import inspect
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAP_TYPE: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the type was made by a class statement


class Kind(Enum):
    """How a tool is called and how its result arrives."""

    FUNCTION = auto()
    COROUTINE = auto()
    GENERATOR = auto()
    ASYNC_GENERATOR = auto()


def kind_of(tool: Callable[..., Any]) -> Kind:
    """Return the sort of *tool*; an object with ``__call__`` is of the sort of that method."""
    for candidate in (tool, getattr(tool, "__call__", None)):  # noqa: B004 - the method itself is what is asked about
        if inspect.iscoroutinefunction(candidate):
            return Kind.COROUTINE
        if inspect.isasyncgenfunction(candidate):
            return Kind.ASYNC_GENERATOR
        if inspect.isgeneratorfunction(candidate):
            return Kind.GENERATOR
    return Kind.FUNCTION


def is_generator_based_coroutine(tool: Callable[..., Any]) -> bool:
    """Return whether *tool* is a generator function under ``types.coroutine``: a generator that can be awaited."""
    code = getattr(tool, "__code__", None)
    return bool(getattr(code, "co_flags", 0) & inspect.CO_ITERABLE_COROUTINE)


def is_opaque_awaitable(kind: type) -> bool:
    """Return whether awaiting is all that can be done with a value of this type: a coroutine, a generator's step.

    An object of a class may have more to it (``session.get(url)`` can be awaited *or* entered), so it is none.
    """
    return hasattr(kind, "__await__") and not kind.__flags__ & _HEAP_TYPE
