"""Plain recordings of chat messages, as many teams log them: OpenAI's shape, or Anthropic's content blocks.

A file holds one list of messages, an object with ``messages``, a list of either, or one conversation a line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .messages import are_messages, chat_failed, have_blocks, read_blocks, read_messages

if TYPE_CHECKING:
    from .model import RecordedSession
    from .source import Source

OPENAI = "openai"
ANTHROPIC = "anthropic"


def recognise_openai(source: Source) -> bool:
    """Return whether the file holds conversations of chat messages."""
    return bool(_conversations(source))


def recognise_anthropic(source: Source) -> bool:
    """Return whether the file holds conversations that call tools by content blocks."""
    return any(have_blocks(messages) for _, messages in _conversations(source))


def read_openai(source: Source) -> list[RecordedSession]:
    """Read each conversation as one session.

    Raises:
        StructureError: naming the message that breaks.
    """
    return [read_messages(messages, place, failed=chat_failed) for place, messages in _conversations(source)]


def read_anthropic(source: Source) -> list[RecordedSession]:
    """Read each conversation as one session.

    Raises:
        StructureError: naming the message that breaks.
    """
    return [read_blocks(messages, place) for place, messages in _conversations(source)]


def _conversations(source: Source) -> list[tuple[str, list[Any]]]:
    """Return every conversation with its place in the file, or nothing when some document is none."""
    if source.lines and are_messages(source.values):
        return [("line", source.values)]
    found: list[tuple[str, list[Any]]] = []
    for index, value in enumerate(source.values):
        inside = _in_one(value, f"line {index + 1}." if source.lines else "")
        if not inside:
            return []
        found += inside
    return found


def _in_one(value: Any, place: str) -> list[tuple[str, list[Any]]]:
    if are_messages(value):
        return [(f"{place}messages", value)]
    if isinstance(value, dict) and are_messages(value.get("messages")):
        return [(f"{place}messages", value["messages"])]
    if isinstance(value, list) and value:
        found: list[tuple[str, list[Any]]] = []
        for index, entry in enumerate(value):
            messages = entry.get("messages") if isinstance(entry, dict) else entry
            if not are_messages(messages):
                return []
            found.append((f"{place}[{index}].messages", messages))
        return found
    return []
