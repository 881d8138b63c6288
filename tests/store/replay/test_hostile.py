"""Files that nobody should have made: the answer is a recording or a reason, and it comes soon."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from changeover.store.replay import source
from changeover.store.replay.conversation import Conversation
from changeover.store.replay.model import ReplayError
from changeover.store.replay.read import read

TRANSCRIPTS = Path(os.environ.get("CHANGEOVER_TRANSCRIPTS") or Path(__file__).parents[4] / "shared" / "transcripts")
SMALL = 40_000
SAMPLE = {
    "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "find", "arguments": '{"q": 1}'}}]},
        {"role": "tool", "tool_call_id": "a", "content": "Error: no such thing"},
    ]
}
REAL = sorted(
    path
    for path in TRANSCRIPTS.rglob("*")
    if path.suffix in {".json", ".jsonl", ".traj"} and path.stat().st_size < SMALL and path.parent != TRANSCRIPTS
)


def refusal(path):
    with pytest.raises(ReplayError) as refused:
        read(path)
    return refused.value.reason


def written(folder, content):
    path = folder / "hostile.json"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_past_the_bound_is_refused_before_it_is_parsed(compressed, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAX_BYTES", 2 * 1024 * 1024)
    content = b" " * (source.MAX_BYTES + 1)

    assert refusal(written(tmp_path, gzip.compress(content) if compressed else content)) == (
        "is larger than 2 MiB: split it"
    )


def test_a_named_pipe_is_not_waited_for(tmp_path):
    path = tmp_path / "pipe.json"
    os.mkfifo(path)

    assert refusal(path) == "is no regular file"


@pytest.mark.parametrize("opening", [b"[", b'{"messages":', b'[{"role":"assistant","tool_calls":'])
@pytest.mark.parametrize("times", [900, 5_000, 100_000])
def test_deep_nesting_is_refused(opening, times, tmp_path):
    closing = {b"[": b"]", b"{": b"}"}
    ends = b"".join(closing[bytes([c])] for c in reversed(opening) if bytes([c]) in closing)

    refusal(written(tmp_path, opening * times + b"null" + ends * times))


@pytest.mark.parametrize("times", [300, 900, 100_000])
def test_deep_nesting_where_anything_may_stand_is_read_or_refused(times, tmp_path):
    deep = "[" * times + "]" * times
    text = json.dumps(SAMPLE).replace('"Error: no such thing"', deep)
    text = text.replace(json.dumps('{"q": 1}'), deep)

    assert outcome(written(tmp_path, text.encode())) in (1, "is nested too deeply")


def test_of_a_name_that_stands_twice_the_last_counts(tmp_path):
    text = json.dumps(SAMPLE).replace('"role": "tool"', '"role": "user", "role": "tool"')

    assert read(written(tmp_path, text.encode())).sessions[0].calls[0].is_error


def test_calls_that_nobody_answers_do_not_slow_down_the_others():
    """Looking through all open calls for each of these answers would take minutes, past every test's time."""
    conversation = Conversation()
    for call_id in ["open"] * 100_000 + ["answered"] * 100_000:
        conversation.call(conversation.begin_turn(), "find", "{}", call_id=call_id)
    for _ in range(100_000):
        conversation.result("x", is_error=False, call_id="answered")

    assert sum(call.result == "x" for call in conversation.session().calls) == 100_000


def outcome(path):
    """Return how many sessions a file holds, or the reason why it cannot be read."""
    try:
        return len(read(path).sessions)
    except ReplayError as refused:
        return refused.reason


def readable(path):
    found = outcome(path)
    return isinstance(found, int) or (found and "\n" not in found)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_give_a_recording_or_a_reason(content, tmp_path):
    assert readable(written(tmp_path, content))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_gives_a_recording_or_a_reason(data, tmp_path):
    content = json.dumps(SAMPLE).encode()
    assert readable(written(tmp_path, damaged(data, content)))
    assert readable(written(tmp_path, damaged(data, gzip.compress(content, mtime=0))))


@pytest.mark.skipif(not REAL, reason="the recorded sessions are not here: CHANGEOVER_TRANSCRIPTS")
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), number=st.integers(0, 99))
def test_a_damaged_real_recording_gives_a_recording_or_a_reason(data, number, tmp_path):
    content = REAL[number % len(REAL)].read_bytes()
    assert readable(written(tmp_path, damaged(data, content)))
    assert readable(written(tmp_path, misled(data, content)))


def damaged(data, content):
    """Return *content* cut short, or with a few bytes overwritten."""
    at = data.draw(st.integers(0, len(content)))
    if data.draw(st.booleans()):
        return content[:at]
    other = data.draw(st.binary(max_size=4))
    return content[:at] + other + content[at + len(other) :]


def misled(data, content):
    """Return *content*, JSON or JSON lines, with one value anywhere replaced by another kind of value."""
    lines = content.decode().splitlines()
    whole = content.lstrip().startswith(b"[") or len(lines) < 2 or not lines[1].startswith("{")
    line = 0 if whole else data.draw(st.integers(0, len(lines) - 1))
    value = json.loads(content if whole else lines[line])
    holder, key = [value], 0
    while isinstance(holder[key], dict | list) and holder[key] and data.draw(st.integers(0, 5)):
        holder = holder[key]
        key = data.draw(st.sampled_from(list(holder) if isinstance(holder, dict) else range(len(holder))))
    odd = st.sampled_from([None, True, 7, -1.5, "", "Error", [], {}, ["x"], {"role": "tool"}, [[]], "\ud800", "\x00"])
    holder[key] = data.draw(odd)
    if whole:
        return json.dumps(value).encode()
    return "\n".join([*lines[:line], json.dumps(value), *lines[line + 1 :]]).encode()
