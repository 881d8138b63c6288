"""The ``changeover`` command: finds the command that was asked for, and decides what an error looks like.

Nothing heavy is imported here, so that ``changeover --help`` answers at once.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import click

from .errors import as_one_line, guarded, show
from .options import debug_option

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives, and the line that lists it.

    Args:
        module: the module in this folder that holds it.
        attribute: the command's name in that module.
        summary: one line for the list of commands, kept here so that listing imports no command.
    """

    module: str
    attribute: str
    summary: str


COMMANDS: dict[str, Entry] = {
    "demo": Entry("demo", "demo", "Run the main job on embedded SQLite, then open the dashboard."),
    "replay": Entry("replay", "replay", "Read recorded agent sessions into the store."),
    "report": Entry("report", "report", "Show the loop rate per tool and arm."),
    "flag": Entry("flag", "flag", "List and change the stage of tools."),
    "serve": Entry("serve", "serve", "Serve the dashboard."),
    "db": Entry("db", "db", "Create, upgrade and check the store."),
    "doctor": Entry("doctor", "doctor", "Check that recording and the store are in order."),
}
"""Every command, in the order in which a newcomer meets them."""


class LazyGroup(click.Group):
    """A group that imports a command's module when that command is asked for, and not before."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's own signature
        **extra: Any,
    ) -> Any:
        """Run the command line; in standalone mode every ending becomes an exit code and at most one line."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            show(error)
            sys.exit(error.exit_code)
        except OSError as error:  # while printing help or version, before a command runs
            refused = as_one_line(error)
            show(refused)
            sys.exit(refused.exit_code)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command; anything that goes wrong in it ends as the command line promises."""
        with guarded(ctx):
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own signature
        """Return the commands in the order in which a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - the same
        """Import and return one command, or ``None`` when there is none of that name."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(importlib.import_module(f"{__package__}.{entry.module}"), entry.attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry.module}.{entry.attribute} is no click command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that *args* begin with; an unknown one is answered with the nearest names."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(COMMANDS)}"
            raise click.UsageError(f"there is no command {args[0]!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - the same
        """Write the list of commands from the table above, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click calls it
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    click.echo(f"changeover {version('changeover')}")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  changeover demo
  changeover report --json
  changeover flag set find_order --stage cutover --rollout 25 --reason "first quarter of sessions"
  changeover COMMAND --help""",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Print the version."
)
@debug_option
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Move an agent's tools from ad-hoc errors to a structured contract, and prove that it worked."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(2)


def main() -> NoReturn:
    """Run the command line and exit: 0 done, 1 a check said no, 2 bad usage or input, 70 a fault of ours."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a replacement instead of a traceback.
        with suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        cli.main(prog_name="changeover")
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)
