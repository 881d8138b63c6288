"""What of ours failed or was dropped: counted under a reason, logged once per reason, never raised into a tool."""

from __future__ import annotations

import logging
import sys
import threading
from enum import StrEnum
from typing import Final

logger: Final = logging.getLogger("changeover")


class Loss(StrEnum):
    """Why a record, or a part of one, is missing; stored with a count, so that no gap is silent."""

    SPOOL_FULL = "spool_full"
    SPOOL_ERROR = "spool_error"
    KEY_ERROR = "key_error"
    RUNTIME_ERROR = "runtime_error"
    FLAG_LOAD = "flag_load_failed"
    FLAG_LOOKUP = "flag_lookup_failed"
    FLAG_CLOSE = "flag_close_failed"
    FLAG_DECISION = "flag_decision_failed"
    ARGUMENTS_ERROR = "arguments_error"
    CLASSIFY_ERROR = "classify_error"
    RULE_ERROR = "rule_error"
    RENDER_ERROR = "render_error"
    SPAN_ERROR = "span_error"
    RECORD_ERROR = "record_error"
    HOST_QUEUE_FULL = "host_queue_full"
    HOST_ERROR = "host_error"


_MEANING: Final[dict[str, str]] = {
    Loss.SPOOL_FULL: "the spool has reached its bound, calls are not recorded: is the store away?",
    Loss.SPOOL_ERROR: "the spool's folder cannot be written, calls are not recorded: set CHANGEOVER_SPOOL",
    Loss.KEY_ERROR: "the key of the digests cannot be used, so calls compare with calls of the same process only",
    Loss.RUNTIME_ERROR: "changeover could not start, tools run as if they were bare",
    Loss.FLAG_LOAD: "the flags could not be read, the last good ones or the legacy payload are served",
    Loss.FLAG_LOOKUP: "a session's arm could not be looked up, it gets the legacy payload",
    Loss.FLAG_CLOSE: "the connection to the flags could not be closed",
    Loss.FLAG_DECISION: "an arm could not be decided, the legacy payload is served",
    Loss.ARGUMENTS_ERROR: "the arguments of a call could not be read, it is recorded without them",
    Loss.CLASSIFY_ERROR: "a result could not be classified, the legacy result is served",
    Loss.RULE_ERROR: "a rule of a tool raised or answered nonsense and was passed over",
    Loss.RENDER_ERROR: "a payload could not be rendered, the legacy result is served",
    Loss.SPAN_ERROR: "a span could not be made, the call is not recorded",
    Loss.RECORD_ERROR: "a call could not be recorded",
    Loss.HOST_QUEUE_FULL: "the host's span processors are too slow, spans are kept from them (the store has them)",
    Loss.HOST_ERROR: "the host's tracing could not be used, it does not see a span (the store has it)",
}


class Losses:
    """Counters of one process, kept until they are written down."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._said: set[str] = set()
        # Reentrant, because a finalizer that runs in here may count a loss itself.
        self._lock = threading.RLock()

    def count(self, reason: str, n: int = 1, *, fault: BaseException | None = None) -> None:
        """Add *n* to *reason*; the first time, say so in the log.

        A fault that cost nothing yet, such as a store that is away while the spool has room, is logged with *n* 0.

        Only the type of *fault* is logged, since its text may hold a value; its traceback appears at level DEBUG.
        """
        with self._lock:
            if n:
                self._counts[reason] = self._counts.get(reason, 0) + n
            if reason in self._said or sys.is_finalizing():  # by then nobody listens any more
                return
            self._said.add(reason)
        kind = f" ({type(fault).__name__})" if fault is not None else ""
        logger.warning("%s%s; counted under %r and not said again", _MEANING.get(reason, reason), kind, str(reason))
        logger.debug("the first fault under %r", str(reason), exc_info=fault)

    def take(self) -> dict[str, int]:
        """Return what was counted since the last call, and begin again at zero."""
        with self._lock:
            taken, self._counts = self._counts, {}
        return taken

    def put_back(self, counts: dict[str, int]) -> None:
        """Add *counts* again, because they could not be written down."""
        with self._lock:
            for reason, n in counts.items():
                self._counts[reason] = self._counts.get(reason, 0) + n

    @property
    def pending(self) -> bool:
        """Whether anything was counted that is not written down yet."""
        return bool(self._counts)

    def forget_parent(self) -> None:
        """Begin at zero in a forked child: the parent writes its own counts down."""
        self._lock = threading.RLock()
        self._counts = {}
