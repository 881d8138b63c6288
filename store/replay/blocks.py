"""Chat messages as Anthropic has them: content blocks that use tools and hold their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .conversation import Conversation
from .fields import a_list, a_name, an_id, an_object, as_text, holds_text
from .messages import numbered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .model import RecordedSession


def have_blocks(messages: Iterable[Any]) -> bool:
    """Return whether *messages* call tools by content blocks."""
    return any(
        isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result")
        for message in messages
        if isinstance(message, dict) and isinstance(content := message.get("content"), list)
        for block in content
    )


def read_blocks(messages: Iterable[tuple[str, Any]]) -> RecordedSession:
    """Read one conversation, given as its messages, each with what to call it in an error.

    Raises:
        StructureError: naming the message that breaks.
    """
    conversation = Conversation()
    for place, entry in messages:
        message = an_object(entry, place)
        content = message.get("content")
        if message.get("role") == "assistant":
            block_calls(conversation, conversation.begin_turn(), content, place)
        elif message.get("role") == "user":
            block_results(conversation, content, place)
            if holds_text(content):
                conversation.user_message()
    return conversation.session()


def block_calls(
    conversation: Conversation,
    turn: int,
    content: Any,
    place: str,
    *,
    actor: str = "",
    at_ns: int | None = None,
    key: str | None = None,
) -> None:
    """Add the calls among the blocks of an assistant's *content*; *key* is the message's own id, if it has one."""
    for index, (here, block) in enumerate(_blocks(content, place)):
        if block.get("type") == "tool_use":
            conversation.call(
                turn,
                a_name(block.get("name"), here),
                block.get("input"),
                call_id=an_id(block.get("id")),
                actor=actor,
                at_ns=at_ns,
                key=f"{key}:{index}" if key else None,
            )


def block_results(conversation: Conversation, content: Any, place: str, *, at_ns: int | None = None) -> None:
    """Add the results among the blocks of a user's *content*."""
    for _, block in _blocks(content, place):
        if block.get("type") == "tool_result":
            conversation.result(
                as_text(block.get("content")),
                is_error=block.get("is_error") is True,
                call_id=an_id(block.get("tool_use_id")),
                at_ns=at_ns,
            )


def _blocks(content: Any, place: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the blocks of *content*; text in the place of a list, or of a block, is no block that matters here."""
    if content is None or isinstance(content, str):
        return []
    entries = numbered(a_list(content, f"{place}.content"), f"{place}.content")
    return [(here, {} if isinstance(entry, str) else an_object(entry, here)) for here, entry in entries]
