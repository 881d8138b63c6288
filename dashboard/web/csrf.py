"""Forms that change something carry a signed token bound to the visitor's session cookie.

Every unsafe request is checked, whichever route it names, so a new route cannot be forgotten. The cookie is
``HttpOnly`` and ``SameSite=Strict``; the signing key is the application's own, made anew by each process.
"""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import urlsplit

from flask import Flask, abort, current_app, request, session
from itsdangerous import BadSignature, URLSafeTimedSerializer

FIELD = "csrf_token"
MAX_AGE_SECONDS = 12 * 3600

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SESSION_KEY = "id"
_STALE = (
    "This form is no longer valid: it is older than twelve hours, the dashboard was restarted, or it was sent from "
    "another page. Nothing was changed. Open the page again and send the form from there."
)


def protect(app: Flask) -> None:
    """Check every unsafe request of *app* and give its templates ``csrf_token()``."""
    app.before_request(_check)
    app.jinja_env.globals[FIELD] = token


def token() -> str:
    """Return a token for a form on the page that is being made, beginning a session where there is none."""
    bound_to = session.setdefault(_SESSION_KEY, secrets.token_urlsafe(16))
    return _serializer().dumps(bound_to)


def _check() -> None:
    if request.method in _SAFE_METHODS:
        return
    if not _same_origin() or not _is_valid(request.form.get(FIELD, ""), session.get(_SESSION_KEY)):
        abort(403, _STALE)


def _same_origin() -> bool:
    # Only the host is compared: behind a proxy that ends TLS the schemes differ.
    origin = request.headers.get("Origin")
    return origin is None or urlsplit(origin).netloc == request.host


def _is_valid(candidate: str, bound_to: str | None) -> bool:
    if not bound_to:
        return False
    try:
        signed_for = _serializer().loads(candidate, max_age=MAX_AGE_SECONDS)
    except BadSignature:
        return False
    return isinstance(signed_for, str) and hmac.compare_digest(signed_for, bound_to)


def _serializer() -> URLSafeTimedSerializer:
    key = current_app.secret_key
    if not key:
        raise RuntimeError("the dashboard has no secret key: build it with create_app()")
    return URLSafeTimedSerializer(key, salt="changeover.csrf")
