"""What a reader makes of a recorded session, whatever format it came in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class ReplayError(ValueError):
    """A recording cannot be read; *reason* says where it breaks, in one line."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = str(path)
        self.reason = reason


class StructureError(ValueError):
    """A recording has the right format but a wrong value somewhere; the message names the place and what is wrong."""


@dataclass(slots=True, eq=False)
class RecordedCall:
    """One call as the recording tells it.

    Args:
        actor: who called, empty for the session's main agent.
        turn: ordinal of the model response that asked for it.
        user_turn: number of user messages before it.
        call_id: the recording's own id, if it has one.
        tool: the tool's name.
        arguments: as recorded: an object, or text that may be JSON.
        result: the recorded result as text; ``None`` when no result was recorded.
        is_error: what the source says about the result; ``None`` without a result.
        started_ns: nanoseconds since the epoch; ``None`` where the source has no times.
        ended_ns: nanoseconds since the epoch; ``None`` where the source has no times.
        key: an id of the source's own that stays the same when the recording grows; ``None`` where only the order in
            the file tells one call from another.
    """

    actor: str
    turn: int
    user_turn: int
    call_id: str | None
    tool: str
    arguments: Any
    result: str | None = None
    is_error: bool | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """One conversation that holds at least one call.

    Args:
        key: an id of the source's own that stays the same when the recording grows; ``None`` where only the file's
            content tells one session from another.
        calls: in the order in which they were asked for.
    """

    key: str | None
    calls: tuple[RecordedCall, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything one file holds.

    Args:
        path: the file.
        format: the name of the reader that understood it.
        digest: 32 hexadecimal digits over the content, the same however the file is called or compressed.
        modified_ns: when the file was last changed, nanoseconds since the epoch.
        sessions: those that hold calls, in the file's order.
    """

    path: Path
    format: str
    digest: str
    modified_ns: int
    sessions: tuple[RecordedSession, ...]
