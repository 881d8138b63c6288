"""Operations: the store is made, upgraded, checked and measured, and the doctor says what is wrong with recording."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import orjson

from changeover.config import Config
from changeover.dashboard.cli import doctor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from changeover.store.engine import Store

    from .conftest import Ran


def test_upgrading_makes_a_store_and_is_quiet_the_second_time(run_cli: Callable[..., Ran], tmp_path: Path):
    first, second = run_cli("db", "upgrade"), run_cli("db", "upgrade")

    assert "schema none → " in first.out
    assert "nothing to do" in second.out
    assert (tmp_path / "changeover.db").exists()


def test_a_store_in_order_passes_the_check(busy_store: Store, run_cli: Callable[..., Ran]):
    ran = run_cli("db", "check", "--store", busy_store.url.render_as_string())

    assert ran.code == 0
    assert "in order" in ran.out


def test_a_database_without_our_tables_fails_the_check_and_is_not_changed(run_cli: Callable[..., Ran], tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "changeover.db")) as connection:
        connection.execute("PRAGMA user_version = 1")
    ran = run_cli("db", "check", "--json")

    assert ran.code == 1
    assert "changeover db upgrade" in json.loads(ran.out)["problems"][0]
    with closing(sqlite3.connect(tmp_path / "changeover.db")) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


def test_rows_that_refer_to_nothing_fail_the_check(busy_store: Store, run_cli: Callable[..., Ran]):
    busy_store.close()
    with closing(sqlite3.connect(str(busy_store.url.database))) as connection, connection:
        connection.execute("DELETE FROM tool WHERE name = 'search_orders'")
    ran = run_cli("db", "check", "--store", busy_store.url.render_as_string())

    assert ran.code == 1
    assert "refer to rows that are not there" in ran.out


def test_stats_count_rows_and_bytes(busy_store: Store, run_cli: Callable[..., Ran]):
    stats = json.loads(run_cli("db", "stats", "--json", "--store", busy_store.url.render_as_string()).out)

    assert stats["rows"]["call"] > 700
    assert stats["bytes"] > 100_000


def test_the_doctor_finds_a_sound_store_sound(busy_store: Store, run_cli: Callable[..., Ran]):
    ran = run_cli("doctor", "--json", "--store", busy_store.url.render_as_string())

    assert ran.code == 0
    assert {f["status"] for f in json.loads(ran.out)["findings"]} == {"ok"}


def test_the_doctor_says_that_recording_is_switched_off(
    busy_store: Store, run_cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CHANGEOVER_ENABLED", "false")
    ran = run_cli("doctor", "--store", busy_store.url.render_as_string())

    assert ran.code == 1
    assert "CHANGEOVER_ENABLED" in ran.out


def test_the_doctor_takes_in_what_dead_processes_left(
    busy_store: Store, record: Callable[..., Any], run_cli: Callable[..., Ran]
):
    spool = Config.resolve(store=busy_store.url.render_as_string()).spool
    spool.mkdir()
    (spool / "1700000000000000000-1-1.jsonl").write_bytes(orjson.dumps(record("find_order")) + b"\n")
    ran = run_cli("doctor", "--store", busy_store.url.render_as_string())

    assert ran.code == 0
    assert list(spool.glob("*.jsonl")) == []


def test_records_that_nobody_moves_are_a_problem(tmp_path: Path):
    segment = tmp_path / "1700000000000000000-1-1.jsonl"
    segment.write_text("{}\n")
    os.utime(segment, (1_000, 1_000))

    assert doctor.backlog(tmp_path, now=1_010).status == "ok"
    assert doctor.backlog(tmp_path, now=2_000).status == "problem"


def test_losses_are_worth_a_note():
    assert doctor.lost({}).status == "ok"
    assert doctor.lost({"spool_full": 3}).text == "dropped so far: spool_full 3"
