"""Opening a store: what is created, what is refused, and many processes at once."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from changeover.store import schema
from changeover.store.engine import Store, open_store
from changeover.store.errors import StoreError
from changeover.store.flags import list_flags, set_flag
from changeover.store.ingest import ingest
from changeover.store.sql import take_turns

if TYPE_CHECKING:
    from pathlib import Path


def test_opening_creates_the_tables(store_url):
    with open_store(store_url) as store:
        assert schema.current_revision(store) == schema.head_revision()


def test_opening_again_runs_no_migration(store_url, monkeypatch):
    open_store(store_url).close()
    monkeypatch.setattr(schema, "upgrade", lambda _store: pytest.fail("migrated again"))

    open_store(store_url).close()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "no database URL"),
        ("mysql://root@localhost/x", "SQLite file or PostgreSQL"),
        ("postgresql+asyncpg://localhost/x", "SQLite file or PostgreSQL"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
    ],
)
def test_a_url_that_names_no_store_is_refused_in_one_line(url, says):
    with pytest.raises(StoreError, match=says) as caught:
        open_store(url)

    assert "\n" not in str(caught.value)


def test_a_password_never_enters_the_message():
    with pytest.raises(StoreError) as caught:
        open_store("nonsense:hunter2@host:port:://x")

    assert "hunter2" not in str(caught.value)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(StoreError, match="is a folder"):
        open_store(f"sqlite:///{tmp_path}")


def test_a_missing_parent_folder_is_refused(tmp_path):
    with pytest.raises(StoreError, match="does not exist; create it"):
        open_store(f"sqlite:///{tmp_path}/missing/changeover.db")


def test_a_missing_file_is_refused_where_none_may_be_created(tmp_path):
    path = tmp_path / "changeover.db"
    with pytest.raises(StoreError, match="no store at"):
        open_store(f"sqlite:///{path}", create=False)

    assert not path.exists()


@pytest.mark.parametrize("content", [b"hello, I am a text file\n", b"x"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="no SQLite database"):
        open_store(f"sqlite:///{path}")

    assert path.read_bytes() == content


def test_opening_a_store_again_keeps_the_locks_of_connections_that_are_open(tmp_path):
    url = f"sqlite:///{tmp_path}/changeover.db"
    log = tmp_path / "changeover.db-wal"
    with open_store(url) as store:
        ingest(store, [])
        before = log.stat().st_ino
        open_store(url).close()

        leave = f"from changeover.store.engine import open_store; open_store({url!r}).close()"
        subprocess.run([sys.executable, "-c", leave], check=True)

        # Whoever closes the last connection removes the log; this one is not closed yet.
        assert log.exists()
        assert log.stat().st_ino == before


def test_a_damaged_database_is_refused(tmp_path):
    path = tmp_path / "changeover.db"
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)

    with pytest.raises(StoreError, match=r"changeover\.db"):
        open_store(f"sqlite:///{path}")


def test_an_empty_file_becomes_a_store(tmp_path):
    path = tmp_path / "changeover.db"
    path.touch()

    with open_store(f"sqlite:///{path}") as store:
        assert schema.current_revision(store) == schema.head_revision()


def test_a_database_of_another_program_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE invoice (id INTEGER)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(StoreError, match="holds other tables"):
        open_store(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_database_of_another_program_that_uses_alembic_is_refused(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('abc')")
        connection.execute("CREATE TABLE call (id INTEGER)")
    connection.close()

    with pytest.raises(StoreError, match="another program"):
        open_store(f"sqlite:///{path}")


def test_a_newer_schema_is_refused(store_url):
    with open_store(store_url) as store, store.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    with pytest.raises(StoreError, match="newer changeover"):
        open_store(store_url)


def test_an_empty_database_is_refused_where_it_may_not_be_upgraded(store_url, tmp_path):
    (tmp_path / "changeover.db").touch()

    with pytest.raises(StoreError, match="changeover db upgrade"):
        open_store(store_url, upgrade=False)


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="permissions"):
            open_store(f"sqlite:///{tmp_path}/changeover.db")
    finally:
        tmp_path.chmod(0o700)


def test_a_server_that_is_not_there_is_a_store_error(tmp_path):
    with pytest.raises(StoreError, match="no server answers"):
        open_store(f"postgresql://postgres@/x?host={tmp_path}")


def test_many_processes_may_open_a_fresh_store_at_once(store_url, side_by_side):
    code = """
from changeover.store.engine import open_store
from changeover.store.schema import current_revision
with open_store(sys.argv[1]) as store:
    print(current_revision(store))
"""
    answers = side_by_side(code, [[store_url]] * 6)

    assert answers == [schema.head_revision()] * 6


def test_a_write_that_fails_leaves_nothing(store):
    def fail_late() -> None:
        with store.write() as connection:
            connection.execute(text("INSERT INTO tool (id, name) VALUES (1, 'x')"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_late()

    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM tool")).scalar() == 0


def test_sqlite_runs_with_a_write_ahead_log_and_checked_references(sqlite_store):
    with sqlite_store.read() as connection:
        found = [connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "foreign_keys")]

    assert found == ["wal", 1]


def test_br_07_01_a_long_read_does_not_keep_writers_waiting(store, span):
    with store.read() as reading:
        reading.execute(text("SELECT count(*) FROM tool")).scalar()
        stored = sum(ingest(store, [span(number)]).stored for number in range(1, 50))
        seen = reading.execute(text("SELECT count(*) FROM call")).scalar()

    assert stored == 49
    assert seen == 0


def _ingest_in_child(store: Store, record, results) -> None:
    try:
        results.put(ingest(store, [record]).stored)
    except BaseException as error:
        results.put(repr(error))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_uses_connections_of_its_own(store, span):
    ingest(store, [span(1)])
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=_ingest_in_child, args=(store, span(2), results))
    process.start()
    answer = results.get(timeout=30)
    process.join()

    assert answer == 1
    assert ingest(store, [span(3)]).stored == 1
    with store.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM call")).scalar() == 3


def test_paths_with_odd_characters_are_fine(tmp_path):
    path: Path = tmp_path / "a b ü #%.db"
    with open_store(f"sqlite:///{path}") as store:
        assert schema.current_revision(store) == schema.head_revision()
    assert path.exists()


def test_a_writer_that_waits_too_long_says_so(store, store_url, span):
    with open_store(store_url, timeout=0.2) as hasty, store.write() as connection:
        take_turns(connection)
        with pytest.raises(StoreError, match="writing for too long"):
            ingest(hasty, [span(1)])

    assert ingest(store, [span(1)]).stored == 1


def test_a_store_whose_file_was_removed_takes_no_more_writes(tmp_path):
    path = tmp_path / "changeover.db"
    with open_store(f"sqlite:///{path}") as store:
        ingest(store, [])
        path.unlink()

        with pytest.raises(StoreError, match="was removed while it was open"):
            ingest(store, [])
    assert not path.exists()


def test_a_store_whose_file_was_replaced_goes_on_in_the_new_one(tmp_path):
    path, copy = tmp_path / "changeover.db", tmp_path / "copy.db"
    open_store(f"sqlite:///{copy}").close()
    with open_store(f"sqlite:///{path}") as store:
        set_flag(store, "tool", stage="shadow", rollout=None, who="me", reason="old", force=True)
        for name in ("changeover.db-wal", "changeover.db-shm"):
            (tmp_path / name).unlink()
        copy.replace(path)

        assert list_flags(store) == []


def test_a_store_stays_where_it_is_when_the_working_folder_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite:///changeover.db") as store:
        store.close()
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        monkeypatch.chdir(elsewhere)
        ingest(store, [])

    assert list(elsewhere.iterdir()) == []
