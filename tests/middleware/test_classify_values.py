"""From a returned value to a failure: by explicit shape only."""

from __future__ import annotations

import json
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changeover.classify import Traits, classify_result, is_empty, looks_like_failure
from changeover.contract import CODES, Empty, ToolError

PLAIN = Traits("t")


def _kind(value: object) -> str:
    """Name a case alike in every process, which a ``repr`` with an address does not."""
    return type(value).__name__ if isinstance(value, MagicMock) or "0x" in repr(value) else repr(value)


FULL = ToolError(
    "not_found",
    "No order 'O-7'. Check the number.",
    next_action="stop",
    context={"field": "order_id"},
    attempted_query="O-7",
    partial_results=[1],
    alternatives=["list_orders"],
)


def failure(value) -> ToolError | None:
    found = classify_result(value, PLAIN)
    return None if found is None else found.error


@pytest.mark.parametrize("error", [FULL, *map(ToolError, CODES)], ids=lambda error: error.code)
def test_our_own_payloads_read_back_as_the_error_they_were_made_of(error):
    for value in (error, error.envelope(), json.dumps(error.envelope()), f"\n {json.dumps(error.envelope())}"):
        assert failure(value).envelope() == error.envelope()
    for value in (error.mcp(), json.dumps(error.mcp())):
        assert failure(value).mcp() == error.mcp()


def test_an_mcp_result_is_read_by_its_text_when_that_is_ours():
    for payload in (FULL.mcp(), FULL.envelope()):
        result = {"isError": True, "content": [{"type": "image"}, {"type": "text", "text": json.dumps(payload)}]}
        found = classify_result(result, PLAIN)

        assert (found.error.code, found.error.message, found.unclassified) == (FULL.code, FULL.message, False)


@pytest.mark.parametrize(
    "value",
    [
        {"isError": True},
        {"isError": True, "content": []},
        {"isError": True, "content": [{"type": "text", "text": "db refused"}], "structuredContent": {"answer": 42}},
        {"isError": True, "errorCategory": "validation", "isRetryable": False, "message": "x"},
        {"isError": True, "code": "no_such_code", "message": "x"},
        {"isError": True, "code": "conflict", "message": ""},
        {"isError": True, "code": "conflict", "message": "x", "next_action": "retry"},
        {
            "ok": False,
            "error": {"code": "mine", "message": "x", "retryable": False, "next_action": "stop", "context": None},
        },
        {
            "ok": False,
            "error": {"code": "conflict", "message": "x", "retryable": True, "next_action": "retry", "context": None},
        },
        '{"isError": true, "content": []}',
    ],
    ids=json.dumps,
)
def test_br_02_10_an_explicit_failure_nobody_knows_is_unclassified(value):
    found = classify_result(value, PLAIN)

    assert (found.error.code, found.unclassified) == ("internal_error", True)


def test_an_sdk_result_object_is_read_like_its_json():
    class CallToolResult:
        __pydantic_fields__ = {"content": None, "isError": None}  # noqa: RUF012 - as the library has it

        def __init__(self, *, failed: bool) -> None:
            self.isError = failed
            self.content = [SimpleNamespace(type="text", text=json.dumps(FULL.mcp()))]

    assert failure(CallToolResult(failed=True)).code == "not_found"
    assert failure(CallToolResult(failed=False)) is None


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        False,
        "",
        "Error: 404 not found",
        "Traceback (most recent call last):",
        [],
        {},
        {"results": [{"url": "u", "content": "c", "error": None}]},  # BR-02-14
        {"error": None, "data": [1]},
        {"status": "failed", "run": 9},  # BR-02-16
        {"status": "failed", "error": "syntax"},
        {"ok": False, "error": "invalid_auth"},  # BR-10-24
        {"ok": False, "error_code": 429, "description": "Too Many Requests", "parameters": {"retry_after": 35}},
        {"ok": False, "error": {"code": "conflict", "message": "x"}},
        {"ok": False, "error": FULL.envelope()["error"], "more": 1},
        {"ok": True, "error": FULL.envelope()["error"]},
        {"isError": False, "empty": True, "matches": 0},
        {"isError": "true"},
        {"isError": 1},
        [FULL.envelope()],
        '{"ok": false, "error": "x"}',
        '{"ok": false, "error": ',
        ValueError("returned, not raised"),
        Empty(),
        MagicMock(),
        object(),
    ],
    ids=_kind,
)
def test_everything_else_is_a_success(value):
    assert classify_result(value, PLAIN) is None


@pytest.mark.parametrize(
    ("value", "suspicious"),
    [
        ({"ok": False, "error": "invalid_auth"}, True),
        ({"ok": False, "error_code": 429}, True),
        ({"error": {"message": "x"}}, True),
        ({"errors": [{"message": "x"}], "data": None}, True),
        ({"success": False}, True),
        ({"is_error": True}, True),
        ({"isError": "true"}, True),
        ({"status": "failed", "run": 9}, True),
        ({"status": "FAILED", "error": "syntax"}, True),
        ('{"error": "quota"}', True),
        (' {"success": false}', True),
        ({"error": None, "data": [1]}, False),
        ({"error": "", "errors": []}, False),
        ({"error": {}, "ok": True, "success": True}, False),
        ({"results": [{"error": "inside"}]}, False),
        ({"status": "done"}, False),
        ({"status": 500}, False),
        ('{"error": null}', False),
        ('{"error": "cut of', False),
        ('["error"]', False),
        ("Error: it failed", False),
        ([{"error": "x"}], False),
        (None, False),
        (MagicMock(), False),
    ],
    ids=_kind,
)
def test_br_02_16_br_10_24_what_looks_like_a_foreign_failure_is_told_of(value, suspicious):
    assert looks_like_failure(value) is suspicious


@pytest.mark.parametrize(
    ("value", "empty"),
    [
        ([], True), ((), True), ({}, True), (set(), True), (frozenset(), True), ("", True), (range(0), True),
        (Empty(), True), (Empty(attempted_query="x"), True), ({"isError": False, "empty": True, "matches": 0}, True),
        ({"ok": True, "data": []}, True), ({"ok": True, "data": {"ok": True, "data": ""}}, True),
        (None, False), (0, False), (False, False), ([0], False), ({"n": 0}, False), (" ", False), ({"results": []}, False),
        ({"ok": True, "data": None}, False), ({"empty": True}, False), (object(), False), (MagicMock(), False),
    ],
    ids=_kind,
)  # fmt: skip
def test_br_03_11_empty_means_that_nothing_was_found(value, empty):
    assert is_empty(value) is empty


def test_br_10_24_the_tools_owner_says_what_a_foreign_shape_means():
    def detect(body):
        if isinstance(body, dict) and body.get("ok") is False:
            return {"invalid_auth": "unauthenticated"}.get(
                str(body.get("error")), ToolError("rate_limited", context={"retry_after_ms": 35_000})
            )
        return None

    traits = Traits("slack", detect=detect)

    assert classify_result({"ok": False, "error": "invalid_auth"}, traits).error.code == "unauthenticated"
    limited = classify_result({"ok": False, "error_code": 429, "parameters": {"retry_after": 35}}, traits).error
    assert (limited.code, limited.context) == ("rate_limited", {"retry_after_ms": 35_000})
    assert classify_result({"ok": True}, traits) is None
    assert classify_result(FULL.envelope(), traits).error.code == "rate_limited"
    assert classify_result(FULL, traits).error is FULL


@pytest.mark.parametrize("detect", [lambda body: body["missing"], lambda _: "no_such_code", lambda _: 5])
def test_a_detector_that_fails_changes_nothing(detect):
    traits = Traits("t", detect=detect)
    failures = []

    assert classify_result({"a": 1}, traits, rule_failed=lambda: failures.append(1)) is None
    assert classify_result(FULL.envelope(), traits).error.code == "not_found"
    assert failures == [1]


def _raises(*_):
    raise RuntimeError


@pytest.mark.parametrize("base", [dict, list, str, object])
def test_hostile_values_are_successes(base):
    methods = (
        "__getitem__",
        "__len__",
        "__iter__",
        "__eq__",
        "__bool__",
        "get",
        "keys",
        "items",
        "lstrip",
        "__contains__",
        "__getattr__",
    )
    hostile = type("Hostile", (base,), dict.fromkeys(methods, _raises))()

    assert classify_result(hostile, PLAIN) is None
    assert looks_like_failure(hostile) is False
    assert is_empty(hostile) in (True, False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["ok", "error", "isError", "code", "message", "content", "text", "status", "data"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@given(JSON)
def test_only_a_true_is_error_or_our_envelope_is_ever_a_failure(value):
    found = classify_result(value, PLAIN)
    explicit = isinstance(value, dict) and value.get("isError") is True

    assert (found is not None) is explicit
    assert found is None or found.error.envelope()
    assert (classify_result(json.dumps(value), PLAIN) is not None) is explicit
