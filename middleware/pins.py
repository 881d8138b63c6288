"""The arms of sessions that were seen, bounded in number."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from .rollout import Flag
    from .semconv import Arm

_D = TypeVar("_D")


class Pin(NamedTuple, Generic[_D]):
    """The arm of one session for one tool, with the decision that was made for it under *flag*."""

    arm: Arm
    flag: Flag | None
    decision: _D


class Pins(Generic[_D]):
    """A least-recently-used memory of pins that is read without a lock.

    There are two generations. What is asked for moves to the young one; when that is full it becomes the old one, and
    what was left in the old one is forgotten.

    Args:
        limit: how many pins are kept at most; at least the half of it always is.
    """

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._young: dict[tuple[str, str], Pin[_D]] = {}
        self._old: dict[tuple[str, str], Pin[_D]] = {}
        # Reentrant, because a signal handler or a finalizer may call a wrapped tool while this thread is in here.
        self._lock = threading.RLock()

    def recent(self, key: tuple[str, str]) -> Pin[_D] | None:
        """Return the pin of *key* if it is in the young generation; the quick look-up."""
        return self._young.get(key)

    def get(self, key: tuple[str, str]) -> Pin[_D] | None:
        """Return the pin of *key*, and keep it from being forgotten."""
        with self._lock:
            pin = self._young.get(key)
            if pin is None and (pin := self._old.get(key)) is not None:
                self._put(key, pin)
            return pin

    def first(self, key: tuple[str, str], pin: Pin[_D]) -> Pin[_D]:
        """Set the pin of *key* unless another thread came first; return the one that holds."""
        with self._lock:
            held = self._young.get(key) or self._old.get(key) or pin
            self._put(key, held)
            return held

    def refresh(self, key: tuple[str, str], pin: Pin[_D]) -> None:
        """Replace what is remembered of *key*; whoever calls this does not change the arm."""
        with self._lock:
            self._put(key, pin)

    def renew(self) -> None:
        """Replace the lock after a fork: a thread of the parent may have held it, and is not here to let go."""
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())

    def _put(self, key: tuple[str, str], pin: Pin[_D]) -> None:
        if key not in self._young and len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[key] = pin
