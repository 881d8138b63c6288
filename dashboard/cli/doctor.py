"""``changeover doctor``: is what should be recorded being recorded, and can the store be used?"""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Literal

import click

from changeover.config import Config

from .errors import CHECK_FAILED
from .options import json_option, store_option
from .output import console, print_json, table
from .stores import caught_up, segments, store_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .output import Columns

STUCK_SECONDS: Final = 60.0
"""A living process moves its records within a second; after this long something keeps it from doing so."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    Args:
        check: what was looked at.
        status: ``ok``, ``note`` (worth knowing) or ``problem`` (exit code 1).
        text: what was found, and for a problem what to do.
    """

    check: str
    status: Literal["ok", "note", "problem"]
    text: str


@click.command(epilog="\b\nExample:\n  changeover doctor --json")
@store_option()
@json_option
@click.pass_context
def doctor(ctx: click.Context, *, store_url: str, as_json: bool) -> None:
    """Check that recording and the store are in order. Exit code 1 when something is not."""
    from changeover.store.queries import losses
    from changeover.store.schema import current_revision

    config = Config.resolve(store=store_url)
    with caught_up(config) as store:
        findings = [
            Finding("store", "ok", store_name(config)),
            Finding("schema", "ok", str(current_revision(store))),
            recording(config),
            spool_folder(config.spool),
            backlog(config.spool, now=time.time()),
            lost(losses(store)),
        ]
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        columns: Columns = (("check", "left"), ("status", "left"), ("finding", "left"))
        console().print(table(columns, [(f.check, f.status, f.text) for f in findings]))
    if any(finding.status == "problem" for finding in findings):
        ctx.exit(CHECK_FAILED)


def recording(config: Config) -> Finding:
    """Say whether a process with this environment records at all."""
    if config.recording:
        return Finding("recording", "ok", f"on, as service {config.service!r}")
    return Finding("recording", "problem", "off: CHANGEOVER_ENABLED is false; unset it to record")


def spool_folder(spool: Path) -> Finding:
    """Say whether processes of this user can write records to *spool*."""
    place = next(folder for folder in (spool, *spool.parents) if folder.exists())
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return Finding("spool", "ok", str(spool))
    return Finding("spool", "problem", f"{place} cannot be written by this user; fix that, or set CHANGEOVER_SPOOL")


def backlog(spool: Path, *, now: float) -> Finding:
    """Say how much waits in *spool* for a living process to move it; *now* is in seconds since the epoch."""
    waiting = [(path, size) for path, size in segments(spool) if size]
    if not waiting:
        return Finding("backlog", "ok", "no records wait in the spool")
    text = (
        f"{len(waiting)} segments, {sum(size for _, size in waiting):,} bytes, wait for the processes that wrote them"
    )
    oldest = max(now - _written(path, now) for path, _ in waiting)
    if oldest <= STUCK_SECONDS:
        return Finding("backlog", "ok", text)
    return Finding(
        "backlog", "problem", f"{text}, the oldest for {oldest:,.0f} s: these processes cannot reach this store"
    )


def lost(losses: Mapping[str, int]) -> Finding:
    """Say what was dropped, by reason."""
    if not losses:
        return Finding("losses", "ok", "nothing was dropped")
    listed = ", ".join(f"{reason} {count:,}" for reason, count in sorted(losses.items()))
    return Finding("losses", "note", f"dropped so far: {listed}")


def _written(path: Path, now: float) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # drained while we looked
        return now
