"""On a terminal of any width every name and figure is there whole; a full disk gets one line."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from changeover.contract import ToolError
from changeover.dashboard.cli import output

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Ran

CHANGEOVER = (sys.executable, "-m", "changeover")


def on_a_terminal(width: int, *arguments: str) -> str:
    """What a terminal of *width* columns shows, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [*CHANGEOVER, *arguments], stdin=subprocess.DEVNULL, stdout=theirs, env=environment | {"TERM": "xterm"}
    ) as process:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # Linux ends a terminal that nobody writes to any more with EIO
            while part := os.read(ours, 65536):
                shown += part
        os.close(ours)
    assert process.returncode == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode())


@pytest.mark.parametrize("width", [30, 60, 80, 130])
def test_a_report_names_tool_arm_and_every_figure_at_any_width(
    width: int, record: Callable[..., Any], store_of: Callable[..., str]
):
    url = store_of(*(record("find_order", order=n, error=ToolError("not_found")) for n in range(4)))

    shown = on_a_terminal(width, "report", "--store", url)
    words = " ".join(shown.split())

    assert "find_order" in words
    assert "legacy" in words
    assert "75.0 %" in words
    assert "runaways" in words
    assert max(map(len, shown.splitlines())) <= width


def test_a_table_that_does_not_fit_becomes_lines_and_loses_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    screen = output.console()
    screen.file = io.StringIO()
    screen.width = 20
    screen.print(output.table((("tool", "left"), ("calls", "right"), ("errors", "right")), [("a" * 12, "1,234", None)]))

    assert [line.rstrip() for line in screen.file.getvalue().splitlines()] == ["a" * 12, "  calls 1,234,", "  errors -"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", [("--help",), ("--version",), ("report", "--help"), ("flag", "list")], ids=" ".join)
def test_a_full_disk_gets_one_line(command: tuple[str, ...], store_of: Callable[..., str]):
    url = store_of()
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*CHANGEOVER, *command],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=os.environ | {"CHANGEOVER_STORE": url},
        )

    assert ended.returncode == 2
    assert ended.stderr == "changeover: the output cannot be written: the disk is full; make room and try again\n"


def test_a_full_disk_names_the_file(run_cli: Callable[..., Ran], store_of: Callable[..., str], monkeypatch: Any):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/store/key")

    url = store_of()
    monkeypatch.setattr("changeover.store.flags.list_flags", full)
    ran = run_cli("flag", "list", "--store", url)

    assert ran.code == 2
    assert ran.line == "changeover: /store/key cannot be written: the disk is full; make room and try again"


def test_a_tool_named_with_control_characters_cannot_steer_the_terminal(
    run_cli: Callable[..., Ran], store_of: Callable[..., str]
):
    url = store_of()
    ran = run_cli("flag", "set", "\x1b[31mred", "--stage", "shadow", "--reason", "x", "--force", "--store", url)

    assert ran.code == 0
    assert ran.out.startswith("\\x1b[31mred: ")
