"""What the figures say of the structured arm against the legacy one, in four plain words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from .statistics import Difference, Estimate, Moments, difference, estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

BURN_IN_SESSIONS: Final = 20
"""Sessions with an error that each arm needs before anything is said."""


class Verdict(StrEnum):
    """Whether errors are repeated less often in the structured arm."""

    BETTER = "better"
    NO_DIFFERENCE_SEEN = "no difference seen"
    WORSE = "worse"
    TOO_FEW_ERRORS = "too few errors"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The episode loop rate of the two arms, over sessions that saw one arm only, entered at their first error.

    Args:
        verdict: the word for it.
        legacy: the legacy arm's rate; ``None`` without errors.
        structured: the structured arm's rate; ``None`` without errors.
        difference: structured less legacy; ``None`` while one of the two is missing.
        smallest_effect: half the width of the difference's interval: a smaller effect would not be seen with this many
            sessions.
        missing_sessions: how many more sessions with an error each arm needs at the least; empty when there are enough.
    """

    verdict: Verdict
    legacy: Estimate | None
    structured: Estimate | None
    difference: Difference | None
    smallest_effect: float | None
    missing_sessions: Mapping[str, int]


def compare(legacy: Moments, structured: Moments) -> Comparison:
    """Return what the two arms' sums of episodes and looped episodes say."""
    missing = {
        arm: BURN_IN_SESSIONS - moments.sessions
        for arm, moments in (("legacy", legacy), ("structured", structured))
        if moments.sessions < BURN_IN_SESSIONS
    }
    old, new = estimate(legacy), estimate(structured)
    between = difference(new, old) if old is not None and new is not None else None
    return Comparison(
        verdict=Verdict.TOO_FEW_ERRORS if missing or between is None else _word(between),
        legacy=old,
        structured=new,
        difference=between,
        smallest_effect=None if between is None else (between.interval.high - between.interval.low) / 2,
        missing_sessions=missing,
    )


def _word(between: Difference) -> Verdict:
    if between.interval.high < 0:
        return Verdict.BETTER
    return Verdict.WORSE if between.interval.low > 0 else Verdict.NO_DIFFERENCE_SEEN
