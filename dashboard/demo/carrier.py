"""A parcel carrier's web service on this machine: it rate-limits, is slow at times, and rejects what it must.

    GET  /quote?order=O-1001&postcode=10115     a price; 400 for a malformed postcode
    POST /label {"order", "service"}            a label; 404 for an unknown service, 403 for one that needs a contract

Every client may ask for a few things a second (429 with Retry-After beyond that). The first request about a postcode
in the slow region, or about an order in the slow warehouse, takes longer than any client waits.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict, deque
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUESTS_A_SECOND: Final = 3
RETRY_AFTER_SECONDS: Final = 1
SLOW_REGION: Final = "99"
"""Postcodes that begin so are looked up in a slow place, once."""

SLOW_WAREHOUSE: Final = "7"
"""Orders whose number ends so lie in a warehouse that answers slowly, once."""

SLOW_SECONDS: Final = 1.2
POSTCODE_DIGITS: Final = 5
SERVICES: Final = ("standard", "express")
NEEDS_CONTRACT: Final = "express"


class Carrier:
    """What the service knows: who asked how often, and what it has looked up for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: defaultdict[str, deque[float]] = defaultdict(deque)
        self._looked_up: set[tuple[str, str]] = set()

    def admits(self, client: str, now: float) -> bool:
        """Return whether *client* may ask once more within this second."""
        with self._lock:
            asked = self._asked[client]
            while asked and now - asked[0] >= RETRY_AFTER_SECONDS:
                asked.popleft()
            if len(asked) >= REQUESTS_A_SECOND:
                return False
            asked.append(now)
            return True

    def look_up(self, client: str, thing: str, *, slow: bool) -> None:
        """Take as long as it takes; what was looked up for this client before is at hand."""
        with self._lock:
            known = (client, thing) in self._looked_up
            self._looked_up.add((client, thing))
        if slow and not known:
            time.sleep(SLOW_SECONDS)

    def quote(self, client: str, query: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Answer a request for a price with a status and a body."""
        postcode = query.get("postcode", [""])[0]
        if len(postcode) != POSTCODE_DIGITS or not postcode.isdigit():
            return 400, {"error": "postcode must be five digits", "field": "postcode", "received": postcode}
        self.look_up(client, postcode, slow=postcode.startswith(SLOW_REGION))
        return 200, {"order": query.get("order", [""])[0], "price": 4.9 + int(postcode) % 7, "currency": "EUR"}

    def label(self, client: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Answer a request for a label with a status and a body."""
        service = body.get("service")
        if service not in SERVICES:
            return 404, {"error": f"no service {service!r}", "field": "service", "allowed": list(SERVICES)}
        if service == NEEDS_CONTRACT:
            return 403, {"error": "express needs a contract", "field": "service", "received": service}
        order = str(body.get("order"))
        self.look_up(client, order, slow=order.endswith(SLOW_WAREHOUSE))
        return 201, {"order": order, "tracking": f"TR-{order}"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    carrier: Carrier

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self._answer(lambda: self.carrier.quote(self._client(), parse_qs(parts.query)))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        self._answer(lambda: self.carrier.label(self._client(), body))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing: the progress bar is on the same terminal."""

    def _client(self) -> str:
        return self.headers.get("X-Client", "")

    def _answer(self, work: Any) -> None:
        if self.carrier.admits(self._client(), time.monotonic()):
            self._send(*work())
        else:
            self._send(429, {"error": "too many requests"}, {"Retry-After": str(RETRY_AFTER_SECONDS)})

    def _send(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        try:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # the client had no patience
            self.close_connection = True


@contextmanager
def running_carrier() -> Iterator[str]:
    """Run the service on a free port of this machine and give its address, ``http://127.0.0.1:…``."""
    handler = type("Handler", (_Handler,), {"carrier": Carrier()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="demo-carrier", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
