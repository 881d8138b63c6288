"""ToolBench answers: a search tree and, under ``answer_generation``, the chat messages of its last path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .fields import a_list
from .messages import by_text, numbered, read_messages
from .text_rules import service_failed

if TYPE_CHECKING:
    from .model import RecordedSession
    from .source import Source

NAME = "toolbench"


def recognise(source: Source) -> bool:
    """Return whether the file is an object with ``answer_generation``, beside the tree it was found in."""
    value = source.values[0]
    if source.lines or not isinstance(value, dict):
        return False
    answer = value.get("answer_generation")
    return isinstance(answer, dict) and ("train_messages" in answer or "tree" in value)


def read(source: Source) -> list[RecordedSession]:
    """Read the last list of messages, which holds the whole path, as one session; an answer given up has none.

    Raises:
        StructureError: naming the message that breaks.
    """
    inside = "answer_generation.train_messages"
    lists = a_list(source.values[0]["answer_generation"].get("train_messages"), inside)
    if not lists:
        return []
    place = f"{inside}[{len(lists) - 1}]"
    return [read_messages(numbered(a_list(lists[-1], place), place), failed=by_text(service_failed))]
