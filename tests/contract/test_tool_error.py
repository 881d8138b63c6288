"""``ToolError``: what it refuses, what it keeps, and that it behaves as an exception does."""

from __future__ import annotations

import copy
import pickle
import string
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changeover.contract import CODES, Category, ContractError, NextAction, ToolError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(string.printable),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(string.ascii_letters), inner, max_size=3),
    max_leaves=6,
)


class OrderError(ToolError):
    """A subclass as users write them: its own constructor, its own attribute."""

    def __init__(self, order_id: str) -> None:
        super().__init__("not_found", f"No order {order_id!r}. Check the number.", context={"order_id": order_id})
        self.order_id = order_id


FULL = ToolError(
    "validation_error",
    "The field 'due_date' must be an ISO 8601 date, for example 2025-03-14.",
    next_action="stop",
    category="business",
    context={"field": "due_date", "received": "next friday"},
    attempted_query={"due": "next friday"},
    partial_results=[{"id": 1}],
    alternatives=["list_orders"],
)


def _facts(error: ToolError) -> tuple[object, ...]:
    return (type(error), error.envelope(), error.mcp(), error.category, str(error))


@pytest.mark.parametrize("code", CODES)
def test_every_code_alone_makes_a_complete_error(code):
    error = ToolError(code)

    assert error.message == CODES[code].default_message
    assert (error.next_action, error.category, error.retryable) == (
        CODES[code].next_action,
        CODES[code].category,
        CODES[code].retryable,
    )
    assert error.context is error.attempted_query is error.partial_results is error.alternatives is None


@given(code=st.sampled_from(sorted(CODES)), action=st.sampled_from([None, *NextAction]))
def test_retryable_is_true_exactly_when_next_action_is_retry_and_never_for_a_permanent_code(code, action):
    try:
        error = ToolError(code, next_action=action)
    except ContractError:
        assert action is NextAction.RETRY
        assert not CODES[code].retryable
    else:
        assert type(error.retryable) is bool
        assert error.retryable is (error.next_action is NextAction.RETRY)
        assert CODES[code].retryable or not error.retryable


def test_a_transient_error_may_be_made_permanent():
    error = ToolError("rate_limited", next_action="stop")

    assert error.retryable is False


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"code": "oops"}, "unknown code 'oops': use one of validation_error"),
        ({"code": []}, "unknown code"),
        ({"code": None}, "unknown code"),
        ({"code": "conflict", "message": ""}, "must not be empty"),
        ({"code": "conflict", "message": " \n"}, "must not be empty"),
        ({"code": "conflict", "message": "x" * 401}, "401 characters"),
        ({"code": "conflict", "message": b"bytes"}, "must be a string, not bytes"),
        ({"code": "conflict", "next_action": "retry"}, "permanent error"),
        ({"code": "conflict", "next_action": "wait"}, "unknown next_action 'wait': use one of retry, ask_user, stop"),
        ({"code": "conflict", "category": "bad"}, "unknown category 'bad'"),
        ({"code": "conflict", "context": [1]}, "context must be a mapping"),
        ({"code": "conflict", "context": {"a": object()}}, "plain JSON"),
        ({"code": "conflict", "context": {1: "a"}}, "plain JSON"),
        ({"code": "conflict", "context": {"a": "x" * 2048}}, "at most 2048"),
        ({"code": "conflict", "partial_results": "text"}, "partial_results must be a list"),
        ({"code": "conflict", "alternatives": {"a": 1}}, "alternatives must be a list"),
    ],
)
def test_what_breaks_the_contract_is_refused_with_a_remedy(arguments, says):
    with pytest.raises(ContractError, match=says):
        ToolError(**arguments)


def test_the_limits_themselves_are_allowed():
    error = ToolError("conflict", "x" * 400, context={"a": "x" * (2048 - len('{"a":""}'))})

    assert len(error.message) == 400


def test_context_is_a_copy_that_later_changes_do_not_reach():
    inner = {"ids": [1]}
    error = ToolError("conflict", context=inner)

    inner["ids"].append(object())

    assert error.context == {"ids": [1]}


def test_br_06_13_not_a_number_becomes_null_in_context():
    error = ToolError("conflict", context={"a": float("nan"), "b": float("inf"), "c": (1, 2)})

    assert error.context == {"a": None, "b": None, "c": [1, 2]}


def test_br_07_11_half_a_surrogate_pair_in_a_message_is_replaced():
    error = ToolError("not_found", "No file \ud83d here, but \U0001f600. Check the name.")

    assert error.message == "No file \ufffd here, but \U0001f600. Check the name."


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "error", [FULL, ToolError("rate_limited"), OrderError("O-7")], ids=["full", "bare", "subclass"]
)
def test_pickling_keeps_everything(error, protocol):
    copied = pickle.loads(pickle.dumps(error, protocol))

    assert _facts(copied) == _facts(error)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
@pytest.mark.parametrize("error", [FULL, OrderError("O-7")], ids=["full", "subclass"])
def test_copying_keeps_everything(error, duplicate):
    assert _facts(duplicate(error)) == _facts(error)


def test_a_subclass_keeps_its_own_attributes_and_notes():
    error = OrderError("O-7")
    error.add_note("seen in batch 3")

    for copied in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert copied.order_id == "O-7"
        assert copied.__notes__ == ["seen in batch 3"]


def test_a_deep_copy_shares_no_context():
    copied = copy.deepcopy(FULL)
    copied.context["field"] = "other"

    assert FULL.context["field"] == "due_date"


@given(st.dictionaries(st.text(string.ascii_letters, min_size=1), JSON, max_size=4), JSON)
def test_any_small_json_survives_pickling(context, query):
    error = ToolError("not_found", context=context, attempted_query=query, partial_results=[query])

    assert _facts(pickle.loads(pickle.dumps(error))) == _facts(error)


def test_the_cause_stands_as_with_any_exception():
    def find_order():
        try:
            raise KeyError("O-7")
        except KeyError as fault:
            raise ToolError("not_found") from fault

    with pytest.raises(ToolError) as caught:
        find_order()

    assert isinstance(caught.value.__cause__, KeyError)
    assert "KeyError: 'O-7'" in "".join(traceback.format_exception(caught.value))


def test_text_names_the_code_and_the_message():
    assert str(ToolError("conflict", "Read it again.")) == "conflict: Read it again."
    assert repr(ToolError("conflict", "Read it again.")) == "ToolError('conflict: Read it again.')"


def test_words_are_accepted_as_enums_and_as_text():
    error = ToolError("conflict", next_action=NextAction.STOP, category="other")

    assert error.next_action is NextAction.STOP
    assert error.category is Category.OTHER
