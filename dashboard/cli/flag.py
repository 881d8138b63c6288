"""``changeover flag``: see and change how far each tool's changeover has come."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Any, Final

import click

from changeover.config import Config
from changeover.semconv import Stage

from .errors import one_line
from .options import json_option, store_option
from .output import console, print_json, table
from .stores import caught_up, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from changeover.store.flags import FlagChange

    from .output import Columns

SEEN_WITHIN: Final = "running processes see it within 2 seconds"

_who_option = click.option("--who", metavar="NAME", help="Who changes it.  [default: the current user]")
_reason_option = click.option("--reason", required=True, metavar="TEXT", help="Why, for the audit trail.")


@click.group(
    epilog="""\b
Examples:
  changeover flag list
  changeover flag set find_order --stage cutover --rollout 25 --reason "first quarter of sessions"
  changeover flag rollback find_order --reason "customers complain"
"""
)
def flag() -> None:
    """List and change the stage of tools; every change is kept with who and why."""


@flag.command("list", epilog="\b\nExample:\n  changeover flag list --json")
@store_option()
@json_option
def list_(*, store_url: str, as_json: bool) -> None:
    """Show the stage of every tool that has a flag; any other tool is in shadow."""
    from changeover.store.flags import list_flags

    with opened(Config.resolve(store=store_url)) as store:
        flags = list_flags(store)
    if as_json:
        print_json([{"tool": f.tool, "stage": f.stage, "rollout": f.rollout, "version": f.version} for f in flags])
        return
    rows = [(f.tool, f.stage.value, percent(f.rollout, f.stage), f.version) for f in flags]
    columns: Columns = (("tool", "left"), ("stage", "left"), ("rollout", "right"), ("version", "right"))
    _print(columns, rows, nothing="No flag has been set: every tool is in shadow.")


@flag.command(
    "set", epilog='\b\nExample:\n  changeover flag set find_order --stage cutover --rollout 25 --reason "trial"'
)
@click.argument("tool")
@click.option(
    "--stage",
    required=True,
    type=click.Choice([stage.value for stage in Stage]),
    help="How far the changeover has come.",
)
@click.option(
    "--rollout",
    type=float,
    metavar="PERCENT",
    help="Share of sessions that get the new stage, 0 to 100. Required for cutover and dual; sessions that have begun "
    "keep what they have.",
)
@_reason_option
@_who_option
@click.option("--force", is_flag=True, help="Set it although the store has never seen this tool.")
@store_option()
@json_option
def set_(
    *,
    tool: str,
    stage: str,
    rollout: float | None,
    reason: str,
    who: str | None,
    force: bool,
    store_url: str,
    as_json: bool,
) -> None:
    """Move TOOL to another stage, for all or for a share of sessions."""
    wanted = Stage(stage)
    config = Config.resolve(store=store_url)
    share = _rollout(wanted, rollout)
    _change(config, tool, stage=wanted, rollout=share, reason=reason, who=who, force=force, as_json=as_json)


@flag.command(epilog='\b\nExample:\n  changeover flag rollback find_order --reason "customers complain"')
@click.argument("tool")
@_reason_option
@_who_option
@store_option()
@json_option
def rollback(*, tool: str, reason: str, who: str | None, store_url: str, as_json: bool) -> None:
    """Move TOOL back to shadow at once, for running sessions too."""
    config = Config.resolve(store=store_url)
    _change(config, tool, stage=Stage.SHADOW, rollout=0.0, reason=reason, who=who, force=False, as_json=as_json)


@flag.command(epilog="\b\nExample:\n  changeover flag history --tool find_order")
@click.option("--tool", metavar="NAME", help="Only the changes of this tool.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many changes.")
@store_option()
@json_option
def history(*, tool: str | None, limit: int, store_url: str, as_json: bool) -> None:
    """Show the audit trail of changes, newest first."""
    from changeover.store.flags import history as changes_of

    with opened(Config.resolve(store=store_url)) as store:
        changes = changes_of(store, tool, limit=limit)
    if as_json:
        print_json([_as_dict(change) for change in changes])
        return
    columns: Columns = (("when (UTC)", "left"), ("tool", "left"), ("change", "left"), ("who", "left"), ("why", "left"))
    rows = [(f"{c.at:%Y-%m-%d %H:%M:%S}", c.tool, _from_to(c), c.who, c.reason) for c in changes]
    _print(
        columns, rows, nothing="No flag has ever been changed." if tool is None else f"No change of {one_line(tool)}."
    )


def percent(rollout: float, stage: Stage) -> str | None:
    """Return a rollout for people, and ``None`` for a stage that applies to everybody."""
    return f"{rollout:g} %" if stage in (Stage.DUAL, Stage.CUTOVER) else None


def _rollout(stage: Stage, given: float | None) -> float:
    shared = stage in (Stage.DUAL, Stage.CUTOVER)
    if given is None and shared:
        # A guess would be either "nobody" or "everybody", and the second one changes what every model reads.
        raise click.UsageError(
            f"--stage {stage} needs --rollout: --rollout 25 for a quarter of the sessions, --rollout 100 for all"
        )
    if given and not shared:
        raise click.UsageError(f"--rollout has no meaning with --stage {stage}, which applies to every session")
    return 0.0 if given is None else given


def _change(
    config: Config,
    tool: str,
    *,
    stage: Stage,
    rollout: float,
    reason: str,
    who: str | None,
    force: bool,
    as_json: bool,
) -> None:
    from changeover.store.flags import set_flag

    with caught_up(config, create=force) as store:
        change = set_flag(
            store, tool, stage=stage, rollout=rollout, who=who or _current_user(), reason=reason, force=force
        )
    if as_json:
        print_json(_as_dict(change))
    else:
        click.echo(f"{one_line(change.tool)}: {_from_to(change)}; {SEEN_WITHIN}")


def _from_to(change: FlagChange) -> str:
    before = " ".join(filter(None, (change.from_stage, percent(change.from_rollout, change.from_stage))))
    after = " ".join(filter(None, (change.to_stage, percent(change.to_rollout, change.to_stage))))
    return f"{before} → {after}"


def _as_dict(change: FlagChange) -> dict[str, Any]:
    return {
        "tool": change.tool,
        "at": change.at.isoformat(),
        "who": change.who,
        "reason": change.reason,
        "from_stage": change.from_stage,
        "from_rollout": change.from_rollout,
        "to_stage": change.to_stage,
        "to_rollout": change.to_rollout,
        "version": change.version,
        "forced": change.forced,
    }


def _current_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        return "unknown"


def _print(columns: Columns, rows: Sequence[Sequence[object]], *, nothing: str) -> None:
    if rows:
        console().print(table(columns, rows))
    else:
        click.echo(nothing)
