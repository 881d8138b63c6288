"""The process's global state: built late, replaced whole, told to nobody who does not ask."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import changeover
from changeover import runtime


def test_a_bad_setting_is_refused_and_changes_nothing(recording):
    before = runtime.current()
    with pytest.raises(changeover.ConfigurationError, match="unknown kind 'oracle'"):
        changeover.configure(store="oracle://host/x")

    assert runtime.current() is before


def test_configuring_again_flushes_the_old_store_first(recording, process, tmp_path):
    wrapped = changeover.wrap(lambda n: n, name="tool")
    wrapped(1)
    changeover.configure(store=f"sqlite:///{tmp_path / 'second.db'}")
    wrapped(2)
    wrapped(3)
    assert changeover.flush(20)

    assert len(process.stored()) == 1
    assert len(process.stored(file="second.db")) == 2


def test_a_call_that_spans_a_reconfiguration_is_not_lost(recording, tmp_path):
    @changeover.tool
    def tool():
        changeover.configure(store=f"sqlite:///{tmp_path / 'second.db'}")

    tool()

    assert len(recording.records) == 1
    assert [path.stat().st_size > 0 for path in recording.spool.glob("*.jsonl")] == [True]


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_flush_refuses_a_timeout_that_is_none(timeout):
    with pytest.raises(ValueError, match="timeout must be"):
        changeover.flush(timeout)


def test_flush_before_any_call_is_done_at_once(monkeypatch):
    monkeypatch.setattr(runtime, "_runtime", None)

    assert changeover.flush(0)


def test_the_service_stands_on_every_record(process):
    code = (
        "import changeover\nchangeover.configure(store='sqlite:///calls.db', service='orders')\n"
        "changeover.wrap(lambda: 1, name='tool')()"
    )
    process.run(code)

    assert ("orders",) in process.stored("service", "setup")


def test_every_public_name_is_there_and_listed():
    assert changeover.__all__ == sorted(changeover.__all__)
    for name in changeover.__all__:
        assert getattr(changeover, name) is not None
        assert name in dir(changeover)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = changeover.nothing


def test_a_function_is_not_hidden_by_the_module_of_its_name():
    importlib.import_module("changeover.session")
    importlib.import_module("changeover.wrap")

    assert not isinstance(changeover.session, type(sys))
    assert callable(changeover.wrap)


def test_importing_the_modules_first_hides_no_function_either(process):
    code = (
        "import changeover.session, changeover.wrap\nfrom changeover.session import current\n"
        "with changeover.session('x'): assert current().id == 'x'\n"
        "assert changeover.wrap(len, name='n')([1]) == 1"
    )
    process.run(code)


def test_python_m_changeover_is_the_command_line():
    done = subprocess.run([sys.executable, "-m", "changeover", "--help"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "Usage:" in done.stdout


def test_a_store_file_that_was_removed_is_made_again(process):
    code = """
import changeover, os
@changeover.tool
def tool(n): return n
tool(1)
assert changeover.flush(30)
for name in os.listdir():
    if name.startswith("calls.db") and not name.endswith(".spool"):
        os.remove(name)
tool(2)
assert changeover.flush(30)
"""
    assert "Traceback" not in process.run(code).stderr
    assert len(process.stored()) == 1


def test_a_key_that_cannot_be_used_is_counted_as_itself(process, tmp_path):
    (tmp_path / "calls.db.spool").mkdir()
    (tmp_path / "calls.db.spool" / "key").write_text("no key")
    process.run("import changeover\n@changeover.tool\ndef t(): return 1\nt()\nassert changeover.flush(30)")

    assert process.stored("reason, count", "loss") == [("key_error", 1)]


def test_configuring_again_leaves_no_thread_behind(process):
    code = """
import changeover, threading, time
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
@changeover.tool
def tool(n): return n
for n in range(4):
    changeover.configure(store=f"sqlite:///{n}.db")
    tool(n)
deadline = time.monotonic() + 20
while sum(thread.name == "changeover-host" for thread in threading.enumerate()) > 1:
    assert time.monotonic() < deadline
    time.sleep(0.01)
"""
    assert "Traceback" not in process.run(code).stderr


def test_a_call_that_outlives_its_recorder_is_left_for_the_next_drain(process):
    code = """
import changeover
from changeover.store.drain import drain
from changeover.store.engine import open_store
from pathlib import Path
old = "sqlite:///calls.db"
@changeover.tool
def tool():
    changeover.configure(store="sqlite:///other.db")
changeover.configure(store=old)
tool()
with open_store(old) as store:
    print(drain(Path("calls.db.spool").absolute(), store).records)
"""
    assert process.run(code).stdout.split() == ["1"]
