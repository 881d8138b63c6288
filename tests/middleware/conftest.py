"""Fixtures of the middleware's tests: a process that records into a store of its own."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

import changeover
from changeover import runtime
from changeover.store.drain import drain
from changeover.store.engine import open_store
from changeover.store.flags import set_flag

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Recording:
    """What was recorded in this test: `records` as written to the spool, `rows` as committed."""

    folder: Path
    url: str
    lines: list[bytes] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)

    @property
    def spool(self) -> Path:
        return self.folder / "calls.db.spool"

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    @property
    def record(self) -> dict[str, Any]:
        (only,) = self.records
        return only

    @property
    def attributes(self) -> dict[str, Any]:
        return self.record["attributes"]

    @property
    def outcomes(self) -> list[str]:
        return [record["attributes"]["changeover.outcome"] for record in self.records]

    def losses(self) -> dict[str, int]:
        """What was counted, written down or not."""
        return dict(self.counted)

    def rows(self, columns: str = "outcome", table: str = "call") -> list[tuple[Any, ...]]:
        assert changeover.flush(20)
        return _stored(self.folder / "calls.db", columns, table)

    def flag(self, tool: str, stage: str = "cutover", rollout: float = 100.0) -> None:
        with open_store(self.url) as store:
            set_flag(store, tool, stage=stage, rollout=rollout, who="test", reason="test", force=True)
        assert runtime.current().flags.refresh(5)


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recording]:
    """Record into ``calls.db`` in a fresh folder, and see every line that goes into the spool."""
    for name in ("CHANGEOVER_STORE", "CHANGEOVER_SPOOL", "CHANGEOVER_SERVICE", "CHANGEOVER_ENABLED"):
        monkeypatch.delenv(name, raising=False)
    url = f"sqlite:///{tmp_path / 'calls.db'}"
    changeover.configure(store=url, service="test")
    seen = Recording(tmp_path, url)
    recorder = runtime.current().recorder
    append = recorder.append

    def tee(line: bytes) -> None:
        seen.lines.append(line)
        append(line)

    recorder.append = tee
    losses = runtime.current().losses
    count = losses.count

    def counting(reason: str, n: int = 1, *, fault: BaseException | None = None) -> None:
        seen.counted[str(reason)] += n
        count(reason, n, fault=fault)

    losses.count = counting
    yield seen
    changeover.configure(recording=False)


@dataclass
class Process:
    """Processes of their own, with ``calls.db`` in *folder* as their store."""

    folder: Path

    def run(self, code: str, *, expect: int = 0) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "CHANGEOVER_STORE": self.url}
        script = self.folder / "script.py"
        script.write_text(code)
        done = subprocess.run(
            [sys.executable, "-W", "error", str(script)],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == expect, done.stderr
        return done

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder / 'calls.db'}"

    def stored(self, columns: str = "outcome", table: str = "call", file: str = "calls.db") -> list[tuple[Any, ...]]:
        return _stored(self.folder / file, columns, table)

    def taken_in(self) -> list[tuple[Any, ...]]:
        """Take in what dead processes left, as every start does, and return the outcome of every call."""
        with open_store(self.url) as store:
            drain(self.folder / "calls.db.spool", store)
        return self.stored()


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(tmp_path)


def _stored(file: Path, columns: str, table: str) -> list[tuple[Any, ...]]:
    """Return *columns* of every row of *table*, in the order in which the rows came."""
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(f"select {columns} from {table} order by rowid").fetchall()
