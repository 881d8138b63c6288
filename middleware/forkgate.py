"""A fork waits until our background threads are out of the database and out of their imports.

Both carry state that a child cannot use. SQLite keeps its file locks and its mutexes in the process's memory: a child
that is forked in the middle of a transaction believes for ever that somebody else is writing
(https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_). A module that is half
imported has a lock that belongs to a thread which the child does not have.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_WAIT_SECONDS: Final = 10.0


class ForkGate:
    """Lets any number of threads in at once, and a fork only when none is inside.

    Args:
        longest_wait: seconds after which a fork goes on all the same, rather than hang the host.
    """

    def __init__(self, longest_wait: float = _LONGEST_WAIT_SECONDS) -> None:
        self._longest_wait = longest_wait
        self._mine = threading.local()
        self._again = False
        self._reset(inside=0)
        os.register_at_fork(before=self._close, after_in_parent=self._reopen, after_in_child=self._renew)

    def _reset(self, *, inside: int) -> None:
        self._changed = threading.Condition()
        self._inside = inside
        self._forking = False

    def come_first(self) -> None:
        """Wait before everything else that a fork triggers; called once the store is imported.

        Handlers run last registered first: the store closes its idle connections before a fork, and must do so after
        our threads have given theirs back.
        """
        with self._changed:
            if self._again:
                return
            self._again = True
        os.register_at_fork(before=self._close)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Hold forks back for the block."""
        with self._changed:
            self._changed.wait_for(lambda: not self._forking or self._depth > 0, self._longest_wait)
            self._inside += 1
            self._mine.depth = self._depth + 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._mine.depth = self._depth - 1
                self._changed.notify_all()

    @property
    def _depth(self) -> int:
        """How often the running thread is inside; it need not wait for itself."""
        depth: int = getattr(self._mine, "depth", 0)
        return depth

    def _close(self) -> None:
        with self._changed:
            self._forking = True
            self._changed.wait_for(lambda: self._inside <= self._depth, self._longest_wait)

    def _reopen(self) -> None:
        with self._changed:
            self._forking = False
            self._changed.notify_all()

    def _renew(self) -> None:
        self._reset(inside=self._depth)


gate: Final = ForkGate()
