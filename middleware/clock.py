"""A hybrid logical clock: wall-clock nanoseconds that never stand still and never run backwards in one process."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """Give strictly growing readings, so that the calls of one process can be put in order.

    Two processes may read the same value; whoever sorts breaks the tie by span id.

    Args:
        now: the wall clock, in nanoseconds since the epoch. It may jump back or stand still.
    """

    def __init__(self, now: Callable[[], int] = time.time_ns) -> None:
        self._now = now
        self._last = 0
        self._lock = threading.RLock()

    def tick(self) -> int:
        """Return nanoseconds since the epoch, at least one more than any earlier reading of this clock."""
        with self._lock:
            self._last = reading = max(self._last + 1, self._now())
        return reading

    def renew(self) -> None:
        """Replace the lock after a fork: another thread of the parent may have held it, and is not here to let go."""
        self._lock = threading.RLock()


_process = Clock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.renew)


def tick() -> int:
    """Return this process's next reading, in nanoseconds since the epoch."""
    return _process.tick()
