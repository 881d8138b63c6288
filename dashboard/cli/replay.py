"""``changeover replay``: recorded agent sessions into the store."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from changeover.config import Config

from .errors import BAD_INPUT, Refused, one_line
from .options import json_option, store_option
from .output import console, print_json, table
from .stores import opened, store_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from changeover.dashboard.replay import Replayed
    from changeover.dashboard.replay_counts import Counts

    from .output import Columns

# Kept here, since listing the formats must not import their readers; a test holds it against them.
FORMATS = (
    "claude-code",
    "tau2-bench",
    "tau-bench",
    "livemcpbench",
    "toolbench",
    "intercode",
    "swe-agent",
    "anthropic",
    "openai",
)


@click.command(
    epilog="""\b
Examples:
  changeover replay sessions/
  changeover replay run.jsonl older.json.gz --json
"""
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(readable=False))
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", *FORMATS]),
    default="auto",
    show_default=True,
    help="The recording's format; auto recognises it by content.",
)
@store_option()
@json_option
def replay(*, paths: tuple[str, ...], form: str, store_url: str, as_json: bool) -> None:
    """Read recorded agent sessions from files and folders, plain or gzip.

    Each file is stored whole or not at all, and counts once however often it is replayed. A file that cannot be read is
    named with the reason, and the rest goes on; the exit code is 2 when none could be read.
    """
    from changeover.dashboard.replay import find
    from changeover.dashboard.replay import replay as take_in
    from changeover.keyfile import digest_key

    if not all(paths):  # a shell variable that is not set would mean the working folder
        raise Refused("PATH is empty: name a recorded session, or a folder of them")
    config = Config.resolve(store=store_url)
    found = find(map(Path, paths))
    if not found.files:
        raise Refused("; ".join(f"{path}: {reason}" for path, reason in found.skipped))
    with opened(config, create=True) as store, _progress(len(found.files)) as done:
        try:
            key = digest_key(config.spool)
        except (OSError, ValueError) as fault:
            raise Refused(f"the key of the digests cannot be used: {fault}") from fault
        replayed = take_in(found, store, config, key=key, form=None if form == "auto" else form, done=done)
    for path, reason in replayed.skipped:
        click.echo(f"changeover: skipped {one_line(f'{path}: {reason}')}", err=True)
    if as_json:
        print_json(replayed.as_dict())
    elif replayed.files:
        _show(replayed, config)
    if not replayed.files:
        click.echo("changeover: none of these files is a recorded session that can be read", err=True)
        raise click.exceptions.Exit(BAD_INPUT)


@contextmanager
def _progress(files: int) -> Iterator[Callable[[Path], object]]:
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("Replaying", total=files)
        yield lambda _: progress.advance(task)


def _show(replayed: Replayed, config: Config) -> None:
    figures: Columns = (
        ("sessions", "right"),
        ("calls", "right"),
        ("errors", "right"),
        ("loops", "right"),
        ("loop rate", "right"),
        ("runaways", "right"),
    )
    out = console()
    files = [(path, form, *_cells(counts)) for path, form, counts in replayed.files]
    out.print(table((("file", "left"), ("format", "left"), *figures), files))
    tools = [(name, *_cells(counts)) for name, counts in sorted(replayed.held.tools.items())]
    out.print(table((("tool", "left"), *figures), [*tools, ("all", *_cells(replayed.held.total))]))
    new = "1 new call is" if replayed.stored == 1 else f"{replayed.stored:,} new calls are"
    out.print(f"{new} in {store_name(config)}; look at them with: changeover serve{_option(config)}")


def _option(config: Config) -> str:
    return "" if config == Config.resolve() else f" --store {shlex.quote(config.store)}"


def _cells(counts: Counts) -> tuple[Any, ...]:
    rate = "no errors" if counts.loop_rate is None else f"{counts.loop_rate * 100:.1f} %"
    return (counts.sessions, counts.calls, counts.errors, counts.loops, rate, counts.runaways)
