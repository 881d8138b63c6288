"""Serve the dashboard with a production server, and only where that is safe."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

from .app import create_app
from .hosts import is_address, is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from changeover.store.engine import Store

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8321
THREADS = 8
_LAST_PORT = 65_535


class ServeError(Exception):
    """The dashboard cannot be served as asked; the message says what to change."""


def serve(
    store: Store,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    *,
    token: str | None = None,
    allowed_hosts: Iterable[str] = (),
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve *store*'s dashboard until interrupted.

    Args:
        store: an open store; whoever opened it closes it.
        host: the address to listen on; anything but this machine's own needs a *token*.
        port: the port to listen on; 0 takes a free one.
        token: what visitors must show (``CHANGEOVER_TOKEN``); blank counts as none.
        allowed_hosts: host names under which the dashboard may be asked for, beside addresses.
        ready: called once with the address, when visitors can come.

    Raises:
        ServeError: when *host* can be reached from outside and there is no token, or the port cannot be taken.
    """
    from waitress import create_server  # type: ignore[import-untyped]

    # It reports every request that waits for a thread, which is each page with more files than there are threads.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    token = checked_token(host, token)
    names = [*allowed_hosts] if is_address(host) else [*allowed_hosts, host]
    app = create_app(store, token=token, allowed_hosts=names)
    listener = _listen(host, port)
    try:
        server = create_server(app, sockets=[listener], threads=THREADS, ident=None)
        if ready is not None:
            ready(address(host, listener.getsockname()[1]))
        server.run()
    finally:
        listener.close()


def checked_token(host: str, token: str | None) -> str | None:
    """Return the token to ask for on *host*, or ``None`` where none is needed and none was given.

    Raises:
        ServeError: when *host* can be reached from outside and there is no token.
    """
    token = (token or "").strip() or None
    if token is None and not is_loopback(host):
        raise ServeError(
            f"{host!r} can be reached from other machines: set CHANGEOVER_TOKEN to a long random text, or listen on "
            f"{DEFAULT_HOST}"
        )
    return token


def address(host: str, port: int) -> str:
    """Return what to type into a browser on this machine for a server on *host* and *port*."""
    if host in {"0.0.0.0", "::", ""}:  # noqa: S104 - recognised, not bound
        host = DEFAULT_HOST
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= _LAST_PORT:
        raise ServeError(f"port {port} does not exist: use one from 0 to {_LAST_PORT}")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as fault:
        raise ServeError(
            f"cannot listen on {host}, port {port}: {fault.strerror or fault}. Choose another with --port"
        ) from None
