"""Claude Code session files (``.jsonl``): one event a line, Anthropic content blocks inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .blocks import block_calls, block_results
from .conversation import Conversation
from .fields import a_time, an_id, an_object, holds_text

if TYPE_CHECKING:
    from .model import RecordedSession
    from .source import Source

NAME = "claude-code"

_SPEAKERS = ("user", "assistant")


def recognise(source: Source) -> bool:
    """Return whether some line is an event of a user or an assistant that wraps a message."""
    return any(_is_event(value) for value in source.values)


def read(source: Source) -> list[RecordedSession]:
    """Read the file as one session; side chains are actors of their own.

    Lines with one ``message.id`` are one turn. Lines whose ``uuid`` was seen before are copies and left out.

    Raises:
        StructureError: naming the line that breaks.
    """
    conversation = Conversation()
    seen: set[str] = set()
    turns: dict[str, int] = {}
    chains: dict[str, str] = {}
    key: str | None = None
    for place, value in source.placed():
        place = place or "line 1"  # noqa: PLW2901 - the only one
        event = an_object(value, place)
        if event.get("type") not in _SPEAKERS:
            continue
        uuid = an_id(event.get("uuid"))
        if uuid is not None:
            if uuid in seen:
                continue
            seen.add(uuid)
        key = key or an_id(event.get("sessionId")) or uuid
        _event(conversation, event, place, _actor(event, uuid, chains), turns)
    return [conversation.session(key)]


def _event(conversation: Conversation, event: dict[str, Any], place: str, actor: str, turns: dict[str, int]) -> None:
    message = an_object(event.get("message"), f"{place}.message")
    content = message.get("content")
    at_ns = a_time(event.get("timestamp"))
    if event["type"] == "assistant":
        message_id = an_id(message.get("id"))
        turn = turns.get(message_id) if message_id else None
        if turn is None:
            turn = conversation.begin_turn()
            if message_id:
                turns[message_id] = turn
        block_calls(conversation, turn, content, place, actor=actor, at_ns=at_ns, key=an_id(event.get("uuid")))
        return
    block_results(conversation, content, place, at_ns=at_ns)
    if event.get("isMeta") is not True and holds_text(content):
        conversation.user_message(actor or None)


def _actor(event: dict[str, Any], uuid: str | None, chains: dict[str, str]) -> str:
    """Return the side chain an event belongs to: its agent, else the event it began with; empty for none."""
    if event.get("isSidechain") is not True:
        return ""
    agent = an_id(event.get("agentId"))
    if agent is None:
        parent = an_id(event.get("parentUuid"))
        begun = f"sidechain {uuid}" if uuid is not None and "parentUuid" in event else "sidechain"
        agent = chains.get(parent or "", begun)
    if uuid is not None:
        chains[uuid] = agent
    return agent


def _is_event(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") in _SPEAKERS
        and isinstance(value.get("message"), dict)
        and ("uuid" in value or "isSidechain" in value or "sessionId" in value)
    )
