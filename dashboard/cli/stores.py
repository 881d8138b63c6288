"""How commands open the store: never by accident, and with everything that dead processes left behind."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from changeover.config import Config, sqlite_file

from .errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from changeover.store.engine import Store


@contextmanager
def opened(config: Config, *, create: bool = False) -> Iterator[Store]:
    """Give the store that *config* names, upgraded to this version's schema, and close it afterwards.

    Args:
        config: the resolved settings.
        create: make the store when it does not exist; otherwise only records that wait in the spool justify that.

    Raises:
        StoreError: when there is no store, or it cannot be used.
    """
    from changeover.store.engine import open_store

    with open_store(config.store, create=create or has_waiting_records(config)) as store:
        yield store


@contextmanager
def caught_up(config: Config, *, create: bool = False) -> Iterator[Store]:
    """Give the store like [`opened`][changeover.dashboard.cli.stores.opened], after taking in the spool's left-overs.

    Raises:
        StoreError: when there is no store, or it cannot be used.
    """
    from changeover.store.drain import drain

    with opened(config, create=create) as store:
        for path, reason in drain(config.spool, store).refused.items():
            click.echo(f"changeover: {path} stays in the spool: {one_line(reason)}", err=True)
        yield store


def has_waiting_records(config: Config) -> bool:
    """Return whether the spool holds records that no store has seen yet."""
    return any(size for _, size in segments(config.spool))


def segments(spool: Path) -> list[tuple[Path, int]]:
    """Return the segments that lie in *spool*, oldest first, each with its size in bytes."""
    found = []
    for path in sorted(spool.glob("*.jsonl")):
        try:
            found.append((path, path.stat().st_size))
        except FileNotFoundError:  # drained while we looked
            continue
    return found


def store_name(config: Config) -> str:
    """Return how to call the store in a sentence: the path of its file, or its URL without the password."""
    file = sqlite_file(config.store)
    if file is not None:
        return str(file)
    scheme, separator, rest = config.store.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"
