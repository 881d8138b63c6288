"""SWE-agent trajectories (``.traj``): one step a model response, an action and what the shell answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .conversation import Conversation
from .fields import a_list, an_object, as_text
from .model import StructureError
from .text_rules import shell_failed

if TYPE_CHECKING:
    from .model import RecordedSession
    from .source import Source

NAME = "swe-agent"


def recognise(source: Source) -> bool:
    """Return whether the file is an object with a ``trajectory``, whose steps (if it got to any) have an action."""
    value = source.values[0]
    if source.lines or not isinstance(value, dict) or not isinstance(value.get("trajectory"), list):
        return False
    steps = value["trajectory"]
    return not steps or any(isinstance(step, dict) and "action" in step for step in steps)


def read(source: Source) -> list[RecordedSession]:
    """Read the file as one session; the tool is an action's first word, the arguments are the whole action.

    Empty actions and the harness' own ``exit_…`` are no calls.

    Raises:
        StructureError: naming the step that breaks.
    """
    conversation = Conversation()
    for index, entry in enumerate(a_list(source.values[0]["trajectory"], "trajectory")):
        place = f"trajectory[{index}]"
        step = an_object(entry, place)
        action = step.get("action")
        if action is not None and not isinstance(action, str):
            raise StructureError(f"{place}.action must be a text")
        turn = conversation.begin_turn()
        words = (action or "").split(maxsplit=1)
        if not words or words[0].startswith("exit_"):
            continue
        conversation.call(turn, words[0], {"action": (action or "").strip()})
        if step.get("observation") is not None:
            text = as_text(step["observation"])
            conversation.result(text, is_error=shell_failed(text))
    return [conversation.session()]
