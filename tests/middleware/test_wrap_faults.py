"""A fault of ours never reaches the tool's caller, is counted, and never makes the tool run twice."""

from __future__ import annotations

import asyncio
import logging

import pytest

import changeover
from changeover import calls, follow, runtime
from changeover import recording as recording_module


class BrokenError(Exception):
    pass


def broken(*_, **__):
    raise BrokenError("ours")


class Tool:
    """A tool that counts how often it ran."""

    ran = 0

    def __call__(self, fail: bool = False):
        self.ran += 1
        if fail:
            raise ValueError("the tool's own")
        return {"n": 1}


@pytest.fixture
def tool():
    made = Tool()
    made.__name__ = "tool"
    return made


SEAMS = [
    (calls, "current_session", "span_error"),
    (calls, "get_current_span", "span_error"),
    (calls, "digest", "arguments_error"),
    (calls, "classify_result", "classify_error"),
    (recording_module, "is_empty", "record_error"),
    (recording_module, "result_digest", "record_error"),
    (recording_module, "build_record", "record_error"),
]


@pytest.mark.parametrize("seam", SEAMS, ids=lambda seam: seam[1])
@pytest.mark.parametrize("stage", ["shadow", "cutover"])
def test_a_broken_part_leaves_the_result_and_is_counted(recording, monkeypatch, tool, seam, stage):
    module, name, reason = seam
    if stage == "cutover":
        recording.flag("tool")
    wrapped = changeover.wrap(tool, dialect="mcp")
    monkeypatch.setattr(module, name, broken)

    assert wrapped() == {"n": 1}
    assert tool.ran == 1
    assert recording.losses() == {reason: 1}


ERROR_SEAMS = [
    (calls, "classify_exception", "classify_error"),
    (calls, "structured_json", "render_error"),
    (calls, "exception_text", "render_error"),
    (recording_module, "recorded_text", "record_error"),
    (recording_module, "_error_attributes", "record_error"),
]


@pytest.mark.parametrize("seam", ERROR_SEAMS, ids=lambda seam: seam[1])
def test_a_broken_part_on_the_error_path_leaves_the_exception(recording, monkeypatch, tool, seam):
    module, name, reason = seam
    wrapped = changeover.wrap(tool)
    monkeypatch.setattr(module, name, broken)

    with pytest.raises(ValueError, match="the tool's own") as caught:
        wrapped(fail=True)

    assert caught.value.__context__ is None
    assert tool.ran == 1
    assert recording.losses() == {reason: 1}


@pytest.mark.parametrize("name", ["structured_json", "exception_text"])
def test_in_cutover_a_payload_that_cannot_be_rendered_falls_back_to_the_exception(recording, monkeypatch, tool, name):
    recording.flag("tool")
    wrapped = changeover.wrap(tool)
    monkeypatch.setattr(calls, name, broken)

    with pytest.raises(ValueError, match="the tool's own"):
        wrapped(fail=True)

    assert tool.ran == 1
    assert recording.attributes["changeover.served"] == "legacy"


@pytest.mark.parametrize("method", ["begin", "begin_steps", "failed", "returned", "exhausted"])
def test_even_a_fault_outside_every_fence_leaves_the_tool_alone(recording, monkeypatch, method):
    ran = []
    monkeypatch.setattr(calls.Tool, method, broken)
    monkeypatch.setattr(follow, "is_opaque_awaitable", broken)

    def function(fail):
        ran.append("f")
        if fail:
            raise ValueError("own")
        return 1

    async def coroutine(fail):
        return function(fail)

    def generator(fail):
        yield function(fail)

    async def async_generator(fail):
        yield function(fail)

    async def first(steps):
        return await anext(steps)

    for call in (
        changeover.wrap(function),
        lambda fail: asyncio.run(changeover.wrap(coroutine)(fail)),
        lambda fail: next(changeover.wrap(generator)(fail)),
        lambda fail: asyncio.run(first(changeover.wrap(async_generator)(fail))),
    ):
        assert call(fail=False) == 1
        with pytest.raises(ValueError, match="own"):
            call(fail=True)
    assert ran == ["f"] * 8


def test_a_fault_is_said_once_and_counted_each_time(recording, monkeypatch, tool, caplog):
    wrapped = changeover.wrap(tool)
    monkeypatch.setattr(calls, "digest", broken)
    with caplog.at_level(logging.WARNING, "changeover"):
        for _ in range(5):
            wrapped()

    assert len(caplog.records) == 1
    assert "BrokenError" in caplog.text
    assert recording.losses() == {"arguments_error": 5}


def test_an_interrupt_in_our_own_part_is_not_swallowed(recording, monkeypatch, tool):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(calls, "digest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        changeover.wrap(tool)()
    assert tool.ran == 0


class Hostile:
    """Raises from whatever it is asked."""

    def _refuse(self, *_):
        raise RuntimeError("hostile")

    __repr__ = __str__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = __getitem__ = __await_ = _refuse

    @property
    def __class__(self):
        raise RuntimeError("hostile class")

    def __getattr__(self, name):
        raise RuntimeError(f"hostile {name}")


class HostileError(Exception):
    def __str__(self):
        raise RuntimeError("hostile")

    __repr__ = __str__


@pytest.mark.parametrize("stage", ["shadow", "cutover"])
def test_hostile_values_pass_through(recording, stage):
    if stage == "cutover":
        recording.flag("tool")
    value = Hostile()

    def tool(given):
        return value

    assert changeover.wrap(tool, dialect="mcp")(Hostile()) is value
    assert recording.outcomes == ["ok"]
    assert "changeover.args.digest" in recording.attributes


def test_a_hostile_exception_passes_through(recording):
    raised = HostileError()

    def tool():
        raise raised

    with pytest.raises(HostileError) as caught:
        changeover.wrap(tool)()

    assert caught.value is raised
    assert recording.attributes["changeover.legacy.payload"].startswith("HostileError: <no message")


def test_a_tool_that_changes_its_arguments_is_recorded_as_it_was_asked(recording):
    def tool(items):
        items.append(1)

    wrapped = changeover.wrap(tool)
    wrapped([])
    wrapped([])

    first, second = recording.records
    assert first["attributes"]["changeover.args.digest"] == second["attributes"]["changeover.args.digest"]


def test_deep_recursion_inside_a_tool_stays_the_tools_own_error(recording):
    @changeover.tool
    def tool(n):
        return tool(n + 1)

    with pytest.raises(RecursionError):
        tool(0)


def test_a_bad_environment_leaves_the_tool_bare_and_says_so_once(monkeypatch, tool, caplog, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHANGEOVER_ENABLED", "maybe")
    monkeypatch.setattr(runtime, "_config", None)
    monkeypatch.setattr(runtime, "_runtime", None)
    wrapped = changeover.wrap(tool)

    assert wrapped() == {"n": 1}
    assert wrapped() == {"n": 1}
    assert "CHANGEOVER_ENABLED must be true or false, not 'maybe'" in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_br_04_01_no_secret_reaches_the_record(recording):
    def tool():
        raise ValueError("400 for url: https://api.x/y?key=AIzaFAKE123&q=1")

    with pytest.raises(ValueError, match="AIzaFAKE123"):
        changeover.wrap(tool)()

    assert b"AIzaFAKE123" not in recording.lines[0]
    assert b"key=***" in recording.lines[0]


def test_br_04_09_a_long_message_is_redacted_before_it_is_cut(recording):
    message = "x" * 16_370 + " url=https://h/p?api_key=FAKEFAKEFAKEFAKE&x=" + "y" * 50_000

    def tool():
        raise ValueError(message)

    with pytest.raises(ValueError, match="x"):
        changeover.wrap(tool)()

    found = recording.attributes
    assert "FAKE" not in found["changeover.legacy.payload"]
    assert "[cut:" in found["changeover.legacy.payload"]
    assert found["changeover.legacy.bytes"] == len(f"ValueError: {message}")


def test_a_result_that_holds_itself_is_recorded(recording):
    endless: list[object] = []
    endless.append(endless)

    assert changeover.wrap(lambda: endless, name="tool")() is endless
    assert recording.outcomes == ["ok"]
    assert recording.losses() == {}
