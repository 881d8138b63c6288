"""The recorder: nothing that was recorded is lost uncounted, and the tool never waits for the store."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import signal
import sqlite3
import threading
from contextlib import closing

import pytest
from opentelemetry import context, trace

import changeover
from changeover import runtime
from changeover.config import Config
from changeover.losses import Losses
from changeover.recorder import Recorder
from changeover.spans import build_record
from changeover.store.engine import open_store

TOOL = "import changeover\ntool = changeover.wrap(lambda n: n, name='tool')\n"


class Sink:
    """A store that can be away."""

    def __init__(self):
        self.away = False
        self.taken = []
        self.opened = 0

    def open(self):
        if self.away:
            raise ConnectionError("away")
        self.opened += 1
        return self

    def drain_segment(self, path):
        if self.away:
            raise ConnectionError("away")
        self.taken += path.read_text().splitlines()
        path.unlink()

    def adopt(self, spool):
        pass

    def close(self):
        pass


@pytest.fixture
def sink():
    return Sink()


@pytest.fixture
def make(tmp_path, sink):
    made = []

    def make(**changes):
        config = dataclasses.replace(
            Config.resolve(store=f"sqlite:///{tmp_path / 'x.db'}", environ={}), drain_seconds=0.01, **changes
        )
        made.append(Recorder(config, Losses(), open_sink=sink.open))
        return made[-1]

    yield make
    sink.away = False
    for recorder in made:
        recorder.close(5)


def test_flush_waits_until_everything_is_in_the_store(make, sink):
    recorder = make()
    for n in range(100):
        recorder.append(b"%d\n" % n)

    assert recorder.flush(10)
    assert sink.taken == [str(n) for n in range(100)]


def test_flush_with_nothing_to_do_needs_no_store(make, sink):
    sink.away = True

    assert make().flush(0)


def test_while_the_store_is_away_records_wait_and_nothing_is_lost(make, sink, caplog):
    recorder = make()
    sink.away = True
    with caplog.at_level(logging.WARNING, "changeover"):
        for n in range(10):
            recorder.append(b"%d\n" % n)
        assert not recorder.flush(0.3)
        sink.away = False
        assert recorder.flush(10)

    assert sorted(sink.taken, key=int) == [str(n) for n in range(10)]
    assert [record.message.partition(";")[0].partition(",")[0] for record in caplog.records] == [
        "the store cannot be reached (ConnectionError)",
        "the store is back",
    ]


def test_what_the_bound_drops_is_counted_and_travels_as_a_loss(make, sink):
    sink.away = True
    recorder = make(spool_bytes=100)
    for _ in range(20):
        recorder.append(b"123456789\n")
    sink.away = False
    assert recorder.flush(10)

    losses = [json.loads(line) for line in sink.taken if line.startswith("{")]
    assert len(sink.taken) - len(losses) == 10
    assert sum(loss["count"] for loss in losses) == 10
    assert {loss["reason"] for loss in losses} == {"spool_full"}
    assert losses[0]["kind"] == "loss"
    assert losses[0]["process"].endswith(f":{os.getpid()}")


def test_a_folder_that_refuses_is_counted_and_said_once(tmp_path, make, caplog):
    (tmp_path / "file").touch()
    recorder = make(spool=tmp_path / "file" / "spool")
    with caplog.at_level(logging.WARNING, "changeover"):
        for _ in range(5):
            recorder.append(b"x\n")

    assert recorder._losses.take() == {"spool_error": 5}
    assert len(caplog.records) == 1
    assert "set CHANGEOVER_SPOOL" in caplog.text


def test_after_close_a_late_record_is_left_for_others(make, tmp_path):
    recorder = make()
    recorder.close(1)
    recorder.append(b"late\n")

    (segment,) = (tmp_path / "x.db.spool").glob("*.jsonl")
    assert segment.read_bytes() == b"late\n"


def test_rows_are_committed_after_flush(recording):
    with changeover.session("conv-42"):
        changeover.wrap(lambda n: n, name="tool")(1)

    assert recording.rows("outcome, stage, arm, served") == [("ok", "shadow", "legacy", "legacy")]


def test_br_06_07_a_record_delivered_twice_is_stored_once(recording):
    changeover.wrap(lambda n: n, name="tool")(1)
    assert recording.rows() == [("ok",)]
    runtime.current().recorder.append(recording.lines[0])

    assert recording.rows() == [("ok",)]


def test_losses_reach_the_store(recording):
    runtime.current().recorder.count("spool_full", 3)

    assert recording.rows("reason, count", "loss") == [("spool_full", 3)]


def test_a_burst_of_eight_threads_loses_nothing(recording):
    wrapped = changeover.wrap(lambda n: n, name="tool")
    threads = [threading.Thread(target=lambda: [wrapped(n) for n in range(250)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(recording.rows()) == 2000
    assert recording.losses() == {}


def test_br_06_15_a_locked_store_holds_up_neither_tool_nor_flush(recording):
    wrapped = changeover.wrap(lambda n: n, name="tool")
    wrapped(0)
    recording.rows()
    with closing(sqlite3.connect(recording.folder / "calls.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for n in range(10):
            assert wrapped(n) == n
        assert not changeover.flush(0.1)
        other.execute("ROLLBACK")

    assert len(recording.rows()) == 11


def test_br_06_09_our_own_sql_runs_suppressed_and_below_an_unsampled_span(recording):
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    seen = []

    def look(*_):
        current = trace.get_current_span().get_span_context()
        seen.append((context.get_value("suppress_instrumentation"), current.is_valid, int(current.trace_flags)))

    event.listen(Engine, "before_cursor_execute", look)
    try:
        changeover.wrap(lambda n: n, name="tool")(1)
        assert changeover.flush(20)
        assert runtime.current().flags.refresh(5)
    finally:
        event.remove(Engine, "before_cursor_execute", look)

    assert seen
    assert set(seen) == {(True, True, 0)}


def test_a_tool_called_by_our_own_background_work_is_not_recorded(recording):
    from changeover.quiet import quiet

    with quiet():
        assert changeover.wrap(lambda n: n, name="tool")(1) == 1

    assert recording.records == []


def test_segments_of_dead_processes_are_taken_in(recording, process):
    record = build_record(
        tool="dead", trace_id="1" * 32, span_id="2" * 16, start_ns=1, end_ns=2, status="ok", service="s",
        attributes={"changeover.outcome": "ok", "changeover.sequence": 1, "changeover.args.digest": "0" * 32},
    )  # fmt: skip
    recording.spool.mkdir(exist_ok=True)
    (recording.spool / "1-2-3.jsonl").write_text(json.dumps(record) + "\n")
    changeover.wrap(lambda n: n, name="tool")(1)
    changeover.flush(20)
    changeover.configure(recording=False)

    names = {name for (name,) in process.stored("name", "tool")}
    assert "tool" in names


def test_kill_9_loses_nothing(process):
    process.run(TOOL + "for n in range(500): tool(n)\nimport os\nos.kill(os.getpid(), 9)", expect=-signal.SIGKILL)

    assert len(process.taken_in()) == 500


def test_a_short_process_has_its_rows_committed_when_it_ends(process, tmp_path):
    done = process.run(TOOL + "tool(1)")

    assert done.stderr == ""
    assert process.stored() == [("ok",)]
    assert list((tmp_path / "calls.db.spool").glob("*.jsonl")) == []


def test_an_unhandled_error_ends_the_process_as_usual_and_is_recorded(process):
    done = process.run("import changeover\n@changeover.tool\ndef tool(): raise ValueError('own')\ntool()", expect=1)

    assert done.stderr.rstrip().endswith("ValueError: own")
    assert process.stored() == [("error",)]


def test_br_06_17_a_process_ends_although_the_store_is_locked_and_its_rows_wait(process):
    with open_store(process.url):
        pass
    with closing(sqlite3.connect(process.folder / "calls.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        done = process.run(TOOL + "tool(1); tool(2)")
        other.execute("ROLLBACK")

    assert done.stderr.count("\n") == 1
    assert "taken in by the next start" in done.stderr
    assert len(process.taken_in()) == 2


FORK = (
    TOOL
    + """
import os, sys
tool(0)
{before}
children = []
for n in range(2):
    pid = os.fork()
    if not pid:
        for m in range(3):
            tool((n, m))
        {leave}
    children.append(pid)
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
tool(1)
"""
)


@pytest.mark.parametrize("leave", ["sys.exit(0)", "os._exit(0)"])
@pytest.mark.parametrize("before", ["pass", "assert changeover.flush(20)"])
def test_br_06_03_forked_children_record_in_their_own_right(process, leave, before):
    done = process.run(FORK.format(before=before, leave=leave))

    rows = process.taken_in()
    assert "Traceback" not in done.stderr
    assert len(rows) == 8
    assert len(set(process.stored("span_id"))) == 8


def test_a_fork_while_another_thread_records_and_imports_does_not_hang(process):
    code = (
        TOOL
        + """
import os, threading, time
stop = threading.Event()
def work():
    while not stop.is_set():
        tool(1)
        time.sleep(0.001)
thread = threading.Thread(target=work)
thread.start()
for n in range(5):
    pid = os.fork()
    if not pid:
        tool(2)
        assert changeover.flush(30)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
thread.join()
"""
    )
    assert "Traceback" not in process.run(code).stderr


@pytest.mark.parametrize(
    "late",
    [
        "import atexit\natexit.register(tool, 1)",
        "class Late:\n    def __init__(self): self.tool = tool\n    def __del__(self): self.tool(1)\nlate = Late()",
        "class Late:\n    def __del__(self): tool(1)\nimport builtins\nbuiltins.late = Late()",
    ],
    ids=["atexit", "del", "del at the very end"],
)
def test_br_06_19_a_first_call_while_the_interpreter_shuts_down(process, late):
    done = process.run(TOOL + late)

    assert "Traceback" not in done.stderr
    assert len(process.taken_in()) == 1


def test_recording_off_writes_nothing_and_starts_no_thread(process):
    code = (
        "import changeover, os, threading, json\n"
        "changeover.configure(recording=False)\n"
        "tool = changeover.wrap(lambda n: n, name='tool')\n"
        "assert tool(1) == 1 and changeover.flush()\n"
        "print(json.dumps([threading.active_count(), sorted(os.listdir('.'))]))"
    )

    assert json.loads(process.run(code).stdout) == [1, ["script.py"]]


def test_wrapping_alone_opens_and_starts_nothing(process):
    code = TOOL + "import threading, os\nprint(threading.active_count(), sorted(os.listdir('.')))"

    assert process.run(code).stdout.strip() == "1 ['script.py']"
