"""The figures kept beside the calls: per session (the unit of statistics) and per hour (what charts are drawn from)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from changeover.semconv import Outcome
from sqlalchemy import delete

from .sql import insert, run_many
from .tables import COUNTS, rollup_hour

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from .loops import Marks

NANOSECONDS_PER_HOUR = 3_600_000_000_000

_COLUMN_OF_OUTCOME = {
    Outcome.EMPTY.value: "empties",
    Outcome.ERROR.value: "errors",
    Outcome.CANCELLED.value: "cancelled",
    Outcome.UNANSWERED.value: "unanswered",
}
_PLACE = {name: place for place, name in enumerate(COUNTS)}
_PLACE_OF_OUTCOME = {outcome: _PLACE[column] for outcome, column in _COLUMN_OF_OUTCOME.items()}


class Counted(NamedTuple):
    """What is counted of one call."""

    tool_id: int
    arm: str
    started_at: int
    outcome: str
    unclassified: bool
    retryable: bool | None
    marks: Marks


def places(call: Counted) -> list[int]:
    """Return the places in ``COUNTS`` that *call* counts for, once each."""
    found = [0]
    outcome = _PLACE_OF_OUTCOME.get(call.outcome)
    if outcome is not None:
        found.append(outcome)
    if call.unclassified:
        found.append(_PLACE["unclassified"])
    marks = call.marks
    if marks.runaway:
        found.append(_PLACE["runaways"])
    if outcome == _PLACE["errors"]:
        found.extend(_places_of_error(marks, retryable=bool(call.retryable)))
    return found


def _places_of_error(marks: Marks, *, retryable: bool) -> list[int]:
    said = (
        (marks.loop, "loops"),
        (marks.loop and not retryable, "futile_loops"),
        (marks.loop_after_user, "loops_after_user"),
        (marks.episode, "episodes"),
        (marks.episode and marks.loop, "looped_episodes"),
        (marks.recovered is True, "recovered"),
        (marks.recovered is False, "unrecovered"),
    )
    return [_PLACE[name] for true, name in said if true]


class HourChanges:
    """What a batch changes in ``rollup_hour``: added calls, removed calls, calls that are now marked otherwise."""

    def __init__(self) -> None:
        self._changes: dict[tuple[int, int, str], list[int]] = defaultdict(lambda: [0] * len(COUNTS))
        self._removed = False

    def add(self, call: Counted) -> None:
        """Count *call*."""
        self._count(call, 1)

    def remove(self, call: Counted) -> None:
        """Count *call* no longer."""
        self._removed = True
        self._count(call, -1)

    def mark(self, before: Counted, after: Counted) -> None:
        """Count a call that stays, but is marked otherwise now."""
        self._count(before, -1)
        self._count(after, 1)

    def _count(self, call: Counted, sign: int) -> None:
        change = self._changes[call.tool_id, call.started_at // NANOSECONDS_PER_HOUR, call.arm]
        for place in places(call):
            change[place] += sign

    def apply(self, connection: Connection) -> None:
        """Add the changes to the stored hours."""
        rows: list[dict[str, Any]] = [
            {"tool_id": tool, "hour": hour, "arm": arm, **dict(zip(COUNTS, change, strict=True))}
            for (tool, hour, arm), change in sorted(self._changes.items())
            if any(change)
        ]
        statement = insert(connection, rollup_hour)
        grown = {name: rollup_hour.c[name] + statement.excluded[name] for name in COUNTS}
        key = ["tool_id", "hour", "arm"]
        run_many(connection, statement.on_conflict_do_update(index_elements=key, set_=grown), rows)
        if self._removed:
            connection.execute(delete(rollup_hour).where(rollup_hour.c.calls == 0))


def session_rows(session_id: int, actor_id: int, calls: Iterable[Counted]) -> list[dict[str, Any]]:
    """Return the rows of ``session_tool`` for one actor in one session."""
    counts: dict[tuple[int, str], list[int]] = {}
    times: dict[tuple[int, str], tuple[int, int]] = {}
    for call in calls:
        key = (call.tool_id, call.arm)
        row = counts.setdefault(key, [0] * len(COUNTS))
        for place in places(call):
            row[place] += 1
        first, last = times.get(key, (call.started_at, call.started_at))
        times[key] = (min(first, call.started_at), max(last, call.started_at))
    return [
        {
            "session_id": session_id,
            "actor_id": actor_id,
            "tool_id": key[0],
            "arm": key[1],
            "first_at": times[key][0],
            "last_at": times[key][1],
            **dict(zip(COUNTS, row, strict=True)),
        }
        for key, row in counts.items()
    ]
