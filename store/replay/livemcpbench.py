"""LiveMCPBench output: a list of tasks, each with OpenAI chat messages over MCP tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .fields import a_list, an_object
from .messages import by_text, numbered, read_messages
from .text_rules import mcp_client_failed

if TYPE_CHECKING:
    from .model import RecordedSession
    from .source import Source

NAME = "livemcpbench"


def recognise(source: Source) -> bool:
    """Return whether the file is a list of tasks with a ``Question`` and ``messages``."""
    value = source.values[0]
    return (
        not source.lines
        and isinstance(value, list)
        and any(isinstance(entry, dict) and "Question" in entry and "messages" in entry for entry in value)
    )


def read(source: Source) -> list[RecordedSession]:
    """Read each task as one session; a task that broke off has no messages.

    Raises:
        StructureError: naming the task and message that break.
    """
    sessions = []
    for place, entry in numbered(source.values[0], ""):
        inside = f"{place}.messages"
        messages = a_list(an_object(entry, place).get("messages"), inside)
        sessions.append(read_messages(numbered(messages, inside), failed=by_text(mcp_client_failed)))
    return sessions
