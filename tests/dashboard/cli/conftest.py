"""What the command line's tests share: a way to run it as a shell would, with nothing set and an empty folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from changeover.dashboard.cli import cli
from changeover.store.engine import open_store
from changeover.store.ingest import ingest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line on standard error."""
        (only,) = self.err.splitlines()
        return only


@pytest.fixture
def run_cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run ``changeover`` with these arguments, in an empty folder and with none of our variables set."""
    for name in [name for name in os.environ if name.startswith("CHANGEOVER_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments, prog_name="changeover")
        printed = capsys.readouterr()
        return Ran(int(ended.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture
def store_of(tmp_path: Path) -> Callable[..., str]:
    """Make a store of these records and give its URL."""

    def make(*records: dict[str, Any]) -> str:
        url = f"sqlite:///{tmp_path}/calls.db"
        with open_store(url) as store:
            ingest(store, records)
        return url

    return make
