"""Which arm a call gets, at the price of a dictionary look-up.

A `FlagBoard` keeps a snapshot of all flags, taken by one daemon thread every second, and remembers the arm of every
session it has seen: a flip is seen within two seconds, and a session that has begun keeps its arm. The board never
raises, and holds a tool up for at most a quarter of a second, once, when it has no fresh flags. While the store is away
it goes on with the last good flags (reason ``stale``); after an hour of that, or when there never were any, it says
``legacy`` (reason ``error``).
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Protocol

from .flag_worker import Lookup, Worker
from .losses import Loss
from .pins import Pin, Pins
from .semconv import Arm, Reason, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .rollout import Flag

_log = logging.getLogger("changeover")

_PINNING: Final = (Stage.DUAL, Stage.CUTOVER)


class FlagSource(Protocol):
    """Where flags come from. One thread of the board makes, uses and closes it."""

    def load(self) -> Mapping[str, Flag]:
        """Return every flag by tool name. May raise, may be slow."""

    def pinned(self, session: str, tool: str) -> Arm | None:
        """Return the arm of the stored calls of *session* to *tool*, ``None`` without any. May raise, may be slow."""

    def close(self) -> None:
        """Let go of connections."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a call gets, and why; all four values stand on the call's record.

    Args:
        arm: what is served.
        stage: the tool's stage at that moment.
        reason: how the arm was found.
        version: the version of the flag that was read, 0 when there was none.
    """

    arm: Arm
    stage: Stage
    reason: Reason
    version: int


_UNFLAGGED: Final = Decision(Arm.LEGACY, Stage.SHADOW, Reason.DEFAULT, 0)
_UNKNOWN: Final = Decision(Arm.LEGACY, Stage.SHADOW, Reason.ERROR, 0)


class _Trust(Enum):
    """How good the snapshot is: seconds old, older, or too old to act on (or never there)."""

    FRESH = auto()
    STALE = auto()
    NONE = auto()


class FlagBoard:
    """Decide for every call of this process.

    Args:
        make_source: makes the source of flags, in the board's own thread, when the first call asks.
        poll_seconds: between two snapshots.
        fresh_seconds: how long a snapshot is acted on without waiting for the next one.
        wait_seconds: how long a call may be held up for flags, or for a look-up of its session's arm.
        max_stale_seconds: how old the last good flags may grow before the board falls back to ``legacy``.
        pins: how many sessions' arms are remembered; forgotten ones are looked up in the source again.
        on_fault: is told the reason of every fault of the source, to be counted.
        monotonic: a clock in seconds that never runs backwards.
    """

    def __init__(
        self,
        make_source: Callable[[], FlagSource],
        *,
        poll_seconds: float = 1.0,
        fresh_seconds: float = 2.0,
        wait_seconds: float = 0.25,
        max_stale_seconds: float = 3600.0,
        pins: int = 100_000,
        on_fault: Callable[[str], None] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make_source = make_source
        self._poll_seconds = poll_seconds
        self._fresh_seconds = fresh_seconds
        self._wait_seconds = wait_seconds
        self._max_stale_seconds = max_stale_seconds
        self._on_fault = on_fault
        self._monotonic = monotonic
        self._flags: Mapping[str, Flag] = {}
        self._taken_at: float | None = None
        self._fresh_until = float("-inf")
        self._pins: Pins[Decision] = Pins(pins)
        self._lock = threading.RLock()  # reentrant, as that of the pins
        self._worker: Worker | None = None
        self._expected: tuple[threading.Event, float] | None = None
        self._lookups_fail = False
        self._warned = False
        self._closed = False
        _boards.add(self)

    def decide(self, tool: str, session: str | None) -> Decision:
        """Return what a call of *tool* in *session* gets; never raises.

        Args:
            tool: the tool's name.
            session: what stays the same during one conversation, or ``None`` when nothing of the kind is known.
        """
        try:
            if self._monotonic() >= self._fresh_until:
                return self._settle(tool, session, self._refreshed())
            if session is not None:
                pin = self._pins.recent((tool, session))
                if pin is not None and pin.flag is self._flags.get(tool):
                    return pin.decision
            return self._settle(tool, session, _Trust.FRESH)
        except Exception:  # noqa: BLE001 - whatever went wrong here, the tool must be called
            self._fault(Loss.FLAG_DECISION)
            return _UNKNOWN

    def refresh(self, timeout: float = 1.0) -> bool:
        """Take a new snapshot, after a flip in this very process; return whether it came within *timeout* seconds."""
        before = self._taken_at
        expected = self._expect(again=True)
        return expected is not None and expected[0].wait(timeout) and self._taken_at != before

    def close(self) -> None:
        """End the thread and close the source; decisions go on from the last snapshot until that is too old."""
        self._closed = True
        with self._lock:
            worker, self._worker = self._worker, None
        if worker is not None:
            worker.close(self._wait_seconds)

    # Deciding

    def _settle(self, tool: str, session: str | None, trust: _Trust) -> Decision:
        flag = self._flags.get(tool)
        if session is None:
            return self._anonymous(flag, trust)
        key = (tool, session)
        pin = self._pins.get(key)
        if pin is None:
            first = _UNKNOWN if trust is _Trust.NONE else self._first(flag, session)
            later = _pinned_decision(first.arm, flag)
            pin = self._pins.first(key, Pin(first.arm, flag, later))
            # Another thread's pin may have come first; its arm holds.
            return _aged(first, trust) if pin.decision is later else _aged(pin.decision, trust)
        if pin.flag is not flag:
            pin = Pin(pin.arm, flag, _pinned_decision(pin.arm, flag))
            self._pins.refresh(key, pin)
        return _aged(pin.decision, trust)

    def _first(self, flag: Flag | None, session: str) -> Decision:
        """Decide for a session that this process has not seen."""
        if flag is None:
            return _UNFLAGGED
        arm, reason = flag.choose(session)
        if flag.stage in _PINNING:
            # Also when the hash says legacy: the session may have begun elsewhere, before the rollout was lowered.
            lookup = self._looked_up(session, flag.tool)
            if lookup is None:
                arm, reason = Arm.LEGACY, Reason.ERROR
            elif lookup.arm is not None:
                arm, reason = lookup.arm, Reason.CACHED
        return Decision(arm, flag.stage, reason, flag.version)

    def _anonymous(self, flag: Flag | None, trust: _Trust) -> Decision:
        if flag is None or trust is _Trust.NONE:
            return _aged(_UNFLAGGED, trust)
        arm, reason = flag.choose(None)
        if reason is Reason.TARGETING_KEY_MISSING and not self._warned:
            self._warned = True
            _log.warning(
                "changeover: %s is rolled out to %g %% of sessions, and a call came without a session: such calls get "
                "the legacy payload. Open `with changeover.session(id)` around them.",
                flag.tool,
                flag.rollout,
            )
        return _aged(Decision(arm, flag.stage, reason, flag.version), trust)

    def _looked_up(self, session: str, tool: str) -> Lookup | None:
        """Return the answered look-up of a session's arm, or ``None``; after a failure, until the next snapshot."""
        if self._lookups_fail:
            return None
        worker = self._running()
        if worker is not None:
            lookup = Lookup(session, tool)
            worker.put(lookup)
            if lookup.wait(self._wait_seconds):
                return lookup
        self._lookups_fail = True
        return None

    # Snapshots

    def _refreshed(self) -> _Trust:
        """Wait for a snapshot, unless this was tried in vain since the last one; return how good the present one is."""
        expected = self._expect()
        if expected is not None:
            arrived, deadline = expected
            left = deadline - self._monotonic()
            if left > 0 and not arrived.wait(left):
                self._fault(Loss.FLAG_LOAD)
        now = self._monotonic()
        if now < self._fresh_until:
            return _Trust.FRESH
        if self._taken_at is None or now - self._taken_at > self._max_stale_seconds:
            return _Trust.NONE
        return _Trust.STALE

    def _expect(self, *, again: bool = False) -> tuple[threading.Event, float] | None:
        """Ask for a snapshot, if that was not done since the last one or *again* is to be.

        Returns:
            What will be set when it is there or failed, and until when a call may wait for it; ``None`` when there is
            nobody to ask.
        """
        worker = self._running()
        if worker is None:
            return None
        with self._lock:
            if self._expected is None or again:
                self._expected = threading.Event(), self._monotonic() + self._wait_seconds
                worker.reload()
            return self._expected

    def _running(self) -> Worker | None:
        """Return the worker, started again if its thread is gone; ``None`` after close or at the interpreter's end."""
        worker = self._worker
        if worker is not None and worker.alive:
            return worker
        with self._lock:
            if self._closed:
                return None
            if self._worker is None or not self._worker.alive:
                self._worker = self._started()
            return self._worker

    def _started(self) -> Worker | None:
        worker = Worker(
            self._make_source,
            loaded=self._take,
            failed=self._failed,
            interval=self._poll_seconds,
            monotonic=self._monotonic,
        )
        try:
            worker.start()
        except RuntimeError:  # the interpreter is shutting down
            self._fault(Loss.FLAG_LOAD)
            return None
        return worker

    def _take(self, flags: Mapping[str, Flag], taken_at: float) -> None:
        held = self._flags
        # A flag that did not change stays the same object, by which pins know that their decision still stands.
        self._flags = {tool: held[tool] if held.get(tool) == flag else flag for tool, flag in flags.items()}
        self._taken_at = taken_at
        self._lookups_fail = False
        self._fresh_until = taken_at + self._fresh_seconds
        with self._lock:
            expected = self._expected
            # A snapshot that was being taken when this one was asked for may be from before the flip.
            if expected is None or taken_at < expected[1] - self._wait_seconds:
                return
            self._expected = None
        expected[0].set()

    def _failed(self, reason: str) -> None:
        self._fault(reason)
        expected = self._expected
        if reason == Loss.FLAG_LOAD and expected is not None:
            expected[0].set()

    def _fault(self, reason: str) -> None:
        if self._on_fault is None:
            return
        try:
            self._on_fault(reason)
        except Exception:  # noqa: BLE001 - counting must not add a fault of its own
            _log.debug("changeover: counting %s failed", reason, exc_info=True)

    def _after_fork(self) -> None:
        """Start anew in a child: threads did not come along, and the parent's connections are not ours to close."""
        self._lock = threading.RLock()
        self._pins.renew()
        if self._worker is not None:
            _left_to_parent.append(self._worker)
        self._worker = None
        self._expected = None


def _pinned_decision(arm: Arm, flag: Flag | None) -> Decision:
    """Return what a session with a pinned *arm* gets; a tool that was taken back to shadow or legacy overrides pins."""
    if flag is None:
        return _UNFLAGGED
    if flag.stage in _PINNING:
        return Decision(arm, flag.stage, Reason.CACHED, flag.version)
    arm, reason = flag.choose(None)
    return Decision(arm, flag.stage, reason, flag.version)


def _aged(decision: Decision, trust: _Trust) -> Decision:
    if trust is _Trust.FRESH or decision.reason is Reason.ERROR:
        return decision
    if trust is _Trust.STALE:
        return replace(decision, reason=Reason.STALE)
    return _UNKNOWN


_boards: weakref.WeakSet[FlagBoard] = weakref.WeakSet()
_left_to_parent: list[Worker] = []


def _after_fork() -> None:
    for board in tuple(_boards):
        board._after_fork()  # noqa: SLF001 - of this module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
