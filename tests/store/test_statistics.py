"""Intervals: never absurd, and right as often as they say."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changeover.store.statistics import Interval, Moments, difference, effective_cases, estimate, t_quantile, wilson
from changeover.store.verdict import BURN_IN_SESSIONS, Verdict, compare

sessions = st.lists(
    st.integers(0, 30).flatmap(lambda cases: st.integers(0, cases).map(lambda hits: (cases, hits))), max_size=60
)


def test_without_cases_there_is_no_rate():
    assert estimate(Moments.of([(0, 0), (0, 0)])) is None


def test_sessions_without_cases_only_dilute_and_are_left_out():
    assert Moments.of([(2, 1), (0, 0)]) == Moments.of([(2, 1)])


@given(sessions)
def test_an_interval_holds_its_rate_within_bounds_and_is_never_a_point(rows):
    found = estimate(Moments.of(rows))
    if found is None:
        return

    assert 0 <= found.interval.low <= found.rate <= found.interval.high <= 1
    assert found.interval.low < found.interval.high
    assert 1 <= found.effective <= found.cases


@given(sessions, sessions)
def test_a_difference_holds_its_value_within_bounds_and_is_never_a_point(one, other):
    first, second = estimate(Moments.of(one)), estimate(Moments.of(other))
    if first is None or second is None:
        return
    between = difference(first, second)

    assert -1 <= between.interval.low <= between.value <= between.interval.high <= 1
    assert between.interval.low < between.interval.high


@given(sessions)
def test_hits_and_misses_are_treated_alike(rows):
    found = estimate(Moments.of(rows))
    mirrored = estimate(Moments.of([(cases, cases - hits) for cases, hits in rows]))
    if found is None or mirrored is None:
        return

    assert mirrored.interval.low == pytest.approx(1 - found.interval.high, abs=1e-9)
    assert mirrored.interval.high == pytest.approx(1 - found.interval.low, abs=1e-9)


def test_wilsons_interval_is_the_one_in_the_books():
    interval = wilson(0.1, 100, 1.959964)

    assert interval == Interval(pytest.approx(0.05523, abs=1e-5), pytest.approx(0.17437, abs=1e-5))


@pytest.mark.parametrize(
    ("degrees", "table"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (5, 2.5706), (10, 2.2281), (19, 2.0930), (100, 1.9840)],
)
def test_quantiles_of_t_are_those_of_the_tables(degrees, table):
    assert t_quantile(0.975, degrees) == pytest.approx(table, rel=2e-3)


def test_calls_of_one_session_that_are_all_alike_tell_as_much_as_one():
    alike = Moments.of([(10, 10 if number % 4 == 0 else 0) for number in range(200)])

    assert effective_cases(alike) == pytest.approx(200, rel=0.02)


def test_independent_calls_count_each():
    source = random.Random(1)
    rows = [(10, sum(source.random() < 0.3 for _ in range(10))) for _ in range(2_000)]

    assert effective_cases(Moments.of(rows)) == pytest.approx(20_000, rel=0.15)


def simulated(source: random.Random, count: int, rate: float, correlation: float) -> Moments:
    """Sessions whose own rates are beta distributed: calls of one session depend on each other."""
    weight = (1 - correlation) / correlation
    rows = []
    for _ in range(count):
        own = source.betavariate(rate * weight, (1 - rate) * weight)
        cases = 1 + min(30, int(source.expovariate(1 / 6)))
        rows.append((cases, sum(source.random() < own for _ in range(cases))))
    return Moments.of(rows)


def coverage(count: int, rate: float, correlation: float, runs: int = 800) -> float:
    source = random.Random(1)
    covered = 0
    for _ in range(runs):
        found = estimate(simulated(source, count, rate, correlation))
        assert found is not None
        covered += found.interval.low <= rate <= found.interval.high
    return covered / runs


@pytest.mark.parametrize(
    ("count", "rate", "correlation"),
    [(20, 0.15, 0.2), (20, 0.5, 0.2), (50, 0.05, 0.1), (100, 0.15, 0.4), (300, 0.02, 0.1), (300, 0.9, 0.2)],
)
def test_intervals_cover_the_true_rate_as_often_as_they_say(count, rate, correlation):
    assert coverage(count, rate, correlation) >= 0.92


@pytest.mark.parametrize(("count", "rate", "correlation"), [(50, 0.05, 0.2), (200, 0.02, 0.2)])
def test_intervals_of_rare_hits_that_come_in_few_sessions_cover_a_little_less(count, rate, correlation):
    assert 0.90 <= coverage(count, rate, correlation) <= 0.95


@pytest.mark.parametrize(("count", "rate"), [(20, 0.15), (60, 0.3), (200, 0.05)])
def test_equal_arms_are_called_different_in_about_one_look_of_twenty(count, rate):
    source = random.Random(7 + count)
    alarms = sum(
        compare(simulated(source, count, rate, 0.2), simulated(source, count, rate, 0.2)).verdict
        in (Verdict.BETTER, Verdict.WORSE)
        for _ in range(400)
    )

    assert alarms <= 0.08 * 400


def test_a_large_fall_is_better_and_a_large_rise_is_worse():
    source = random.Random(3)
    high, low = simulated(source, 300, 0.4, 0.1), simulated(source, 300, 0.05, 0.1)

    assert compare(high, low).verdict is Verdict.BETTER
    assert compare(low, high).verdict is Verdict.WORSE


def test_too_few_errors_say_how_many_more_sessions_are_needed():
    few, many = Moments.of([(3, 3)] * 5), Moments.of([(3, 0)] * BURN_IN_SESSIONS)
    found = compare(few, many)

    assert found.verdict is Verdict.TOO_FEW_ERRORS
    assert dict(found.missing_sessions) == {"legacy": 15}
    assert found.difference is not None


def test_no_sessions_at_all_are_too_few():
    found = compare(Moments(), Moments())

    assert (found.verdict, dict(found.missing_sessions)) == (Verdict.TOO_FEW_ERRORS, {"legacy": 20, "structured": 20})
    assert (found.difference, found.smallest_effect) == (None, None)


def test_no_difference_seen_says_how_small_an_effect_could_be_seen():
    source = random.Random(5)
    found = compare(simulated(source, 100, 0.2, 0.2), simulated(source, 100, 0.2, 0.2))

    assert found.verdict is Verdict.NO_DIFFERENCE_SEEN
    assert found.smallest_effect is not None
    assert 0 < found.smallest_effect < 0.3
