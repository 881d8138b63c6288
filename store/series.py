"""Figures over time, in about sixty steps whatever the span: from single calls when it is short, else from hours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, case, func, select

from changeover.semconv import Arm

from .clock import NANOSECONDS
from .tables import call, rollup_hour, tool
from .text import clean_name

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select

    from .engine import Store

MOST_POINTS: Final = 60
MOST_SINGLE_CALLS: Final = 100_000
"""Above so many calls a short span is drawn from hours too: a page never reads more single calls than this."""

_HOUR: Final = 3_600
_DAY: Final = 86_400
_FINE: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800)
_COARSE: Final = tuple(_HOUR * hours for hours in (1, 2, 3, 6, 12)) + tuple(_DAY * days for days in (1, 2, 7, 14, 30))
_LONGEST_FINE_SPAN: Final = MOST_POINTS * _HOUR


@dataclass(frozen=True, slots=True)
class Point:
    """What one arm did in one step of time.

    Args:
        t: where the step begins, unix seconds, a multiple of the step.
        arm: whose calls.
        calls: that began in the step, as do the ones counted below.
        errors: calls that failed.
        loops: errors that were followed by the same call.
        runaways: successes that repeat a success.
    """

    t: int
    arm: Arm
    calls: int
    errors: int
    loops: int
    runaways: int


@dataclass(frozen=True, slots=True)
class Series:
    """Figures over time.

    Args:
        bucket_seconds: length of a step.
        points: in order of time, then arm; a step without calls is not there.
    """

    bucket_seconds: int
    points: tuple[Point, ...]


def series(store: Store, tool: str | None = None) -> Series:
    """Return the figures of *tool*, or of all tools together, over the time in which there were calls.

    Raises:
        StoreError: when the database cannot be read.
    """
    name = None if tool is None else clean_name(tool)
    with store.read() as connection:
        first, last, calls = _hours(connection, name)
        if calls == 0:
            return Series(1, ())
        if last - first < _LONGEST_FINE_SPAN and calls <= MOST_SINGLE_CALLS:
            return _from_calls(connection, name, first, last)
        step = _step(last - first, _COARSE)
        return Series(step, _points(connection, _by_hour(name, step)))


def _hours(connection: Connection, name: str | None) -> tuple[int, int, int]:
    query = select(func.min(rollup_hour.c.hour), func.max(rollup_hour.c.hour), func.sum(rollup_hour.c.calls))
    first, last, calls = connection.execute(_only(query, rollup_hour.c.tool_id, name)).one()
    return (0, 0, 0) if calls is None else (first * _HOUR, (last + 1) * _HOUR, int(calls))


def _from_calls(connection: Connection, name: str | None, first: int, last: int) -> Series:
    inside = and_(call.c.started_at >= first * NANOSECONDS, call.c.started_at < last * NANOSECONDS)
    if name is None:
        # Tool by tool, since that is how calls are indexed.
        inside = and_(inside, call.c.tool_id.in_(select(tool.c.id)))
    bounds = select(func.min(call.c.started_at), func.max(call.c.started_at)).where(inside)
    begin, end = connection.execute(_only(bounds, call.c.tool_id, name)).one()
    step = _step((end - begin) // NANOSECONDS, _FINE + _COARSE)
    start = call.c.started_at - call.c.started_at % (step * NANOSECONDS)
    query = select(
        (start // NANOSECONDS).label("t"),
        call.c.arm,
        func.count(),
        func.sum(case((call.c.outcome == "error", 1), else_=0)),
        func.sum(case((call.c.loop, 1), else_=0)),
        func.sum(case((call.c.runaway, 1), else_=0)),
    ).where(inside)
    query = query.group_by("t", call.c.arm).order_by("t", call.c.arm)
    return Series(step, _points(connection, _only(query, call.c.tool_id, name)))


def _by_hour(name: str | None, step: int) -> Select[Any]:
    begin = rollup_hour.c.hour * _HOUR
    query = select(
        (begin - begin % step).label("t"),
        rollup_hour.c.arm,
        *(func.sum(rollup_hour.c[count]) for count in ("calls", "errors", "loops", "runaways")),
    )
    return _only(query.group_by("t", rollup_hour.c.arm).order_by("t", rollup_hour.c.arm), rollup_hour.c.tool_id, name)


def _points(connection: Connection, query: Select[Any]) -> tuple[Point, ...]:
    return tuple(
        Point(int(t), Arm(arm), int(calls), int(errors), int(loops), int(runaways))
        for t, arm, calls, errors, loops, runaways in connection.execute(query)
    )


def _only(query: Select[Any], column: Any, name: str | None) -> Select[Any]:
    if name is None:
        return query
    return query.where(column == select(tool.c.id).where(tool.c.name == name).scalar_subquery())


def _step(span: int, steps: tuple[int, ...]) -> int:
    for step in steps:
        if span < step * MOST_POINTS:
            return step
    months = span // (MOST_POINTS * steps[-1]) + 1
    return months * steps[-1]
