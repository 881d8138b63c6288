"""The global state department: the one home of what a process shares, built at the first call, safe across forks.

Everything else is given what it needs. A process that never calls a wrapped tool builds nothing, opens nothing and
starts no thread.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .config import Config, ConfigurationError
from .flags import Decision, FlagBoard
from .forkgate import gate
from .hostbridge import HostBridge
from .keyfile import KEY_BYTES, digest_key
from .losses import Loss, Losses
from .quiet import quiet
from .recorder import Recorder
from .semconv import Arm, Reason, Stage
from .sink import warm_up

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .flags import FlagSource
    from .rollout import Flag

_REPLACE_SECONDS: Final = 5.0


class Runtime:
    """What the calls of a process need besides their tool.

    Args:
        config: the settings; ``None`` when they could not be had.
        losses: the counters of faults and drops.

    Attributes:
        on: whether anything of ours happens at all; without it, there is nothing else here.
        recorder: takes the records.
        flags: decides what is served.
        bridge: shows spans to the host's tracing.
        key: the key of every digest.
        service: the ``service.name``.
        payload_bytes: length at which a recorded payload is cut.
    """

    def __init__(self, config: Config | None, losses: Losses) -> None:
        self.losses = losses
        self.on = config is not None and config.recording
        if config is None or not config.recording:
            return
        if not sys.is_finalizing():
            with suppress(Exception):  # whoever needs the store tries again, and says what is wrong
                warm_up(config.store)
        self.service = config.service
        self.payload_bytes = config.payload_bytes
        self.key = self._key(config)
        self.recorder = Recorder(config, losses)
        self.flags: FlagBoard | NoFlags
        if sys.is_finalizing():
            self.flags = NoFlags()
        else:
            self.flags = FlagBoard(lambda: _QuietSource(config.store), on_fault=losses.count)
        self.bridge = HostBridge(lambda reason, fault: losses.count(reason, fault=fault))

    def fault(self, reason: str, fault: BaseException) -> None:
        """Count a fault of ours; the tool never hears of it."""
        self.losses.count(reason, fault=fault)

    def rule_failed(self) -> None:
        """Count a rule of a tool's owner that raised or answered nonsense, and was passed over."""
        self.losses.count(Loss.RULE_ERROR)

    def flush(self, timeout: float) -> bool:
        """Return whether all that was recorded is committed and shown to the host within *timeout* seconds."""
        if not self.on:
            return True
        deadline = time.monotonic() + timeout
        done = self.recorder.flush(timeout)
        return self.bridge.flush(max(0.0, deadline - time.monotonic())) and done

    def close(self, timeout: float | None = None) -> bool:
        """Flush, then end what runs in the background."""
        if not self.on:
            return True
        shown = self.bridge.flush(1.0)
        done = self.recorder.close(timeout)
        self.flags.close()
        self.bridge.close()
        return shown and done

    def forget_parent(self) -> None:
        """Begin afresh in a forked child; the flags see to themselves."""
        self.losses.forget_parent()
        if self.on:
            self.bridge.forget_parent()
            self.recorder.forget_parent()

    def _key(self, config: Config) -> bytes:
        try:
            return digest_key(config.spool)
        except (OSError, ValueError) as fault:
            # Digests are then comparable within this process only, which still finds its loops.
            self.losses.count(Loss.KEY_ERROR, fault=fault)
            return os.urandom(KEY_BYTES)


class NoFlags:
    """Stands in for the flags in a process that is going down, where no thread can be started to read them."""

    def decide(self, _tool: str, _session: str | None) -> Decision:
        """Return what nobody needs a flag for: the legacy payload."""
        return Decision(Arm.LEGACY, Stage.SHADOW, Reason.ERROR, 0)

    def close(self) -> None:
        """There is nothing to close."""


class _QuietSource:
    """The store's flags, read without spans of our SQL in the host's traces, and never in the middle of a fork."""

    def __init__(self, url: str) -> None:
        from changeover.store.flag_source import StoreFlagSource

        with gate.inside(), quiet():
            self._source: FlagSource = StoreFlagSource(url)

    def load(self) -> Mapping[str, Flag]:
        with gate.inside(), quiet():
            return self._source.load()

    def pinned(self, session: str, tool: str) -> Arm | None:
        with gate.inside(), quiet():
            return self._source.pinned(session, tool)

    def close(self) -> None:
        with gate.inside(), quiet():
            self._source.close()


_lock = threading.RLock()
_config: Config | None = None
_runtime: Runtime | None = None
_exit_hooked = False


def current() -> Runtime:
    """Return this process's runtime; the first call builds it. Never raises."""
    return _runtime or _build()


def configure(
    *,
    store: str | None = None,
    service: str | None = None,
    spool: str | os.PathLike[str] | None = None,
    recording: bool | None = None,
) -> None:
    """Say where calls are recorded; without it, the environment and the defaults decide.

    May be called again: what was recorded so far is flushed to the old store first.

    Example:
        changeover.configure(store="sqlite:///orders.db", service="orders-agent")

    Args:
        store: database URL, such as ``sqlite:///changeover.db`` or ``postgresql://user@host/name``.
        service: the ``service.name`` of every record.
        spool: folder of the spool; beside a SQLite file by default.
        recording: ``False`` records nothing, starts nothing and serves the legacy payload whatever the flags say, as
            does ``CHANGEOVER_ENABLED=false`` in the environment.

    Raises:
        ConfigurationError: (a ``ValueError``) for a setting that cannot be used; nothing is changed then.
    """
    global _config, _runtime
    config = Config.resolve(store=store, service=service, spool=spool, recording=recording)
    with _lock:
        _config, old, _runtime = config, _runtime, None
    if old is not None:
        old.close(_REPLACE_SECONDS)


def flush(timeout: float = 5.0) -> bool:
    """Wait until every call that ended before is committed in the store; for serverless handlers and tests.

    Args:
        timeout: seconds to wait at most.

    Returns:
        ``True`` when all of it is committed. ``False`` when the store did not take it in time; nothing is lost then,
        the records wait in the spool.

    Raises:
        ValueError: for a negative timeout.
    """
    if not timeout >= 0:
        raise ValueError(f"timeout must be a number of seconds, 0 or more, not {timeout!r}")
    return True if _runtime is None else _runtime.flush(timeout)


def _build() -> Runtime:
    global _exit_hooked  # noqa: PLW0603 - the same
    with _lock:
        if not _exit_hooked:
            _exit_hooked = True
            atexit.register(_at_exit)
        return _runtime or _kept(_made())


def _kept(made: Runtime) -> Runtime:
    """Return *made*, unless a finalizer that ran meanwhile called a wrapped tool and so built a runtime already."""
    global _runtime  # noqa: PLW0603 - the same
    _runtime = _runtime or made
    return _runtime


def _made() -> Runtime:
    losses = Losses()
    try:
        return Runtime(_config or Config.resolve(), losses)
    except ConfigurationError as fault:
        # The message names the setting and holds no data of a call, so it may be said.
        losses.count(Loss.RUNTIME_ERROR, fault=ConfigurationError(str(fault)))
        _say(fault)
    except Exception as fault:  # noqa: BLE001 - the boundary: a tool must run although we cannot
        losses.count(Loss.RUNTIME_ERROR, fault=fault)
    return Runtime(None, losses)


def _say(fault: ConfigurationError) -> None:
    from .losses import logger

    logger.warning("%s", fault)


def _at_exit() -> None:
    if _runtime is not None:
        _runtime.close()


def _in_child() -> None:
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it, and is not here to let go
    _lock = threading.RLock()
    if _runtime is not None:
        _runtime.forget_parent()


os.register_at_fork(after_in_child=_in_child)
