"""The spool: this process's append-only segments on disk, written before a tool's result is handed back.

A segment is ``<start_ns>-<pid>-<n>.jsonl``. Its writer holds a ``flock`` on it for as long as it lives, so a segment
whose lock can be taken belongs to nobody and may be taken in by any process.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SUFFIX: Final = ".jsonl"


class SpoolFull(Exception):  # noqa: N818 - it is a state of the disk, not a mistake of the caller
    """The spool has reached its bound: the line was not written."""


@dataclass(slots=True)
class _Segment:
    path: Path
    descriptor: int
    size: int = 0


class Spool:
    """Appends lines to segments in *folder*.

    Args:
        folder: where the segments lie; made when it is not there.
        max_bytes: bound of the whole folder, other processes' segments included (as of the last look at them).
        segment_bytes: size at which a new segment begins.
        clock: nanoseconds since the epoch, for the names of segments.
    """

    def __init__(
        self, folder: Path, *, max_bytes: int, segment_bytes: int, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes
        self._clock = clock
        self._number = 0
        self._segment: _Segment | None = None
        self._sealed: list[Path] = []
        self._elsewhere = 0  # bytes of every segment that is not the open one
        # Reentrant, because a finalizer or a signal handler may call a wrapped tool in the middle of an append.
        self._lock = threading.RLock()

    def append(self, line: bytes, *, beyond_bound: bool = False) -> None:
        """Write *line* (with its newline) in one piece.

        Args:
            line: one record.
            beyond_bound: write it even when the bound is reached, as is right for the count of what was dropped.

        Raises:
            SpoolFull: when the bound is reached.
            OSError: when the folder or the disk refuses; nothing of the line is left behind.
        """
        with self._lock:
            segment = self._segment or self._begin()
            size = segment.size + len(line)
            if size + self._elsewhere > self._max_bytes and not beyond_bound:
                raise SpoolFull
            written = os.write(segment.descriptor, line)
            if written != len(line):
                os.ftruncate(segment.descriptor, segment.size)
                raise OSError(f"only {written} of {len(line)} bytes could be written")
            segment.size = size
            if size >= self._segment_bytes:
                self._seal()

    def seal(self) -> None:
        """Close the open segment, so that it can be drained, and put a new one in its place.

        The new one is made before the lock is taken: an append never waits for a file to be created.

        Raises:
            OSError: when the folder refuses; the open segment stays open.
        """
        with self._lock:
            if self._segment is None or self._segment.size == 0:
                return
        replacement = self._open()
        if not self._replaced(replacement):
            _release(replacement)

    def _replaced(self, replacement: _Segment) -> bool:
        with self._lock:
            self._seal()
            if self._segment is not None:
                return False
            self._segment = replacement
            return True

    def sealed(self) -> list[Path]:
        """Return this process's closed segments that were not drained yet, oldest first."""
        with self._lock:
            return list(self._sealed)

    def drained(self, path: Path) -> None:
        """Forget *path*: its records are committed."""
        with self._lock:
            if path in self._sealed:
                self._sealed.remove(path)
        self.measure()

    @property
    def pending(self) -> bool:
        """Whether this process has written anything that was not drained yet."""
        with self._lock:
            return bool(self._sealed) or (self._segment is not None and self._segment.size > 0)

    def measure(self) -> None:
        """Look at the folder, since other processes write and remove segments there too."""
        total = sum(self._sizes().values())
        with self._lock:
            self._elsewhere = max(0, total - (self._segment.size if self._segment else 0))

    def has_foreign(self) -> bool:
        """Return whether other processes, living or dead, have segments in the folder."""
        names = self._sizes().keys()
        with self._lock:
            own = {path.name for path in self._sealed}
            if self._segment is not None:
                own.add(self._segment.path.name)
        return not names <= own

    def writable(self) -> bool:
        """Return whether the folder, or the nearest one above it that exists, takes new files."""
        folder = self.folder
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return os.access(folder, os.W_OK | os.X_OK)

    def _sizes(self) -> dict[str, int]:
        try:
            with os.scandir(self.folder) as entries:
                return {entry.name: _size(entry) for entry in entries if entry.name.endswith(SUFFIX)}
        except FileNotFoundError:
            return {}

    def close(self) -> None:
        """Release the open segment for whoever drains next; an empty one is removed."""
        with self._lock:
            segment, self._segment = self._segment, None
            if segment is None:
                return
            if segment.size:
                self._sealed.append(segment.path)
            _release(segment)

    def forget_parent(self) -> None:
        """Begin afresh in a forked child: the segments belong to the parent, which still holds their locks.

        The lock lives as long as any descriptor of the open file, so the child gives its copy back at once.
        """
        self._lock = threading.RLock()
        segment, self._segment, self._sealed = self._segment, None, []
        if segment is not None:
            os.close(segment.descriptor)

    def rescue(self) -> None:
        """Write the open segment again when somebody removed its file, or the whole folder.

        Nobody else takes in a segment whose lock is held, so a file that is gone was removed by mistake.

        Raises:
            OSError: when the folder or the disk refuses; the lines are kept, and it can be tried again.
        """
        with self._lock:
            removed = self._segment
            if removed is None or os.fstat(removed.descriptor).st_nlink:
                return
            replacement = self._open()
            lines = os.pread(removed.descriptor, removed.size, 0)
            written = os.write(replacement.descriptor, lines) if lines else 0
            if written != removed.size:
                _release(replacement)  # still of size 0, so its file goes too
                raise OSError(f"only {written} of {removed.size} bytes could be written again")
            replacement.size = written
            self._segment = replacement
            os.close(removed.descriptor)

    def _seal(self) -> None:
        segment = self._segment
        if segment is None or segment.size == 0:
            return
        self._segment = None
        self._sealed.append(segment.path)
        self._elsewhere += segment.size
        _release(segment)

    def _begin(self) -> _Segment:
        segment = self._open()
        self.measure()
        self._segment = segment
        return segment

    def _open(self) -> _Segment:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock:
            self._number += 1
            name = f"{self._clock()}-{os.getpid()}-{self._number}"
        # Locked under a private name first: a segment that carries the public one is never seen unlocked while its
        # writer lives, so nobody can take it in between.
        private = self.folder / f".{name}"
        descriptor = os.open(private, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path = self.folder / f"{name}{SUFFIX}"
            private.rename(path)
        except OSError:
            os.close(descriptor)
            private.unlink(missing_ok=True)
            raise
        return _Segment(path, descriptor)


def _release(segment: _Segment) -> None:
    if segment.size == 0:
        segment.path.unlink(missing_ok=True)
    # Unlocked by name, since a forked child may still hold a copy of the descriptor, and with it the lock.
    fcntl.flock(segment.descriptor, fcntl.LOCK_UN)
    os.close(segment.descriptor)


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return 0
