"""``changeover db``: create, upgrade, check and measure the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from changeover.config import Config, sqlite_file

from .errors import CHECK_FAILED
from .options import json_option, store_option
from .output import console, print_json, table
from .stores import opened, store_name

if TYPE_CHECKING:
    from changeover.store.engine import Store

    from .output import Columns


@click.group(epilog="\b\nExamples:\n  changeover db upgrade\n  changeover db check\n  changeover db stats --json")
def db() -> None:
    """Create, upgrade and check the store."""


@db.command(epilog="\b\nExample:\n  changeover db upgrade --store postgresql://host/changeover")
@store_option()
@json_option
def upgrade(*, store_url: str, as_json: bool) -> None:
    """Create the store, or bring it to this version's schema; without anything to do it does nothing."""
    from changeover.store.engine import open_store

    config = Config.resolve(store=store_url)
    before = _revision_before(config)
    with open_store(config.store) as store:
        after = _revision(store)
    if as_json:
        print_json({"store": store_name(config), "from": before, "to": after})
    elif before == after:
        click.echo(f"{store_name(config)} is at schema {after} already; nothing to do")
    else:
        click.echo(f"{store_name(config)}: schema {before or 'none'} → {after}")


@db.command(epilog="\b\nExample:\n  changeover db check || changeover db upgrade")
@store_option()
@json_option
@click.pass_context
def check(ctx: click.Context, *, store_url: str, as_json: bool) -> None:
    """Check that the store has this version's schema and is not damaged; changes nothing. Exit code 1 when not."""
    from changeover.store.schema import head_revision

    config = Config.resolve(store=store_url)
    with _as_it_is(config) as store:
        revision, damage = _revision(store), _damage(store)
    problems = [*_behind(revision, head_revision()), *damage]
    if as_json:
        print_json({"store": store_name(config), "schema": revision, "head": head_revision(), "problems": problems})
    else:
        for line in problems or [f"{store_name(config)} is in order: schema {revision}"]:
            click.echo(line)
    if problems:
        ctx.exit(CHECK_FAILED)


@db.command(epilog="\b\nExample:\n  changeover db stats --json")
@store_option()
@json_option
def stats(*, store_url: str, as_json: bool) -> None:
    """Show how many rows each table holds, and how large the store is."""
    config = Config.resolve(store=store_url)
    with opened(config) as store:
        rows, size = _row_counts(store), _size(store)
    if as_json:
        print_json({"store": store_name(config), "bytes": size, "rows": rows})
        return
    columns: Columns = (("table", "left"), ("rows", "right"))
    console().print(table(columns, [(name, f"{count:,}") for name, count in rows.items()]))
    click.echo(f"\n{store_name(config)}: {size:,} bytes")


def _as_it_is(config: Config) -> Store:
    """Return the store without preparing its schema, which is what is to be looked at."""
    from changeover.store.engine import Store
    from changeover.store.url import check_file, parse

    file = sqlite_file(config.store)
    if file is not None:
        check_file(file, create=False)
    return Store(parse(config.store))


def _revision_before(config: Config) -> str | None:
    file = sqlite_file(config.store)
    if file is not None and not file.exists():
        return None
    with _as_it_is(config) as store:
        return _revision(store)


def _revision(store: Store) -> str | None:
    from changeover.store.schema import current_revision

    return current_revision(store)


def _behind(revision: str | None, head: str) -> list[str]:
    if revision == head:
        return []
    return [f"schema {revision or 'none'} is older than {head}; run: changeover db upgrade"]


def _damage(store: Store) -> list[str]:
    """Ask SQLite for broken pages and dangling references; a PostgreSQL server looks after its own pages."""
    if store.dialect != "sqlite":
        return []
    with store.read() as connection:
        pages = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA quick_check")]
        dangling = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    found = [f"damaged: {line}" for line in pages if line != "ok"]
    if dangling:
        found.append(f"damaged: {len(dangling)} rows refer to rows that are not there")
    return found


def _row_counts(store: Store) -> dict[str, int]:
    from sqlalchemy import func, select

    from changeover.store.tables import metadata

    with store.read() as connection:
        return {
            table.name: connection.scalar(select(func.count()).select_from(table)) or 0
            for table in metadata.sorted_tables
        }


def _size(store: Store) -> int:
    query: Any = (
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        if store.dialect == "sqlite"
        else "SELECT pg_database_size(current_database())"
    )
    with store.read() as connection:
        return int(connection.exec_driver_sql(query).scalar_one())
