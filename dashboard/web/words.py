"""What a comparison of two arms says, in sentences, always with n."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changeover.semconv import Arm
from changeover.store.verdict import Verdict

from .formats import percent

if TYPE_CHECKING:
    from changeover.store.queries import ToolSummary
    from changeover.store.statistics import Difference, Estimate
    from changeover.store.verdict import Comparison

DESCRIPTIVE = (
    "Before against after is descriptive: whatever else changed meanwhile is in it too. Only sessions of the same "
    "hours, under a partial rollout, tell what the payload did."
)

NOTHING_TO_COMPARE = (
    "No session has read the structured payload yet, so there is nothing to compare: a shadow shows whether the "
    "payload is right, never whether it helps."
)


def verdict_sentences(found: ToolSummary) -> list[str]:
    """Return what the figures say, how many sessions stand behind it, and what it cannot say."""
    comparison = found.comparison
    if not found.arms[Arm.STRUCTURED].sessions:
        return [NOTHING_TO_COMPARE, _behind(comparison)]
    sentences = [*_finding(comparison), _behind(comparison)]
    if found.mixed_sessions:
        sentences.append(f"Left out because they saw both arms: {counted(found.mixed_sessions, 'session')}.")
    return [*sentences, DESCRIPTIVE]


def counted(number: int, thing: str) -> str:
    """Return ``1 session`` or ``1,204 sessions``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _finding(comparison: Comparison) -> list[str]:
    old, new, between = comparison.legacy, comparison.structured, comparison.difference
    if comparison.verdict is Verdict.TOO_FEW_ERRORS or old is None or new is None or between is None:
        needed = " and ".join(f"{number:,} in the {arm} arm" for arm, number in comparison.missing_sessions.items())
        return [f"Sessions with an error still needed before anything is said: {needed or 'some in each arm'}."]
    sentence = f"Errors that began a chain were repeated in {_rates(old, new)}: {_points(between)}."
    if comparison.verdict is Verdict.NO_DIFFERENCE_SEEN and comparison.smallest_effect is not None:
        return [sentence, f"With this n an effect below {comparison.smallest_effect * 100:.1f} points cannot be seen."]
    return [sentence]


def _rates(old: Estimate, new: Estimate) -> str:
    return f"{percent(new.rate)} of cases in the structured arm, {percent(old.rate)} in the legacy arm"


def _points(between: Difference) -> str:
    low, high = between.interval.low * 100, between.interval.high * 100
    words = f"{between.value * 100:+.1f} points, 95 % interval {low:+.1f} to {high:+.1f}"
    return words.replace("-", "\N{MINUS SIGN}")


def _behind(comparison: Comparison) -> str:
    parts = [
        f"{counted(found.sessions if found else 0, 'session')} with an error "
        f"({counted(found.cases if found else 0, 'episode')}) in the {arm} arm"
        for arm, found in (("legacy", comparison.legacy), ("structured", comparison.structured))
    ]
    return f"n: {', '.join(parts)}."
