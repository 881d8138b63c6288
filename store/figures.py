"""The figures kept beside the calls: per session (the unit of statistics) and per hour (what charts are drawn from)."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import delete

from changeover.semconv import Outcome

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
_NO_COUNTS = (0,) * len(COUNTS)

Places = tuple[int, ...]
"""Places in ``COUNTS`` that a call counts for, once each."""


class Counted(NamedTuple):
    """Where and as what one call is counted."""

    tool_id: int
    arm: str
    started_at: int
    places: Places


# There are few different ones, and one is needed for every call.
@lru_cache(1_024)
def places(outcome: str, marks: Marks, *, unclassified: bool, retryable: bool) -> Places:
    """Return what a call of this *outcome* and these *marks* counts for."""
    failed = outcome == Outcome.ERROR
    said = (
        (True, "calls"),
        (outcome in _COLUMN_OF_OUTCOME, _COLUMN_OF_OUTCOME.get(outcome, "")),
        (unclassified, "unclassified"),
        (marks.runaway, "runaways"),
        (failed and marks.loop, "loops"),
        (failed and marks.loop and not retryable, "futile_loops"),
        (failed and marks.loop_after_user, "loops_after_user"),
        (failed and marks.episode, "episodes"),
        (failed and marks.episode and marks.loop, "looped_episodes"),
        (failed and marks.recovered is True, "recovered"),
        (failed and marks.recovered is False, "unrecovered"),
    )
    return tuple(_PLACE[name] for true, name in said if true)


class HourChanges:
    """What a batch changes in ``rollup_hour``: added calls, removed calls, calls that are now marked otherwise."""

    def __init__(self) -> None:
        self._changes: dict[tuple[int, int, str], list[int]] = defaultdict(lambda: list(_NO_COUNTS))
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
        for place in call.places:
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


SESSION_COLUMNS = ("session_id", "actor_id", "tool_id", "arm", "first_at", "last_at", *COUNTS)


def session_rows(session_id: int, actor_id: int, calls: Iterable[Counted]) -> list[tuple[Any, ...]]:
    """Return the rows of ``session_tool``, as ``SESSION_COLUMNS``, for one actor in one session."""
    counts: dict[tuple[int, str], list[int]] = defaultdict(lambda: list(_NO_COUNTS))
    times: dict[tuple[int, str], list[int]] = defaultdict(list)
    for call in calls:
        key = (call.tool_id, call.arm)
        times[key].append(call.started_at)
        row = counts[key]
        for place in call.places:
            row[place] += 1
    return [
        (session_id, actor_id, tool, arm, min(times[tool, arm]), max(times[tool, arm]), *row)
        for (tool, arm), row in counts.items()
    ]
