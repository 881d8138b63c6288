"""Plain recordings of chat messages, as many teams log them: OpenAI's shape, or Anthropic's content blocks.

A file holds one list of messages, an object with ``messages``, a list of either; or, line by line, one conversation
or one message. Each conversation is read by the shape that it has itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .blocks import have_blocks, read_blocks
from .fields import a_list
from .messages import are_messages, numbered, read_messages
from .model import StructureError
from .text_rules import error_object, parsed_object, starts_with_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .model import RecordedSession
    from .source import Source

OPENAI = "openai"
ANTHROPIC = "anthropic"


def recognise_openai(source: Source) -> bool:
    """Return whether some document in the file is a conversation of chat messages."""
    return are_messages(source.values) or any(are_messages(_messages(entry)) for _, entry in _entries(source))


def recognise_anthropic(source: Source) -> bool:
    """Return whether some conversation in the file calls tools by content blocks."""
    if are_messages(source.values):
        return have_blocks(source.values)
    return any(have_blocks(messages) for _, entry in _entries(source) if are_messages(messages := _messages(entry)))


def read(source: Source) -> list[RecordedSession]:
    """Read each conversation as one session.

    Raises:
        StructureError: naming the conversation or message that breaks.
    """
    if are_messages(source.values):
        return [_session(source.placed())]
    return [_session(_placed(entry, place)) for place, entry in _entries(source)]


def chat_failed(message: Mapping[str, Any], text: str) -> bool:
    """Return whether a tool message is an error: by a flag, by an explicit shape, or as text that starts with Error."""
    for name in ("error", "is_error", "isError"):
        flag = message.get(name)
        if isinstance(flag, bool):
            return flag
    if message.get("status") in ("error", "success"):
        return bool(message["status"] == "error")
    value = parsed_object(text)
    if value is None:
        return starts_with_error(text)
    if isinstance(value.get("isError"), bool):
        return bool(value["isError"])
    if isinstance(value.get("ok"), bool):
        return not value["ok"]
    return error_object(text)


def _session(messages: list[tuple[str, Any]]) -> RecordedSession:
    if have_blocks(message for _, message in messages):
        return read_blocks(messages)
    return read_messages(messages, failed=chat_failed)


def _entries(source: Source) -> list[tuple[str, Any]]:
    """Return what may be a conversation, with what to call it in an error."""
    value = source.values[0]
    if source.lines or not isinstance(value, list) or are_messages(value):
        return source.placed()
    return numbered(value, "")


def _placed(entry: Any, place: str) -> list[tuple[str, Any]]:
    if not isinstance(entry, dict | list):
        raise StructureError(f"{place} must be a conversation: a list of messages, or an object that holds them")
    # An object without messages is a conversation without calls.
    inside = f"{place}.messages" if place else "messages"
    return numbered(a_list(_messages(entry), inside), inside)


def _messages(entry: Any) -> Any:
    return entry.get("messages") if isinstance(entry, dict) else entry
