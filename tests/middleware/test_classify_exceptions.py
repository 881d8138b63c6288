"""From a raised exception to a code: by type and fact, never by text."""

from __future__ import annotations

import asyncio
import concurrent.futures
import errno
import json
import os
import socket

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changeover.arguments import Binder
from changeover.classify import Rule, Traits, classify_exception, rules
from changeover.contract import CODES, ContractError, ToolError

WRITE = Traits("create_order")
READ = Traits("find_order", idempotent=True)


def code(exc: BaseException, traits: Traits = WRITE) -> str:
    return classify_exception(exc, traits).error.code


@pytest.mark.parametrize(
    ("exc", "read", "write"),
    [
        (TimeoutError(), "upstream_timeout", "outcome_unknown"),
        (asyncio.TimeoutError(), "upstream_timeout", "outcome_unknown"),  # noqa: UP041 - the same
        (concurrent.futures.TimeoutError(), "upstream_timeout", "outcome_unknown"),
        (socket.timeout(), "upstream_timeout", "outcome_unknown"),  # noqa: UP041 - the same
        (OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)), "upstream_timeout", "outcome_unknown"),
        (ConnectionRefusedError(), "upstream_unavailable", "upstream_unavailable"),
        (ConnectionResetError(), "upstream_unavailable", "outcome_unknown"),
        (ConnectionAbortedError(), "upstream_unavailable", "outcome_unknown"),
        (BrokenPipeError(), "upstream_unavailable", "outcome_unknown"),
        (ConnectionError(), "upstream_unavailable", "outcome_unknown"),
        (PermissionError(), "permission_denied", "permission_denied"),
        (OSError(errno.EACCES, "no"), "permission_denied", "permission_denied"),
        (asyncio.CancelledError(), "cancelled", "cancelled"),
        (KeyboardInterrupt(), "cancelled", "cancelled"),
    ],
    ids=repr,
)
def test_what_the_standard_library_says_for_certain(exc, read, write):
    for traits, expected in ((READ, read), (WRITE, write)):
        found = classify_exception(exc, traits)

        assert (found.error.code, found.unclassified, found.rule_failed) == (expected, False, False)
        assert found.error.retryable is CODES[expected].retryable


@pytest.mark.parametrize(
    "exc",
    [
        FileNotFoundError("x"),
        KeyError("x"),
        IndexError("x"),
        LookupError("x"),
        ValueError("timed out"),
        RuntimeError("401 unauthorized: invalid api key"),
        Exception(),
        OSError("connection refused"),
        TypeError("f() missing 1 required positional argument: 'a'"),
        NotImplementedError(),
        ExceptionGroup("several", [TimeoutError(), PermissionError()]),
        MemoryError(),
        UnicodeDecodeError("utf-8", b"", 0, 1, "x"),
    ],
    ids=repr,
)
def test_br_10_18_br_10_20_everything_else_is_unknown_and_counted_never_guessed_from_its_text(exc):
    found = classify_exception(exc, READ)

    assert (found.error.code, found.unclassified) == ("internal_error", True)
    assert (found.error.retryable, found.error.next_action.value) == (False, "stop")


@given(
    st.text(min_size=4),
    st.sampled_from([ValueError, TimeoutError, PermissionError, ConnectionResetError, KeyError, Exception]),
)
def test_br_04_03_no_text_of_an_exception_reaches_a_payload(text, kind):
    error = classify_exception(kind(f"<<{text}>>"), READ).error

    for payload in (error.envelope(), error.mcp()):
        assert "<<" not in json.dumps(payload)


def test_br_02_12_an_exception_without_any_text_still_has_a_message():
    assert classify_exception(Exception(), WRITE).error.message.strip()


def test_a_tool_error_stands_as_it_is():
    raised = ToolError("upstream_timeout", "Wait, then repeat the call.")

    found = classify_exception(raised, Traits("t", rules=rules({ToolError: "conflict"})))

    assert found.error is raised
    assert not found.unclassified


def test_a_subclass_that_never_called_the_constructor_is_an_unknown_failure():
    class BrokenError(ToolError):
        def __init__(self):
            pass

    found = classify_exception(BrokenError(), WRITE)

    assert (found.error.code, found.unclassified) == ("internal_error", True)


# Arguments that do not fit


def save(action, name, content, *, mode="w"): ...


def binding(args: tuple = (), kwargs: dict | None = None, fn=save) -> ToolError:
    fault = Binder(fn).canonical(args, kwargs or {}).fault
    found = classify_exception(TypeError("save() got it wrong"), WRITE, fault=fault)
    assert not found.unclassified
    return found.error


def test_br_01_17_missing_arguments_are_named():
    error = binding(kwargs={"action": "create", "name": "n"})

    assert (error.code, error.retryable, error.next_action.value) == ("validation_error", False, "ask_user")
    assert error.message == "Required arguments are missing: 'content'. Add them, then call again."
    assert error.context == {"missing": ["content"], "accepted": ["action", "name", "content", "mode"]}


def test_br_01_09_reshuffled_arguments_share_one_code_and_name_the_offenders_in_context():
    calls = [
        {"action": "create", "task": "t"},
        {"action": "spawn", "agentType": "x"},
        {"action": "update", "workdir": "/w"},
    ]
    errors = [binding(kwargs=call, fn=lambda action: 0) for call in calls]

    assert [error.code for error in errors] == ["validation_error"] * 3
    assert [error.context["unexpected"] for error in errors] == [["task"], ["agentType"], ["workdir"]]
    assert {error.category.value for error in errors} == {"validation"}


def test_br_02_04_a_type_error_inside_the_tool_is_no_argument_error():
    fault = Binder(save).canonical(("a", "b", "c"), {}).fault

    found = classify_exception(TypeError("unsupported operand"), WRITE, fault=fault)

    assert (fault, found.error.code, found.error.next_action.value) == (None, "internal_error", "stop")


def test_another_exception_of_an_unfitting_call_is_judged_by_its_own_type():
    fault = Binder(save).canonical((), {}).fault

    assert classify_exception(PermissionError(), WRITE, fault=fault).error.code == "permission_denied"


def test_no_value_of_an_argument_reaches_the_payload():
    error = binding(("VALUE1", "VALUE2", "VALUE3", "VALUE4"), {"name": "VALUE5", "token": "VALUE6"})

    assert "VALUE" not in json.dumps(error.envelope())
    assert error.context["too_many_positional"] is True
    assert error.context["repeated"] == ["name"]


NAMES = st.text(st.characters(codec=None), max_size=300)


@given(st.dictionaries(NAMES, st.none(), min_size=1, max_size=60))
def test_whatever_names_a_model_sends_the_payload_is_small_and_sound(names):
    error = binding(kwargs=names)

    assert len(orjson.dumps(error.envelope())) <= 2048 + 700
    assert error.context["missing"] == ["action", "name", "content"] or set(names) & {"action", "name", "content"}


def test_a_secret_sent_as_a_name_is_masked():
    error = binding(kwargs={"sk-live-FAKEFAKE1234": 1})

    assert "FAKE" not in json.dumps(error.envelope())


# Rules


def test_a_rule_gives_a_code_an_error_or_asks_a_function():
    ready = ToolError("conflict", "Read the order again.")
    traits = Traits(
        "t",
        rules=rules(
            {
                FileNotFoundError: "not_found",
                KeyError: ready,
                ValueError: lambda exc: ToolError("business_rule", f"Rule {exc.args[0]} applies."),
                (IndexError, ZeroDivisionError): lambda _: "unsupported_input",
            }
        ),
    )

    assert code(FileNotFoundError(), traits) == "not_found"
    assert classify_exception(KeyError(), traits).error is ready
    assert classify_exception(ValueError(7), traits).error.message == "Rule 7 applies."
    assert code(IndexError(), traits) == code(ZeroDivisionError(), traits) == "unsupported_input"
    assert not classify_exception(KeyError(), traits).unclassified


def test_a_rule_holds_for_subclasses_and_the_most_specific_one_wins():
    for mapping in (
        {LookupError: "not_found", KeyError: "validation_error"},
        {KeyError: "validation_error", LookupError: "not_found"},
    ):
        traits = Traits("t", rules=rules(mapping))

        assert code(KeyError(), traits) == "validation_error"
        assert code(IndexError(), traits) == "not_found"


def test_a_rule_goes_before_what_the_standard_library_says_and_before_binding():
    traits = Traits("t", rules=rules({TimeoutError: "upstream_timeout", TypeError: "unsupported_input"}))
    fault = Binder(save).canonical((), {}).fault

    assert code(TimeoutError(), traits) == "upstream_timeout"
    assert classify_exception(TypeError(), traits, fault=fault).error.code == "unsupported_input"


def test_a_rule_that_answers_none_leaves_it_to_the_next():
    traits = Traits(
        "t", rules=rules({KeyError: lambda _: None, LookupError: "not_found", TimeoutError: lambda _: None})
    )

    assert code(KeyError(), traits) == "not_found"
    assert code(TimeoutError(), traits) == "outcome_unknown"


@pytest.mark.parametrize(
    "answer", [lambda exc: exc.nothing, lambda _: "no_such_code", lambda _: 5, lambda: None, lambda _: ToolError("x")]
)
def test_a_rule_that_raises_or_answers_nonsense_is_passed_over_and_told_of(answer):
    traits = Traits("t", rules=rules({KeyError: answer}))

    found = classify_exception(KeyError(), traits)

    assert (found.error.code, found.unclassified, found.rule_failed) == ("internal_error", True, True)


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        ({FileNotFoundError: "missing"}, "unknown code 'missing' in a rule"),
        ({"FileNotFoundError": "not_found"}, "needs an exception class"),
        ({int: "not_found"}, "needs an exception class"),
        ({KeyError: 404}, "must lead to a code, a ToolError or a function"),
    ],
)
def test_a_rule_that_cannot_work_is_refused_when_it_is_made(mapping, says):
    with pytest.raises(ContractError, match=says):
        rules(mapping)


def test_rules_are_values():
    assert rules({KeyError: "not_found"}) == (Rule(KeyError, "not_found"),)
