"""``/api/``: everything the pages show, as JSON. Rates are shares between 0 and 1, and null without errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Blueprint, abort, jsonify, request

from changeover.store.flags import history
from changeover.store.queries import overview as every_tool
from changeover.store.queries import summary

from .figures import change_figures, overview_figures, series_figures, tool_figures
from .listings import ERRORS_A_PAGE, error_figures, session_figures
from .pages import FLIPS_SHOWN, asked_for, unknown_session, unknown_tool
from .state import store

if TYPE_CHECKING:
    from flask.typing import ResponseReturnValue

blueprint = Blueprint("api", __name__, url_prefix="/api")

MOST_ERRORS_A_PAGE = 200


@blueprint.get("/overview")
def overview() -> ResponseReturnValue:
    """Return all tools with their figures, and what was lost."""
    return jsonify(overview_figures(store()))


@blueprint.get("/tool")
def tool() -> ResponseReturnValue:
    """Return one tool's figures, ``?name=``."""
    found = summary(store(), name := asked_for("name"))
    if found is None:
        abort(404, unknown_tool(name))
    return jsonify(tool_figures(found))


@blueprint.get("/series")
def series() -> ResponseReturnValue:
    """Return the loop rate over time with the flips, of all tools or of one, ``?tool=``."""
    return jsonify(series_figures(store(), _known_tool(request.args.get("tool"))))


@blueprint.get("/errors")
def errors() -> ResponseReturnValue:
    """Return errors of one tool with both payloads, ``?tool=``, ``&before=`` a row's cursor, ``&limit=`` to 200."""
    name = _known_tool(asked_for("tool")) or ""
    return jsonify(error_figures(store(), name, request.args.get("before"), _limit()))


@blueprint.get("/sessions")
def sessions() -> ResponseReturnValue:
    """Return the calls of one session in order, ``?id=``, ``&before=`` a row's cursor."""
    name, before = asked_for("id"), request.args.get("before")
    figures = session_figures(store(), name, before)
    if not figures["calls"] and before is None:
        abort(404, unknown_session(name))
    return jsonify(figures)


@blueprint.get("/flags")
def flags() -> ResponseReturnValue:
    """Return every tool's flag and its newest changes, or those of one tool, ``?tool=``."""
    name = _known_tool(request.args.get("tool"))
    shown = [found for found in every_tool(store()) if name in (None, found.tool)]
    return jsonify(
        flags=[
            {"tool": found.tool, "stage": str(found.stage), "rollout": found.rollout, "version": found.version}
            for found in shown
        ],
        history=[change_figures(change) for change in history(store(), name, limit=FLIPS_SHOWN)],
    )


def _known_tool(name: str | None) -> str | None:
    if not name:
        return None
    found = summary(store(), name)
    if found is None:
        abort(404, unknown_tool(name))
    return found.tool


def _limit() -> int:
    text = request.args.get("limit", str(ERRORS_A_PAGE))
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_ERRORS_A_PAGE):
        abort(400, f"limit is a whole number from 1 to {MOST_ERRORS_A_PAGE}, not {text[:40]!r}.")
    return int(text)
