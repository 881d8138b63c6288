"""``changeover serve``: the dashboard, and the intake of what processes left in the spool while it runs."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from changeover.config import ENV_TOKEN, Config

from .options import store_option
from .stores import caught_up, store_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from changeover.store.engine import Store

INTAKE_SECONDS: Final = 2.0

_log = logging.getLogger("changeover")


@click.command(epilog="\b\nExample:\n  changeover serve --port 8321")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help=f"Address to listen on. Any but this machine's own needs a token in {ENV_TOKEN}.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="Port; 0 takes a free one."
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Also answer under this host name, for example behind a proxy. May be repeated.",
)
@store_option()
def serve(*, host: str, port: int, allowed_hosts: tuple[str, ...], store_url: str) -> None:
    """Serve the dashboard until Ctrl-C; the store is made when it does not exist."""
    from changeover.dashboard.web.server import checked_token

    token = checked_token(host, os.environ.get(ENV_TOKEN))  # before a store is made for nothing
    config = Config.resolve(store=store_url)
    with caught_up(config, create=True) as store:
        serve_store(store, config, host=host, port=port, token=token, allowed_hosts=allowed_hosts)


def serve_store(
    store: Store,
    config: Config,
    *,
    host: str,
    port: int,
    token: str | None = None,
    allowed_hosts: tuple[str, ...] = (),
) -> None:
    """Serve *store* until interrupted, taking in what dead processes leave behind meanwhile.

    Raises:
        ServeError: when *host* needs a token, or the port cannot be taken.
    """
    from changeover.dashboard.web.server import serve as serve_web

    def ready(address: str) -> None:
        click.echo(f"Dashboard of {store_name(config)}: {address}  (Ctrl-C ends it)")

    with _intake(config.spool, store):
        serve_web(store, host, port, token=token, allowed_hosts=allowed_hosts, ready=ready)


@contextmanager
def _intake(spool: Path, store: Store) -> Iterator[None]:
    stopped = threading.Event()
    thread = threading.Thread(target=_take_in, args=(spool, store, stopped), name="changeover-intake", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(timeout=5)


def _take_in(spool: Path, store: Store, stopped: threading.Event) -> None:
    from changeover.store.drain import drain

    while not stopped.wait(INTAKE_SECONDS):
        try:
            drain(spool, store)
        except Exception as error:  # noqa: BLE001 - the pages go on, and the next round tries again
            _log.warning("taking in the spool failed, trying again: %s", error)
