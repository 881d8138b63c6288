"""What a comparison of two arms says, in sentences, always with n."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changeover.store.verdict import Verdict

from .formats import percent

if TYPE_CHECKING:
    from changeover.store.statistics import Difference, Estimate
    from changeover.store.verdict import Comparison

DESCRIPTIVE = (
    "Before against after is descriptive: whatever else changed meanwhile is in it too. Only sessions of the same "
    "hours, under a partial rollout, tell what the payload did."
)


def verdict_sentences(comparison: Comparison, mixed_sessions: int) -> list[str]:
    """Return what the figures say, how many sessions stand behind it, and what it cannot say."""
    sentences = [*_finding(comparison), _behind(comparison)]
    if mixed_sessions:
        saw = "session saw" if mixed_sessions == 1 else "sessions saw"
        sentences.append(f"{mixed_sessions:,} {saw} both arms and stand outside of the comparison.")
    return [*sentences, DESCRIPTIVE]


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
        f"{found.sessions if found else 0:,} sessions ({found.cases if found else 0:,} episodes) in the {arm} arm"
        for arm, found in (("legacy", comparison.legacy), ("structured", comparison.structured))
    ]
    return f"n, sessions with an error: {', '.join(parts)}."
