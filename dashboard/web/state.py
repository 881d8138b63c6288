"""What one application instance holds: the store it reads, and how it was told to behave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from flask import current_app

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from changeover.store.engine import Store

_KEY = "changeover"


@dataclass(frozen=True, slots=True)
class WebState:
    """The dashboard's dependencies, handed in by [`create_app`][changeover.dashboard.web.app.create_app].

    Args:
        store: where every figure comes from.
        clock: the present, with a time zone; only used to say how long ago something was.
        token: what a visitor must show, or ``None`` when only this machine can reach the dashboard.
        allowed_hosts: names, beside addresses and ``localhost``, under which the dashboard may be asked for.
        refresh_seconds: how often an open page fetches its figures again; 0 switches that off.
    """

    store: Store
    clock: Callable[[], datetime]
    token: str | None
    allowed_hosts: frozenset[str]
    refresh_seconds: int


def attach(extensions: dict[str, object], state: WebState) -> None:
    """Keep *state* among an application's *extensions*, where [`state`][changeover.dashboard.web.state.state] looks."""
    extensions[_KEY] = state


def state() -> WebState:
    """Return the state of the application that handles the current request."""
    return cast("WebState", current_app.extensions[_KEY])


def store() -> Store:
    """Return the store of the application that handles the current request."""
    return state().store
