"""Every figure a page shows, as JSON-ready values: pages and ``/api/`` are made from the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from changeover.store.queries import changes, losses, overview, series
from changeover.store.report import DEFINITION, arm_figures, comparison_figures

from .moments import from_unix
from .words import verdict_sentences

if TYPE_CHECKING:
    from changeover.store.engine import Store
    from changeover.store.flags import FlagChange
    from changeover.store.queries import Point, ToolSummary


def overview_figures(store: Store) -> dict[str, Any]:
    """Return all tools, the one with the most loops first, and what was lost."""
    tools = sorted(overview(store), key=lambda found: (-found.loops, -found.errors, found.tool))
    return {"definition": DEFINITION, "tools": [tool_figures(found) for found in tools], "losses": losses(store)}


def tool_figures(found: ToolSummary) -> dict[str, Any]:
    """Return one tool with its arms and what the comparison of them says."""
    return {
        "tool": found.tool,
        "stage": str(found.stage),
        "rollout": found.rollout,
        "flag_version": found.version,
        "sessions": found.sessions,
        "mixed_sessions": found.mixed_sessions,
        "calls": found.calls,
        "errors": found.errors,
        "loops": found.loops,
        "loop_rate": _ratio(found.loops, found.errors),
        "runaways": found.runaways,
        "last_seen": found.last_seen,
        "arms": {str(arm): arm_figures(figures) for arm, figures in found.arms.items()},
        "verdict": str(found.comparison.verdict),
        "verdict_in_words": verdict_sentences(found),
        "comparison": comparison_figures(found.comparison),
    }


def series_figures(store: Store, tool: str | None) -> dict[str, Any]:
    """Return the points of a chart, with the flips to mark on it."""
    found = series(store, tool)
    return {
        "bucket_seconds": found.bucket_seconds,
        "points": [_point(point) for point in found.points],
        "changes": [change_figures(change) for change in changes(store, tool)],
    }


def change_figures(change: FlagChange) -> dict[str, Any]:
    """Return one flip."""
    return {
        "t": change.at.timestamp(),
        "at": change.at,
        "tool": change.tool,
        "who": change.who,
        "reason": change.reason,
        "from_stage": str(change.from_stage),
        "from_rollout": change.from_rollout,
        "to_stage": str(change.to_stage),
        "to_rollout": change.to_rollout,
        "version": change.version,
        "forced": change.forced,
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "t": point.t,
        "at": from_unix(point.t),
        "arm": str(point.arm),
        "calls": point.calls,
        "errors": point.errors,
        "loops": point.loops,
        "loop_rate": _ratio(point.loops, point.errors),
        "runaways": point.runaways,
    }


def _ratio(hits: int, cases: int) -> float | None:
    return hits / cases if cases else None
