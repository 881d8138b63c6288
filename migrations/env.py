"""Run the migrations on the connection that the store hands over, or, for developers, on ``-x store=URL``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alembic import context

from changeover.store.tables import metadata

if TYPE_CHECKING:
    from sqlalchemy import Connection


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=True,
        compare_type=True,
        transaction_per_migration=False,
    )
    with context.begin_transaction():
        context.run_migrations()


def _from_command_line() -> None:
    from changeover.store.engine import Store
    from changeover.store.url import parse

    url = context.get_x_argument(as_dictionary=True).get("store")
    if not url:
        raise SystemExit("name the database: alembic -x store=sqlite:///changeover.db …")
    with Store(parse(url)) as store, store.write() as connection:
        _run(connection)


if context.is_offline_mode():
    raise SystemExit("the migrations look at the database they change; run them on a connection")

_shared: Connection | None = context.config.attributes.get("connection")
if _shared is None:
    _from_command_line()
else:
    _run(_shared)
