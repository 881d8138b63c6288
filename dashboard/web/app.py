"""``create_app``: the dashboard as one Flask application over one store."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from flask import Flask

from . import access, api, bad_requests, cookies, csrf, flip, formats, headers, health, hosts, moments, pages
from .state import WebState, attach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from changeover.store.engine import Store

MAX_FORM_BYTES = 64 * 1024


def create_app(
    store: Store,
    *,
    token: str | None = None,
    allowed_hosts: Iterable[str] = (),
    refresh_seconds: int = 5,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Flask:
    """Build the dashboard over *store*.

    Args:
        store: an open store; whoever opened it closes it.
        token: what every visitor must show; ``None`` leaves the dashboard open, which is for loopback only
            ([`serve`][changeover.dashboard.web.server.serve] refuses anything else).
        allowed_hosts: host names under which it may be asked for, beside addresses and ``localhost``.
        refresh_seconds: how often an open page fetches its figures again; 0 switches that off.
        clock: the present, with a time zone.
    """
    app = Flask("changeover.dashboard.web")
    app.config.update(
        # Made anew by each process and kept nowhere: a restart signs everybody out and outdates open forms.
        SECRET_KEY=secrets.token_bytes(32),
        SESSION_COOKIE_NAME="changeover",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Strict",
        PERMANENT_SESSION_LIFETIME=timedelta(hours=12),
        MAX_CONTENT_LENGTH=MAX_FORM_BYTES,
    )
    app.json = moments.IsoJSON(app)
    app.session_interface = cookies.PortCookies()
    names = frozenset(name.lower() for name in allowed_hosts)
    attach(app.extensions, WebState(store, clock, token, names, refresh_seconds))

    # Checks run in this order: where the request came to, who sent it, whether it was meant.
    for check in (hosts, access, csrf, headers):
        check.protect(app)
    formats.register(app)
    bad_requests.register(app)
    for part in (pages, flip, api, health, access):
        app.register_blueprint(part.blueprint)
    return app
