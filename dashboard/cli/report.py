"""``changeover report``: the loop rate of each tool and arm, for people and for programs."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import click

from changeover.config import Config

from . import report_formats
from .errors import Refused
from .options import json_option, store_option
from .output import print_json
from .stores import caught_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@click.command(
    epilog="\b\nExamples:\n  changeover report --tool find_order\n  changeover report --format html > report.html"
)
@click.option("--tool", metavar="NAME", help="Only this tool.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "markdown", "html"]),
    default="text",
    show_default=True,
    help="How to write it.",
)
@store_option()
@json_option
def report(*, tool: str | None, format_: str, store_url: str, as_json: bool) -> None:
    """Show the loop rate per tool and arm: how often an error is answered with the same call again."""
    from changeover.store.errors import UnknownToolError
    from changeover.store.report import report as figures_of

    with caught_up(Config.resolve(store=store_url)) as store:
        try:
            figures = figures_of(store, tool)
        except UnknownToolError as error:
            raise _unknown(error.name, [entry["tool"] for entry in figures_of(store)["tools"]]) from None
    write(figures, "json" if as_json else format_)


def write(figures: Mapping[str, Any], format_: str) -> None:
    """Print a report in one of the formats ``text``, ``json``, ``markdown`` and ``html``."""
    if format_ == "json":
        print_json(figures)
    elif format_ == "text":
        report_formats.print_text(figures)
    else:
        click.echo(getattr(report_formats, format_)(figures), nl=False)


def _unknown(tool: str, known: Sequence[str]) -> Refused:
    near = difflib.get_close_matches(tool, known, n=3)
    if near:
        hint = f"did you mean {' or '.join(repr(name) for name in near)}?"
    elif known:
        hint = f"known: {', '.join(known[:10])}{' …' if known[10:] else ''}"
    else:
        hint = "no calls have been recorded yet"
    return Refused(f"--tool: there is no tool {tool!r} in this store; {hint}")
