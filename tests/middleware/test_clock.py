"""The clock never stands still, whatever the wall clock does."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changeover.clock import Clock, tick


@given(st.lists(st.integers(0, 1000), min_size=1))
def test_readings_grow_strictly_and_never_lag_the_wall_clock(wall):
    times = iter(wall)
    clock = Clock(lambda: next(times))
    readings = [clock.tick() for _ in wall]

    assert readings == sorted(set(readings))
    assert all(reading >= now for reading, now in zip(readings, wall, strict=True))


def test_readings_are_nanoseconds_since_the_epoch():
    before = time.time_ns()

    assert before <= tick() <= time.time_ns() + 1_000_000


def test_no_two_threads_get_the_same_reading():
    barrier = threading.Barrier(8)

    def read(_: int) -> list[int]:
        barrier.wait(10)
        return [tick() for _ in range(2_000)]

    with ThreadPoolExecutor(8) as pool:
        readings = [reading for part in pool.map(read, range(8)) for reading in part]

    assert len(set(readings)) == len(readings)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_a_thread_holds_the_clock_still_reads_it():
    from changeover import clock

    with clock._process._lock:
        child = os.fork()
        if child == 0:
            done = threading.Thread(target=lambda: os._exit(0 if tick() else 1), daemon=True)
            done.start()
            done.join(10)
            os._exit(2)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
