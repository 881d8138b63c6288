"""Canonical JSON: the same meaning gives the same text, another meaning another one, and nothing raises."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime as dt
import enum
import fractions
import json
import math
import pathlib
import string
import sys
import types
import uuid
from collections import ChainMap, OrderedDict, UserDict, UserList, deque, namedtuple
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal, localcontext
from unittest.mock import MagicMock

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from changeover.arguments import canonical_json, canonical_recorded, digest
from changeover.canonical import MAX_DEPTH, MAX_NODES, exact_json


def _kind(value: object) -> str:
    """Name a case alike in every process, which a ``repr`` with an address or a set does not."""
    return type(value).__name__


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text()
    | st.text(st.characters(codec=None))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner, max_size=5)
    ),
    max_leaves=25,
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=25,
)


@given(VALUES)
@example({"a\ud800": 1, "a": 2})
@example({'a"': 1, "a b": 2, "a": 3, "é": 4, "\U0001f600": 5, "\uffff": 6})
def test_the_quick_path_gives_the_same_bytes_as_the_exact_one(value):
    assert canonical_json(value) == exact_json(value)


@given(PLAIN)
def test_the_text_of_plain_data_is_json_that_reads_back_as_the_data(value):
    assert json.loads(canonical_json(value)) == value
    assert orjson.loads(canonical_json(value)) == value


@given(VALUES)
def test_the_text_is_utf_8_and_never_breaks_a_line(value):
    assert canonical_json(value).decode().count("\n") == 0


@given(PLAIN, PLAIN)
def test_different_plain_data_gives_different_texts(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)

    assert (canonical_json(one) == canonical_json(other)) is same


@given(st.dictionaries(st.text(), VALUES, min_size=2), st.randoms(use_true_random=False))
def test_the_order_of_keys_is_irrelevant(value, random):
    items = list(value.items())
    random.shuffle(items)

    assert canonical_json(dict(items)) == canonical_json(value)


@given(st.integers(-(2**53), 2**53))
def test_an_integral_float_is_its_integer(number):
    assert canonical_json([float(number)]) == canonical_json([number]) == b"[%d]" % number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_equal_numbers_have_equal_texts_whatever_their_type(number):
    texts = {canonical_json(number), canonical_json(Decimal(number) if number.is_integer() else Decimal(repr(number)))}
    if number.is_integer():
        texts.add(canonical_json(int(number)))

    assert len(texts) == 1
    assert float(json.loads(texts.pop())) == number


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_different_numbers_have_different_texts(one, other):
    assert (canonical_json(one) == canonical_json(other)) is (one == other)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_a_decimal_is_exact_whatever_its_trailing_zeros_and_the_callers_context(number):
    with localcontext(Context(prec=1, traps=list(Context().traps))):
        text = canonical_json(number)

    assert Decimal(text.decode()) == number
    assert canonical_json(Decimal(f"{number:f}0" if "." in f"{number:f}" else f"{number:f}.0")) == text


class Colour(enum.Enum):
    RED = "red"
    ONE = 1


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    YES = "yes"


class Permission(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Point:
    x: float
    tags: set[str]


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    y: int


Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - the untyped kind is what is tested


@pytest.mark.parametrize(
    ("value", "text"),
    [
        # BR-01-21
        (True, b"true"),
        (1, b"1"),
        ("1", b'"1"'),
        (1.0, b"1"),
        # BR-01-19
        (math.nan, b"NaN"),
        (-0.0, b"0"),
        (math.inf, b"Infinity"),
        (-math.inf, b"-Infinity"),
        (Decimal("NaN"), b"NaN"),
        (Decimal("sNaN"), b"NaN"),
        (Decimal("-Infinity"), b"-Infinity"),
        # BR-01-25
        ("007", b'"007"'),
        (0.1, b"0.1"),
        (1e-7, b"1e-07"),
        (1e22, b"10000000000000000000000"),
        (2**64 + 1, b"18446744073709551617"),
        (-(2**63) - 1, b"-9223372036854775809"),
        (Decimal("1.50"), b"1.5"),
        (Decimal("1E+3"), b"1000"),
        (Decimal("0E-9"), b"0"),
        (
            Decimal("0.1000000000000000055511151231257827021181583404541015625"),
            b"1000000000000000055511151231257827021181583404541015625e-55",
        ),
        (Decimal("1e999999"), b"1e999999"),
        (fractions.Fraction(1, 3), b'"1/3"'),
        ((1, [2]), b"[1,[2]]"),
        ({3, 1, 2}, b"[1,2,3]"),
        (frozenset({"b", "a"}), b'["a","b"]'),
        (Pair(1, 2), b"[1,2]"),
        (deque([1, 2]), b"[1,2]"),
        (UserList([1]), b"[1]"),
        (range(3), b'"range(0, 3)"'),
        (OrderedDict(b=1, a=2), b'{"a":2,"b":1}'),
        (types.MappingProxyType({"a": 1}), b'{"a":1}'),
        (UserDict(a=1), b'{"a":1}'),
        (ChainMap({"a": 1}, {"b": 2}), b'{"a":1,"b":2}'),
        ({"b": 1, "a": 2}.keys(), b'["a","b"]'),
        # BR-05-17
        (Colour.RED, b'"red"'),
        (Colour.ONE, b"1"),
        (Level.HIGH, b"3"),
        (Word.YES, b'"yes"'),
        (Permission.READ | Permission.WRITE, b"3"),
        ({Word.YES: 1, Level.HIGH: 2}, b'{"yes":1,3:2}'),
        (Point(1.0, {"b", "a"}), b'{"tags":["a","b"],"x":1}'),
        (Slotted(2), b'{"y":2}'),
        (dt.datetime(2025, 3, 14, 1, 2, 3, tzinfo=dt.UTC), b'"2025-03-14T01:02:03+00:00"'),
        (dt.date(2025, 3, 14), b'"2025-03-14"'),
        (dt.time(1, 2), b'"01:02:00"'),
        (dt.timedelta(minutes=1), b'"0:01:00"'),
        (uuid.UUID(int=1), b'"00000000-0000-0000-0000-000000000001"'),
        (pathlib.PurePosixPath("/a/b"), b'"/a/b"'),
        # keys that are no strings
        ({1: "a", "1": "b"}, b'{"1":"b",1:"a"}'),
        ({1.0: "a"}, b'{1:"a"}'),
        ({True: "a"}, b'{true:"a"}'),
        ({None: "a", (1, "x"): "b"}, b'{[1,"x"]:"b",null:"a"}'),
        # half a surrogate pair, and the text that looks like its escape
        ("\ud800", b'"\\ud800"'),
        ("\\ud800", b'"\\\\ud800"'),
        ({"\ud800": 1}, b'{"\\ud800":1}'),
        ("\x00\x1f\x7f\u2028", '"\\u0000\\u001f\x7f\u2028"'.encode()),
        # no data
        (object(), b'{"$object":"builtins.object"}'),
        (len, b'{"$object":"builtins.builtin_function_or_method"}'),
        ((x for x in ()), b'{"$object":"builtins.generator"}'),
        (MagicMock(), b'{"$object":"unittest.mock.MagicMock"}'),
        (asyncio.CancelledError(), b'{"$object":"asyncio.exceptions.CancelledError"}'),
    ],
    ids=_kind,
)
def test_each_kind_of_value_has_its_text(value, text):
    assert canonical_json(value) == text
    assert canonical_json([{"k": value}]) == b'[{"k":' + text + b"}]"


def test_subclasses_of_built_in_types_count_as_what_they_hold():
    class Text(str):
        __slots__ = ()

        def __str__(self):
            return "lie"

    class Number(int):
        def __int__(self):
            return 0

        def __index__(self):
            return 0

        __repr__ = __str__ = lambda self: "lie"

    class Real(float):
        def __float__(self):
            return 0.0

        def is_integer(self):
            raise RuntimeError

    class Entries(dict):
        def items(self):
            return [("lie", 1)]

        __iter__ = keys = items

    class Items(list):
        def __iter__(self):
            raise RuntimeError

        def __len__(self):
            return 0

    assert canonical_json([Text("a"), Number(5), Real(1.5), Entries(a=1), Items([1])]) == b'["a",5,1.5,{"a":1},[1]]'


def test_bytes_are_told_apart_without_being_kept():
    texts = {canonical_json(data) for data in (b"", b"a", b"b", bytearray(b"c"), "a", memoryview(b"d"))}

    assert len(texts) == 6
    assert canonical_json(b"a") == canonical_json(bytearray(b"a")) == canonical_json(memoryview(b"a"))
    assert b"secret" not in canonical_json(b"secret")


def test_raw_memory_of_an_array_counts_by_its_content():
    from array import array

    assert canonical_json(array("d", [1.0])) != canonical_json(array("d", [2.0]))
    assert canonical_json(array("d", [1.0])) == canonical_json(array("d", [1.0]))


def _raises(*_args, **_kwargs):
    raise RuntimeError("hostile")


HOSTILE_METHODS = [
    "__repr__", "__str__", "__iter__", "__len__", "__eq__", "__hash__", "__bool__", "__getattr__", "__getattribute__",
    "__getitem__", "__index__", "__int__", "__float__", "keys", "items", "values", "isoformat", "__lt__", "value",
]  # fmt: skip


@pytest.mark.parametrize("base", [object, dict, list, Mapping, Sequence, dt.date, UserDict, Decimal])
def test_objects_that_raise_from_everything_break_nothing(base):
    methods = dict.fromkeys(HOSTILE_METHODS, _raises)
    if base is dt.date:
        methods["__new__"] = lambda cls: dt.date.__new__(cls, 2025, 3, 14)
    hostile_class = type(
        "Hostile", (base,), {**methods, "__init__": lambda self: None, "__abstractmethods__": frozenset()}
    )
    hostile = hostile_class()

    for value in (hostile, [hostile], {"a": hostile}):
        assert canonical_json(value) == canonical_json(value)


def test_a_class_that_lies_about_itself_breaks_nothing():
    class Meta(type):
        @property
        def __module__(cls):
            raise RuntimeError

        def __instancecheck__(cls, instance):
            raise RuntimeError

    class Liar(metaclass=Meta):
        @property
        def __class__(self):
            raise RuntimeError

    assert canonical_json(Liar()) == b'{"$object":"object"}'


def test_a_field_that_raises_leaves_the_type_name():
    @dataclasses.dataclass
    class Lazy:
        x: int

    Lazy.x = property(_raises, lambda self, value: None)  # type: ignore[assignment]

    assert canonical_json(Lazy(1)).startswith(b'{"$object":')


def test_interruptions_pass_through():
    class Interrupting(Mapping):
        def __getitem__(self, key):
            raise KeyboardInterrupt

        def __iter__(self):
            raise KeyboardInterrupt

        def __len__(self):
            return 1

    with pytest.raises(KeyboardInterrupt):
        canonical_json(Interrupting())


def test_cycles_end_in_a_mark():
    inner: dict[str, object] = {}
    inner["self"] = inner
    items: list[object] = [1]
    items.append(items)

    assert canonical_json(inner) == b'{"self":{"$cycle":""}}'
    assert canonical_json(items) == b'[1,{"$cycle":""}]'


def test_the_same_object_twice_is_no_cycle():
    shared = {"a": 1.0}

    assert canonical_json([shared, shared]) == b'[{"a":1},{"a":1}]'


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, 5_000, 200_000])
def test_deep_nesting_is_exact_to_a_bound_and_marked_below_it(depth):
    value: list[object] = []
    for _ in range(depth - 1):
        value = [value]

    text = canonical_json(value)

    assert text == exact_json(value)
    assert text.count(b"[") == min(depth, MAX_DEPTH)
    assert (b"deep" in text) is (depth > MAX_DEPTH)


def test_a_caller_near_the_recursion_limit_gets_an_answer():
    def descend(left: int) -> bytes:
        return canonical_json({"a": [1.5, {"b": [2.5]}]}) if left == 0 else descend(left - 1)

    limit = sys.getrecursionlimit()
    depth = len(__import__("inspect").stack(0))

    for left in range(limit - depth - 40, limit - depth - 5):
        with contextlib.suppress(RecursionError):  # raised by the descent itself
            assert descend(left)


def test_a_small_object_that_unfolds_without_end_is_cut():
    value: list[object] = ["x"]
    for _ in range(100):
        value = [value, value]

    assert b"$more" in canonical_json(value)


def test_a_sequence_without_an_end_is_cut():
    class Endless(Sequence):
        def __len__(self):
            return 5

        def __getitem__(self, index):
            return index

    text = canonical_json(Endless())

    assert text.startswith(b"[0,1,2")
    assert text.count(b"$more") == 1


def test_large_data_counts_up_to_a_bound():
    whole = list(range(MAX_NODES - 2))

    assert canonical_json(whole) == exact_json(whole) == orjson.dumps(whole)
    assert canonical_json([*whole, 1, 2]) == exact_json([*whole, 1, 2])
    assert canonical_json([*whole, 1, 2]).count(b"$more") == 1


def test_integers_beyond_what_python_converts_are_exact():
    big = 10**5000

    assert canonical_json(big) == canonical_json(10**5000)
    assert canonical_json(big) != canonical_json(big + 1)


def test_data_changed_by_another_thread_meanwhile_breaks_nothing():
    class Growing(dict):
        pass

    value = Growing(a=1)

    class Meddling(Mapping):
        def __getitem__(self, key):
            return 1

        def __iter__(self):
            value["b"] = 2
            return iter(("x",))

        def __len__(self):
            return 1

    value["m"] = Meddling()

    assert canonical_json(value)


# Recorded arguments


@pytest.mark.parametrize(
    "raw",
    ['{"path": "foo"}', '{"path":"foo"}', '{ "path" : "foo" }\n', {"path": "foo"}, b'{"path":"foo"}'],
)
def test_br_01_05_recorded_arguments_that_are_json_compare_as_json(raw):
    assert canonical_recorded(raw) == b'{"path":"foo"}'


def test_br_01_05_recorded_arguments_that_are_no_json_compare_as_text():
    assert canonical_recorded("not json") == canonical_recorded(" not json\n") == b'"not json"'
    assert canonical_recorded("not json") != canonical_recorded("not  json")
    assert canonical_recorded('{"path": "foo') != canonical_recorded('{"path": "fo')


@pytest.mark.parametrize("raw", [None, "", "  \n", "null", b"", "{}", {}])
def test_no_recorded_arguments_are_all_the_same(raw):
    assert canonical_recorded(raw) == b"{}"


@given(VALUES)
def test_recorded_json_text_and_the_value_itself_are_the_same(value):
    assert canonical_recorded({"a": json.dumps({"v": value})}) == canonical_json({"a": json.dumps({"v": value})})
    assert canonical_recorded(json.dumps({"v": value})) == canonical_json({"v": value})


@pytest.mark.parametrize("raw", ["[" * 100_000, "9" * 10_000, "\ud800", '{"a": 1e999}', "\ufeff{}", '{"a":1,"a":2}'])
def test_odd_recorded_text_breaks_nothing(raw):
    assert canonical_recorded(raw)


def test_recorded_big_integers_are_exact():
    assert canonical_recorded('{"id": 18446744073709551617}') == b'{"id":18446744073709551617}'


@given(st.text(string.printable), st.binary(min_size=1, max_size=64))
def test_a_digest_is_16_bytes_and_depends_on_text_and_key(text, key):
    data = text.encode()

    assert len(digest(data, key)) == 16
    assert digest(data, key) == digest(data, key)
    assert digest(data, key) != digest(data + b" ", key)
    assert digest(data, key) != digest(data, bytes([key[0] ^ 1]) + key[1:])
