"""The flag board: which arm a call gets, however the source of flags behaves."""

from __future__ import annotations

import gc
import logging
import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changeover.flags import Decision, FlagBoard
from changeover.losses import Loss
from changeover.pins import Pin, Pins
from changeover.rollout import Flag
from changeover.semconv import Arm, Reason, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

LONG = 3600.0
"""Seconds between polls where a test does not want any poll to happen."""


class MemorySource:
    """A source of flags that changes, fails and hangs on demand."""

    def __init__(self) -> None:
        self.flags: dict[str, Flag] = {}
        self.arms: dict[tuple[str, str], Arm] = {}
        self.fails = False
        self.open = threading.Event()
        self.open.set()
        self.loads = 0
        self.lookups = 0
        self.closed = 0
        self.threads: set[int] = set()

    def set(self, stage: Stage, rollout: float = 100.0, tool: str = "t") -> None:
        version = self.flags[tool].version + 1 if tool in self.flags else 1
        self.flags = self.flags | {tool: Flag(tool, stage, rollout, version, "salt")}

    def _reached(self) -> None:
        self.threads.add(threading.get_ident())
        self.open.wait(30)
        if self.fails:
            raise OSError("the store is away")

    def load(self) -> Mapping[str, Flag]:
        self.loads += 1
        self._reached()
        return dict(self.flags)

    def pinned(self, session: str, tool: str) -> Arm | None:
        self.lookups += 1
        self._reached()
        return self.arms.get((session, tool))

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed += 1


class Seconds:
    """A monotonic clock that tests turn by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def source() -> Iterator[MemorySource]:
    made = MemorySource()
    yield made
    made.open.set()


@pytest.fixture
def faults() -> Counter[str]:
    return Counter()


@pytest.fixture
def board(source: MemorySource, faults: Counter[str]) -> Iterator[Callable[..., FlagBoard]]:
    made: list[FlagBoard] = []

    def make(**options) -> FlagBoard:
        options = {
            "poll_seconds": LONG,
            "fresh_seconds": LONG,
            "wait_seconds": 10.0,
            "on_fault": lambda r: faults.update([r]),
        } | options
        made.append(FlagBoard(options.pop("make_source", lambda: source), **options))
        return made[-1]

    yield make
    source.open.set()
    for each in made:
        each.close()


def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if condition():
            return
        time.sleep(0.005)
    pytest.fail("did not happen")


# What is decided


def test_a_tool_without_a_flag_is_in_shadow(board):
    assert board().decide("t", "s") == Decision(Arm.LEGACY, Stage.SHADOW, Reason.DEFAULT, 0)


def test_the_first_decision_of_a_session_says_how_it_was_drawn_and_later_ones_that_it_holds(board, source):
    source.set(Stage.CUTOVER, 99.99)
    flags = board()

    assert flags.decide("t", "s") == Decision(Arm.STRUCTURED, Stage.CUTOVER, Reason.SPLIT, 1)
    assert flags.decide("t", "s") == Decision(Arm.STRUCTURED, Stage.CUTOVER, Reason.CACHED, 1)


@pytest.mark.parametrize(
    ("stage", "arm"),
    [(Stage.LEGACY, Arm.LEGACY), (Stage.SHADOW, Arm.LEGACY), (Stage.DUAL, Arm.DUAL), (Stage.CUTOVER, Arm.STRUCTURED)],
)
def test_every_stage_has_its_arm_with_and_without_a_session(board, source, stage, arm):
    source.set(stage)
    flags = board()

    for session in ("s", "s", None, None):
        assert (flags.decide("t", session).arm, flags.decide("t", session).stage) == (arm, stage)


def test_tools_and_sessions_are_decided_apart(board, source):
    source.set(Stage.CUTOVER, tool="a")
    source.set(Stage.SHADOW, tool="b")
    flags = board()

    assert [flags.decide(tool, "s").arm for tool in ("a", "b", "c")] == [Arm.STRUCTURED, Arm.LEGACY, Arm.LEGACY]


def test_br_08_05_without_a_session_a_partial_rollout_is_legacy_with_one_warning(board, source, caplog):
    source.set(Stage.CUTOVER, 10)
    flags = board()

    with caplog.at_level(logging.WARNING, "changeover"):
        decisions = {flags.decide("t", None) for _ in range(1_000)}

    assert decisions == {Decision(Arm.LEGACY, Stage.CUTOVER, Reason.TARGETING_KEY_MISSING, 1)}
    assert len(caplog.records) == 1
    assert "t is rolled out to 10 % of sessions" in caplog.text


# Pins


def test_a_session_that_began_in_shadow_stays_legacy_after_a_flip(board, source):
    source.set(Stage.SHADOW)
    flags = board()
    flags.decide("t", "old")
    source.set(Stage.CUTOVER)
    assert flags.refresh()

    assert flags.decide("t", "old") == Decision(Arm.LEGACY, Stage.CUTOVER, Reason.CACHED, 2)
    assert flags.decide("t", "new").arm is Arm.STRUCTURED


def test_a_session_that_began_before_there_was_a_flag_stays_legacy(board, source):
    flags = board()
    flags.decide("t", "old")
    source.set(Stage.CUTOVER)
    assert flags.refresh()

    assert flags.decide("t", "old").arm is Arm.LEGACY


def test_lowering_the_rollout_or_changing_the_stage_leaves_pinned_sessions_alone(board, source):
    source.set(Stage.CUTOVER)
    flags = board()
    flags.decide("t", "s")

    for stage, rollout in ((Stage.CUTOVER, 0), (Stage.DUAL, 100), (Stage.CUTOVER, 50)):
        source.set(stage, rollout)
        assert flags.refresh()
        assert flags.decide("t", "s").arm is Arm.STRUCTURED


@pytest.mark.parametrize("stage", [Stage.SHADOW, Stage.LEGACY])
def test_a_rollback_overrides_pins_at_once(board, source, stage):
    source.set(Stage.CUTOVER)
    flags = board()
    assert flags.decide("t", "s").arm is Arm.STRUCTURED
    source.set(stage)
    assert flags.refresh()

    assert flags.decide("t", "s") == Decision(Arm.LEGACY, stage, Reason.STATIC, 2)

    source.set(Stage.CUTOVER)
    assert flags.refresh()
    assert flags.decide("t", "s").arm is Arm.STRUCTURED


def test_stored_calls_of_a_session_decide_for_a_process_that_has_not_seen_it(board, source):
    source.set(Stage.CUTOVER)
    source.arms = {("begun-legacy", "t"): Arm.LEGACY, ("begun-dual", "t"): Arm.DUAL}
    flags = board()

    assert flags.decide("t", "begun-legacy") == Decision(Arm.LEGACY, Stage.CUTOVER, Reason.CACHED, 1)
    assert flags.decide("t", "begun-dual").arm is Arm.DUAL
    assert flags.decide("t", "new").arm is Arm.STRUCTURED


def test_a_session_that_began_structured_elsewhere_keeps_it_though_the_rollout_was_lowered(board, source):
    source.set(Stage.CUTOVER, 0)
    source.arms = {("s", "t"): Arm.STRUCTURED}

    assert board().decide("t", "s").arm is Arm.STRUCTURED


def test_the_source_is_asked_once_a_session_and_never_in_shadow(board, source):
    source.set(Stage.SHADOW, tool="shadow")
    source.set(Stage.CUTOVER)
    flags = board()

    for _ in range(5):
        flags.decide("shadow", "s")
        flags.decide("t", "s")
        flags.decide("t", None)

    assert source.lookups == 1


def test_a_failed_look_up_means_legacy_for_that_session_and_no_more_look_ups_until_the_next_snapshot(
    board, source, faults
):
    source.set(Stage.CUTOVER)
    flags = board()
    assert flags.refresh()
    source.fails = True

    assert flags.decide("t", "a") == Decision(Arm.LEGACY, Stage.CUTOVER, Reason.ERROR, 1)
    assert flags.decide("t", "b").reason is Reason.ERROR
    assert (source.lookups, faults[Loss.FLAG_LOOKUP]) == (1, 1)

    source.fails = False
    assert flags.refresh()
    assert flags.decide("t", "c").arm is Arm.STRUCTURED
    assert flags.decide("t", "a").arm is Arm.LEGACY


def test_a_look_up_that_hangs_holds_up_one_call_only(board, source):
    source.set(Stage.CUTOVER)
    flags = board(wait_seconds=0.05)
    assert flags.refresh(10)
    source.open.clear()

    decisions = [flags.decide("t", f"s{n}") for n in range(200)]

    assert {(decision.arm, decision.reason) for decision in decisions} == {(Arm.LEGACY, Reason.ERROR)}
    assert source.lookups == 1


def test_two_threads_at_first_contact_get_one_arm(board, source):
    source.set(Stage.CUTOVER, 50)
    flags = board()
    flags.decide("t", "warm")
    barrier = threading.Barrier(8)

    def first_contact(_: int) -> list[Arm]:
        barrier.wait(10)
        return [flags.decide("t", f"s{n}").arm for n in range(200)]

    with ThreadPoolExecutor(8) as pool:
        arms = list(pool.map(first_contact, range(8)))

    assert all(seen == arms[0] for seen in arms)
    assert set(arms[0]) == {Arm.LEGACY, Arm.STRUCTURED}


def test_two_threads_at_first_contact_get_one_arm_also_when_one_look_up_fails(board, source):
    source.set(Stage.CUTOVER)
    flags = board()
    assert flags.refresh()
    calls = iter(range(1_000_000))
    source.pinned = lambda session, tool: 1 // 0 if next(calls) % 2 else None

    with ThreadPoolExecutor(4) as pool:
        for number in range(50):
            arms = list(pool.map(lambda _, n=number: flags.decide("t", f"s{n}").arm, range(4)))
            assert len(set(arms)) == 1
            assert flags.refresh()


@given(st.lists(st.tuples(st.sampled_from(list(Stage)), st.integers(0, 100)), max_size=6))
def test_whatever_is_flipped_a_session_never_sees_two_arms_but_for_a_rollback(flips):
    source = MemorySource()
    flags = FlagBoard(lambda: source, poll_seconds=LONG, fresh_seconds=LONG, wait_seconds=10)
    seen: dict[str, set[Arm]] = {}
    try:
        for stage, rollout in flips:
            source.set(stage, rollout)
            assert flags.refresh(10)
            for number in range(6):
                decision = flags.decide("t", f"s{number}")
                if decision.stage in (Stage.DUAL, Stage.CUTOVER):
                    seen.setdefault(f"s{number}", set()).add(decision.arm)
                else:
                    assert decision.arm is Arm.LEGACY
    finally:
        flags.close()

    assert all(len(arms) == 1 for arms in seen.values())


def _pin(number: int) -> Pin[int]:
    return Pin(Arm.LEGACY, None, number)


def test_remembered_pins_are_bounded_and_the_least_used_go_first():
    pins: Pins[int] = Pins(100)
    pins.first(("kept", "s"), _pin(-1))
    for number in range(1_000):
        pins.first(("t", f"s{number}"), _pin(number))
        assert pins.get(("kept", "s")) is not None
        assert len(pins) <= 100

    assert pins.get(("t", "s999")) == _pin(999)
    assert pins.get(("t", "s0")) is None


def test_the_first_pin_holds_also_in_the_elder_generation():
    pins: Pins[int] = Pins(4)
    for number in range(3):
        assert pins.first(("t", f"s{number}"), _pin(number)) == _pin(number)

    assert pins.recent(("t", "s0")) is None
    assert pins.first(("t", "s0"), _pin(99)) == _pin(0)
    assert pins.recent(("t", "s0")) == _pin(0)


# Snapshots


def test_a_flip_is_seen_by_polling(board, source):
    source.set(Stage.SHADOW)
    flags = board(poll_seconds=0.01)
    assert flags.decide("t", "a").stage is Stage.SHADOW
    source.set(Stage.CUTOVER)

    eventually(lambda: flags.decide("t", None).stage is Stage.CUTOVER)


def test_a_call_two_seconds_after_the_last_snapshot_sees_a_flip_though_nothing_polled_meanwhile(board, source):
    """As after a process was frozen, or its poll thread starved."""
    seconds = Seconds()
    source.set(Stage.SHADOW)
    flags = board(fresh_seconds=2.0, monotonic=seconds)
    flags.decide("t", "a")
    source.set(Stage.CUTOVER)

    seconds.now += 1.99
    assert flags.decide("t", "b").stage is Stage.SHADOW
    seconds.now += 0.01
    assert flags.decide("t", "c") == Decision(Arm.STRUCTURED, Stage.CUTOVER, Reason.STATIC, 2)


def test_the_age_of_a_snapshot_counts_from_before_it_was_taken(board, source):
    seconds = Seconds()
    flags = board(fresh_seconds=2.0, monotonic=seconds)

    def slow_load() -> Mapping[str, Flag]:
        source.loads += 1
        seconds.now += 1.5
        return {}

    source.load = slow_load
    flags.decide("t", "a")
    seconds.now += 0.5
    flags.decide("t", "b")

    assert source.loads == 2


def test_refresh_waits_for_a_snapshot_that_began_after_it_was_asked_for(board, source):
    source.set(Stage.SHADOW)
    flags = board(poll_seconds=0.001)
    assert flags.refresh(10)

    for number in range(200):
        source.set(Stage.CUTOVER if number % 2 else Stage.SHADOW)
        assert flags.refresh(10)
        assert flags.decide("t", None).version == number + 2


def test_a_store_that_is_away_leaves_the_last_good_flags_marked_stale(board, source, faults):
    seconds = Seconds()
    source.set(Stage.CUTOVER)
    flags = board(fresh_seconds=2.0, monotonic=seconds)
    flags.decide("t", "pinned")
    source.fails = True
    seconds.now += 3

    assert flags.decide("t", "pinned") == Decision(Arm.STRUCTURED, Stage.CUTOVER, Reason.STALE, 1)
    assert flags.decide("t", None).reason is Reason.STALE
    assert flags.decide("t", "new") == Decision(Arm.LEGACY, Stage.CUTOVER, Reason.ERROR, 1)
    assert faults[Loss.FLAG_LOAD] >= 1

    source.fails = False
    assert flags.refresh()
    assert flags.decide("t", "pinned") == Decision(Arm.STRUCTURED, Stage.CUTOVER, Reason.CACHED, 1)


def test_br_08_03_flags_that_are_too_old_are_not_acted_on(board, source):
    seconds = Seconds()
    source.set(Stage.CUTOVER)
    flags = board(fresh_seconds=2.0, monotonic=seconds)
    flags.decide("t", "s")
    source.fails = True

    seconds.now += 3599
    assert flags.decide("t", "s").arm is Arm.STRUCTURED
    seconds.now += 2
    for session in ("s", "new", None):
        assert flags.decide("t", session) == Decision(Arm.LEGACY, Stage.SHADOW, Reason.ERROR, 0)


def test_without_any_flags_ever_it_is_legacy_and_an_error(board, source, faults):
    source.fails = True
    flags = board()

    for session in ("s", "s", None):
        assert flags.decide("t", session) == Decision(Arm.LEGACY, Stage.SHADOW, Reason.ERROR, 0)
    assert faults[Loss.FLAG_LOAD] == 1


def test_a_session_that_began_without_any_flags_stays_legacy(board, source):
    source.set(Stage.CUTOVER)
    source.fails = True
    flags = board()
    flags.decide("t", "s")
    source.fails = False
    assert flags.refresh()

    assert flags.decide("t", "s") == Decision(Arm.LEGACY, Stage.CUTOVER, Reason.CACHED, 1)


def test_a_source_that_cannot_be_made_is_tried_again(board, source):
    source.set(Stage.CUTOVER)
    attempts = iter([OSError("no"), OSError("no"), None])

    def make() -> MemorySource:
        error = next(attempts)
        if error is not None:
            raise error
        return source

    flags = board(make_source=make, poll_seconds=0.01)
    assert flags.decide("t", None).reason is Reason.ERROR

    eventually(lambda: flags.decide("t", None).arm is Arm.STRUCTURED)


def test_a_source_that_hangs_holds_up_one_call_once(board, source):
    source.open.clear()
    flags = board(wait_seconds=0.05)

    decisions = {flags.decide("t", f"s{n}") for n in range(200)}

    assert decisions == {Decision(Arm.LEGACY, Stage.SHADOW, Reason.ERROR, 0)}
    assert source.loads == 1


def test_a_source_that_hangs_later_leaves_the_last_good_flags(board, source):
    source.set(Stage.CUTOVER)
    flags = board(fresh_seconds=0.05, wait_seconds=0.05)
    assert flags.refresh(10)
    assert flags.decide("t", "s").arm is Arm.STRUCTURED
    source.open.clear()
    time.sleep(0.06)

    assert {flags.decide("t", "s") for _ in range(200)} == {Decision(Arm.STRUCTURED, Stage.CUTOVER, Reason.STALE, 1)}

    source.open.set()
    eventually(lambda: flags.decide("t", "s").reason is Reason.CACHED)


def test_threads_that_come_while_the_first_flags_are_loaded_wait_for_them_too(board, source):
    source.set(Stage.CUTOVER)
    source.open.clear()
    flags = board()
    threading.Timer(0.1, source.open.set).start()

    with ThreadPoolExecutor(8) as pool:
        arms = set(pool.map(lambda n: flags.decide("t", f"s{n}").arm, range(8)))

    assert arms == {Arm.STRUCTURED}


def test_one_thread_alone_talks_to_the_source(board, source):
    source.set(Stage.CUTOVER)
    flags = board(poll_seconds=0.001)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: flags.decide("t", f"s{n}"), range(200)))
    flags.close()

    assert source.threads.isdisjoint({threading.get_ident()})
    assert len(source.threads) == 1


def test_many_look_ups_do_not_keep_the_flags_from_being_polled(board, source):
    source.set(Stage.CUTOVER)
    flags = board(poll_seconds=0.02)
    for number in range(300):
        flags.decide("t", f"s{number}")
        time.sleep(0.001)

    assert source.loads >= 3


# Hostile surroundings


@pytest.mark.parametrize("arguments", [([], "s"), ("t", []), ({}, {}), (None, None), ("t", object())])
def test_no_argument_makes_it_raise(board, source, arguments):
    source.set(Stage.CUTOVER, 50)

    assert board().decide(*arguments).arm is Arm.LEGACY or arguments[0] == "t"


def test_a_fault_of_our_own_is_counted(board, faults):
    assert board().decide("t", []).reason is Reason.ERROR
    assert faults[Loss.FLAG_DECISION] == 1


def test_a_source_that_gives_nonsense_changes_nothing(board, source):
    source.load = lambda: 5

    assert board().decide("t", "s").reason is Reason.ERROR


def test_a_counter_that_raises_changes_nothing(board, source):
    source.fails = True

    def broken(_: str) -> None:
        raise RuntimeError

    assert board(on_fault=broken).decide("t", "s").reason is Reason.ERROR


def test_where_no_thread_can_be_started_it_is_legacy(board, source, monkeypatch):
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    source.set(Stage.CUTOVER)
    flags = board()
    monkeypatch.setattr(threading.Thread, "start", refuse)

    assert flags.decide("t", "s").reason is Reason.ERROR


def test_closing_closes_the_source_once_and_decisions_go_on(board, source):
    seconds = Seconds()
    source.set(Stage.CUTOVER)
    flags = board(fresh_seconds=2.0, monotonic=seconds)
    flags.decide("t", "s")
    flags.close()
    flags.close()

    assert source.closed == 1
    assert flags.decide("t", "s").arm is Arm.STRUCTURED
    seconds.now += 5
    assert flags.decide("t", "s") == Decision(Arm.STRUCTURED, Stage.CUTOVER, Reason.STALE, 1)
    assert not flags.refresh(0.01)


def test_closing_does_not_wait_for_a_source_that_hangs(board, source):
    source.open.clear()
    flags = board(wait_seconds=0.01)
    flags.decide("t", "s")

    flags.close()

    assert source.closed == 0


def test_closing_before_any_call_starts_nothing(board, source):
    flags = board()
    flags.close()

    assert flags.decide("t", "s").reason is Reason.ERROR
    assert source.loads == 0


def test_nothing_starts_before_the_first_call(board, source):
    before = threading.active_count()
    flags = board()

    assert threading.active_count() == before
    flags.decide("t", "s")
    assert source.loads == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_keeps_pins_and_gets_a_thread_and_a_source_of_its_own(board, source):
    seconds = Seconds()
    source.set(Stage.CUTOVER, 50)
    made: list[int] = []

    def make() -> MemorySource:
        made.append(os.getpid())
        return source

    flags = board(make_source=make, fresh_seconds=2.0, monotonic=seconds)
    pinned = {n: flags.decide("t", f"s{n}").arm for n in range(20)}
    with flags._lock, flags._pins._lock:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                kept = all(flags.decide("t", f"s{n}").arm is arm for n, arm in pinned.items())
                source.set(Stage.SHADOW)
                seconds.now += 3
                flipped = flags.decide("t", "s0").stage is Stage.SHADOW
                flags._worker = None
                gc.collect()
                status = 0 if kept and flipped and made[-1] == os.getpid() and not source.closed else 2
            finally:
                os._exit(status)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert flags.decide("t", "s0").arm is pinned[0]


def test_a_signal_handler_may_decide_in_the_middle_of_a_decision():
    pins: Pins[str] = Pins(10)
    pins.first(("tool", "outer"), Pin(Arm.LEGACY, None, "outer"))
    with pins._lock:  # a handler runs between any two steps of the thread that it interrupts
        assert pins.first(("tool", "inner"), Pin(Arm.LEGACY, None, "inner")).decision == "inner"
        assert pins.get(("tool", "outer")) is not None
