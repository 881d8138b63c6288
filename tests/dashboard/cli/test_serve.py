"""``changeover serve`` says where it serves, ends at Ctrl-C, and takes in what processes leave behind meanwhile."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = (sys.executable, "-u", "-m", "changeover", "serve", "--port", "0", "--store", f"sqlite:///{folder}/s.db")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            yield found[0], process
        finally:
            process.kill()


def get(url: str) -> tuple[int, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request("GET", parts.path or "/")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_the_printed_address_answers_and_ctrl_c_ends_it(tmp_path: Path):
    with serving(tmp_path) as (url, process):
        health, page = get(f"{url}healthz"), get(url)
        process.send_signal(signal.SIGINT)
        complaint = process.communicate()[1]

    assert (health[0], page[0]) == (200, 200)
    assert process.returncode in {0, 130}
    assert complaint == ""


def test_what_a_process_leaves_behind_is_seen_while_it_serves(tmp_path: Path, record: Callable[..., Any]):
    with serving(tmp_path) as (url, _):
        spool = tmp_path / "s.db.spool"
        spool.mkdir(exist_ok=True)
        (spool / ".new").write_bytes(orjson.dumps(record("find_order")) + b"\n")
        (spool / ".new").rename(spool / "1700000000000000000-1-1.jsonl")
        while "find_order" not in (seen := get(f"{url}api/overview")[1]):
            time.sleep(0.1)  # the test's own timeout ends a wait that is in vain

    assert json.loads(seen)
