"""Every command says what it does and shows an example, and docs/cli.md says the same.

``CHANGEOVER_WRITE_DOCS=1 pytest tests/dashboard/cli/test_help.py`` writes docs/cli.md anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from changeover.dashboard.cli import cli
from changeover.dashboard.cli.group import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[3] / "docs" / "cli.md"
HELP = re.compile(r"^```\n\$ (?P<command>changeover[a-z ]*) --help\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def contexts(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[click.Context]:
    settings = {"terminal_width": 100, "help_option_names": ["-h", "--help"]}
    context = click.Context(command, parent=parent, info_name=name, **settings)
    yield context
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from contexts(found, child, context)


def helps() -> dict[str, str]:
    return {context.command_path: context.get_help() for context in contexts(cli, "changeover")}


HELPS = helps()


def same(text: str) -> str:
    """Text without its layout, which differs between releases of click."""
    return " ".join(text.split())


@pytest.fixture(scope="module", autouse=True)
def _written_anew() -> None:
    if os.environ.get("CHANGEOVER_WRITE_DOCS"):
        blocks = "\n".join(f"## {path}\n\n```\n$ {path} --help\n{text}\n```\n" for path, text in HELPS.items())
        introduction = PAGE.read_text().partition("\n## changeover\n")[0].rstrip()
        PAGE.write_text(f"{introduction}\n\n{blocks}")


@pytest.mark.parametrize("path", HELPS)
def test_the_page_shows_what_help_says(path: str) -> None:
    shown = {found["command"]: found["text"] for found in HELP.finditer(PAGE.read_text())}

    assert same(shown.get(path, "")) == same(HELPS[path])


@pytest.mark.parametrize("path", HELPS)
def test_every_help_ends_with_an_example(path: str) -> None:
    _, example, command = HELPS[path].partition("Example")

    assert example
    assert "  changeover " in command


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_is_there_and_takes_a_store(name: str) -> None:
    """The list is written by hand, since printing it must not import every command."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    commands = command.commands.values() if isinstance(command, click.Group) else [command]

    assert command.name == name
    assert all("store_url" in {parameter.name for parameter in each.params} for each in commands)
