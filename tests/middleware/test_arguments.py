"""Binding: equal calls have equal texts however they were written, and a call that does not fit is explained."""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import Annotated, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from changeover.arguments import Binder, BindingFault, canonical_json, canonical_recorded


def plain(order_id, verbose=False, *, limit=10): ...


def positional_only(a, /, b, c=3): ...


def variadic(a, *rest, b=2, **others): ...


def greedy(a, /, **others): ...


def nothing(): ...


class Tool:
    def method(self, order_id, n=1): ...

    @classmethod
    def of_class(cls, order_id): ...

    @staticmethod
    def static(order_id): ...

    def __call__(self, order_id): ...


def text(fn: Any, *args: Any, **kwargs: Any) -> bytes:
    bound = Binder(fn).canonical(args, kwargs)
    assert (bound.kind, bound.fault) == ("bound", None)
    return bound.text


def fault(fn: Any, *args: Any, **kwargs: Any) -> BindingFault:
    bound = Binder(fn).canonical(args, kwargs)
    assert bound.kind == "raw"
    assert bound.fault is not None
    return bound.fault


def test_br_01_23_a_positional_argument_is_the_same_as_a_named_one():
    assert text(plain, "x") == text(plain, order_id="x") == b'{"limit":10,"order_id":"x","verbose":false}'


def test_a_default_that_is_written_out_changes_nothing():
    assert text(plain, "x") == text(plain, "x", False, limit=10) == text(plain, limit=10.0, verbose=False, order_id="x")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"v": 1}, {"v": True}),
        ({"v": 1}, {"v": "1"}),
        ({"v": "007"}, {"v": "7"}),
        ({"v": None}, {"v": "None"}),
        ({"v": {"1": 0}}, {"v": {1: 0}}),
    ],
)
def test_br_01_21_br_01_25_different_values_are_different_calls(one, other):
    def set_flag(v): ...

    assert text(set_flag, **one) != text(set_flag, **other)


def test_br_01_19_nan_equals_nan_and_zero_has_no_sign():
    def f(x): ...

    assert text(f, float("nan")) == text(f, float("nan"))
    assert text(f, 0.0) == text(f, -0.0)


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "expected"),
    [
        (positional_only, (1, 2), {}, {"a": 1, "b": 2, "c": 3}),
        (positional_only, (1,), {"b": 2}, {"a": 1, "b": 2, "c": 3}),
        (variadic, (1, 2, 3), {"x": 4}, {"a": 1, "rest": [2, 3], "b": 2, "x": 4}),
        (variadic, (1,), {}, {"a": 1, "rest": [], "b": 2}),
        (variadic, (1,), {"rest": 9}, {"a": 1, "rest": [], "b": 2, "others": {"rest": 9}}),
        (greedy, (1,), {"a": 2}, {"a": 1, "others": {"a": 2}}),
        (greedy, (1,), {"b": 2}, {"a": 1, "b": 2}),
        (nothing, (), {}, {}),
        (lambda *, a: 0, (), {"a": 1}, {"a": 1}),
        (functools.partial(plain, "x"), (True,), {}, {"verbose": True, "limit": 10}),
        (functools.partial(plain, limit=5), ("x",), {}, {"order_id": "x", "verbose": False, "limit": 5}),
    ],
)
def test_every_kind_of_parameter_stands_by_its_name(fn, args, kwargs, expected):
    assert text(fn, *args, **kwargs) == canonical_json(expected)


def test_the_receiver_is_no_argument():
    tool = Tool()
    expected = canonical_json({"order_id": "x", "n": 1})

    assert text(Tool.method, tool, "x") == text(tool.method, "x") == text(Tool.method, tool, order_id="x") == expected
    assert text(Tool.of_class, "x") == text(Tool.static, "x") == text(tool, "x") == b'{"order_id":"x"}'
    assert text(Tool.__dict__["of_class"].__func__, Tool, "x") == b'{"order_id":"x"}'


def test_br_05_03_injected_and_ignored_arguments_do_not_count():
    class Agent:
        __eq__ = __hash__ = None

    def tool(my_agent, q, nonce=None): ...

    binder = Binder(tool, ignore=("nonce",))
    calls = [binder.canonical((Agent(), "x"), {"nonce": n}) for n in (1, 2, object())]

    assert {call.text for call in calls} == {calls[0].text}
    assert b"nonce" not in calls[0].text
    assert Binder(tool, ignore=("my_agent", "nonce")).canonical((Agent(), "x"), {}).text == b'{"q":"x"}'


def test_ignored_names_do_not_count_in_surplus_and_unfitting_calls_either():
    assert Binder(greedy, ignore=("b",)).canonical((1,), {"b": object()}).text == b'{"a":1}'
    assert Binder(plain, ignore=("b",)).canonical((), {"b": 5}).text == b"{}"


def test_br_05_17_enums_and_dataclasses_count_by_value():
    class Kind(enum.StrEnum):
        A = "a"

    @dataclasses.dataclass
    class Filter:
        n: int = 1

    def tool(kind: Kind, where: Filter, size: Annotated[int, "1 to 9"] = 3): ...

    assert text(tool, Kind.A, Filter()) == text(tool, "a", {"n": 1.0}, size=3)


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "expected"),
    [
        (plain, (), {}, BindingFault(missing=("order_id",), accepted=("order_id", "verbose", "limit"))),
        (
            plain,
            (),
            {"id": 1},
            BindingFault(missing=("order_id",), unexpected=("id",), accepted=("order_id", "verbose", "limit")),
        ),
        (
            plain,
            ("x",),
            {"size": 1, "kind": 2},
            BindingFault(unexpected=("size", "kind"), accepted=("order_id", "verbose", "limit")),
        ),
        (
            plain,
            ("x",),
            {"order_id": "y"},
            BindingFault(repeated=("order_id",), accepted=("order_id", "verbose", "limit")),
        ),
        (plain, ("x", True, 5), {}, BindingFault(too_many_positional=True, accepted=("order_id", "verbose", "limit"))),
        (
            positional_only,
            (),
            {"a": 1, "b": 2},
            BindingFault(missing=("a",), unexpected=("a",), accepted=("a", "b", "c")),
        ),
        (variadic, (), {"x": 1}, BindingFault(missing=("a",), accepted=("a", "b"))),
        (nothing, (1,), {}, BindingFault(too_many_positional=True)),
        (
            Tool.method,
            (None,),
            {"self": 1},
            BindingFault(missing=("order_id",), repeated=("self",), accepted=("order_id", "n")),
        ),
    ],
)
def test_a_call_that_does_not_fit_is_explained_by_names_alone(fn, args, kwargs, expected):
    assert fault(fn, *args, **kwargs) == expected


def test_br_01_17_the_same_unfitting_call_is_the_same_call():
    def save(action, name, content): ...

    binder = Binder(save)
    short = {"action": "create", "name": "n"}

    assert binder.canonical((), short).text == binder.canonical((), dict(reversed(short.items()))).text
    assert binder.canonical((), short).text == canonical_recorded(short)
    assert binder.canonical((), short).text != binder.canonical((), short | {"file_content": "x"}).text
    assert binder.canonical(("create",), {}).text != binder.canonical(("n",), {}).text


class Opaque:
    @property
    def __signature__(self):
        raise RuntimeError

    def __call__(self, *args, **kwargs): ...


@pytest.mark.parametrize(
    "fn", [dict.fromkeys, type("NoSignature", (), {"__signature__": 5, "__call__": lambda self: 0})(), Opaque(), min]
)
def test_br_01_23_a_tool_whose_signature_is_unknown_counts_as_sent(fn):
    bound = Binder(fn).canonical((1,), {"x": 2})

    if bound.kind == "raw":
        assert bound.text == b'{"$args":[1],"x":2}'
    assert bound.text


def test_a_c_function_without_a_signature_counts_as_sent():
    assert Binder(min).canonical((2, 1), {}) == (b'{"$args":[2,1]}', "raw", None)


ARGUMENTS = st.lists(st.integers(0, 3), max_size=4)
NAMED = st.dictionaries(st.sampled_from(["a", "b", "c", "d", "rest", "others", "self"]), st.integers(0, 3), max_size=4)


REPORTING = [
    lambda a, b=1: {"a": a, "b": b},
    lambda a, /, b, *, c=2: {"a": a, "b": b, "c": c},
    lambda *rest, a: {"rest": rest, "a": a},
    lambda a, *rest, b=1, **others: {"a": a, "rest": rest, "b": b, "others": others},
    lambda a=1, /, **others: {"a": a, "others": others},
    lambda self, a, b=2: {"a": a, "b": b},
    lambda: {},  # noqa: PIE807 - a function of its own is what is bound
    lambda a, b, c, d: {"a": a, "b": b, "c": c, "d": d},
]
"""Functions that tell how Python itself bound them."""


@given(st.sampled_from(range(len(REPORTING))), ARGUMENTS, NAMED)
def test_binding_agrees_with_python(which, args, kwargs):
    # A missing receiver is the wrapper's slip, never the model's.
    assume(which != 5 or args or "self" in kwargs)
    bound = Binder(REPORTING[which]).canonical(args, kwargs)
    try:
        named = REPORTING[which](*args, **kwargs)
    except TypeError:
        assert (bound.kind, bound.fault is None) == ("raw", False)
        return

    others = named.pop("others", {})
    expected = named | others if named.keys().isdisjoint(others) else named | {"others": others}
    assert bound == (canonical_json(expected), "bound", None)


def test_hostile_arguments_break_nothing():
    class Hostile:
        def __getattribute__(self, name):
            raise RuntimeError

        __repr__ = __eq__ = __hash__ = __iter__ = __len__ = __bool__ = None

    for fn in (plain, variadic, nothing, min):
        assert Binder(fn).canonical((Hostile(),), {"limit": Hostile()}).text


def test_a_call_with_odd_names_breaks_nothing():
    binder = Binder(variadic)

    assert binder.canonical((1,), {"\ud800": 1, "": 2, "x" * 10_000: 3}).kind == "bound"
    assert Binder(plain).canonical((1,), {"\ud800": 1}).fault == BindingFault(
        unexpected=("\ud800",), accepted=("order_id", "verbose", "limit")
    )
