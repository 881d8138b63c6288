"""LiveMCPBench output: a list of tasks, each with OpenAI chat messages over MCP tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .fields import a_list
from .messages import read_messages
from .text_rules import mcp_client_failed

if TYPE_CHECKING:
    from .model import RecordedSession
    from .source import Source

NAME = "livemcpbench"


def recognise(source: Source) -> bool:
    """Return whether the file is a list of tasks with a ``Question`` and ``messages``."""
    value = source.values[0]
    return (
        len(source.values) == 1
        and isinstance(value, list)
        and bool(value)
        and all(isinstance(entry, dict) and "Question" in entry and "messages" in entry for entry in value)
    )


def read(source: Source) -> list[RecordedSession]:
    """Read each task as one session.

    Raises:
        StructureError: naming the task and message that break.
    """
    return [
        read_messages(a_list(entry["messages"], f"[{index}].messages"), f"[{index}].messages", failed=mcp_client_failed)
        for index, entry in enumerate(source.values[0])
    ]
