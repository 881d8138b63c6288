"""The spool: what is written is on disk at once, in segments that nobody takes from a living writer."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading

import pytest

from changeover.keyfile import digest_key
from changeover.spool import Spool, SpoolFull


def make(folder, *, max_bytes=10_000, segment_bytes=1_000):
    return Spool(folder, max_bytes=max_bytes, segment_bytes=segment_bytes)


def segments(folder):
    return sorted(folder.glob("*.jsonl"))


def held(path):
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_a_line_is_on_disk_when_append_returns(tmp_path):
    spool = make(tmp_path)
    spool.append(b'{"n":1}\n')
    spool.append(b'{"n":2}\n')

    (segment,) = segments(tmp_path)
    assert segment.read_bytes() == b'{"n":1}\n{"n":2}\n'
    start, pid, number = segment.stem.split("-")
    assert (int(pid), number) == (os.getpid(), "1")
    assert start.isdecimal()
    spool.close()


def test_the_writer_holds_its_segment_and_lets_go_when_it_closes(tmp_path):
    spool = make(tmp_path)
    spool.append(b"x\n")
    (segment,) = segments(tmp_path)

    assert held(segment)
    spool.close()
    assert not held(segment)


def test_a_full_segment_is_closed_and_the_next_line_begins_another(tmp_path):
    spool = make(tmp_path, segment_bytes=10)
    for _ in range(3):
        spool.append(b"0123456789\n")

    assert len(segments(tmp_path)) == 3
    assert spool.sealed() == segments(tmp_path)
    spool.drained(spool.sealed()[0])
    assert len(spool.sealed()) == 2


def test_sealing_hands_the_open_segment_over_and_appends_go_on(tmp_path):
    spool = make(tmp_path)
    spool.append(b"a\n")
    spool.seal()
    spool.append(b"b\n")

    (sealed,) = spool.sealed()
    assert sealed.read_bytes() == b"a\n"
    assert not held(sealed)
    assert [path.read_bytes() for path in segments(tmp_path)] == [b"a\n", b"b\n"]
    spool.close()


def test_sealing_nothing_makes_no_file(tmp_path):
    spool = make(tmp_path)
    spool.seal()

    assert list(tmp_path.iterdir()) == []
    assert not spool.pending


def test_an_unused_segment_is_removed_at_the_end(tmp_path):
    spool = make(tmp_path)
    spool.append(b"a\n")
    spool.seal()
    spool.close()

    assert segments(tmp_path) == spool.sealed()


def test_the_bound_holds_for_the_whole_folder(tmp_path):
    (tmp_path / "1-2-3.jsonl").write_bytes(b"x" * 60)
    spool = make(tmp_path, max_bytes=100)
    spool.append(b"y" * 40)
    with pytest.raises(SpoolFull):
        spool.append(b"y")
    spool.append(b"y", beyond_bound=True)
    (tmp_path / "1-2-3.jsonl").unlink()
    spool.measure()
    spool.append(b"y")

    assert spool.pending
    spool.close()


def test_a_line_that_could_only_be_written_in_part_leaves_nothing(tmp_path, monkeypatch):
    spool = make(tmp_path)
    spool.append(b"whole\n")
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    with pytest.raises(OSError, match="only 3 of 7 bytes"):
        spool.append(b"broken\n")
    monkeypatch.undo()
    spool.append(b"again\n")

    (segment,) = segments(tmp_path)
    assert segment.read_bytes() == b"whole\nagain\n"
    spool.close()


def test_lines_of_many_threads_stay_whole(tmp_path):
    spool = make(tmp_path, max_bytes=10**9, segment_bytes=5_000)

    def write(n):
        for i in range(200):
            spool.append(f"{n}-{i}-{'x' * 50}\n".encode())
            if i % 50 == 0:
                spool.seal()

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spool.close()

    lines = [line for path in segments(tmp_path) for line in path.read_text().splitlines()]
    assert sorted(lines) == sorted(f"{n}-{i}-{'x' * 50}" for n in range(8) for i in range(200))


def test_the_folder_belongs_to_its_user_alone(tmp_path):
    spool = make(tmp_path / "a" / "b")
    spool.append(b"x\n")

    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert segments(tmp_path / "a" / "b")[0].stat().st_mode & 0o777 == 0o600
    spool.close()


def test_the_key_is_made_once_and_kept(tmp_path):
    keys = set()
    threads = [threading.Thread(target=lambda: keys.add(digest_key(tmp_path / "spool"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(keys) == 1
    assert len(keys.pop()) == 32
    assert [path.name for path in (tmp_path / "spool").iterdir()] == ["key"]
    assert (tmp_path / "spool" / "key").stat().st_mode & 0o777 == 0o600


def test_something_else_in_the_keys_place_is_refused(tmp_path):
    (tmp_path / "key").write_text("abc0")

    with pytest.raises(ValueError, match="holds no key of 32 bytes"):
        digest_key(tmp_path)


def test_lines_of_a_segment_whose_folder_was_removed_are_written_again(tmp_path):
    folder = tmp_path / "spool"
    spool = make(folder)
    spool.append(b"1\n")
    shutil.rmtree(folder)
    spool.append(b"2\n")
    spool.rescue()
    spool.append(b"3\n")

    (segment,) = segments(folder)
    assert segment.read_bytes() == b"1\n2\n3\n"
    assert held(segment)
    spool.close()


def test_a_segment_that_is_in_its_place_is_left_there(tmp_path):
    spool = make(tmp_path)
    spool.append(b"1\n")
    before = segments(tmp_path)
    spool.rescue()

    assert segments(tmp_path) == before
    spool.close()


def test_what_was_drained_makes_room_again(tmp_path):
    spool = make(tmp_path, max_bytes=100)
    spool.append(b"x" * 90)
    spool.seal()
    (path,) = spool.sealed()
    path.unlink()
    spool.drained(path)

    spool.append(b"y" * 90)
    spool.close()

    assert [segment.stat().st_size for segment in segments(tmp_path)] == [90]
