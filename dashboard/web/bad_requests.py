"""Every failure as a page or as JSON that says what happened and what to do; never a traceback."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from flask import Flask, Response, jsonify, make_response, render_template, request
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from werkzeug.exceptions import HTTPException

from changeover.store.errors import CursorError, StoreError

if TYPE_CHECKING:
    from flask.typing import ResponseReturnValue

RETRY_SECONDS = 5

_log = logging.getLogger(__name__)
_TITLES = {
    400: "That request cannot be understood",
    401: "A token is needed",
    403: "Not allowed",
    404: "Nothing here",
    405: "Not in this way",
    413: "Too much was sent",
    500: "The dashboard failed",
    503: "The store cannot be read right now",
}
_METHOD_HINT = "This address does not answer to {method}. Pages are read with GET; only forms are sent with POST."

_READ_LATER = "Recording goes on meanwhile; this page comes back by itself."
_SEND_AGAIN = "Nothing was changed: go back and send the form again."


def register(app: Flask) -> None:
    """Answer every failure of *app* in our own words."""
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(SQLAlchemyError, _store_away)
    app.register_error_handler(StoreError, _store_away)
    app.register_error_handler(CursorError, _lost_place)
    app.register_error_handler(Exception, _unexpected)


def _http(error: HTTPException) -> ResponseReturnValue:
    status = error.code or 500
    message = _METHOD_HINT.format(method=request.method) if status == 405 else error.description or ""  # noqa: PLR2004
    answer = _answer(status, message)
    for name, value in error.get_headers():
        if name.lower() in {"allow", "retry-after", "www-authenticate"}:
            answer.headers[name] = value
    return answer


def _lost_place(error: CursorError) -> ResponseReturnValue:
    return _answer(400, f"{_one_line(str(error))}.")


def _store_away(error: Exception) -> ResponseReturnValue:
    _log.warning("the store cannot be read: %s", error)
    cause = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    answer = _answer(503, f"{_one_line(cause)}. {_READ_LATER if request.method == 'GET' else _SEND_AGAIN}")
    answer.headers["Retry-After"] = str(RETRY_SECONDS)
    return answer


def _unexpected(error: Exception) -> ResponseReturnValue:
    _log.error("a page failed: %s %s", request.method, request.path, exc_info=error)
    return _answer(500, "This is a fault of the dashboard, not of your tools; its log holds the details.")


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


def _answer(status: int, message: str) -> Response:
    title = _TITLES.get(status, "That did not work")
    if request.path.startswith(("/api/", "/healthz")):
        answer = jsonify(error={"status": status, "title": title, "message": message})
    else:
        page = render_template("error.html", status=status, title=title, message=message, retry_seconds=RETRY_SECONDS)
        answer = make_response(page)
    answer.status_code = status
    return answer
