"""Both dialects, for every error that can be built, against JSON Schemas written out here."""

from __future__ import annotations

import copy
import datetime as dt
import json
import pickle
import string

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from changeover.contract import (
    CODES,
    Category,
    Dialect,
    Empty,
    NextAction,
    ToolError,
    envelope,
    mcp,
    render,
    wrap_success,
)

_RETRY = {"const": True}
ENVELOPE = Draft202012Validator(
    {
        "type": "object",
        "required": ["ok", "error"],
        "additionalProperties": False,
        "properties": {
            "ok": {"const": False},
            "error": {
                "type": "object",
                "required": ["code", "message", "retryable", "next_action", "context"],
                "additionalProperties": False,
                "properties": {
                    "code": {"enum": list(CODES)},
                    "message": {"type": "string", "minLength": 1, "maxLength": 400},
                    "retryable": {"type": "boolean"},
                    "next_action": {"enum": ["retry", "ask_user", "stop"]},
                    "context": {"type": ["object", "null"]},
                },
                "if": {"properties": {"next_action": {"const": "retry"}}},
                "then": {"properties": {"retryable": {"const": True}}},
                "else": {"properties": {"retryable": {"const": False}}},
            },
        },
    }
)
MCP = Draft202012Validator(
    {
        "type": "object",
        "required": ["isError", "errorCategory", "isRetryable", "message", "code", "next_action"],
        "additionalProperties": False,
        "properties": {
            "isError": {"const": True},
            "errorCategory": {"enum": ["validation", "permission", "business", "transient", "other"]},
            "isRetryable": {"type": "boolean"},
            "message": {"type": "string", "minLength": 1, "maxLength": 400},
            "code": {"enum": list(CODES)},
            "next_action": {"enum": ["retry", "ask_user", "stop"]},
            "attempted_query": {"not": {"type": "null"}},
            "partial_results": {"type": "array", "minItems": 1},
            "alternatives": {"type": "array", "minItems": 1},
        },
        "if": {"properties": {"next_action": {"const": "retry"}}},
        "then": {"properties": {"isRetryable": {"const": True}}},
        "else": {"properties": {"isRetryable": {"const": False}}},
    }
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=4) | st.builds(object),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def errors(draw) -> ToolError:
    code = draw(st.sampled_from(sorted(CODES)))
    actions = [action for action in NextAction if action is not NextAction.RETRY or CODES[code].retryable]
    return ToolError(
        code,
        draw(st.none() | st.text(min_size=1, max_size=400).filter(str.strip)),
        next_action=draw(st.none() | st.sampled_from(actions)),
        category=draw(st.none() | st.sampled_from(Category)),
        context=draw(st.none() | st.dictionaries(st.text(string.ascii_letters), st.booleans(), max_size=3)),
        attempted_query=draw(VALUES),
        partial_results=draw(st.none() | st.lists(VALUES, max_size=3)),
        alternatives=draw(st.none() | st.lists(st.text(), max_size=3)),
    )


@given(errors())
def test_every_error_validates_in_both_dialects_after_a_trip_through_json(error):
    ENVELOPE.validate(json.loads(orjson.dumps(error.envelope())))
    MCP.validate(json.loads(orjson.dumps(error.mcp())))


@given(errors())
def test_both_dialects_tell_the_same(error):
    inner, flat = envelope(error)["error"], mcp(error)

    assert (inner["code"], inner["message"], inner["retryable"], inner["next_action"]) == (
        flat["code"],
        flat["message"],
        flat["isRetryable"],
        flat["next_action"],
    )


def test_the_envelope_has_its_five_keys_in_order():
    payload = ToolError("conflict", context={"etag": "7"}, partial_results=[1]).envelope()

    assert json.dumps(payload) == (
        '{"ok": false, "error": {"code": "conflict", "message": "The current state differs from what this call assumed. '
        'Read the state again before deciding.", "retryable": false, "next_action": "ask_user", "context": {"etag": "7"}}}'
    )


def test_words_in_a_payload_are_plain_strings():
    error = ToolError("conflict", next_action=NextAction.STOP, category=Category.OTHER)

    assert type(error.envelope()["error"]["next_action"]) is str
    assert {type(error.mcp()[key]) for key in ("next_action", "errorCategory")} == {str}


def test_pillars_without_content_are_absent():
    payload = ToolError("not_found", partial_results=[], alternatives=()).mcp()

    assert payload.keys() == {"isError", "errorCategory", "isRetryable", "message", "code", "next_action"}


def test_pillars_with_content_are_present():
    payload = ToolError("not_found", attempted_query="", partial_results=[0], alternatives=["list_orders"]).mcp()

    assert (payload["attempted_query"], payload["partial_results"], payload["alternatives"]) == (
        "",
        [0],
        ["list_orders"],
    )


def test_br_02_20_what_is_no_json_becomes_its_type_name_and_the_rest_stays():
    loop: list[object] = []
    loop.append(loop)
    results = [object(), {"when": dt.date(2025, 3, 14)}, {1}, "\ud800", loop, 2**70, 5]
    payload = ToolError("upstream_error", partial_results=results).mcp()

    assert payload["partial_results"] == [
        "<builtins.object>",
        {"when": "2025-03-14"},
        [1],
        "<builtins.str>",
        "<builtins.list>",
        "<builtins.int>",
        5,
    ]


def test_a_dialect_is_chosen_by_name():
    error = ToolError("conflict")

    assert render(error, Dialect("envelope")) == error.envelope()
    assert render(error, Dialect("mcp")) == error.mcp()


def test_a_wrapped_success_carries_the_value_itself():
    value = object()

    assert wrap_success(value) == {"ok": True, "data": value}


@pytest.mark.parametrize(
    ("empty", "shape"),
    [
        (Empty(), {"isError": False, "empty": True, "matches": 0}),
        (Empty(attempted_query="x"), {"isError": False, "empty": True, "matches": 0, "attempted_query": "x"}),
    ],
)
def test_an_empty_result_is_plain_json(empty, shape):
    assert json.loads(json.dumps(empty)) == shape
    assert json.loads(orjson.dumps(empty)) == shape
    assert pickle.loads(pickle.dumps(empty)) == copy.deepcopy(empty) == shape
