"""Who may look: everybody on this machine, or whoever shows the token once the dashboard can be reached from outside.

A program sends ``Authorization: Bearer TOKEN``; a person types the token into a small form once per session.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from flask import Blueprint, Flask, abort, redirect, render_template, request, session, url_for

from .state import state

if TYPE_CHECKING:
    from flask.typing import ResponseReturnValue

blueprint = Blueprint("access", __name__)

_SIGNED_IN = "signed_in"
_OPEN_ENDPOINTS = frozenset({"access.sign_in", "access.enter", "static", "health.healthz"})


def protect(app: Flask) -> None:
    """Ask for the token before every page of *app* when it was started with one."""
    app.before_request(_check)


def is_signed_in() -> bool:
    """Return whether this request may see everything."""
    if state().token is None:
        return True
    return bool(session.get(_SIGNED_IN)) or _matches(_bearer())


def _check() -> ResponseReturnValue | None:
    if request.endpoint in _OPEN_ENDPOINTS or is_signed_in():
        return None
    if request.path.startswith("/api/") or _bearer():
        abort(401, "Send the dashboard's token as 'Authorization: Bearer TOKEN' (it is in CHANGEOVER_TOKEN).")
    if request.headers.get("Sec-Fetch-Site") == "cross-site" and request.method == "GET":
        # A strict cookie stays at home when somebody follows a link from a chat; one hop of our own brings it along.
        return render_template("bounce.html")
    return render_template("login.html", target=_here()), 401


@blueprint.get("/login")
def sign_in() -> ResponseReturnValue:
    """Show the form that asks for the token."""
    return render_template("login.html", target=_local(request.args.get("next", "")))


@blueprint.post("/login")
def enter() -> ResponseReturnValue:
    """Let the visitor in when the token is right."""
    target = _local(request.form.get("next", ""))
    if state().token is not None and not _matches(request.form.get("token", "").strip()):
        return render_template("login.html", target=target, refused=True), 403
    session[_SIGNED_IN] = True
    return redirect(target, code=303)


@blueprint.post("/logout")
def leave() -> ResponseReturnValue:
    """Forget the visitor."""
    session.clear()
    return redirect(url_for("access.sign_in"), code=303)


def _bearer() -> str:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


def _matches(candidate: str) -> bool:
    token = state().token
    return token is not None and hmac.compare_digest(candidate.encode(), token.encode())


def _here() -> str:
    return request.full_path.rstrip("?") if request.method == "GET" else url_for("pages.overview")


def _local(target: str) -> str:
    # "//elsewhere" and "/\elsewhere" are other sites to a browser, which also leaves out tabs and line ends.
    foreign = target.startswith("//") or "\\" in target or any(ord(character) < ord(" ") for character in target)
    return target if target.startswith("/") and not foreign else url_for("pages.overview")
