"""The recorder: takes one line a call, never blocks, fails or hangs the tool, and loses nothing uncounted."""

from __future__ import annotations

import os
import platform
import time
from typing import TYPE_CHECKING, Final

import orjson

from .drainer import Drainer
from .losses import Loss, Losses, logger
from .sink import StoreSink
from .spans import RECORD_VERSION
from .spool import Spool, SpoolFull

if TYPE_CHECKING:
    from collections.abc import Callable

    from .config import Config
    from .drainer import Sink

_COOL_DOWN_SECONDS: Final = 1.0


class Recorder:
    """Appends records to the spool and sees that they reach the store.

    Args:
        config: where to, and the bounds.
        losses: the counters that travel with the records.
        open_sink: makes the connection to the store.
    """

    def __init__(self, config: Config, losses: Losses, *, open_sink: Callable[[], Sink] | None = None) -> None:
        self._losses = losses
        self._exit_seconds = config.exit_seconds
        self._spool = Spool(config.spool, max_bytes=config.spool_bytes, segment_bytes=config.segment_bytes)
        self._drainer = Drainer(
            self._spool,
            open_sink or (lambda: StoreSink(config.store)),
            spill=self._spill,
            interval=config.drain_seconds,
            report=lambda reason, fault: losses.count(reason, 0, fault=fault),
        )
        self._refused_until = 0.0
        self._closed = False
        self._start = self._drainer.start

    def append(self, line: bytes) -> None:
        """Write *line*, one record with its newline, into the spool; never raises.

        A call that outlives its recorder is written too, and left for whoever drains the folder next.
        """
        try:
            if self._refused_until and time.monotonic() < self._refused_until:
                self._losses.count(Loss.SPOOL_ERROR)
                return
            self._spool.append(line)
            if self._closed:
                self._spool.close()
            else:
                self._start()
        except SpoolFull:
            self._losses.count(Loss.SPOOL_FULL)
            self._start()
        except OSError as fault:
            # A folder that refuses is not asked again for every call: asking costs more than the call itself.
            self._refused_until = time.monotonic() + _COOL_DOWN_SECONDS
            self._losses.count(Loss.SPOOL_ERROR, fault=fault)
        except Exception as fault:  # noqa: BLE001 - the boundary: nothing of ours reaches the tool
            self._losses.count(Loss.RECORD_ERROR, fault=fault)

    def count(self, reason: str, n: int = 1) -> None:
        """Count *n* drops or faults of ours under *reason*; they are stored as loss records."""
        self._losses.count(reason, n)

    def flush(self, timeout: float) -> bool:
        """Return whether everything that was recorded before the call is committed within *timeout* seconds."""
        if not self._spool.pending and not self._losses.pending:
            return True
        return self._drainer.flush(timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Flush, end the background thread and release the open segment for whoever drains next.

        Args:
            timeout: seconds for all of it; the configured time for the end of a process when left out.
        """
        deadline = time.monotonic() + (self._exit_seconds if timeout is None else timeout)
        done = self.flush(max(0.0, deadline - time.monotonic()))
        self._drainer.stop(max(0.0, deadline - time.monotonic()))
        self._closed = True
        self._spool.close()
        if not done and self._spool.pending:
            logger.warning("records wait in %s and are taken in by the next start", self._spool.folder)
        return done

    def forget_parent(self) -> None:
        """Begin afresh in a forked child, with its own segment and its own thread."""
        self._spool.forget_parent()
        self._drainer.forget_parent()
        self._refused_until = 0.0

    def _spill(self) -> None:
        counts = self._losses.take()
        while counts:
            reason, count = counts.popitem()
            try:
                self._spool.append(_loss_line(reason, count), beyond_bound=True)
            except Exception:
                self._losses.put_back({**counts, reason: count})
                raise


def _loss_line(reason: str, count: int) -> bytes:
    loss = {
        "kind": "loss",
        "v": RECORD_VERSION,
        "reason": str(reason),
        "count": count,
        "time_unix_nano": time.time_ns(),
        "process": f"{platform.node()}:{os.getpid()}",
    }
    return orjson.dumps(loss, option=orjson.OPT_APPEND_NEWLINE)
