"""Which arm a session gets: stable, evenly spread, and never moved back by a higher rollout."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changeover.rollout import BUCKETS, Flag
from changeover.semconv import Arm, Reason, Stage

SESSIONS = st.text(st.characters(codec=None), min_size=1)
ROLLOUTS = st.floats(0, 100)
PINNING = st.sampled_from([Stage.DUAL, Stage.CUTOVER])


@given(SESSIONS, st.text(min_size=1), st.text(), st.tuples(ROLLOUTS, ROLLOUTS).map(sorted), PINNING)
def test_raising_the_rollout_never_moves_a_session_back(session, tool, salt, rollouts, stage):
    low, high = rollouts
    before, _ = Flag(tool, stage, low, 1, salt).choose(session)
    after, _ = Flag(tool, stage, high, 2, salt).choose(session)

    assert before is Arm.LEGACY or after is before


@given(SESSIONS, st.text(min_size=1), st.text(), ROLLOUTS, PINNING)
def test_the_answer_depends_on_tool_salt_and_session_alone(session, tool, salt, rollout, stage):
    flags = [Flag(tool, stage, rollout, version, salt) for version in (1, 2, 99)]

    assert len({flag.choose(session) for flag in flags}) == 1
    assert len({flag.bucket(session) for flag in flags}) == 1
    assert 0 <= flags[0].bucket(session) < BUCKETS


@given(SESSIONS, PINNING)
def test_nobody_at_zero_and_everybody_at_a_hundred_percent(session, stage):
    arm = Arm.DUAL if stage is Stage.DUAL else Arm.STRUCTURED

    assert Flag("t", stage, 0, 1).choose(session) == (Arm.LEGACY, Reason.SPLIT)
    assert Flag("t", stage, 100, 1).choose(session) == (arm, Reason.STATIC)
    assert Flag("t", stage, 100, 1).choose(None) == (arm, Reason.STATIC)


@given(st.none() | SESSIONS, ROLLOUTS, st.sampled_from([Stage.LEGACY, Stage.SHADOW]))
def test_before_any_cutover_everybody_gets_the_legacy_payload(session, rollout, stage):
    assert Flag("t", stage, rollout, 3).choose(session) == (Arm.LEGACY, Reason.STATIC)
    assert Flag("t", stage, rollout, 0).choose(session) == (Arm.LEGACY, Reason.DEFAULT)


@given(st.floats(0, 99.99))
def test_br_08_05_without_a_session_a_partial_rollout_means_legacy(rollout):
    assert Flag("t", Stage.CUTOVER, rollout, 1).choose(None) == (Arm.LEGACY, Reason.TARGETING_KEY_MISSING)


@pytest.mark.parametrize("rollout", [1, 10, 37.5, 50, 90])
def test_the_share_of_sessions_is_the_rollout(rollout):
    flag = Flag("t", Stage.CUTOVER, rollout, 1, "salt")
    inside = sum(flag.choose(f"session-{n}")[0] is Arm.STRUCTURED for n in range(20_000))

    # Four standard deviations of a fair draw; the sessions are fixed, so the test cannot flicker.
    assert abs(inside - 200 * rollout) < 4 * (20_000 * rollout / 100 * (1 - rollout / 100)) ** 0.5


def test_buckets_are_spread_evenly():
    flag = Flag("t", salt="salt")
    counts = [0] * 20
    for number in range(20_000):
        counts[flag.bucket(f"conv-{number}") * 20 // BUCKETS] += 1

    # Chi-squared with 19 degrees of freedom: 43.8 is its 99.9 % quantile.
    assert sum((count - 1000) ** 2 / 1000 for count in counts) < 43.8


def test_two_tools_and_two_salts_draw_independently():
    sessions = [f"s{n}" for n in range(2_000)]
    flags = [
        Flag("a", Stage.CUTOVER, 50, 1, "x"),
        Flag("b", Stage.CUTOVER, 50, 1, "x"),
        Flag("a", Stage.CUTOVER, 50, 1, "y"),
    ]
    first, *others = [[flag.choose(session)[0] for session in sessions] for flag in flags]

    for other in others:
        agreeing = sum(one is two for one, two in zip(first, other, strict=True))
        assert 880 < agreeing < 1120


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_another_process_with_another_hash_seed_gives_the_same_answer(seed):
    code = (
        "from changeover.rollout import Flag\n"
        "print([Flag('t', salt='s').bucket(x) for x in ('a', 'conv-42', '\\u00e9\\ud800')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == str([Flag("t", salt="s").bucket(x) for x in ("a", "conv-42", "\u00e9\ud800")])


def test_buckets_never_change_between_releases():
    """Every session would be drawn anew: treat a change here as breaking every running experiment."""
    buckets = [Flag("search", salt="pepper").bucket(f"s{n}") for n in range(5)]

    assert buckets == [1725, 7849, 6406, 8817, 8313]
