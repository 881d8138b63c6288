"""A fork waits for our background threads, and for nothing of its own."""

from __future__ import annotations

import os
import threading

import pytest

from changeover.forkgate import ForkGate


@pytest.fixture(scope="module")
def gate():
    return ForkGate(longest_wait=0.2)


def fork_and_wait(gate):
    """Fork, enter the gate in the child, and return the child's exit code."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            with gate.inside():
                code = 7
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_fork_waits_until_the_threads_inside_have_left(gate):
    entered, order = threading.Event(), []

    def work():
        with gate.inside():
            entered.set()
            threading.Event().wait(0.05)
            order.append("left")

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(10)
    assert fork_and_wait(gate) == 7
    order.append("forked")
    thread.join()

    assert order == ["left", "forked"]


def test_a_thread_that_forks_inside_does_not_wait_for_itself(gate):
    with gate.inside(), gate.inside():
        assert fork_and_wait(gate) == 7
    assert fork_and_wait(gate) == 7


def test_a_fork_goes_on_in_the_end_and_the_child_is_free(gate):
    entered, leave = threading.Event(), threading.Event()

    def work():
        with gate.inside():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(10)
    assert fork_and_wait(gate) == 7
    leave.set()
    thread.join()
    assert fork_and_wait(gate) == 7
