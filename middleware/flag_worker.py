"""The one thread that talks to a flag source, so that a source that hangs holds up nobody but this thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from .losses import Loss

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .flags import FlagSource
    from .rollout import Flag
    from .semconv import Arm


class Lookup:
    """One question to the source, "which arm do the stored calls of this session have?", and in time its answer."""

    __slots__ = ("_done", "_key", "arm", "failed")

    def __init__(self, session: str, tool: str) -> None:
        self._key = (session, tool)
        self._done = threading.Event()
        self.arm: Arm | None = None
        self.failed = False

    def ask(self, source: FlagSource) -> None:
        """Put the question; runs in the worker's thread. Raises whatever the source raises."""
        self.arm = source.pinned(*self._key)
        self._done.set()

    def refuse(self) -> None:
        """Give up: the source cannot answer."""
        self.failed = True
        self._done.set()

    def wait(self, timeout: float) -> bool:
        """Wait at most *timeout* seconds for the answer; return whether there is a good one."""
        return self._done.wait(timeout) and not self.failed


class Worker:
    """Load all flags every *interval* seconds, or when woken, and answer look-ups in between.

    The source is made, used and closed by this thread alone.

    Args:
        make: makes the source; called again after it raised.
        loaded: is given every snapshot, and the reading of *monotonic* just before it was taken.
        failed: is told of every fault, ``Loss.FLAG_LOAD`` or ``Loss.FLAG_LOOKUP``.
        interval: seconds between loads.
        monotonic: a clock in seconds that never runs backwards.
    """

    def __init__(
        self,
        make: Callable[[], FlagSource],
        *,
        loaded: Callable[[Mapping[str, Flag], float], None],
        failed: Callable[[str], None],
        interval: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._loaded = loaded
        self._failed = failed
        self._interval = interval
        self._monotonic = monotonic
        self._source: FlagSource | None = None
        self._lookups: deque[Lookup] = deque()
        self._wake = threading.Event()
        self._reload = False
        self._closing = False
        # Loading is asked for, since whoever starts this wants to know when the snapshot came.
        self._thread = threading.Thread(target=self._run, name="changeover-flags", daemon=True)

    def start(self) -> None:
        """Start the thread; raises ``RuntimeError`` when the interpreter starts no more threads."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def reload(self) -> None:
        """Load now rather than at the end of the interval."""
        self._reload = True
        self._wake.set()

    def put(self, lookup: Lookup) -> None:
        """Answer *lookup* as soon as the source is free."""
        self._lookups.append(lookup)
        self._wake.set()

    def close(self, timeout: float) -> None:
        """Close the source and end the thread; wait for it at most *timeout* seconds."""
        self._closing = True
        self._wake.set()
        if self._thread is not threading.current_thread() and self._thread.ident is not None:
            self._thread.join(timeout)

    def _run(self) -> None:
        due = time.monotonic() + self._interval
        while not self._closing:
            if self._reload or time.monotonic() >= due:
                self._reload = False
                self._load()
                due = time.monotonic() + self._interval
            self._answer()
            self._wake.wait(max(0.0, due - time.monotonic()))
            self._wake.clear()
        self._close_source()

    def _load(self) -> None:
        started = self._monotonic()
        try:
            self._loaded(self._opened().load(), started)
        except Exception:  # noqa: BLE001 - whatever a source raises, the last good flags stand
            self._failed(Loss.FLAG_LOAD)

    def _answer(self) -> None:
        while self._lookups:
            lookup = self._lookups.popleft()
            try:
                lookup.ask(self._opened())
            except Exception:  # noqa: BLE001 - the caller goes on without an answer
                lookup.refuse()
                self._failed(Loss.FLAG_LOOKUP)

    def _opened(self) -> FlagSource:
        if self._source is None:
            self._source = self._make()
        return self._source

    def _close_source(self) -> None:
        if self._source is None:
            return
        try:
            self._source.close()
        except Exception:  # noqa: BLE001 - nobody is left to care
            self._failed(Loss.FLAG_CLOSE)
