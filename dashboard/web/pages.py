"""The pages: all tools, one tool, one session. They only read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flask import Blueprint, abort, render_template, request

from changeover.semconv import Stage
from changeover.store.flags import history
from changeover.store.queries import losses, summary

from .figures import change_figures, overview_figures, series_figures, tool_figures
from .listings import error_figures, session_figures
from .state import state, store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flask.typing import ResponseReturnValue

blueprint = Blueprint("pages", __name__)

FLIPS_SHOWN = 100
_SETTABLE = (Stage.LEGACY, Stage.SHADOW, Stage.CUTOVER)
_SCALES = (0.1, 0.25, 0.5)


@blueprint.app_context_processor
def shared() -> dict[str, Any]:
    """Give every template what the frame of a page needs."""
    return {
        "refresh_seconds": state().refresh_seconds,
        "asks_for_token": state().token is not None,
        "now": state().clock(),
    }


@blueprint.get("/")
def overview() -> ResponseReturnValue:
    """Show all tools, and the loop rate of all or of a chosen one over time."""
    figures = overview_figures(store())
    selected = request.args.get("tool") or None
    if selected is not None and selected not in {found["tool"] for found in figures["tools"]}:
        abort(404, unknown_tool(selected))
    return render_template(
        "overview.html",
        **figures,
        selected=selected,
        scale=_scale(figures["tools"]),
        series=series_figures(store(), selected),
    )


@blueprint.get("/tool")
def tool() -> ResponseReturnValue:
    """Show one tool; its name may hold any character, so it travels as a query parameter."""
    return tool_page(asked_for("name"))


@blueprint.get("/session")
def session() -> ResponseReturnValue:
    """Show the calls of one session in order."""
    name, before = asked_for("id"), request.args.get("before")
    figures = session_figures(store(), name, before)
    if not figures["calls"] and before is None:
        abort(404, unknown_session(name))
    return render_template("session.html", **figures, before=before)


def tool_page(name: str, *, refusal: str | None = None, typed: Mapping[str, str] | None = None) -> str:
    """Return the page of the tool *name*.

    Args:
        name: the tool's name.
        refusal: why the form on it was refused.
        typed: what had been typed into that form.
    """
    found = summary(store(), name)
    if found is None:
        abort(404, unknown_tool(name))
    before = request.args.get("before")
    return render_template(
        "tool.html",
        tool=tool_figures(found),
        losses=losses(store()),
        series=series_figures(store(), found.tool),
        errors=error_figures(store(), found.tool, before),
        before=before,
        history=[change_figures(change) for change in history(store(), found.tool, limit=FLIPS_SHOWN)],
        stages=[*_SETTABLE, *([found.stage] if found.stage not in _SETTABLE else [])],
        refusal=refusal,
        typed=typed or {},
    )


def asked_for(parameter: str) -> str:
    """Return a query *parameter* that the address must hold."""
    value = request.args.get(parameter, "")
    if not value:
        abort(400, f"The address must hold ?{parameter}=…")
    return value


def unknown_tool(name: str) -> str:
    """Return what to say of a tool that was never seen."""
    return f"No call of a tool named {_short(name)!r} was recorded. All known tools are on the first page."


def unknown_session(name: str) -> str:
    """Return what to say of a session that was never seen."""
    return f"No call of a session named {_short(name)!r} is in this store."


def _short(text: str) -> str:
    limit = 120
    return text if len(text) <= limit else f"{text[:limit]}…"


def _scale(tools: list[dict[str, Any]]) -> float:
    bounds = [arm["interval"][1] for found in tools for arm in found["arms"].values() if arm["interval"]]
    highest = max(bounds, default=1.0)
    return next((scale for scale in _SCALES if highest <= scale), 1.0)
