"""The scripted agent acts on the text it is given and on nothing else."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from changeover.contract import CODES, ToolError
from changeover.dashboard.demo.agent import MAX_CALLS, Agent, Goal, read
from changeover.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable


class Always(random.Random):
    """Dice that always show the same: below every probability, or above."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self._value = value

    def random(self) -> float:
        return self._value


def pursue(
    tool: Callable[..., Any], *, corrected: dict[str, Any] | None = None, dice: float = 0.0
) -> tuple[bool, list[float]]:
    waits: list[float] = []
    agent = Agent({"tool": tool}, Always(dice), sleep=waits.append)
    reached = agent.pursue(Goal("tool", {"x": 1}, corrected), Session("s"))
    return reached, waits


class Tool:
    """Answers every call with the same error, and remembers what it was called with."""

    def __init__(self, answer: Exception | dict[str, Any], *, until: int = 99) -> None:
        self.answer = answer
        self.until = until
        self.calls: list[int] = []

    def __call__(self, x: int) -> Any:
        self.calls.append(x)
        if x == 2 or len(self.calls) > self.until:
            return {"ok": True, "data": x}
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_an_unreadable_error_is_answered_with_the_same_call_or_given_up():
    stubborn, resigned = Tool(ValueError("bad")), Tool(ValueError("bad"))
    pursue(stubborn, dice=0.0)
    pursue(resigned, dice=0.99)

    assert stubborn.calls == [1] * MAX_CALLS
    assert resigned.calls == [1]


def test_ask_user_gets_the_corrected_argument_and_calls_once_more():
    tool = Tool(ToolError("validation_error").envelope())
    reached, _ = pursue(tool, corrected={"x": 2})

    assert reached
    assert tool.calls == [1, 2]


def test_ask_user_without_a_better_answer_ends_it():
    tool = Tool(ToolError("validation_error").envelope())
    reached, _ = pursue(tool)

    assert not reached
    assert tool.calls == [1]


def test_retry_waits_as_long_as_the_error_says_and_repeats_the_call():
    tool = Tool(ToolError("rate_limited", context={"retry_after_ms": 700}).envelope(), until=1)
    reached, waits = pursue(tool)

    assert reached
    assert (tool.calls, waits) == ([1, 1], [0.7])


def test_stop_stops():
    tool = Tool(ToolError("quota_exceeded").envelope())
    reached, _ = pursue(tool, corrected={"x": 2})

    assert not reached
    assert tool.calls == [1]


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_read_as_what_it_asks_for(code: str):
    reading = read(json.dumps(ToolError(code).envelope()))

    assert (reading.failed, reading.next_action) == (True, CODES[code].next_action.value)


@pytest.mark.parametrize("text", ['{"ok": true, "data": []}', "[]", "plain text", '{"status": "failed"}'])
def test_whatever_is_no_error_is_a_result(text: str):
    assert not read(text).failed
