"""The figures of each tool's arms, summed over sessions by the database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, true

from changeover.semconv import Arm

from .statistics import Estimate, Moments, estimate
from .tables import COUNTS, session_tool, tool
from .text import clean_name
from .verdict import Comparison, compare

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Row, Select

_SHARES = 6  # divisible by one, two and three: so many arms a session can have seen


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """What the sessions of one arm did with one tool.

    Args:
        sessions: that called the tool in this arm.
        counts: sums by the names in ``changeover.store.tables.COUNTS``.
        errors: errors and loops, over sessions.
        episodes: episodes and looped episodes, over sessions that saw no other arm.
        last_at: start of the latest call, unix nanoseconds; ``None`` without calls.
    """

    sessions: int = 0
    counts: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    errors: Moments = field(default_factory=Moments)
    episodes: Moments = field(default_factory=Moments)
    last_at: int | None = None

    @property
    def loop_rate(self) -> Estimate | None:
        """Loops / errors with its interval; ``None`` without errors."""
        return estimate(self.errors)

    @property
    def episode_loop_rate(self) -> float | None:
        """Episodes with a loop / episodes, mixed sessions included; ``None`` without errors."""
        return self.counts["looped_episodes"] / self.counts["episodes"] if self.counts["episodes"] else None


@dataclass(frozen=True, slots=True)
class ToolFigures:
    """What all sessions did with one tool.

    Args:
        sessions: that called it.
        mixed_sessions: that saw more than one arm of it, and are left out of the comparison.
        arms: by arm; an arm that no session saw is not there.
    """

    sessions: int = 0
    mixed_sessions: int = 0
    arms: Mapping[Arm, ArmFigures] = field(default_factory=dict)

    def arm(self, arm: Arm) -> ArmFigures:
        """Return the figures of *arm*, zeros when no session saw it."""
        return self.arms.get(arm, _NO_FIGURES)

    @property
    def comparison(self) -> Comparison:
        """The structured arm against the legacy one."""
        return compare(self.arm(Arm.LEGACY).episodes, self.arm(Arm.STRUCTURED).episodes)

    def total(self, count: str) -> int:
        """Return the sum of *count* over the arms."""
        return sum(figures.counts[count] for figures in self.arms.values())

    @property
    def last_at(self) -> int | None:
        """Start of the latest call, unix nanoseconds; ``None`` without calls."""
        return max((figures.last_at for figures in self.arms.values() if figures.last_at is not None), default=None)


_NO_FIGURES = ArmFigures()


def tool_figures(connection: Connection, only: str | None = None) -> dict[str, ToolFigures]:
    """Return the figures of every known tool by name, or of the tool named *only*."""
    names = select(tool.c.name)
    if only is not None:
        names = names.where(tool.c.name == clean_name(only))
    rows: dict[str, list[Row[Any]]] = {name: [] for name in connection.scalars(names.order_by(tool.c.name))}
    for row in connection.execute(_per_arm(only)):
        rows[row.name].append(row)
    return {name: _figures(arms) for name, arms in rows.items()}


def _per_arm(only: str | None) -> Select[Any]:
    session = _per_session(only)
    columns = session.c
    return (
        select(
            tool.c.name,
            columns.arm,
            func.count().label("sessions"),
            func.sum(_SHARES // columns.arms_seen).label("shares"),
            func.sum(_SHARES // columns.arms_seen).filter(columns.arms_seen > 1).label("mixed_shares"),
            func.max(columns.last_at).label("last_at"),
            *(func.sum(columns[name]).label(name) for name in COUNTS),
            *_moments("errors", columns.errors, columns.loops, true()),
            *_moments("episodes", columns.episodes, columns.looped_episodes, columns.arms_seen == 1),
        )
        .join(tool, tool.c.id == columns.tool_id)
        .group_by(tool.c.name, columns.arm)
    )


def _per_session(only: str | None) -> Any:
    keys = (session_tool.c.tool_id, session_tool.c.session_id)
    query = select(
        session_tool.c.tool_id,
        session_tool.c.arm,
        func.count().over(partition_by=keys).label("arms_seen"),
        func.max(session_tool.c.last_at).label("last_at"),
        *(func.sum(session_tool.c[name]).label(name) for name in COUNTS),
    ).group_by(*keys, session_tool.c.arm)
    if only is not None:
        query = query.where(
            session_tool.c.tool_id == select(tool.c.id).where(tool.c.name == clean_name(only)).scalar_subquery()
        )
    return query.subquery("per_session")


def _moments(prefix: str, cases: Any, hits: Any, entered: Any) -> list[Any]:
    sums = {
        "sessions": func.count(),
        "cases": func.sum(cases),
        "hits": func.sum(hits),
        "cases_squared": func.sum(cases * cases),
        "products": func.sum(cases * hits),
        "hits_squared": func.sum(hits * hits),
    }
    return [total.filter(entered, cases > 0).label(f"{prefix}_{name}") for name, total in sums.items()]


def _figures(rows: list[Row[Any]]) -> ToolFigures:
    return ToolFigures(
        sessions=sum(int(row.shares) for row in rows) // _SHARES,
        mixed_sessions=sum(int(row.mixed_shares or 0) for row in rows) // _SHARES,
        arms={Arm(row.arm): _arm(row) for row in rows},
    )


def _arm(row: Row[Any]) -> ArmFigures:
    values = row._asdict()
    return ArmFigures(
        sessions=int(row.sessions),
        counts={name: int(values[name]) for name in COUNTS},
        errors=_taken(values, "errors"),
        episodes=_taken(values, "episodes"),
        last_at=int(row.last_at),
    )


def _taken(values: Mapping[str, Any], prefix: str) -> Moments:
    return Moments(**{name: int(values[f"{prefix}_{name}"] or 0) for name in Moments.__dataclass_fields__})
