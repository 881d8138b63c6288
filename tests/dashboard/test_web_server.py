"""Serving: only where it is safe, and with a clear word where it is not."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest

from changeover.dashboard.web.server import ServeError, address, checked_token, serve

if TYPE_CHECKING:
    from changeover.store.engine import Store

SERVE = """
import sys
from changeover.dashboard.web.server import serve
from changeover.store.engine import open_store
with open_store(sys.argv[1]) as store:
    serve(store, port=0, ready=lambda address: print(address, flush=True))
"""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org", ""])
@pytest.mark.parametrize("token", [None, "", "  "])
def test_br_09_09_an_address_reachable_from_outside_needs_a_token(host: str, token: str | None, empty_store: Store):
    with pytest.raises(ServeError, match="CHANGEOVER_TOKEN"):
        serve(empty_store, host, 0, token=token)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"])
def test_this_machine_needs_none(host: str):
    assert checked_token(host, None) is None


def test_a_token_is_asked_for_on_this_machine_too_when_there_is_one():
    assert checked_token("127.0.0.1", " abc ") == "abc"


def test_a_port_that_is_taken_is_named(empty_store: Store):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServeError, match=f"port {port}.*--port"):
            serve(empty_store, port=port)


def test_a_port_that_does_not_exist_is_named(empty_store: Store):
    with pytest.raises(ServeError, match="0 to 65535"):
        serve(empty_store, port=70_000)


def test_a_host_that_does_not_exist_is_named(empty_store: Store):
    with pytest.raises(ServeError, match="cannot listen on"):
        serve(empty_store, "203.0.113.9", 0, token="t")


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "http://127.0.0.1:8321/"),
        ("0.0.0.0", "http://127.0.0.1:8321/"),
        ("::1", "http://[::1]:8321/"),
        ("team.example", "http://team.example:8321/"),
    ],
)
def test_the_address_is_one_to_open(host: str, shown: str):
    assert address(host, 8321) == shown


def test_a_served_dashboard_answers_and_ends_on_interrupt(empty_store: Store):
    url = empty_store.url.render_as_string()
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, url], stdout=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        try:
            place = process.stdout.readline().strip()
            with urllib.request.urlopen(f"{place}healthz", timeout=10) as answer:
                health = json.load(answer)
                server = answer.headers.get("Server")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=20)

    assert health["status"] == "ok"
    assert server is None
