"""The demo from end to end: a phase on legacy, the flip by the flag, a phase on structured.

Nothing is written into the store but what wrapped tools record; what differs between the phases is what the scripted
agent did with what it was given to read.
"""

from __future__ import annotations

import random
import secrets
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import changeover
from changeover import runtime
from changeover.semconv import Stage

from .agent import Agent
from .carrier import running_carrier
from .goals import goals_of_a_session
from .orders import Orders
from .tools import TOOLS, Desk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from changeover.config import Config
    from changeover.store.engine import Store
    from changeover.store.flags import FlagChange

SERVICE: Final = "changeover-demo"
WHO: Final = "changeover demo"
SESSIONS: Final = 200
"""Sessions a phase by default: enough for a verdict on most tools, few enough for a minute."""

AT_ONCE: Final = 16
THINKING_SECONDS: Final = 0.06
FLAG_SECONDS: Final = 10.0
FLUSH_SECONDS: Final = 30.0


class DemoError(Exception):
    """The demo cannot go on; the message says what to do."""


class Progress(Protocol):
    """Hears how far the demo is."""

    def phase(self, text: str, sessions: int) -> None:
        """Note that a phase of so many sessions begins."""

    def session(self) -> None:
        """Note that one session has ended; called from several threads."""

    def flipped(self, change: FlagChange, seconds: float) -> None:
        """Note that a flag was changed and the running tools saw it after *seconds*."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One half of the demo.

    Args:
        name: part of its sessions' ids.
        text: what a person reads about it.
    """

    name: str
    text: str


BEFORE: Final = Phase("before", "Before: every tool in shadow, the agent reads the legacy errors")
AFTER: Final = Phase("after", "After: every tool cut over, the agent reads the structured errors")


def run(config: Config, store: Store, progress: Progress, *, seed: int, sessions: int = SESSIONS) -> None:
    """Run both phases against *store*.

    Args:
        config: settings whose store is *store*; calls are recorded there.
        store: the open store.
        progress: hears how far it is.
        seed: what the users want and how the agent decides follows from it.
        sessions: sessions a phase.

    Raises:
        DemoError: when the running tools do not see a flip, or the records do not reach the store.
    """
    changeover.configure(store=config.store, spool=config.spool, service=SERVICE, recording=True)
    # New in every run: a session that has begun keeps its arm, so ids of an earlier run would keep theirs.
    name = f"demo-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory(prefix="changeover-demo-") as folder, running_carrier() as carrier:
        orders = Orders(Path(folder) / "orders.db")
        orders.fill(random.Random(seed))  # noqa: S311 - a made-up shop
        scene = _Scene(orders, carrier, progress, seed, name)
        _back_to_shadow(store, progress)
        scene.play(BEFORE, sessions)
        _flush()
        for change in [_flip(store, tool, Stage.CUTOVER, 100.0, "the demo's flip") for tool in TOOLS]:
            _wait_until_seen(change, progress)
        scene.play(AFTER, sessions)
        _flush()


@dataclass(frozen=True, slots=True)
class _Scene:
    orders: Orders
    carrier: str
    progress: Progress
    seed: int
    name: str

    def play(self, phase: Phase, sessions: int) -> None:
        self.progress.phase(phase.text, sessions)
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="demo-session") as pool:
            for _ in pool.map(lambda number: self._session(phase, number), range(sessions)):
                pass

    def _session(self, phase: Phase, number: int) -> None:
        # The same users with the same wishes in both phases; only the agent's own choices are drawn anew.
        wishes = random.Random(f"{self.seed} {number}")  # noqa: S311 - a script, no secret
        choices = random.Random(f"{self.seed} {phase.name} {number}")  # noqa: S311 - the same
        session = f"{self.name}-{phase.name}-{number}"
        tools = Desk(self.orders, self.carrier, session).tools()
        agent = Agent(tools, choices, thinking_seconds=THINKING_SECONDS)
        with changeover.session(session, actor="scripted-agent") as conversation:
            for goal in goals_of_a_session(wishes):
                agent.pursue(goal, conversation)
        self.progress.session()


def _back_to_shadow(store: Store, progress: Progress) -> None:
    """Undo an earlier run, so that its audit trail says so and the first phase is one on legacy again."""
    for change in list(_rolled_back(store)):
        _wait_until_seen(change, progress)


def _rolled_back(store: Store) -> Iterator[FlagChange]:
    from changeover.store.flags import list_flags

    for flag in list_flags(store):
        if flag.tool in TOOLS and flag.stage is not Stage.SHADOW:
            yield _flip(store, flag.tool, Stage.SHADOW, 0.0, "the demo begins again")


def _flip(store: Store, tool: str, stage: Stage, rollout: float, reason: str) -> FlagChange:
    from changeover.store.flags import set_flag

    return set_flag(store, tool, stage=stage, rollout=rollout, who=WHO, reason=reason)


def _wait_until_seen(change: FlagChange, progress: Progress) -> None:
    """Wait as any running process would: nobody tells its flags, they find out by themselves."""
    started = time.monotonic()
    while runtime.current().flags.decide(change.tool, None).version < change.version:
        if time.monotonic() - started > FLAG_SECONDS:
            raise DemoError(
                f"the flip of {change.tool} was not seen within {FLAG_SECONDS:g} s: "
                "check the store with changeover doctor"
            )
        time.sleep(0.02)
    progress.flipped(change, time.monotonic() - started)


def _flush() -> None:
    if not changeover.flush(FLUSH_SECONDS):
        raise DemoError(
            f"the records did not reach the store within {FLUSH_SECONDS:g} s and wait in its spool: "
            "check the store with changeover doctor"
        )
