"""Read a spool segment line by line, whatever has become of it: torn at its end, with unreadable or huge lines."""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BATCH_RECORDS: Final = 1_000
BATCH_BYTES: Final = 8 * 2**20
MAX_LINE_BYTES: Final = 16 * 2**20

TORN: Final = "torn_record"
UNREADABLE: Final = "unreadable_record"
OVERSIZE: Final = "oversize_record"

_LOCK_POLL_SECONDS = 0.05


@dataclass(slots=True)
class Batch:
    """Records that lie side by side in a segment.

    Args:
        offset: where in the segment the batch begins, in bytes; always the same for the same segment.
        records: the lines as objects.
        lost: lines that hold no record, by reason.
    """

    offset: int
    records: list[Any] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)

    def lose(self, reason: str) -> None:
        """Count one line that holds no record."""
        self.lost[reason] = self.lost.get(reason, 0) + 1


@contextmanager
def locked(path: Path, *, wait: float = 0.0) -> Iterator[BinaryIO | None]:
    """Give the segment at *path*, locked, so that nobody else drains it; ``None`` when it is gone or taken.

    Args:
        path: the segment.
        wait: seconds to wait for whoever holds it.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        yield None
        return
    with file:
        yield file if _lock(file, wait) and _is_still_there(file, path) else None


def batches(file: BinaryIO) -> Iterator[Batch]:
    """Yield the records of a segment in batches that are cut at the same places every time."""
    batch, start = Batch(file.tell()), file.tell()
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            _skip_line(file)
            batch.lose(OVERSIZE)
        else:
            _take(batch, line)
        position = file.tell()
        if len(batch.records) >= BATCH_RECORDS or position - start >= BATCH_BYTES:
            yield batch
            batch, start = Batch(position), position
    if batch.records or batch.lost:
        yield batch


def _take(batch: Batch, line: bytes) -> None:
    if not line.strip():
        return
    try:
        batch.records.append(_object(line))
    except (ValueError, RecursionError):
        # Only the last line can lack its end: the process died while it wrote.
        batch.lose(UNREADABLE if line.endswith(b"\n") else TORN)


def _object(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        # The strict parser refuses lone surrogates and huge integers, which a record survives.
        return json.loads(line)


def _skip_line(file: BinaryIO) -> None:
    while rest := file.readline(MAX_LINE_BYTES):
        if rest.endswith(b"\n"):
            return


def _lock(file: BinaryIO, wait: float) -> bool:
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOCK_POLL_SECONDS)
        else:
            return True


def _is_still_there(file: BinaryIO, path: Path) -> bool:
    # Another drainer may have removed the segment between our opening it and our getting its lock.
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
