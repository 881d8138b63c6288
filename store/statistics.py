"""Intervals for rates whose calls come in sessions, and for the difference of two arms: pure functions.

The unit is the session, since calls inside one depend on each other. A rate is a ratio of sums over sessions; its
variance is linearised (the delta method: W. G. Cochran, *Sampling Techniques*, 3rd ed. 1977, chapter 6; for online
experiments A. Deng, U. Knoblich, J. Lu, *Applying the Delta Method in Metric Analytics*, KDD 2018). Sessions of
unequal size bend the rate towards the largest of them, which hides part of the spread: in the variance and in the
degrees of freedom, the number of sessions is therefore L. Kish's effective one, the squared sum of sizes by the sum of
squared sizes (*Survey Sampling*, 1965). The variance gives an effective number of independent errors, which goes with a
t quantile (as E. L. Korn and B. I. Graubard advise for few clusters, *Survey Methodology* 24, 1998) into Wilson's score
interval (E. B. Wilson, *JASA* 22, 1927); that one never leaves 0 to 1 and never has zero width. Two arms are compared
by R. G. Newcombe's hybrid of their score intervals (*Statistics in Medicine* 17, 1998, method 10).

These are intervals for one look. Looking again and again until one of them excludes zero finds differences where there
are none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over sessions that have at least one case: all that an interval needs.

    Args:
        sessions: how many they are.
        cases: the sum of cases (errors, or episodes).
        hits: the sum of hits among them (loops, or looped episodes).
        cases_squared: the sum of squared cases.
        products: the sum of cases times hits.
        hits_squared: the sum of squared hits.
    """

    sessions: int = 0
    cases: int = 0
    hits: int = 0
    cases_squared: int = 0
    products: int = 0
    hits_squared: int = 0

    @classmethod
    def of(cls, sessions: Iterable[tuple[int, int]]) -> Moments:
        """Return the sums over *sessions*, each given as its (cases, hits); those without cases are left out."""
        entered = [(cases, hits) for cases, hits in sessions if cases]
        return cls(
            sessions=len(entered),
            cases=sum(cases for cases, _ in entered),
            hits=sum(hits for _, hits in entered),
            cases_squared=sum(cases * cases for cases, _ in entered),
            products=sum(cases * hits for cases, hits in entered),
            hits_squared=sum(hits * hits for _, hits in entered),
        )


@dataclass(frozen=True, slots=True)
class Interval:
    """From *low* to *high*, both included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """A rate with its interval.

    Args:
        rate: hits / cases.
        interval: where the true rate lies, 95 % of the time.
        sessions: with at least one case.
        cases: what the rate is of.
        effective: so many independent cases would tell as much.
    """

    rate: float
    interval: Interval
    sessions: int
    cases: int
    effective: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The rate of one arm less the rate of another, with its interval."""

    value: float
    interval: Interval


def estimate(moments: Moments, level: float = LEVEL) -> Estimate | None:
    """Return the rate that *moments* say, and ``None`` without cases: then there is no rate.

    Args:
        moments: sums over sessions.
        level: of the interval.
    """
    if not moments.cases:
        return None
    rate = moments.hits / moments.cases
    effective = effective_cases(moments)
    return Estimate(
        rate=rate,
        interval=wilson(rate, effective, _quantile(level, moments)),
        sessions=moments.sessions,
        cases=moments.cases,
        effective=effective,
    )


def difference(one: Estimate, other: Estimate) -> Difference:
    """Return *one*'s rate less *other*'s, with an interval from the intervals of the two."""
    value = one.rate - other.rate
    below = math.hypot(one.rate - one.interval.low, other.interval.high - other.rate)
    above = math.hypot(one.interval.high - one.rate, other.rate - other.interval.low)
    return Difference(value, Interval(max(-1.0, value - below), min(1.0, value + above)))


def effective_cases(moments: Moments) -> float:
    """Return how many independent cases would tell as much as these, which come in sessions.

    Never more than there are cases: that calls of one session differ more than calls of two is luck. Where nothing is
    told of the spread (one session only, or a rate of 0 or 1) each session counts as one case, as if all of its calls
    were one.
    """
    if moments.sessions == 1 or moments.hits in (0, moments.cases):
        return float(moments.sessions)
    weight = moments.cases * moments.cases
    # Whole numbers up to here, so that sessions of exactly one rate have exactly no spread.
    spread = (
        moments.hits_squared * weight
        - 2 * moments.hits * moments.cases * moments.products
        + moments.hits * moments.hits * moments.cases_squared
    )
    if spread <= 0:
        return float(moments.cases)
    variance = spread / weight / (weight - moments.cases_squared)
    rate = moments.hits / moments.cases
    return min(float(moments.cases), max(1.0, rate * (1 - rate) / variance))


def wilson(rate: float, cases: float, quantile: float) -> Interval:
    """Return Wilson's score interval of *rate* seen in *cases* independent cases.

    Args:
        rate: 0 to 1.
        cases: more than 0, not necessarily whole.
        quantile: of the standard normal distribution, or a greater one where the spread itself is estimated.
    """
    weight = quantile * quantile / cases
    middle = (rate + weight / 2) / (1 + weight)
    half = math.sqrt(weight * (rate * (1 - rate) + weight / 4)) / (1 + weight)
    return Interval(max(0.0, min(rate, middle - half)), min(1.0, max(rate, middle + half)))


def _quantile(level: float, moments: Moments) -> float:
    probability = (1 + level) / 2
    if moments.sessions == 1:
        return NormalDist().inv_cdf(probability)
    return t_quantile(probability, max(1, int(moments.cases * moments.cases / moments.cases_squared) - 1))


def t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution.

    Exact for one and two degrees of freedom; beyond, the expansion of Abramowitz and Stegun, *Handbook of Mathematical
    Functions*, 26.7.5, which at 97.5 % is right to 0.2 %.
    """
    if degrees == 1:
        return math.tan(math.pi * (probability - 0.5))
    if degrees == 2:  # noqa: PLR2004 - a closed form
        return (2 * probability - 1) * math.sqrt(2 / (4 * probability * (1 - probability)))
    z = NormalDist().inv_cdf(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    correction: float = sum(term / degrees**power for power, term in enumerate(terms, start=1))
    return z + correction
