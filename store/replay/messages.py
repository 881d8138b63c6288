"""Chat messages as OpenAI has them (``tool_calls``, the older ``function_call``) and as Anthropic has them (blocks)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from .conversation import Conversation
from .fields import a_list, a_name, a_time, an_id, an_object, as_text, holds_text
from .text_rules import error_object, parsed_object, starts_with_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .model import RecordedSession

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


def are_messages(value: Any) -> TypeGuard[list[Any]]:
    """Return whether *value* is a list of chat messages."""
    return isinstance(value, list) and bool(value) and all(_is_message(item) for item in value)


def have_blocks(messages: Sequence[dict[str, Any]]) -> bool:
    """Return whether *messages* call tools by Anthropic content blocks."""
    return any(
        isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result")
        for message in messages
        if isinstance(content := message.get("content"), list)
        for block in content
    )


def read_messages(
    messages: Sequence[Any],
    place: str,
    *,
    failed: Callable[[str], bool],
    key: str | None = None,
) -> RecordedSession:
    """Read one conversation of OpenAI chat messages.

    Args:
        messages: in order.
        place: how to call the list in an error.
        failed: what the source's results say where a message has no flag of its own.
        key: the session's own id.

    Raises:
        StructureError: naming the message that breaks.
    """
    conversation = Conversation()
    for index, entry in enumerate(messages):
        here = f"{place}[{index}]"
        message = an_object(entry, here)
        role = message.get("role")
        if role in ("tool", "function"):
            _results(conversation, message, here, failed)
            continue
        calls = message_calls(message, here)
        if role == "user" and holds_text(message.get("content")):
            conversation.user_message()
        if calls or role == "assistant":
            turn = conversation.begin_turn()
            actor = "user" if role == "user" else ""
            for call_id, name, arguments in calls:
                at_ns = a_time(message.get("timestamp"))
                conversation.call(turn, name, arguments, call_id=call_id, actor=actor, at_ns=at_ns)
    return conversation.session(key)


def message_calls(message: dict[str, Any], place: str) -> list[tuple[str | None, str, Any]]:
    """Return id, tool and arguments of every call that an OpenAI *message* asks for."""
    calls = []
    for index, entry in enumerate(a_list(message.get("tool_calls"), f"{place}.tool_calls")):
        here = f"{place}.tool_calls[{index}]"
        call = an_object(entry, here)
        function = call if call.get("function") is None else an_object(call["function"], f"{here}.function")
        calls.append((an_id(call.get("id")), a_name(function.get("name"), here), function.get("arguments")))
    if message.get("function_call") is not None:
        here = f"{place}.function_call"
        function = an_object(message["function_call"], here)
        calls.append((None, a_name(function.get("name"), here), function.get("arguments")))
    return calls


def result_failed(message: dict[str, Any], text: str, failed: Callable[[str], bool]) -> bool:
    """Return whether a tool *message* is an error: its own flag where it has one, else what *failed* says."""
    for name in ("error", "is_error", "isError"):
        flag = message.get(name)
        if isinstance(flag, bool):
            return flag
    if message.get("status") in ("error", "success"):
        return bool(message["status"] == "error")
    return failed(text)


def chat_failed(text: str) -> bool:
    """Return whether a result without a flag is an error: explicit shapes first, then text that starts with Error."""
    value = parsed_object(text)
    if value is not None:
        if isinstance(value.get("isError"), bool):
            return bool(value["isError"])
        if isinstance(value.get("ok"), bool):
            return not value["ok"]
        return error_object(text)
    return starts_with_error(text)


def read_blocks(messages: Sequence[Any], place: str) -> RecordedSession:
    """Read one conversation of Anthropic messages.

    Raises:
        StructureError: naming the message that breaks.
    """
    conversation = Conversation()
    for index, entry in enumerate(messages):
        here = f"{place}[{index}]"
        message = an_object(entry, here)
        if message.get("role") == "assistant":
            block_calls(conversation, conversation.begin_turn(), message.get("content"), here)
        elif message.get("role") == "user":
            block_results(conversation, message.get("content"), here)
            if holds_text(message.get("content")):
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
    for index, block in _blocks(content, place):
        if block.get("type") == "tool_use":
            name = a_name(block.get("name"), f"{place}.content[{index}]")
            conversation.call(
                turn,
                name,
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


def _blocks(content: Any, place: str) -> list[tuple[int, dict[str, Any]]]:
    if content is None or isinstance(content, str):
        return []
    entries = enumerate(a_list(content, f"{place}.content"))
    return [
        (index, an_object(entry, f"{place}.content[{index}]")) for index, entry in entries if entry.__class__ is not str
    ]


def _results(conversation: Conversation, message: dict[str, Any], place: str, failed: Callable[[str], bool]) -> None:
    grouped = message.get("tool_messages")
    if grouped is not None:
        for index, entry in enumerate(a_list(grouped, f"{place}.tool_messages")):
            _results(conversation, an_object(entry, f"{place}.tool_messages[{index}]"), place, failed)
        return
    text = as_text(message.get("content"))
    conversation.result(
        text,
        is_error=result_failed(message, text, failed),
        call_id=an_id(message.get("tool_call_id")) or an_id(message.get("id")),
        at_ns=a_time(message.get("timestamp")),
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and value["role"] in ROLES
