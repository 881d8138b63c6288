"""Options that several commands share, so that they are spelled, explained and checked once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from changeover.config import DEFAULT_STORE, ENV_STORE

from .errors import DEBUG

if TYPE_CHECKING:
    from collections.abc import Callable


_F = TypeVar("_F", bound="Callable[..., Any]")


def _remember_debug(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click calls it
    if wanted:
        ctx.meta[DEBUG] = True


debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_remember_debug,
    help="Show the traceback of an error.",
)
"""``--debug``, accepted before and after the command's name."""


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
"""``--json``, arrives as ``as_json: bool``."""


def store_option(default: str = DEFAULT_STORE) -> Callable[[_F], _F]:
    """Return ``--store``, which arrives as ``store_url: str``, together with ``--debug``.

    Args:
        default: the URL when neither the option nor ``CHANGEOVER_STORE`` says another.
    """

    def decorate(function: _F) -> _F:
        with_store = click.option(
            "--store",
            "store_url",
            metavar="URL",
            envvar=ENV_STORE,
            default=default,
            help=f"The store, a SQLAlchemy URL.  [env: {ENV_STORE}; default: {default}]",
        )
        return with_store(debug_option(function))

    return decorate
