"""The one form that changes something: a tool's stage and rollout, with a reason."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from flask import Blueprint, abort, flash, redirect, request, url_for

from changeover.semconv import Stage
from changeover.store.errors import FlagError
from changeover.store.flags import set_flag

from .formats import share
from .pages import tool_page
from .state import store

if TYPE_CHECKING:
    from flask.typing import ResponseReturnValue

    from changeover.store.flags import FlagChange

blueprint = Blueprint("flip", __name__)

ANONYMOUS = "dashboard"
"""Who a change is put down to when the form names nobody."""


@blueprint.post("/flag")
def flip() -> ResponseReturnValue:
    """Set a tool's flag, then show the tool's page; a refusal shows the form again with what is wrong."""
    tool = request.form.get("tool", "")
    if not tool:
        abort(400, "The form names no tool. Open the tool's page and send its form.")
    try:
        change = set_flag(
            store(),
            tool,
            stage=request.form.get("stage", ""),
            rollout=_rollout(request.form.get("rollout", "")),
            who=request.form.get("who", "").strip() or ANONYMOUS,
            reason=request.form.get("reason", ""),
        )
    except FlagError as refusal:
        return tool_page(tool, refusal=str(refusal), typed=request.form.to_dict()), 400
    flash(in_words(change), "done")
    return redirect(url_for("pages.tool", name=change.tool), code=303)


def in_words(change: FlagChange) -> str:
    """Return what a flip did, for the person who made it."""
    if change.to_stage in (Stage.DUAL, Stage.CUTOVER):
        return f"{change.tool} is in {change.to_stage} at {share(change.to_rollout)} of new sessions."
    return f"{change.tool} is in {change.to_stage}. Running processes follow within two seconds."


def _rollout(text: str) -> float:
    try:
        value = float(text.strip().removesuffix("%").strip())
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise FlagError(f"rollout is a share of sessions in percent, 0 to 100, not {text!r}")
    return value
