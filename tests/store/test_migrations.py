"""The migrations: one head, the same schema as the tables say, up and down with rows in, all or nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from alembic import op
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Text, create_engine, inspect, text
from sqlalchemy.exc import DBAPIError

from changeover.store import schema
from changeover.store.engine import open_store
from changeover.store.errors import StoreError
from changeover.store.flags import history, set_flag
from changeover.store.ingest import ingest
from changeover.store.tables import metadata


def test_br_07_07_there_is_exactly_one_head_and_the_code_knows_it():
    heads = ScriptDirectory.from_config(schema.alembic_config()).get_heads()

    assert heads == [schema.head_revision()]


def test_the_migrations_make_the_tables_that_the_code_uses(store):
    with store.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})

        assert compare_metadata(context, metadata) == []


def test_every_constraint_and_index_is_named_alike_in_migrations_and_tables(sqlite_store, tmp_path):
    other = create_engine(f"sqlite:///{tmp_path / 'tables.db'}")
    metadata.create_all(other)
    declared = []
    for engine in (sqlite_store.engine, other):
        with engine.connect() as connection:
            found = connection.scalars(text("SELECT sql FROM sqlite_master WHERE name <> 'alembic_version'")).all()
        lines = "\n".join(str(sql) for sql in found).splitlines()
        declared.append(sorted(line.strip(" ,\t") for line in lines if re.search("CONSTRAINT|CREATE INDEX", line)))
        engine.dispose()

    assert declared[0] == declared[1]
    assert len(declared[0]) >= 50


def test_every_constraint_has_a_name(store):
    unnamed = []
    for table in metadata.tables:
        inspector = inspect(store.engine)
        keys = [
            *inspector.get_foreign_keys(table),
            *inspector.get_unique_constraints(table),
            *inspector.get_check_constraints(table),
            inspector.get_pk_constraint(table),
        ]
        unnamed += [(table, key) for key in keys if not key["name"]]

    assert unnamed == []


def test_br_07_05_down_and_up_again_with_rows_in(store, span):
    ingest(store, [span(number) for number in range(1, 30)])
    set_flag(store, "find", stage="cutover", who="me", reason="because")
    schema.downgrade(store, "base")

    assert schema.current_revision(store) is None
    assert inspect(store.engine).get_table_names() == ["alembic_version"]
    schema.upgrade(store)
    assert ingest(store, [span(1)]).stored == 1


def test_br_07_05_a_batch_migration_keeps_rows_and_names_its_constraint(store, span):
    ingest(store, [span(number) for number in range(1, 200)])

    def change() -> None:
        with op.batch_alter_table("session") as batch:
            batch.add_column(Column("flavour", Text))
            batch.create_unique_constraint("uq_session_flavour", ["flavour", "name"])

    with schema._exclusive(store) as connection:
        context = MigrationContext.configure(connection, opts={"render_as_batch": True})
        with Operations.context(context):
            change()
        schema._check_references(connection)

    assert "uq_session_flavour" in {key["name"] for key in inspect(store.engine).get_unique_constraints("session")}
    with store.read() as connection:
        assert (
            connection.execute(text("SELECT count(*) FROM call JOIN session ON session.id = session_id")).scalar()
            == 199
        )


def test_a_migration_that_fails_leaves_nothing_half_done(store_url, monkeypatch):
    def fail(_name, *_arguments, **_options):
        raise RuntimeError("the power went")

    monkeypatch.setattr(op, "create_index", fail)
    with pytest.raises(RuntimeError, match="the power went"):
        open_store(store_url)
    monkeypatch.undo()

    with open_store(store_url) as store:
        assert schema.current_revision(store) == schema.head_revision()


def test_a_migration_that_breaks_references_is_undone(sqlite_store, span, monkeypatch):
    ingest(sqlite_store, [span(1)])
    from alembic import command

    def drop_sessions(config, _revision):
        config.attributes["connection"].execute(text("DELETE FROM session"))

    monkeypatch.setattr(command, "downgrade", drop_sessions)
    with pytest.raises(StoreError, match="nothing changed"):
        schema.downgrade(sqlite_store, "base")

    with sqlite_store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM session")).scalar() == 1


@pytest.mark.parametrize("statement", ["UPDATE flag_change SET who = 'nobody'", "DELETE FROM flag_change"])
def test_the_audit_trail_cannot_be_rewritten(store, statement):
    set_flag(store, "find", stage="cutover", who="me", reason="because", force=True)

    with pytest.raises((StoreError, DBAPIError)), store.write() as connection:
        connection.execute(text(statement))
    assert [change.who for change in history(store)] == ["me"]


def test_developers_run_alembic_on_a_store_of_their_choice(tmp_path):
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "alembic", "-x", f"store=sqlite:///{tmp_path}/x.db", "upgrade", "head"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    with open_store(f"sqlite:///{tmp_path}/x.db", upgrade=False) as store:
        assert schema.current_revision(store) == schema.head_revision()
