"""Chat messages as OpenAI has them: ``tool_calls``, and the older ``function_call``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from .conversation import Conversation
from .fields import a_list, a_name, a_time, an_id, an_object, as_text, holds_text
from .model import StructureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .model import RecordedSession

    Failed = Callable[[Mapping[str, Any], str], bool]
    """Whether a tool message, with its content as text, is an error: how a source says so is the source's own rule."""

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

# Read as chat they would hold no calls, and a rate of "no errors" would hide them all.
_RESPONSES_ITEMS = ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")


def are_messages(value: Any) -> TypeGuard[list[Any]]:
    """Return whether *value* is meant as a list of chat messages: it holds at least one."""
    return isinstance(value, list) and any(_is_message(entry) for entry in value)


def by_text(rule: Callable[[str], bool]) -> Failed:
    """Return the rule of a source that says "error" in nothing but the text of the result."""
    return lambda _, text: rule(text)


def numbered(entries: Sequence[Any], place: str) -> list[tuple[str, Any]]:
    """Return *entries* with what to call each in an error."""
    return [(f"{place}[{index}]", entry) for index, entry in enumerate(entries)]


def read_messages(messages: Iterable[tuple[str, Any]], *, failed: Failed) -> RecordedSession:
    """Read one conversation; calls of a simulated user, who may have tools too, are the actor ``user``.

    Args:
        messages: in order, each with what to call it in an error.
        failed: the source's rule for errors.

    Raises:
        StructureError: naming the message that breaks.
    """
    conversation = Conversation()
    for place, entry in messages:
        message = an_object(entry, place)
        if message.get("type") in _RESPONSES_ITEMS:
            raise StructureError(f"{place} is an item of OpenAI's Responses API, which is no format that is read")
        role = message.get("role")
        if role in ("tool", "function"):
            _results(conversation, message, place, failed)
            continue
        calls = _calls(message, place)
        if role == "user" and holds_text(message.get("content")):
            conversation.user_message()
        if calls or role == "assistant":
            turn = conversation.begin_turn()
            actor = "user" if role == "user" else ""
            at_ns = a_time(message.get("timestamp"))
            for call_id, name, arguments in calls:
                conversation.call(turn, name, arguments, call_id=call_id, actor=actor, at_ns=at_ns)
    return conversation.session()


def _calls(message: dict[str, Any], place: str) -> list[tuple[str | None, str, Any]]:
    """Return id, tool and arguments of every call that *message* asks for."""
    calls = []
    for here, entry in numbered(a_list(message.get("tool_calls"), f"{place}.tool_calls"), f"{place}.tool_calls"):
        call = an_object(entry, here)
        if call.get("custom") is not None:  # a tool that takes text instead of arguments
            custom = an_object(call["custom"], f"{here}.custom")
            calls.append((an_id(call.get("id")), a_name(custom.get("name"), here), custom.get("input")))
            continue
        function = call if call.get("function") is None else an_object(call["function"], f"{here}.function")
        calls.append((an_id(call.get("id")), a_name(function.get("name"), here), function.get("arguments")))
    if message.get("function_call") is not None:
        here = f"{place}.function_call"
        function = an_object(message["function_call"], here)
        calls.append((None, a_name(function.get("name"), here), function.get("arguments")))
    return calls


def _results(conversation: Conversation, message: dict[str, Any], place: str, failed: Failed) -> None:
    grouped = message.get("tool_messages")
    if grouped is None:
        _result(conversation, message, failed)
        return
    for here, entry in numbered(a_list(grouped, f"{place}.tool_messages"), f"{place}.tool_messages"):
        _result(conversation, an_object(entry, here), failed)


def _result(conversation: Conversation, message: dict[str, Any], failed: Failed) -> None:
    text = as_text(message.get("content"))
    # The older shape knows no ids of calls: one that stands there is the message's own.
    own = message.get("role") == "function"
    conversation.result(
        text,
        is_error=failed(message, text),
        call_id=None if own else an_id(message.get("tool_call_id")) or an_id(message.get("id")),
        at_ns=a_time(message.get("timestamp")),
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and value["role"] in ROLES
