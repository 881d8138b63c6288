"""``/healthz``: is the dashboard up, and can it read its store?"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from flask import Blueprint
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from changeover.store.errors import StoreError
from changeover.store.schema import current_revision, head_revision
from changeover.store.tables import call

from .access import is_signed_in
from .state import store

if TYPE_CHECKING:
    from flask.typing import ResponseReturnValue

blueprint = Blueprint("health", __name__)
_log = logging.getLogger(__name__)


@blueprint.get("/healthz")
def healthz() -> ResponseReturnValue:
    """Answer 200 with the store's state, or 503 when the store cannot be read.

    Whoever has not shown the token learns the status only, which is what a load balancer needs.
    """
    try:
        detail = _look()
    except (SQLAlchemyError, StoreError) as fault:
        _log.warning("the store cannot be read: %s", fault)
        return {"status": "unavailable", "store": "cannot be read"}, 503
    return {"status": "ok", **(detail if is_signed_in() else {})}


def _look() -> dict[str, Any]:
    with store().read() as connection:
        connection.execute(select(call.c.id).limit(1))
    return {"store": "readable", "revision": current_revision(store()), "head": head_revision()}
