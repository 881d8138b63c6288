"""Security headers of every answer.

Scripts and styles come from this server's files only; nothing inline runs, so text from a tool that slipped through
escaping would still be inert.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Flask, request

if TYPE_CHECKING:
    from flask import Response

_SOURCES = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
CONTENT_SECURITY_POLICY = "; ".join(f"{what} {whence}" for what, whence in _SOURCES.items())

_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def protect(app: Flask) -> None:
    """Add the headers to every answer of *app*, error pages and files included."""
    app.after_request(_add_headers)


def _add_headers(response: Response) -> Response:
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    # Payloads of other people's tools are on these pages: no cache keeps them. Our own files are revalidated by ETag.
    response.headers["Cache-Control"] = "no-cache" if request.endpoint == "static" else "no-store"
    return response
