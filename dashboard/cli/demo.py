"""``changeover demo``: the main job on embedded SQLite, with real tools and a scripted agent."""

from __future__ import annotations

import secrets
import shlex
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from changeover.config import Config, spool_for

from .options import store_option
from .output import console, is_terminal
from .stores import opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.progress import Progress

    from changeover.store.engine import Store
    from changeover.store.flags import FlagChange

DEMO_STORE: Final = "sqlite:///changeover-demo.db"
"""Not the store of everything else: a demo must not mix its sessions with real ones by default."""

HOST: Final = "127.0.0.1"
PORT: Final = 8321

INTRODUCTION: Final = (
    "Five real tools over a real SQLite database and a real HTTP service on this machine. The agent is scripted, it is "
    "no model: it reads each result and follows written rules. What you see is how changeover records, flips and "
    "counts, not how any model behaves."
)

HOW_TO_READ: Final = (
    "How to read it: in the legacy arm the script repeats a call whose error it cannot read. In the structured arm it "
    "does what next_action says; the loops that remain there follow errors that asked for a retry (rate_limited, "
    "upstream_timeout), and a retry that was asked for counts as a loop too. Futile loops, after errors that were not "
    "retryable: {legacy} in the legacy arm, {structured} in the structured arm."
)


@click.command(epilog="\b\nExample:\n  changeover demo --no-serve")
@click.option("--sessions", type=click.IntRange(1, 5000), default=200, show_default=True, help="Sessions a phase.")
@click.option("--seed", type=int, help="Makes users and agent decide the same again.  [default: a new one each time]")
@click.option(
    "--serve/--no-serve",
    "serve_it",
    default=None,
    help="Serve the dashboard at the end.  [default: on a terminal only]",
)
@store_option(DEMO_STORE)
def demo(*, sessions: int, seed: int | None, serve_it: bool | None, store_url: str) -> None:
    """Run the main job on embedded SQLite: before, flip, after, report, dashboard.

    Takes less than a minute and can be run again: it adds to its store, starting with a rollback of its tools.
    """
    from changeover.dashboard.demo.run import run

    # Its own spool whatever CHANGEOVER_SPOOL says, or it would take in the records of other stores.
    resolved = Config.resolve(store=store_url)
    config = Config.resolve(store=store_url, spool=spool_for(resolved.store))
    seed = secrets.randbelow(10_000) if seed is None else seed
    screen = console()
    screen.print(f"{INTRODUCTION}\n")
    with opened(config, create=True) as store:
        with _narrated(screen) as narrator:
            run(config, store, narrator, seed=seed, sessions=sessions)
        _show_report(store, screen)
        screen.print(f"\nStore: {config.store} (seed {seed})")
        _show_dashboard(store, config, serve_it=is_terminal() if serve_it is None else serve_it)


class Narrator:
    """Tells on the terminal how far the demo is: a bar for each phase, a line for each flip.

    Args:
        screen: where to.
        bars: rich's progress display; drawn on a terminal only.
    """

    def __init__(self, screen: Console, bars: Progress) -> None:
        self._screen = screen
        self._bars = bars
        self._bar = bars.add_task("", visible=False)

    def phase(self, text: str, sessions: int) -> None:
        """Begin a new bar."""
        self._screen.print(f"{text} ({sessions} sessions)")
        self._bars.reset(self._bar, total=sessions, visible=True)

    def session(self) -> None:
        """Move the bar on."""
        self._bars.advance(self._bar)

    def flipped(self, change: FlagChange, seconds: float) -> None:
        """Print one line for the flip."""
        self._screen.print(f"  {change.tool}: {change.from_stage} → {change.to_stage}, seen after {seconds:.1f} s")


@contextmanager
def _narrated(screen: Console) -> Iterator[Narrator]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True, disable=not is_terminal()) as bars:
        yield Narrator(screen, bars)


def _show_report(store: Store, screen: Console) -> None:
    from changeover.store.report import report

    from .report_formats import print_text

    figures = report(store)
    screen.print()
    print_text(figures)
    futile = {
        arm: sum(tool["arms"][arm]["futile_loops"] for tool in figures["tools"]) for arm in ("legacy", "structured")
    }
    screen.print(f"\n{HOW_TO_READ.format(**futile)}")


def _show_dashboard(store: Store, config: Config, *, serve_it: bool) -> None:
    command = f"{_program()} serve --store {shlex.quote(config.store)}"
    if not serve_it:
        click.echo(f"Dashboard: http://{HOST}:{PORT}/ once this runs: {command}")
        return
    from changeover.dashboard.web.server import ServeError

    from .serve import serve_store

    try:
        serve_store(store, config, host=HOST, port=PORT)
    except ServeError:  # something else has the usual port
        serve_store(store, config, host=HOST, port=0)


def _program() -> str:
    """Return how this program was called, so that the printed command can be copied as it is."""
    called = sys.argv[0]
    return f"{shlex.quote(sys.executable)} -m changeover" if called.endswith("__main__.py") else shlex.quote(called)
