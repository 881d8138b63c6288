"""The flag board over a real store: flips from elsewhere, arms of stored calls, and a database that misbehaves."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from changeover import semconv
from changeover.flags import Decision, FlagBoard
from changeover.semconv import Arm, Reason, Stage
from changeover.spans import build_record
from changeover.store.engine import open_store
from changeover.store.flag_source import StoreFlagSource
from changeover.store.flags import set_flag
from changeover.store.ingest import ingest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'calls.db'}"


@pytest.fixture
def board(url: str) -> Iterator[FlagBoard]:
    made = FlagBoard(lambda: StoreFlagSource(url), wait_seconds=10)
    yield made
    made.close()


def flip(url: str, stage: str, rollout: float = 100) -> None:
    with open_store(url) as store:
        set_flag(store, "t", stage=stage, rollout=rollout, who="a person", reason="test", force=True)


def test_a_flip_by_another_process_is_seen_without_restart(url, board):
    flip(url, "shadow")
    assert board.decide("t", "old") == Decision(Arm.LEGACY, Stage.SHADOW, Reason.STATIC, 1)
    code = (
        "import sys\nfrom changeover.store.engine import open_store\nfrom changeover.store.flags import set_flag\n"
        "with open_store(sys.argv[1]) as store:\n"
        "    set_flag(store, 't', stage='cutover', rollout=100, who='x', reason='x', force=True)\n"
    )
    subprocess.run([sys.executable, "-c", code, url], check=True)

    # By the poll of every second; the bound of two seconds itself is held by a clock turned by hand elsewhere.
    for _ in range(400):
        if board.decide("t", None).stage is Stage.CUTOVER:
            break
        time.sleep(0.05)

    assert board.decide("t", "new").arm is Arm.STRUCTURED
    assert board.decide("t", "old") == Decision(Arm.LEGACY, Stage.CUTOVER, Reason.CACHED, 2)


def test_the_stored_calls_of_a_session_decide_its_arm(url, board):
    record = build_record(
        tool="t",
        trace_id="1" * 32,
        span_id="2" * 16,
        start_ns=1_700_000_000_000_000_000,
        end_ns=1_700_000_000_000_000_001,
        status="ok",
        attributes={
            semconv.CONVERSATION_ID: "begun",
            semconv.ARM: "legacy",
            semconv.SERVED: "legacy",
            semconv.OUTCOME: "ok",
            semconv.SEQUENCE: 1,
            semconv.ARGS_DIGEST: "3" * 32,
        },
        service="test",
    )
    with open_store(url) as store:
        assert ingest(store, [record]).stored == 1
    flip(url, "cutover")

    assert board.decide("t", "begun") == Decision(Arm.LEGACY, Stage.CUTOVER, Reason.CACHED, 1)
    assert board.decide("t", "new").arm is Arm.STRUCTURED


def test_a_store_that_does_not_exist_yet_has_no_flags(url, board, tmp_path):
    assert board.decide("t", "s") == Decision(Arm.LEGACY, Stage.SHADOW, Reason.DEFAULT, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_means_legacy(board, tmp_path):
    (tmp_path / "calls.db").write_bytes(b"no database at all" * 100)

    assert board.decide("t", "s").reason is Reason.ERROR


def test_flags_are_read_while_another_process_writes(url, board, tmp_path):
    flip(url, "cutover")
    with closing(sqlite3.connect(tmp_path / "calls.db")) as writer:
        writer.execute("BEGIN IMMEDIATE")

        assert board.decide("t", "s") == Decision(Arm.STRUCTURED, Stage.CUTOVER, Reason.STATIC, 1)


def test_a_store_that_is_taken_away_leaves_the_last_good_flags(url, tmp_path):
    flip(url, "cutover")
    board = FlagBoard(lambda: StoreFlagSource(url), fresh_seconds=0.01, wait_seconds=10)
    try:
        assert board.decide("t", "s").arm is Arm.STRUCTURED
        for file in tmp_path.glob("calls.db*"):
            file.unlink()
        time.sleep(0.02)

        assert board.decide("t", "s") == Decision(Arm.STRUCTURED, Stage.CUTOVER, Reason.STALE, 1)
    finally:
        board.close()
