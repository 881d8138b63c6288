"""The background thread that moves this process's segments from the spool into the store."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from .losses import Loss, logger
from .quiet import quiet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Protocol

    from .spool import Spool

    class Sink(Protocol):
        """Where segments go; the store's own implementation is [`StoreSink`][changeover.sink.StoreSink]."""

        def drain_segment(self, path: Path) -> None:
            """Commit one closed segment of this process and remove it."""

        def adopt(self, spool: Path) -> None:
            """Commit what dead processes left in *spool*."""

        def close(self) -> None:
            """Let go of the database."""


_ADOPT_SECONDS: Final = 30.0
_LONGEST_PAUSE: Final = 30.0
_HURRIED_PAUSE: Final = 0.1


class Drainer:
    """Drains *spool* every *interval* seconds; started by the first record, since a process may never make one.

    Args:
        spool: this process's spool.
        open_sink: makes the connection to the store; called again after a fault, so that an outage heals.
        spill: writes counted losses into the spool, so that they travel with the records.
        interval: seconds between two looks at the spool.
        report: counts a fault of ours under a reason.
    """

    def __init__(
        self,
        spool: Spool,
        open_sink: Callable[[], Sink],
        *,
        spill: Callable[[], None],
        interval: float,
        report: Callable[[str, BaseException], None],
    ) -> None:
        self._spool = spool
        self._open_sink = open_sink
        self._spill = spill
        self._interval = interval
        self._report = report
        self._orphans: list[Sink] = []
        self._reset()

    def _reset(self) -> None:
        self._thread: threading.Thread | None = None
        self._turn = threading.Condition()
        self._cycling = threading.Lock()
        self._asked = 0
        self._answered = 0
        self._stopping = False
        self._threadless = False
        self._sink: Sink | None = None
        self._pause = self._interval
        self._adopt_at = 0.0
        self._outage = False

    def start(self) -> None:
        """Make sure the thread runs; where none can be started (the interpreter is going down) do without."""
        if self._thread is not None or self._threadless:
            return
        with self._turn:
            if not self._stopping:
                self._start_once()

    def _start_once(self) -> None:
        if self._thread is not None:
            return
        if sys.is_finalizing():  # a thread that is started now never runs, and whoever starts it may wait for it
            self._threadless = True
            return
        thread = threading.Thread(target=self._run, name="changeover-drain", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._threadless = True
        else:
            self._thread = thread

    def flush(self, timeout: float) -> bool:
        """Return whether everything that was recorded before the call is committed within *timeout* seconds."""
        if threading.current_thread() is self._thread:
            return False
        self.start()
        if self._thread is None:
            return self._drain_here(timeout)
        with self._turn:
            self._asked += 1
            ticket = self._asked
            self._turn.notify_all()
            return self._turn.wait_for(lambda: self._answered >= ticket, timeout)

    def stop(self, timeout: float) -> None:
        """End the thread after its current segment, waiting at most *timeout* seconds for it."""
        with self._turn:
            self._stopping = True
            self._turn.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        if thread is None or not thread.is_alive():
            self._close_sink()

    def forget_parent(self) -> None:
        """Begin afresh in a forked child, which has neither the thread nor a right to the parent's connection."""
        if self._sink is not None:
            # Kept alive on purpose: closing an inherited SQLite connection would release the parent's file locks.
            self._orphans.append(self._sink)
        self._reset()

    def _drain_here(self, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        if not self._cycling.acquire(timeout=max(0.0, timeout)):
            return False
        try:
            with quiet():
                done = self._cycle()
                while not done and time.monotonic() + _HURRIED_PAUSE < deadline:
                    time.sleep(_HURRIED_PAUSE)
                    done = self._cycle()
                return done
        finally:
            self._cycling.release()

    def _run(self) -> None:
        with quiet():
            while not self._stopping:
                asked = self._asked
                with self._cycling:
                    done = self._cycle()
                if done:
                    self._answer(asked)
                    self._adopt()
                self._sleep(done=done)

    def _answer(self, asked: int) -> None:
        with self._turn:
            self._answered = max(self._answered, asked)
            self._turn.notify_all()

    def _sleep(self, *, done: bool) -> None:
        self._pause = self._interval if done else min(self._pause * 2, _LONGEST_PAUSE)
        with self._turn:
            waiting = self._asked > self._answered
            if self._stopping or (waiting and done):
                return
            self._turn.wait(min(self._pause, _HURRIED_PAUSE) if waiting else self._pause)

    def _cycle(self) -> bool:
        """Move everything that was recorded so far; return whether it is committed."""
        try:
            self._spool.rescue()
            self._spill()
            if self._spool.pending:
                # Closed segments first: while the store is away, the open one is not cut into many small ones.
                self._drain_sealed()
                self._spool.seal()
                self._drain_sealed()
                self._healed()
        except Exception as fault:  # noqa: BLE001 - whatever the store says, the records stay and we try again
            self._failed(fault)
            return False
        return True

    def _drain_sealed(self) -> None:
        for path in self._spool.sealed():
            self._connected().drain_segment(path)
            self._spool.drained(path)

    def _adopt(self) -> None:
        now = time.monotonic()
        if now < self._adopt_at or self._stopping:
            return
        self._adopt_at = now + _ADOPT_SECONDS
        try:
            self._spool.measure()
            if self._spool.has_foreign():
                self._connected().adopt(self._spool.folder)
        except Exception as fault:  # noqa: BLE001 - the same
            self._failed(fault)

    def _connected(self) -> Sink:
        if self._sink is None:
            self._sink = self._open_sink()
        return self._sink

    def _healed(self) -> None:
        if self._outage:
            self._outage = False
            logger.warning("the store is back, the records that waited in %s are in it", self._spool.folder)

    def _failed(self, fault: Exception) -> None:
        self._close_sink()
        if isinstance(fault, OSError) and not self._spool.writable():
            self._report(Loss.SPOOL_ERROR, fault)
        elif not self._outage:
            self._outage = True
            logger.warning(
                "the store cannot be reached (%s); records wait in %s and are taken in later",
                type(fault).__name__,
                self._spool.folder,
            )
            logger.debug("why the store cannot be reached", exc_info=fault)

    def _close_sink(self) -> None:
        sink, self._sink = self._sink, None
        if sink is None:
            return
        try:
            sink.close()
        except Exception as fault:  # noqa: BLE001 - a connection that is already broken may refuse to be closed
            logger.debug("the store's connection could not be closed", exc_info=fault)
