"""The session cookie: named after the port and marked ``Secure`` where the visitor came by HTTPS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import request
from flask.sessions import SecureCookieSessionInterface

if TYPE_CHECKING:
    from flask import Flask


class PortCookies(SecureCookieSessionInterface):
    """Keep two dashboards on one machine apart: browsers share cookies between the ports of a host."""

    def get_cookie_name(self, app: Flask) -> str:
        """Return the cookie's name for the port that was asked for."""
        port = request.environ.get("SERVER_PORT", "")
        return f"{app.config['SESSION_COOKIE_NAME']}_{port}"

    def get_cookie_secure(self, app: Flask) -> bool:  # noqa: ARG002 - the signature is Flask's
        """Return whether the cookie may only travel encrypted."""
        return request.is_secure
