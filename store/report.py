"""The report: per tool and arm what was called, what failed, what was repeated, and what that says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select

from changeover.rollout import Flag
from changeover.semconv import Arm

from .arms import ArmFigures, ToolFigures, tool_figures
from .errors import UnknownToolError
from .flags import list_flags
from .queries import losses
from .tables import tool as tool_table
from .verdict import BURN_IN_SESSIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .engine import Store
    from .statistics import Estimate, Interval
    from .verdict import Comparison

DEFINITION: Final = (
    "A loop is an error whose very next turn of the same actor, issued after the error was known, holds the same tool "
    "with the same canonical arguments, with no user message between. Loop rate = loops / errors; without errors there "
    "is no rate. An episode is an error that does not itself answer an error of the same call; episode loop rate = "
    "episodes with a loop / episodes. Arms are compared on the episode loop rate, over sessions that saw one arm only, "
    f"once each arm has {BURN_IN_SESSIONS} sessions with an error. Intervals are 95 %, over sessions, for one look."
)
"""How the figures are meant; part of every report, so that no figure travels without it."""


def report(store: Store, tool: str | None = None, *, now: Callable[[], datetime] | None = None) -> dict[str, Any]:
    """Return the report as JSON-ready values.

    Args:
        store: whose calls.
        tool: only this one; every tool when left out.
        now: the time to put on it; the clock's when left out.

    Raises:
        UnknownToolError: when *tool* is given and no call of it was recorded.
        StoreError: when the database cannot be read.
    """
    flags = {flag.tool: flag for flag in list_flags(store)}
    with store.read() as connection:
        figures = tool_figures(connection, tool)
        if tool is not None and not figures:
            raise UnknownToolError(tool, list(connection.scalars(select(tool_table.c.name))))
    moment = datetime.now(UTC) if now is None else now()
    return {
        "definition": DEFINITION,
        "generated_at": moment.isoformat(timespec="seconds"),
        "tools": [_tool(name, found, flags.get(name, Flag(name))) for name, found in sorted(figures.items())],
        "losses": losses(store),
    }


def _tool(name: str, figures: ToolFigures, flag: Flag) -> dict[str, Any]:
    comparison = figures.comparison
    shown = [arm for arm in Arm if arm is not Arm.DUAL or arm in figures.arms]
    return {
        "tool": name,
        "stage": str(flag.stage),
        "rollout": flag.rollout,
        "flag_version": flag.version,
        "sessions": figures.sessions,
        "mixed_sessions": figures.mixed_sessions,
        "arms": {str(arm): arm_figures(figures.arm(arm)) for arm in shown},
        "verdict": str(comparison.verdict),
        "comparison": comparison_figures(comparison),
    }


def arm_figures(figures: ArmFigures) -> dict[str, Any]:
    """Return what the sessions of one arm did; rates are ``None`` where there were no errors."""
    rate = figures.loop_rate
    return {
        "sessions": figures.sessions,
        **figures.counts,
        "error_sessions": figures.errors.sessions,
        "loop_rate": None if rate is None else rate.rate,
        "interval": None if rate is None else _pair(rate.interval),
        "episode_loop_rate": figures.episode_loop_rate,
    }


def comparison_figures(comparison: Comparison) -> dict[str, Any]:
    """Return both arms' rates on the compared measure, their difference, and what is missing for a verdict."""
    between = comparison.difference
    return {
        "measure": "episode_loop_rate",
        "legacy": _estimate(comparison.legacy),
        "structured": _estimate(comparison.structured),
        "difference": None if between is None else between.value,
        "interval": None if between is None else _pair(between.interval),
        "smallest_effect": comparison.smallest_effect,
        "missing_sessions": dict(comparison.missing_sessions),
    }


def _estimate(found: Estimate | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "rate": found.rate,
        "interval": _pair(found.interval),
        "sessions": found.sessions,
        "episodes": found.cases,
    }


def _pair(interval: Interval) -> list[float]:
    return [interval.low, interval.high]
