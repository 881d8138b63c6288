"""A wrapped tool looks like the bare one to every inspector."""

from __future__ import annotations

import functools
import inspect
import pickle
import traceback
import typing
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest

import changeover


class Size(StrEnum):
    SMALL = "s"


@dataclass
class Place:
    name: str


NOWHERE = Place("x")


def plain(
    kind: Literal["a"] | None = None, *, size: Size = Size.SMALL, place: Place = NOWHERE, n: Annotated[int, "n"] = 3
) -> str:
    """Say what kind."""
    return f"{kind}{size}{place}{n}"


async def coroutine(a: int, b: list[str] | None = None) -> dict[str, Any]:
    """Come later."""
    return {"a": a, "b": b}


def generator(a: int = 1) -> typing.Iterator[int]:
    """Give some."""
    yield a


async def async_generator(a: int = 1) -> typing.AsyncIterator[int]:
    """Give some later."""
    yield a


def positional(a: int, /, b: int = 2, *rest: int, c: int, **more: int) -> int:
    """Take everything."""
    return a + b + c


plain.mark = "kept"
pickled = changeover.wrap(plain)
pickled_decorated: Any


@changeover.tool
def pickled_decorated() -> int:
    return 1


FUNCTIONS = [plain, coroutine, generator, async_generator, positional]


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_names_defaults_annotations_and_signature_are_the_tools_own(fn):
    wrapped = changeover.wrap(fn)

    assert wrapped is not fn
    for name in (
        "__name__",
        "__qualname__",
        "__module__",
        "__doc__",
        "__annotations__",
        "__defaults__",
        "__kwdefaults__",
    ):
        assert getattr(wrapped, name) == getattr(fn, name), name
    assert wrapped.__wrapped__ is fn
    assert inspect.signature(wrapped) == inspect.signature(fn)
    assert inspect.signature(wrapped, follow_wrapped=True, eval_str=True) == inspect.signature(fn, eval_str=True)
    assert inspect.getsource(wrapped) == inspect.getsource(fn)


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_it_is_the_same_kind_of_callable(fn):
    wrapped = changeover.wrap(fn)

    for predicate in (
        inspect.isfunction,
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
        inspect.ismethod,
        inspect.isroutine,
    ):
        assert predicate(wrapped) == predicate(fn), predicate


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_br_05_17_type_hints_are_the_tools_own(fn):
    wrapped = changeover.wrap(fn)

    assert typing.get_type_hints(wrapped, include_extras=True) == typing.get_type_hints(fn, include_extras=True)


def test_attributes_are_kept():
    assert changeover.wrap(plain).mark == "kept"


def test_br_05_01_string_annotations_resolve_through_the_wrappers_globals():
    namespace: dict[str, Any] = {"__name__": "elsewhere", "Literal": Literal}
    source = "class Hidden: ...\ndef tool(kind: 'Hidden', q: 'Literal[1]' = 1) -> 'Hidden': return kind"
    exec(compile(source, "elsewhere.py", "exec", dont_inherit=True), namespace)
    wrapped = changeover.wrap(namespace["tool"])

    assert wrapped.__globals__ is namespace
    resolved = {name: eval(text, wrapped.__globals__) for name, text in wrapped.__annotations__.items()}
    assert resolved["kind"] is namespace["Hidden"]
    assert wrapped("x") == "x"


def test_a_tool_whose_module_shadows_builtins_still_works():
    namespace: dict[str, Any] = {"Exception": None, "BaseException": None, "StopIteration": None, "__builtins__": {}}
    exec("def tool():\n    yield 1\n    return 2", namespace)
    wrapped = changeover.wrap(namespace["tool"])

    assert list(wrapped()) == [1]


def test_br_05_17_pydantic_sees_the_same_schema():
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
    wrapped = changeover.wrap(plain)

    assert pydantic.TypeAdapter(wrapped).json_schema() == pydantic.TypeAdapter(plain).json_schema()
    assert pydantic.validate_call(wrapped)("a", n="7") == plain("a", n=7)


def test_it_pickles_by_name():
    assert pickle.loads(pickle.dumps(pickled_decorated)) is pickled_decorated


def test_a_method_binds_and_a_bound_method_stays_one():
    class Shop:
        greeting = "hello"

        @changeover.tool
        def decorated(self, name: str) -> str:
            return f"{self.greeting} {name}"

        def late(self, name: str) -> str:
            return f"late {name}"

    shop = Shop()
    late = changeover.wrap(shop.late)

    assert shop.decorated("x") == "hello x"
    assert late("x") == "late x"
    assert inspect.ismethod(late)
    assert late.__self__ is shop
    assert inspect.signature(late) == inspect.signature(shop.late)


def test_static_and_class_methods_in_both_orders():
    class Shop:
        @changeover.tool
        @staticmethod
        def above(a: int) -> int:
            return a

        @staticmethod
        @changeover.tool
        def below(a: int) -> int:
            return a

        @changeover.tool
        @classmethod
        def class_above(cls, a: int) -> tuple[str, int]:
            return cls.__name__, a

        @classmethod
        @changeover.tool
        def class_below(cls, a: int) -> tuple[str, int]:
            return cls.__name__, a

    assert isinstance(inspect.getattr_static(Shop, "above"), staticmethod)
    assert isinstance(inspect.getattr_static(Shop, "class_above"), classmethod)
    assert (Shop.above(1), Shop().below(2)) == (1, 2)
    assert (Shop.class_above(1), Shop().class_below(2)) == (("Shop", 1), ("Shop", 2))


def test_a_partial_keeps_its_signature_and_kind():
    wrapped = changeover.wrap(functools.partial(positional, 1, c=5))
    wrapped_async = changeover.wrap(functools.partial(coroutine, 1))

    assert wrapped(2) == positional(1, 2, c=5)
    assert inspect.signature(wrapped) == inspect.signature(functools.partial(positional, 1, c=5))
    assert wrapped.__name__ == "positional"
    assert inspect.iscoroutinefunction(wrapped_async)


def test_a_callable_object_is_wrapped_by_its_call():
    class Search:
        async def __call__(self, q: str) -> str:
            return q

    search = Search()
    wrapped = changeover.wrap(search)

    assert inspect.iscoroutinefunction(wrapped)
    assert inspect.signature(wrapped) == inspect.signature(search)
    assert wrapped.__name__ == "Search"
    assert wrapped.__wrapped__ is search


def test_a_cached_function_keeps_its_cache_methods():
    wrapped = changeover.wrap(functools.lru_cache(plain))

    assert wrapped("a") == plain("a")
    assert wrapped.cache_info().misses == 1


def test_a_list_of_tools_gives_a_list():
    wrapped = changeover.wrap((plain, coroutine))

    assert [fn.__wrapped__ for fn in wrapped] == [plain, coroutine]


def test_br_05_05_wrapping_twice_changes_nothing():
    once = changeover.wrap(plain)

    assert changeover.wrap(once) is once
    assert changeover.tool()(once) is once

    class Shop:
        @changeover.tool
        def decorated(self) -> int:
            return 1

    method = Shop().decorated
    assert changeover.wrap(method) is method


def test_br_05_05_another_decorator_between_two_of_ours_does_not_record_twice(recording):
    def shouting(fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            return fn(*args, **kwargs)

        return inner

    twice = changeover.tool(shouting(changeover.tool(plain)))
    twice("a")

    assert len(recording.records) == 1


def test_new_options_on_a_wrapped_tool_replace_the_old_ones(recording):
    renamed = changeover.wrap(changeover.wrap(plain), name="renamed")
    renamed("a")

    assert recording.attributes["gen_ai.tool.name"] == "renamed"
    assert renamed.__wrapped__ is plain


def test_the_traceback_shows_our_frame_from_our_file():
    def broken():
        raise ValueError("no")

    try:
        changeover.wrap(broken)()
    except ValueError as error:
        text = "".join(traceback.format_exception(error))

    assert "return fn(*args, **kwargs)" in text or "result = fn(*args, **kwargs)" in text
    assert "templates.py" in text


@pytest.mark.parametrize(
    ("thing", "says"),
    [
        (3, "cannot be called"),
        (None, "cannot be called"),
        ("name", "cannot be called"),
        (Place, "wrap its methods"),
        (generator(), "without calling it"),
        (property(plain), "cannot be called"),
    ],
)
def test_what_cannot_be_wrapped_is_refused(thing, says):
    with pytest.raises(TypeError, match=says):
        changeover.wrap(thing)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dialect": "xml"}, "unknown dialect 'xml': use 'envelope' or 'mcp'"),
        ({"name": ""}, "name must be"),
        ({"name": "x" * 300}, "300 characters"),
        ({"name": "a\x00b"}, "no database"),
        ({"name": 3}, "name must be"),
        ({"ignore": "nonce"}, "ignore must be a tuple"),
        ({"ignore": (1,)}, "parameter names"),
        ({"idempotent": 1}, "idempotent must be True or False"),
        ({"wrap_success": "yes"}, "wrap_success must be True or False"),
        ({"rules": {"KeyError": "not_found"}}, "exception class"),
        ({"rules": {KeyError: "missing"}}, "unknown code 'missing'"),
        ({"rules": [KeyError]}, "rules must map"),
        ({"detect": 3}, "detect must be a function"),
    ],
)
def test_a_bad_option_is_refused_at_decoration(options, says):
    with pytest.raises(changeover.OptionError, match=says):
        changeover.tool(**options)
    with pytest.raises(changeover.OptionError, match=says):
        changeover.wrap(plain, **options)


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="unknown option 'colour'"):
        changeover.wrap(plain, colour="red")
