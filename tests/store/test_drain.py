"""Draining a spool: whole segments, idempotently, never somebody else's, and never silently less."""

from __future__ import annotations

import fcntl
from pathlib import Path

import orjson
import pytest
from sqlalchemy import text

from changeover.store import drain as drain_module
from changeover.store import segments
from changeover.store.drain import Drained, drain, drain_segment
from changeover.store.errors import StoreError


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


def write(spool: Path, *lines: bytes, name: str = "1700000000000000000-1-1.jsonl") -> Path:
    path = spool / name
    path.write_bytes(b"".join(lines))
    return path


def line(record) -> bytes:
    return orjson.dumps(record) + b"\n"


def stored(store) -> int:
    with store.read() as connection:
        return connection.execute(text("SELECT count(*) FROM call")).scalar()


def losses(store) -> dict[str, int]:
    with store.read() as connection:
        return dict(connection.execute(text("SELECT reason, sum(count) FROM loss GROUP BY reason")).all())


def test_segments_of_dead_processes_are_taken_in_and_removed(store, spool, span):
    write(spool, line(span(1)), line(span(2)))
    write(spool, line(span(3)), name="1700000000000000001-2-1.jsonl")
    (spool / "key").write_text("not a segment")
    done = drain(spool, store)

    assert done == Drained(records=3, stored=3, segments=2)
    assert stored(store) == 3
    assert [path.name for path in spool.iterdir()] == ["key"]


def test_a_spool_that_is_not_there_is_empty(store, tmp_path):
    assert drain(tmp_path / "none", store) == Drained()


def test_the_segment_of_a_living_process_is_left_alone(sqlite_store, spool, span):
    path = write(spool, line(span(1)))
    with path.open("ab") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        done = drain(spool, sqlite_store)

    assert done == Drained()
    assert path.exists()


def test_an_empty_segment_is_removed(sqlite_store, spool):
    write(spool)

    assert drain(spool, sqlite_store).segments == 1
    assert list(spool.iterdir()) == []


def test_a_torn_last_line_is_counted(store, spool, span):
    write(spool, line(span(1)), line(span(2))[:-30])
    done = drain(spool, store)

    assert (done.stored, done.lost) == (1, {"torn_record": 1})
    assert losses(store) == {"torn_record": 1}


def test_a_last_line_that_lacks_only_its_end_is_whole(store, spool, span):
    write(spool, line(span(1)).rstrip(b"\n"))

    assert drain(spool, store).stored == 1


def test_lines_that_nobody_can_read_are_counted_and_the_rest_is_stored(store, spool, span):
    deep = b"[" * 100_000 + b"]" * 100_000 + b"\n"
    write(spool, b"\x00\xff\n", b"{]\n", b"\n", line(span(1)), deep, b"[1]\n")
    done = drain(spool, store)

    assert done.stored == 1
    assert losses(store) == {"unreadable_record": 3, "malformed_record": 1}


def test_a_lone_surrogate_in_a_line_is_no_reason_to_lose_it(store, spool, span):
    write(spool, line(span(1, session="SESSION")).replace(b"SESSION", rb"a\ud800b"))

    assert drain(spool, store).stored == 1
    with store.read() as connection:
        assert connection.execute(text("SELECT name FROM session")).scalar() == "a\ufffdb"


def test_a_line_too_long_to_be_a_record_is_skipped(sqlite_store, spool, span, monkeypatch):
    monkeypatch.setattr(segments, "MAX_LINE_BYTES", 2_000)
    write(spool, line(span(1)), b"x" * 10_000 + b"\n", line(span(2)), b"y" * 3_000)
    done = drain(spool, sqlite_store)

    assert (done.stored, done.lost) == (2, {"oversize_record": 2})


def test_a_segment_larger_than_a_batch_is_stored_whole(store, spool, span, monkeypatch):
    monkeypatch.setattr(segments, "BATCH_RECORDS", 7)
    write(spool, *(line(span(number)) for number in range(1, 51)), b"{\n")
    done = drain(spool, store)

    assert (done.records, done.stored, done.lost) == (50, 50, {"unreadable_record": 1})


def test_a_crash_between_commit_and_removal_counts_nothing_twice(store, spool, span, monkeypatch):
    path = write(spool, line(span(1)), b"{\n", line(span(2)), b"{torn")
    monkeypatch.setattr(Path, "unlink", lambda _path: (_ for _ in ()).throw(OSError(5, "crashed")))
    crashed = drain(spool, store)
    monkeypatch.undo()
    assert crashed.refused == {str(path): "crashed"}
    assert path.exists()
    again = drain(spool, store)

    assert (again.stored, again.segments) == (0, 1)
    assert losses(store) == {"unreadable_record": 1, "torn_record": 1}


def test_a_segment_stays_while_the_store_refuses(sqlite_store, spool, span, monkeypatch):
    path = write(spool, line(span(1)))

    def refuse(*_arguments, **_options):
        raise StoreError("the disk is full")

    monkeypatch.setattr(drain_module, "ingest", refuse)
    with pytest.raises(StoreError):
        drain(spool, sqlite_store)
    monkeypatch.undo()

    assert path.exists()
    assert drain(spool, sqlite_store).stored == 1


def test_one_segment_that_cannot_be_read_does_not_keep_the_others_back(sqlite_store, spool, span):
    (spool / "1-1-1.jsonl").mkdir()
    write(spool, line(span(1)))
    done = drain(spool, sqlite_store)

    assert done.stored == 1
    assert list(done.refused) == [str(spool / "1-1-1.jsonl")]


def test_a_process_drains_its_own_closed_segment(store, spool, span):
    path = write(spool, line(span(1)))

    assert drain_segment(path, store).stored == 1
    assert not path.exists()
    assert drain_segment(path, store) == Drained()


def test_a_segment_that_another_one_holds_is_not_said_to_be_drained(sqlite_store, spool, span, monkeypatch):
    monkeypatch.setattr(drain_module, "BUSY_SECONDS", 0.1)
    path = write(spool, line(span(1)))
    with path.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="another process"):
            drain_segment(path, sqlite_store)


def test_a_segment_removed_while_we_waited_for_it_is_not_drained_again(spool, span):
    path = write(spool, line(span(1)))
    with path.open("rb") as opened:
        path.unlink()
        write(spool, line(span(2)))

        assert not segments._is_still_there(opened, path)


@pytest.mark.parametrize("name", ["x.jsonl", "99999999999999999999-1-1.jsonl", "-.jsonl", "1-\udcff.jsonl"])
def test_a_segment_of_any_name_is_taken_in(store, spool, span, name):
    write(spool, line(span(1)), b"{\n", name=name)

    assert drain(spool, store).stored == 1
    assert losses(store) == {"unreadable_record": 1}


def test_several_drainers_of_one_spool_store_each_record_once(store, store_url, spool, span, side_by_side):
    for number in range(12):
        records = (line(span(12 * number + place + 1, session=f"s{number}")) for place in range(12))
        write(spool, *records, b"{\n", name=f"{number}-1-1.jsonl")
    code = """
from pathlib import Path
from changeover.store.engine import open_store
from changeover.store.drain import drain
with open_store(sys.argv[1]) as store:
    print(drain(Path(sys.argv[2]), store).stored)
"""
    answers = side_by_side(code, [[store_url, str(spool)]] * 3)

    assert sum(map(int, answers)) == stored(store) == 144
    assert losses(store) == {"unreadable_record": 12}
    assert list(spool.iterdir()) == []


def test_a_record_that_nobody_foresaw_does_not_hold_up_the_others(store, spool, span, monkeypatch):
    genuine = drain_module.ingest

    def stumble(store, records, **options):
        if any(record.get("span_id") == f"{2:016x}" for record in records):
            raise ZeroDivisionError
        return genuine(store, records, **options)

    monkeypatch.setattr(drain_module, "ingest", stumble)
    lines = [line(span(1)), line(span(2)), line({"kind": "span"}), line(span(3)), b"{\n"]
    write(spool, *lines)
    first = drain(spool, store)
    write(spool, *lines)
    again = drain(spool, store)

    assert (first.stored, again.stored, stored(store)) == (2, 0, 2)
    assert losses(store) == {"refused_record": 1, "unknown_record_version": 1, "unreadable_record": 1}
    assert first.lost == losses(store)
