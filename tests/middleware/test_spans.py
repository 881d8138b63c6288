"""Each call is a span: to what runs inside it, to the host's tracing, and on its own record."""

from __future__ import annotations

import asyncio
import json
import random

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Decision, ParentBased, Sampler, SamplingResult
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags

import changeover
from changeover import ids, runtime
from changeover.spans import LightSpan, build_record


class Host:
    """A host with the SDK, beside OpenTelemetry's global provider, which can be set only once in a process."""

    def __init__(self, sampler: Sampler) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(
            sampler=sampler, resource=Resource.create({"service.name": "host"}), shutdown_on_exit=False
        )
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("host")
        runtime.current().bridge._find_provider = lambda: self.provider

    @property
    def spans(self):
        assert runtime.current().bridge.flush(10)
        return self.exporter.get_finished_spans()


@pytest.fixture
def host(recording):
    return Host(ParentBased(ALWAYS_ON))


def current_ids():
    found = trace.get_current_span().get_span_context()
    return f"{found.trace_id:032x}", f"{found.span_id:016x}"


def test_without_any_sdk_the_span_is_current_inside_and_gone_afterwards(recording):
    seen = changeover.wrap(current_ids)()

    record = recording.record
    assert seen == (record["trace_id"], record["span_id"])
    assert record["parent_span_id"] is None
    assert not trace.get_current_span().get_span_context().is_valid


def test_a_tool_called_inside_a_tool_is_its_child(recording):
    inner = changeover.wrap(current_ids, name="inner")
    changeover.wrap(lambda: [inner()], name="outer")()

    first, second = recording.records
    assert first["name"] == "execute_tool inner"
    assert (first["trace_id"], first["parent_span_id"]) == (second["trace_id"], second["span_id"])


def test_tasks_that_run_at_once_have_spans_of_their_own(recording):
    async def tool(n):
        await asyncio.sleep(0.001 * n)
        return current_ids()

    async def main():
        wrapped = changeover.wrap(tool)
        return await asyncio.gather(*(wrapped(n) for n in range(5)))

    seen = asyncio.run(main())
    assert sorted(seen) == sorted((r["trace_id"], r["span_id"]) for r in recording.records)
    assert len(set(seen)) == 5


def test_the_record_has_the_fields_and_value_types_it_promises(recording):
    with changeover.session("conv-42", actor="planner") as conversation:
        conversation.user_message()
        turn = conversation.turn()
        changeover.wrap(lambda a: a, name="tool")(1)

    record = recording.record
    found = record["attributes"]
    assert (record["kind"], record["v"], record["status"], record["events"]) == ("span", 1, "ok", [])
    assert record["resource"] == {"service.name": "test"}
    assert record["start_time_unix_nano"] <= record["end_time_unix_nano"]
    assert (found["gen_ai.conversation.id"], found["gen_ai.agent.name"]) == ("conv-42", "planner")
    assert found["changeover.turn"] == turn
    assert found["changeover.user_turn"] < turn < found["changeover.sequence"]
    types = {name: type(value) for name, value in found.items()}
    assert types["gen_ai.operation.name"] is str
    assert types["changeover.flag.version"] is int
    assert types["changeover.sequence"] is int
    assert len(found["changeover.args.digest"]) == len(found["changeover.result.digest"]) == 32


def test_without_a_session_no_conversation_id_is_invented(recording):
    changeover.wrap(current_ids)()

    assert "gen_ai.conversation.id" not in recording.attributes


def test_the_host_gets_the_span_as_if_its_own_tracer_had_made_it(host, recording):
    def tool():
        with host.tracer.start_as_current_span("inside"):
            pass
        raise ValueError("token=FAKEFAKEFAKE123 is wrong")

    with host.tracer.start_as_current_span("agent"), pytest.raises(ValueError, match="is wrong"):
        changeover.wrap(tool)()

    inside, agent, ours = sorted(host.spans, key=lambda span: ["inside", "agent", "execute_tool tool"].index(span.name))
    assert inside.parent.span_id == ours.context.span_id
    assert ours.parent.span_id == agent.context.span_id
    assert ours.context.trace_id == agent.context.trace_id == int(recording.record["trace_id"], 16)
    assert f"{ours.context.span_id:016x}" == recording.record["span_id"]
    assert ours.resource.attributes["service.name"] == "host"
    assert ours.instrumentation_scope.name == "changeover"
    assert ours.status.status_code is StatusCode.ERROR
    assert dict(ours.attributes) == recording.attributes
    assert all(type(value) in (str, int, bool) for value in ours.attributes.values())
    (event,) = ours.events
    assert event.attributes["exception.type"] == "ValueError"
    assert "FAKEFAKE" not in ours.to_json()


def test_br_06_21_recording_does_not_depend_on_the_hosts_sampler(recording):
    host = Host(ParentBased(ALWAYS_OFF))

    def tool(n):
        with host.tracer.start_as_current_span("inside"):
            pass
        return n

    wrapped = changeover.wrap(tool)
    for n in range(20):
        wrapped(n)

    assert len(recording.records) == 20
    assert host.spans == ()


def test_the_samplers_own_attributes_and_state_reach_the_host(recording):
    class Marking(Sampler):
        def should_sample(self, parent_context, trace_id, name, kind=None, attributes=None, links=None):  # noqa: PLR0917 - its signature
            assert name == "execute_tool tool"
            return SamplingResult(Decision.RECORD_AND_SAMPLE, {**attributes, "sampling.rule": "all"})

        def get_description(self):
            return "marking"

    host = Host(Marking())
    changeover.wrap(lambda: 1, name="tool")()

    (span,) = host.spans
    assert span.attributes["sampling.rule"] == "all"
    assert "sampling.rule" not in recording.attributes


def test_a_sampler_or_processor_that_raises_is_counted(recording):
    class Broken(SpanProcessor):
        def on_end(self, span):
            raise RuntimeError

    host = Host(ALWAYS_ON)
    host.provider.add_span_processor(Broken())
    assert changeover.wrap(lambda: 1, name="tool")() == 1
    assert host.spans
    assert recording.losses() == {"host_error": 1}
    host.provider.sampler = None
    runtime.current().bridge._seen = None
    assert changeover.wrap(lambda: 1, name="tool")() == 1
    assert recording.losses()["host_error"] == 2
    assert len(recording.records) == 2


def test_what_the_tool_puts_on_its_span_reaches_the_host_but_not_our_record(host, recording):
    def tool():
        span = trace.get_current_span()
        assert span.is_recording()
        span.set_attribute("tool.rows", 3)
        span.set_attributes({"tool.more": True})
        span.add_event("half", {"n": 1})
        span.record_exception(KeyError("secret"))
        span.update_name("other")

    changeover.wrap(tool)()

    (span,) = host.spans
    assert span.name == "execute_tool tool"
    assert (span.attributes["tool.rows"], span.attributes["tool.more"]) == (3, True)
    assert [event.name for event in span.events] == ["half", "exception"]
    assert "secret" not in span.to_json()
    assert "tool.rows" not in recording.attributes


@pytest.mark.parametrize(
    ("name", "attributes"), [("execute_tool tool", {}), ("tools/call tool", {"gen_ai.tool.name": "tool"})]
)
def test_a_span_that_the_host_opened_for_this_call_is_described_not_nested(host, recording, name, attributes):
    start = host.tracer.start_as_current_span
    with start("agent") as agent, start(name, attributes=attributes) as opened:
        seen = changeover.wrap(current_ids, name="tool")()

    record = recording.record
    assert seen == (record["trace_id"], record["span_id"])
    assert record["span_id"] == f"{opened.get_span_context().span_id:016x}"
    assert record["parent_span_id"] == f"{agent.get_span_context().span_id:016x}"
    theirs, _ = host.spans
    assert len(host.spans) == 2
    assert theirs.attributes["changeover.outcome"] == "ok"


def test_only_the_first_call_inside_a_hosts_span_is_that_call(host, recording):
    wrapped = changeover.wrap(lambda n: wrapped(n - 1) if n else 0, name="tool")
    with host.tracer.start_as_current_span("execute_tool tool"):
        wrapped(1)
        wrapped(0)

    assert len({record["span_id"] for record in recording.records}) == 3


def test_a_span_of_another_tool_is_a_parent(host, recording):
    with host.tracer.start_as_current_span("execute_tool other"):
        changeover.wrap(lambda: 1, name="tool")()

    assert len(host.spans) == 2


def test_an_error_is_set_on_the_hosts_span(host, recording):
    recording.flag("tool")

    def tool():
        raise PermissionError("no")

    with host.tracer.start_as_current_span("execute_tool tool"):
        changeover.wrap(tool)()

    (span,) = host.spans
    assert span.attributes["error.type"] == "permission_denied"
    assert span.status.status_code is StatusCode.ERROR


def test_a_remote_parent_is_followed(recording):
    remote = SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=TraceFlags(1))
    with trace.use_span(NonRecordingSpan(remote)):
        changeover.wrap(current_ids)()

    assert (recording.record["trace_id"], recording.record["parent_span_id"]) == (f"{0xABC:032x}", f"{0xDEF:016x}")


def test_the_trace_stands_in_for_a_missing_session_when_flags_are_decided(recording):
    recording.flag("current_ids", rollout=50)
    wrapped = changeover.wrap(current_ids, dialect="mcp")
    remote = SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=TraceFlags(1))
    with trace.use_span(NonRecordingSpan(remote)):
        wrapped()
    wrapped()

    first, second = (record["attributes"]["changeover.flag.reason"] for record in recording.records)
    assert (first, second) == ("split", "targeting_key_missing")


def test_a_hosts_random_seed_does_not_make_ids_repeat():
    drawn = set()
    for _ in range(3):
        random.seed(1)
        drawn |= {ids.trace_id(), ids.span_id()}

    assert len(drawn) == 6


def test_a_span_that_was_ended_takes_nothing_more():
    span = LightSpan("execute_tool x", 1, None, 1, host=True)
    span.end(5)
    span.end(6)
    span.set_attribute("a", 1)

    assert span.end_ns == 5
    assert span.extra is None
    assert not span.is_recording()


def test_building_a_record_is_pure():
    built = build_record(
        tool="t",
        trace_id="0" * 32,
        span_id="0" * 16,
        start_ns=1,
        end_ns=2,
        status="ok",
        attributes={"x": 1},
        service="s",
    )

    assert built["attributes"] == {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t", "x": 1}
    assert built["name"] == "execute_tool t"


HOST = """
import json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBasedTraceIdRatio
import changeover

tool = changeover.wrap(lambda n: trace.get_tracer("inside").start_span("inside").end(), name="tool")
tool(0)  # before the host has configured anything
exporter = InMemorySpanExporter()
trace.set_tracer_provider(TracerProvider(sampler={sampler}))
trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(exporter))
for n in range(30):
    tool(n)
assert changeover.flush(30)
spans = exporter.get_finished_spans()
print(json.dumps([len(spans), sum(span.name == "execute_tool tool" for span in spans)]))
"""


@pytest.mark.parametrize(
    ("sampler", "seen"), [("ALWAYS_ON", [60, 30]), ("ALWAYS_OFF", [0, 0]), ("ParentBasedTraceIdRatio(0.0)", [0, 0])]
)
def test_br_06_21_a_real_host_sees_what_its_sampler_keeps_and_the_store_all(process, sampler, seen):
    done = process.run(HOST.format(sampler=sampler))

    assert json.loads(done.stdout) == seen
    assert len(process.stored()) == 31
