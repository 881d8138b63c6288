"""The scripted agent. It is no model: it reads the text it is given and follows a few written rules.

An error it cannot read makes it repeat the same call with a set probability, or give up. An error in the structured
shape is obeyed: ``retry`` waits and repeats, ``ask_user`` asks the scripted user for a better argument, ``stop`` stops.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from changeover.session import Session

REPEAT_PROBABILITY: Final = 0.6
"""How likely the agent repeats a call whose error it cannot read: our choice, nothing measured."""

MAX_CALLS: Final = 6
"""A goal is given up after so many calls, as a host's own limit would have it."""

DEFAULT_WAIT_MS: Final = 50


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing that the user wants done.

    Args:
        tool: the tool to call.
        arguments: what the user said at first, mistakes included.
        corrected: what the user says when asked; ``None`` when there is no better answer.
    """

    tool: str
    arguments: Mapping[str, Any]
    corrected: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What the agent makes of a result.

    Args:
        failed: whether the text says that the call failed.
        next_action: what the text asks for, or ``None`` when it asks for nothing the agent can read.
        wait_ms: how long the text asks to wait.
    """

    failed: bool
    next_action: str | None = None
    wait_ms: int = DEFAULT_WAIT_MS


def read(text: str) -> Reading:
    """Read a result as the model would get it; nothing but the text is looked at."""
    if text.startswith("Error"):
        return Reading(failed=True)
    try:
        payload = json.loads(text)
    except ValueError:
        return Reading(failed=False)
    if not isinstance(payload, dict) or payload.get("ok") is not False:
        return Reading(failed=False)
    error = payload["error"]
    return Reading(True, error["next_action"], (error["context"] or {}).get("retry_after_ms", DEFAULT_WAIT_MS))


def as_text(tool: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """Call a tool as a host does: a result as JSON, an exception as the line that most hosts make of it."""
    try:
        return json.dumps(tool(**arguments))
    except Exception as error:  # noqa: BLE001 - whatever a tool raises becomes text for the model
        return f"Error: {type(error).__name__}: {error}"


class Agent:
    """Works through goals, one call a turn.

    Args:
        tools: what it may call, by name.
        random: decides whether an unreadable error is answered with the same call.
        thinking_seconds: how long it takes from one result to the next call, as a model would take its time.
        sleep: waits for so many seconds.
    """

    def __init__(
        self,
        tools: Mapping[str, Callable[..., Any]],
        random: Random,
        *,
        thinking_seconds: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._tools = tools
        self._random = random
        self._thinking_seconds = thinking_seconds
        self._sleep = sleep

    def pursue(self, goal: Goal, conversation: Session) -> bool:
        """Try to reach *goal*; return whether it was reached."""
        conversation.user_message()
        arguments, answer = goal.arguments, goal.corrected
        for _ in range(MAX_CALLS):
            if self._thinking_seconds:
                self._sleep(self._thinking_seconds)
            conversation.turn()
            reading = read(as_text(self._tools[goal.tool], arguments))
            if not reading.failed:
                return True
            if reading.next_action == "ask_user" and answer is not None:
                conversation.user_message()
                arguments, answer = answer, None
            elif not self._repeats(reading):
                return False
        return False

    def _repeats(self, reading: Reading) -> bool:
        if reading.next_action is None:
            return self._random.random() < REPEAT_PROBABILITY
        if reading.next_action == "retry":
            self._sleep(reading.wait_ms / 1000)
            return True
        return False
