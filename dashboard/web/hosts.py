"""Refuse requests for foreign host names, so that no page elsewhere can reach the dashboard by DNS rebinding.

A rebinding page makes *its own* name point at this machine, so the browser sends that name in the ``Host`` header. A
plain address can never be rebound, which is why every address is allowed and every unknown name is not.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from flask import Flask, abort, request

from .state import state


def hostname(header: str) -> str | None:
    """Return the host of a ``Host`` header without its port, lower case, or ``None`` when it is no host."""
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return None
    if parts.path or parts.query or parts.fragment or parts.username is not None:
        return None
    return parts.hostname


def is_address(host: str) -> bool:
    """Return whether *host* is an IPv4 or IPv6 address rather than a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that listens on *host*."""
    if is_address(host):
        return ip_address(host).is_loopback
    return host.lower() == "localhost"


def is_allowed(header: str, names: frozenset[str]) -> bool:
    """Return whether a request with this ``Host`` *header* may be answered; *names* are allowed beside addresses."""
    host = hostname(header)
    if host is None:
        return False
    return is_address(host) or host == "localhost" or host.endswith(".localhost") or host in names


def protect(app: Flask) -> None:
    """Check the ``Host`` header of every request before anything else looks at it."""
    app.before_request(_check_host)


def _check_host() -> None:
    header = request.headers.get("Host", "")
    if not is_allowed(header, state().allowed_hosts):
        abort(
            400,
            f"This dashboard does not answer to the name {header!r}. Open it by its address, or start it with "
            "--allow-host NAME.",
        )
