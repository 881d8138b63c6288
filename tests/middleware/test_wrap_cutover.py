"""Stage cutover: the structured payload is served, in the tool's dialect and in a shape its host can take."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable  # noqa: TC003 - the annotation is resolved when the tool is called
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal, NewType

import pytest

import changeover
from changeover import ToolError


@pytest.fixture
def cutover(recording):
    recording.flag("tool")
    return recording


def test_a_raised_error_is_returned_as_an_envelope(cutover):
    error = ToolError(
        "validation_error", "due_date must be a date, for example 2025-03-14.", context={"field": "due_date"}
    )

    @changeover.tool
    def tool() -> dict:
        raise error

    assert tool() == error.envelope()
    found = cutover.attributes
    assert (found["changeover.arm"], found["changeover.served"]) == ("structured", "structured")
    assert json.loads(found["changeover.structured.payload"]) == error.envelope()
    assert found["changeover.legacy.payload"].startswith("ToolError: validation_error: due_date")


def test_the_mcp_dialect(cutover):
    @changeover.tool(dialect="mcp")
    async def tool() -> dict:
        raise ToolError("not_found", "No such order. Check the number.", attempted_query="O-7", alternatives=["list"])

    payload = asyncio.run(tool())

    assert payload["isError"] is True
    assert payload["attempted_query"] == "O-7"
    assert "partial_results" not in payload


@dataclass
class Search:
    url: str = "u"

    def __call__(self, query: str) -> str:
        raise PermissionError(query)


def test_a_callable_object_with_annotated_fields_that_promises_text_gives_text(cutover):
    assert isinstance(changeover.wrap(Search(), name="tool")("q"), str)


def test_a_plain_function_that_promises_to_give_text_later_gives_text(cutover):
    async def later() -> str:
        raise PermissionError("no")

    def tool() -> Awaitable[str]:
        return later()

    assert isinstance(asyncio.run(changeover.wrap(tool)()), str)


_Id = NewType("_Id", str)


@pytest.mark.parametrize(
    "annotation", [str, "str", "str | None", str | None, _Id, Literal["a", "b"], Annotated[str, "x"]], ids=repr
)
def test_br_02_08_a_tool_that_promises_text_gives_text(cutover, annotation):
    def tool():
        raise PermissionError("no")

    tool.__annotations__["return"] = annotation
    payload = changeover.wrap(tool)()

    assert isinstance(payload, str)
    assert json.loads(payload)["error"]["code"] == "permission_denied"


def test_a_success_is_wrapped_in_the_envelope_dialect_only(cutover):
    value = {"id": 1}

    assert changeover.wrap(lambda: value, name="tool")() == {"ok": True, "data": value}
    assert changeover.wrap(lambda: value, name="tool")()["data"] is value
    assert changeover.wrap(lambda: value, name="tool", dialect="mcp")() is value
    assert changeover.wrap(lambda: value, name="tool", wrap_success=False)() is value


def test_br_02_08_a_payload_in_our_shape_is_not_wrapped_again(cutover):
    def texted(text):
        def tool() -> str:
            return text

        return changeover.wrap(tool)

    success = {"ok": True, "data": 1}
    failure = ToolError("not_found").envelope()
    assert changeover.wrap(lambda: success, name="tool")() is success
    assert changeover.wrap(lambda: failure, name="tool")() is failure
    for text in (json.dumps(success), json.dumps(failure, separators=(",", ":"))):
        assert texted(text)() is text
    assert texted("plain")() == '{"ok":true,"data":"plain"}'
    assert cutover.outcomes == ["ok", "error", "ok", "error", "ok"]


def test_br_02_10_a_returned_failure_is_translated_into_the_tools_dialect(cutover):
    value = {"isError": True, "content": [{"type": "text", "text": "db refused"}], "structuredContent": {"answer": 42}}
    payload = changeover.wrap(lambda: value, name="tool")()

    assert payload["ok"] is False
    assert "answer" not in json.dumps(payload)
    assert "db refused" in cutover.attributes["changeover.legacy.payload"]


def test_a_returned_tool_error_is_rendered(cutover):
    payload = changeover.wrap(lambda: ToolError("conflict"), name="tool")()

    assert payload["error"]["code"] == "conflict"
    assert cutover.attributes["changeover.legacy.kind"] == "value"


def test_empty_is_no_error(cutover):
    @changeover.tool(dialect="mcp")
    def tool():
        return changeover.Empty()

    found = tool()

    assert found == {"isError": False, "empty": True, "matches": 0}
    assert cutover.outcomes == ["empty"]


def test_br_02_20_what_is_served_is_always_json(cutover):
    def tool():
        raise ToolError(
            "not_found", partial_results=[object(), {1, 2}, Decimal("1.5"), float("nan"), 2**70, b"x", "\ud800"]
        )

    payload = changeover.wrap(tool, dialect="mcp")()

    json.dumps(payload, allow_nan=False)
    assert payload["partial_results"][0] == "<builtins.object>"
    assert cutover.losses() == {}


def test_br_02_12_an_error_without_detail_still_has_a_message(cutover):
    for raised in (Exception(), TimeoutError(), ToolError("internal_error")):

        def tool(raised=raised):
            raise raised

        assert changeover.wrap(tool)()["error"]["message"]
    assert changeover.wrap(lambda: {"isError": True, "content": []}, name="tool")()["error"]["message"]


def test_an_idempotent_tool_may_be_retried_after_a_timeout_and_a_rule_decides(cutover):
    def tool(kind):
        raise kind

    wrapped = changeover.wrap(tool, idempotent=True, rules={FileNotFoundError: "not_found"})

    assert wrapped(TimeoutError)["error"]["next_action"] == "retry"
    assert wrapped(FileNotFoundError)["error"]["code"] == "not_found"
    assert changeover.wrap(tool)(TimeoutError)["error"]["code"] == "outcome_unknown"


def test_a_detector_of_the_owners_own(cutover):
    wrapped = changeover.wrap(
        lambda: {"status": "failed"},
        name="tool",
        detect=lambda value: "upstream_error" if value["status"] == "failed" else None,
    )

    assert wrapped()["error"]["code"] == "upstream_error"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_calls_off_propagates_in_cutover_too(cutover, kind):
    def tool():
        raise kind

    with pytest.raises(kind):
        changeover.wrap(tool)()
    assert cutover.outcomes == ["cancelled"]


def test_br_04_07_a_structured_payload_holds_no_traceback(cutover):
    def tool():
        raise KeyError("/usr/lib/python3/site-packages/pkg/mod.py line 3")

    payload = json.dumps(changeover.wrap(tool)())

    assert "site-packages" not in payload


def test_a_session_that_began_on_legacy_stays_there(recording):
    def tool():
        raise ValueError("no")

    wrapped = changeover.wrap(tool)
    with changeover.session("early"), pytest.raises(ValueError, match="no"):
        wrapped()
    recording.flag("tool")
    with changeover.session("early"), pytest.raises(ValueError, match="no"):
        wrapped()
    with changeover.session("late"):
        assert wrapped()["ok"] is False
    recording.flag("tool", "shadow", 0)
    with changeover.session("late"), pytest.raises(ValueError, match="no"):
        wrapped()

    arms = [record["attributes"]["changeover.arm"] for record in recording.records]
    assert arms == ["legacy", "legacy", "structured", "legacy"]
