"""Move what lies in the spool into the store: a segment is removed once all of it is committed, never before.

A crash in between costs nothing, since taking a segment in again changes nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .engine import BUSY_SECONDS
from .errors import StoreError
from .ingest import ingest
from .record_fields import MAX_INTEGER
from .segments import batches, locked

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from .engine import Store
    from .segments import Batch

SUFFIX: Final = ".jsonl"
REFUSED: Final = "refused_record"
_log = logging.getLogger(__name__)
_DIGITS = 19


@dataclass(frozen=True, slots=True)
class Drained:
    """What was taken out of a spool.

    Args:
        records: lines that held a record, known ones and malformed ones included.
        stored: calls that are new in the store.
        segments: files that were taken in and removed.
        lost: lines and records that could not be stored, by reason.
        refused: segments that the file system would not let us read or remove, with its reason.
    """

    records: int = 0
    stored: int = 0
    segments: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: Drained) -> Drained:
        return Drained(
            self.records + other.records,
            self.stored + other.stored,
            self.segments + other.segments,
            dict(Counter(self.lost) + Counter(other.lost)),
            {**self.refused, **other.refused},
        )


def drain(spool: Path, store: Store) -> Drained:
    """Take in the segments in *spool* that no living process is writing, oldest first.

    Args:
        spool: the folder; one that does not exist is empty.
        store: where to.

    Raises:
        StoreError: when the database refuses; what was committed before stays, what was not stays in the spool.
    """
    drained = Drained()
    for path in sorted(spool.glob(f"*{SUFFIX}")):
        try:
            with locked(path) as file:
                if file is not None:
                    drained += _drain_locked(file, path, store)
        except OSError as error:
            drained += Drained(refused={str(path): error.strerror or str(error)})
    return drained


def drain_segment(path: Path, store: Store) -> Drained:
    """Take in one segment that the calling process has closed; one that is gone was taken in by somebody else.

    Raises:
        StoreError: when the database refuses, or another process holds the segment for too long.
        OSError: when the segment cannot be read or removed.
    """
    with locked(path, wait=BUSY_SECONDS) as file:
        if file is not None:
            return _drain_locked(file, path, store)
    if path.exists():
        raise StoreError(f"another process has held {path} for too long; it is taken in later")
    return Drained()


def _drain_locked(file: BinaryIO, path: Path, store: Store) -> Drained:
    drained = Drained(segments=1)
    began_at = _began_at(path)
    for batch in batches(file):
        # Named after its place in the segment, so that its losses count once however often it is delivered.
        drained += _take_in(store, batch, f"{path.name}@{batch.offset}", began_at)
    path.unlink()
    return drained


def _take_in(store: Store, batch: Batch, name: str, at: int) -> Drained:
    try:
        done = ingest(store, batch.records, process=name, at=at, lost=batch.lost)
    except StoreError:
        raise
    except Exception:  # noqa: BLE001 - whatever it is, it is logged and its records are counted
        # One record that nobody foresaw must not hold up all that come after it for ever.
        _log.exception("records of %s are taken in one by one, since they cannot be together", name)
        return _take_in_singly(store, batch, name, at)
    return Drained(records=len(batch.records), stored=done.stored, lost=done.rejected)


def _take_in_singly(store: Store, batch: Batch, name: str, at: int) -> Drained:
    stored, lost = 0, Counter(batch.lost)
    for place, record in enumerate(batch.records):
        try:
            done = ingest(store, [record], process=f"{name}+{place}", at=at)
        except StoreError:
            raise
        except Exception:  # noqa: BLE001 - counted; the batch's failure was logged
            batch.lose(REFUSED)
            lost[REFUSED] += 1
        else:
            stored += done.stored
            lost.update(done.rejected)
    ingest(store, [], process=name, at=at, lost=batch.lost)
    return Drained(records=len(batch.records), stored=stored, lost=dict(lost))


def _began_at(path: Path) -> int:
    begin = path.name.partition("-")[0]
    if begin.isdecimal() and int(begin[:_DIGITS]) <= MAX_INTEGER:
        return int(begin[:_DIGITS])
    return path.stat().st_mtime_ns
