"""How many rows a second the store takes in, with loops, figures and payloads, beside bare inserts of the same rows.

    python bench/ingest.py [--rows 200000] [--batch 1000] [--store postgresql://…]

Both are measured in turns in one run, and the medians are printed. Records are parsed lines, as the drainer hands them
over; making them is not measured.
"""

from __future__ import annotations

import argparse
import gc
import random
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from changeover.store.engine import Store, open_store
from changeover.store.ingest import ingest

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLS_PER_SESSION = 20
SESSIONS_AT_ONCE = 25
TOOLS = 12
ERROR_RATE = 0.08


def records(rows: int, source: random.Random) -> Iterator[dict[str, Any]]:
    """Yield calls of many sessions that run side by side, so that a session comes in several batches."""
    session, number = 0, 0
    while number < rows:
        for _ in range(CALLS_PER_SESSION):
            for beside in range(SESSIONS_AT_ONCE):
                number += 1
                yield record(number, session + beside, source)
        session += SESSIONS_AT_ONCE


def record(number: int, session: int, source: random.Random) -> dict[str, Any]:
    """Return one call; one in twelve fails, and one in ten failures is followed by the same call."""
    failed = source.random() < ERROR_RATE
    start = 1_700_000_000_000_000_000 + number * 10_000_000
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": f"tool_{session % TOOLS}",
        "gen_ai.tool.call.id": f"call_{number}",
        "gen_ai.conversation.id": f"conversation-{session}",
        "gen_ai.agent.name": "planner",
        "changeover.sequence": start,
        "changeover.turn": start,
        "changeover.user_turn": 1,
        "changeover.stage": "shadow",
        "changeover.arm": "legacy",
        "changeover.served": "legacy",
        "changeover.flag.version": 3,
        "changeover.flag.reason": "cached",
        "changeover.contract.version": 1,
        "changeover.dialect": "envelope",
        "changeover.args.digest": f"{source.randrange(10):032x}",
        "changeover.args.kind": "bound",
        "changeover.outcome": "error" if failed else "ok",
        "changeover.source": "live",
        "changeover.attempts": 1,
    }
    if failed:
        attributes |= {
            "error.type": "not_found",
            "changeover.retryable": False,
            "changeover.next_action": "ask_user",
            "changeover.category": "validation",
            "changeover.legacy.kind": "exception",
            "changeover.legacy.payload": "LookupError: no such order, " * 4,
            "changeover.legacy.digest": f"{source.randrange(200):032x}",
            "changeover.legacy.bytes": 112,
            "changeover.structured.payload": '{"ok":false,"error":{"code":"not_found"}}' * 3,
            "changeover.structured.digest": f"{1_000 + source.randrange(200):032x}",
            "changeover.structured.bytes": 123,
        }
    else:
        attributes["changeover.result.digest"] = f"{source.randrange(10**9):032x}"
    return {
        "kind": "span",
        "v": 1,
        "trace_id": f"{session + 1:032x}",
        "span_id": f"{number:016x}",
        "parent_span_id": None,
        "name": "execute_tool",
        "start_time_unix_nano": start,
        "end_time_unix_nano": start + 2_000_000,
        "status": "error" if failed else "ok",
        "resource": {"service.name": "bench"},
        "attributes": attributes,
        "events": [],
    }


def timed_ingest(store: Store, batches: list[list[dict[str, Any]]]) -> float:
    """Return rows a second through the store."""
    begin = time.perf_counter()
    stored = sum(ingest(store, batch).stored for batch in batches)
    seconds = time.perf_counter() - begin
    assert stored == sum(map(len, batches)), "every row is new"
    return stored / seconds


def timed_inserts(path: Path, rows: list[tuple[Any, ...]], batch: int) -> float:
    """Return rows a second of a bare ``executemany`` into the same table with the same indexes, nothing else."""
    with open_store(f"sqlite:///{path}") as store:
        columns = len(rows[0])
        with store.read() as connection:
            names = [row[1] for row in connection.execute(text("PRAGMA table_info(call)"))]
        assert columns == len(names)
    connection_ = sqlite3.connect(path, isolation_level=None)
    connection_.execute("PRAGMA synchronous=NORMAL")
    statement = f"INSERT INTO call VALUES ({','.join('?' * columns)})"  # noqa: S608 - question marks only
    begin = time.perf_counter()
    for at in range(0, len(rows), batch):
        connection_.execute("BEGIN IMMEDIATE")
        connection_.executemany(statement, rows[at : at + batch])
        connection_.execute("COMMIT")
    seconds = time.perf_counter() - begin
    connection_.close()
    return len(rows) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", help="an empty database instead of a SQLite file of our own; measured once")
    options = parser.parse_args()
    made = list(records(options.rows, random.Random(1)))
    # What a real drainer holds is one batch: the collector must not walk all of them again and again.
    gc.collect()
    gc.freeze()
    batches = [made[at : at + options.batch] for at in range(0, len(made), options.batch)]
    if options.store:
        with open_store(options.store) as store:
            print(f"store    {timed_ingest(store, batches):>10,.0f} rows/s")
        return
    ours, bare = [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds):
            path = Path(folder) / f"store-{turn}.db"
            with open_store(f"sqlite:///{path}") as store:
                ours.append(timed_ingest(store, batches))
            with sqlite3.connect(path) as connection:
                rows = connection.execute("SELECT * FROM call ORDER BY id").fetchall()
                pages = connection.execute("PRAGMA page_count").fetchone()[0] * 4096
            connection.close()
            bare.append(timed_inserts(Path(folder) / f"bare-{turn}.db", rows, options.batch))
            print(f"round {turn + 1}: store {ours[-1]:,.0f} rows/s, bare inserts {bare[-1]:,.0f} rows/s")
    store_rate, bare_rate = statistics.median(ours), statistics.median(bare)
    print(f"{len(made):,} rows in batches of {options.batch:,}, {pages / len(made):.0f} bytes a row with its indexes")
    print(f"store    {store_rate:>10,.0f} rows/s")
    print(f"bare     {bare_rate:>10,.0f} rows/s  ({bare_rate / store_rate:.2f} times as many)")


if __name__ == "__main__":
    main()
