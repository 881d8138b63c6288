"""What pages ask the store: small answers, from figures kept beside the calls or through an index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from changeover.rollout import Flag
from changeover.semconv import Arm

from .arms import ArmFigures, ToolFigures, tool_figures
from .clock import moment
from .flags import FlagChange, history, list_flags
from .listings import CallRow, ErrorRow, recent_errors, session_calls
from .series import Point, Series, series
from .tables import loss

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from changeover.semconv import Stage

    from .engine import Store
    from .verdict import Comparison

__all__ = [
    "CallRow",
    "ErrorRow",
    "Point",
    "Series",
    "ToolSummary",
    "changes",
    "losses",
    "overview",
    "recent_errors",
    "series",
    "session_calls",
    "summary",
]

_CHANGES = 1_000


@dataclass(frozen=True, slots=True)
class ToolSummary:
    """One tool on one line.

    Args:
        tool: its name.
        stage: how far its changeover has come.
        rollout: percent of sessions.
        version: of the flag; 0 when nobody has set it.
        sessions: that called it.
        mixed_sessions: that saw more than one arm.
        calls: of all arms, as are the next three.
        errors: calls that failed.
        loops: errors that were followed by the same call.
        runaways: successes that repeat a success.
        last_seen: start of the latest call, UTC; ``None`` without calls.
        arms: figures by arm, legacy and structured always among them.
        comparison: the structured arm against the legacy one.
    """

    tool: str
    stage: Stage
    rollout: float
    version: int
    sessions: int
    mixed_sessions: int
    calls: int
    errors: int
    loops: int
    runaways: int
    last_seen: datetime | None
    arms: Mapping[Arm, ArmFigures]
    comparison: Comparison


def overview(store: Store) -> list[ToolSummary]:
    """Return every tool that was called or has a flag, by name.

    Raises:
        StoreError: when the database cannot be read.
    """
    return _summaries(store, None)


def summary(store: Store, tool: str) -> ToolSummary | None:
    """Return one tool, and ``None`` when the store does not know it.

    Raises:
        StoreError: when the database cannot be read.
    """
    found = _summaries(store, tool)
    return found[0] if found else None


def changes(store: Store, tool: str | None = None) -> list[FlagChange]:
    """Return the flips of *tool* or of all tools, oldest first, as a chart marks them.

    Raises:
        StoreError: when the database cannot be read.
    """
    return history(store, tool, limit=_CHANGES)[::-1]


def losses(store: Store) -> dict[str, int]:
    """Return how many records were lost, by reason.

    Raises:
        StoreError: when the database cannot be read.
    """
    query = select(loss.c.reason, func.sum(loss.c.count)).group_by(loss.c.reason).order_by(loss.c.reason)
    with store.read() as connection:
        return {reason: int(count) for reason, count in connection.execute(query)}


def _summaries(store: Store, only: str | None) -> list[ToolSummary]:
    flags = {flag.tool: flag for flag in list_flags(store)}
    with store.read() as connection:
        figures = tool_figures(connection, only)
    return [_summary(name, found, flags.get(name, Flag(name))) for name, found in sorted(figures.items())]


def _summary(name: str, figures: ToolFigures, flag: Flag) -> ToolSummary:
    return ToolSummary(
        tool=name,
        stage=flag.stage,
        rollout=flag.rollout,
        version=flag.version,
        sessions=figures.sessions,
        mixed_sessions=figures.mixed_sessions,
        calls=figures.total("calls"),
        errors=figures.total("errors"),
        loops=figures.total("loops"),
        runaways=figures.total("runaways"),
        last_seen=None if figures.last_at is None else moment(figures.last_at),
        arms={arm: figures.arm(arm) for arm in Arm if arm is not Arm.DUAL or arm in figures.arms},
        comparison=figures.comparison,
    )
