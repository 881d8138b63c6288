"""``tool`` and ``wrap``: put the changeover between a tool and the agent that calls it.

    @changeover.tool
    def find_order(order_id: str) -> dict: ...

    @changeover.tool(dialect="mcp", idempotent=True, rules={FileNotFoundError: "not_found"})
    async def read_page(url: str) -> str: ...

    search = changeover.wrap(search)

The wrapped tool looks and behaves like the bare one until its flag says otherwise; ``docs/wrap.md`` has the details.
"""

from __future__ import annotations

import functools
import inspect
import types
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypedDict, TypeVar, overload

from .calls import Tool
from .contract import Dialect
from .identity import dressed
from .kinds import kind_of
from .options import Options, name_of
from .templates import stand_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .classify.traits import Answer, Target

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

MARK: Final = "__changeover__"
"""Attribute of a wrapped tool that holds its `Wrapping`."""


class _Given(TypedDict, total=False):
    name: str | None
    dialect: str
    idempotent: bool
    ignore: Iterable[str]
    rules: Mapping[Any, Target] | None
    detect: Callable[[Any], Answer] | None
    wrap_success: bool | None


class Wrapping:
    """What a wrapped tool carries: the bare one, and what is known about it.

    Attributes:
        bare: the callable that was wrapped.
        tool: its calls.
        wrapper: the function that carries this; a decorator that copies attributes makes the two differ.
    """

    __slots__ = ("bare", "tool", "wrapper")

    def __init__(self, bare: Callable[..., Any], tool: Tool) -> None:
        self.bare = bare
        self.tool = tool
        self.wrapper: Callable[..., Any] | None = None


@overload
def tool(fn: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(fn: T, /) -> T: ...
@overload
def tool(
    *,
    name: str | None = None,
    dialect: str = Dialect.ENVELOPE,
    idempotent: bool = False,
    ignore: Iterable[str] = (),
    rules: Mapping[Any, Target] | None = None,
    detect: Callable[[Any], Answer] | None = None,
    wrap_success: bool | None = None,
) -> Callable[[T], T]: ...
def tool(
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    dialect: str = Dialect.ENVELOPE,
    idempotent: bool = False,
    ignore: Iterable[str] = (),
    rules: Mapping[Any, Target] | None = None,
    detect: Callable[[Any], Answer] | None = None,
    wrap_success: bool | None = None,
) -> Any:
    """Decorate a tool: ``@tool``, or ``@tool(...)`` with options.

    Args:
        fn: the tool, when used without options.
        name: the tool's name for flags and records; the function's own by default.
        dialect: shape of the structured payload, ``envelope`` or ``mcp``.
        idempotent: whether repeating a call that broke off is safe, as for anything that only reads. Without it, a
            timeout is answered with ``outcome_unknown``, never with ``retry``.
        ignore: parameters that do not make two calls different, such as ``("nonce",)``, or that the host injects.
        rules: exception types of this tool and the code each one means, such as ``{FileNotFoundError: "not_found"}``.
        detect: is given a returned value and answers with a code or ``ToolError`` when it means a failure.
        wrap_success: whether a success becomes ``{"ok": true, "data": …}`` when the structured payload is served; by
            default in the ``envelope`` dialect only.

    Raises:
        TypeError: for something that cannot be wrapped.
        OptionError: (a ``ValueError``) for an option that cannot be used.
    """
    given: _Given = {
        "name": name,
        "dialect": dialect,
        "idempotent": idempotent,
        "ignore": ignore,
        "rules": rules,
        "detect": detect,
        "wrap_success": wrap_success,
    }
    if fn is not None:
        return _wrapped(fn, given)
    Options.checked(**given)  # a bad option is named where it is written, not where the decorator is applied
    return functools.partial(_wrapped, given=given)


@overload
def wrap(obj: list[T] | tuple[T, ...], /, **options: Any) -> list[T]: ...
@overload
def wrap(obj: Callable[P, R], /, **options: Any) -> Callable[P, R]: ...
@overload
def wrap(obj: T, /, **options: Any) -> T: ...
def wrap(obj: Any, /, **options: Any) -> Any:
    """Wrap a tool that is not yours to decorate, or a list of them; takes the options of `tool`.

    Args:
        obj: a function of any kind, a method, a ``staticmethod``, ``classmethod`` or ``functools.partial`` object, an
            object with ``__call__``, or a list or tuple of these, which gives a list.
        **options: as of [`tool`][changeover.wrap.tool].

    Raises:
        TypeError: for something that cannot be wrapped, or an option that does not exist.
        OptionError: (a ``ValueError``) for an option that cannot be used.
    """
    unknown = options.keys() - _Given.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown option {min(unknown)!r}: use {', '.join(_Given.__annotations__)}")
    if isinstance(obj, list | tuple):
        if options.get("name") is not None and len(obj) != 1:
            raise TypeError("name fits one tool only: wrap the tools of a list one by one to name them")
        return [_wrapped(each, options) for each in obj]
    return _wrapped(obj, options)


def _wrapped(obj: Any, given: Mapping[str, Any]) -> Any:
    options = Options.checked(**given)
    if isinstance(obj, staticmethod | classmethod):
        return type(obj)(_wrapped(obj.__func__, given))
    if isinstance(obj, types.MethodType):
        return _bound(obj, given)
    _refuse_unwrappable(obj)
    found = getattr(obj, MARK, None)
    if isinstance(found, Wrapping):
        return _again(obj, found, given)
    return _new(obj, options)


def _new(obj: Callable[..., Any], options: Options) -> types.FunctionType:
    kind = kind_of(obj)
    known = Tool(obj, options.name or name_of(obj), kind, options)
    wrapper = dressed(stand_in(obj, known, kind), obj)
    wrapping = Wrapping(obj, known)
    wrapping.wrapper = wrapper
    setattr(wrapper, MARK, wrapping)
    return wrapper


def _again(obj: Any, found: Wrapping, given: Mapping[str, Any]) -> Any:
    """Return *obj* as it is, so that a call is recorded once; new options replace the old ones."""
    asked = {option for option, value in given.items() if value != _DEFAULTS.get(option)}
    if not asked:
        return obj
    if found.wrapper is obj:
        return _new(found.bare, Options.checked(**given))
    raise TypeError(
        f"{found.tool.name!r} is wrapped already, below another decorator: give {', '.join(sorted(asked))} there"
    )


def _bound(method: types.MethodType, given: Mapping[str, Any]) -> types.MethodType:
    function: Any = method.__func__
    wrapped = _wrapped(function, given)
    return method if wrapped is function else types.MethodType(wrapped, method.__self__)


def _refuse_unwrappable(obj: object) -> None:
    wants = "pass a function, a method, a callable object, or a list of them"
    if isinstance(obj, type):
        raise TypeError(f"cannot wrap the class {obj.__name__}: wrap its methods, or an instance that can be called")
    if inspect.iscoroutine(obj) or inspect.isgenerator(obj) or inspect.isasyncgen(obj):
        raise TypeError(f"cannot wrap {obj!r}, a call that was made already: {wants}, without calling it")
    if not callable(obj):
        raise TypeError(f"cannot wrap {type(obj).__name__!r}, which cannot be called: {wants}")


_DEFAULTS: Final[dict[str, Any]] = {
    name: parameter.default for name, parameter in inspect.signature(tool).parameters.items() if name != "fn"
}
