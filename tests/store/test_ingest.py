"""Ingest: each call once, the same figures in whatever order records arrive, and nothing fatal in a bad record."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select, text

from changeover.store import figures, tables
from changeover.store.engine import Store, open_store
from changeover.store.errors import StoreError
from changeover.store.ingest import Ingested, ingest

MARKS = ("loop", "loop_after_user", "runaway", "episode", "recovered")


def dump(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that the calls say, by natural keys: numbers of rows may differ between two stores."""
    call, session, actor, tool = tables.call, tables.session, tables.actor, tables.tool
    named = (session.c.name.label("session"), session.c.source, actor.c.name.label("actor"), tool.c.name.label("tool"))
    own = [column for column in call.c if not column.foreign_keys and not column.primary_key]
    figures_of_session = [column for column in tables.session_tool.c if not column.name.endswith("_id")]
    figures_of_hour = [column for column in tables.rollup_hour.c if not column.name.endswith("_id")]
    queries = {
        "call": select(*named, *own)
        .join(session, session.c.id == call.c.session_id)
        .join(actor, actor.c.id == call.c.actor_id)
        .join(tool, tool.c.id == call.c.tool_id),
        "session_tool": select(*named, *figures_of_session)
        .join(session, session.c.id == tables.session_tool.c.session_id)
        .join(actor, actor.c.id == tables.session_tool.c.actor_id)
        .join(tool, tool.c.id == tables.session_tool.c.tool_id),
        "rollup_hour": select(tool.c.name, *figures_of_hour).join(tool, tool.c.id == tables.rollup_hour.c.tool_id),
    }
    with store.read() as connection:
        return {name: sorted(map(tuple, connection.execute(query)), key=repr) for name, query in queries.items()}


def marks(store: Store) -> list[tuple[Any, ...]]:
    query = select(*(tables.call.c[name] for name in MARKS)).order_by(tables.call.c.sequence)
    with store.read() as connection:
        return [tuple(row) for row in connection.execute(query)]


def losses(store: Store) -> dict[str, int]:
    with store.read() as connection:
        return dict(connection.execute(select(tables.loss.c.reason, tables.loss.c.count)).all())


def single(store: Store, statement: str) -> Any:
    with store.read() as connection:
        return connection.execute(text(statement)).scalar()


def test_a_call_is_stored_with_everything_it_says(store, span):
    record = span(
        7,
        tool="find",
        session="conv",
        actor="planner",
        turn=3,
        user_turn=2,
        category="validation",
        next_action="ask_user",
        attempts=2,
        attributes={"gen_ai.tool.call.id": "call_1", "changeover.args.kind": "bound"},
    )
    ingest(store, [record])

    stored = dump(store)["call"][0]
    assert stored[:4] == ("conv", "conversation", "planner", "find")
    for value in (3, 2, "validation", "ask_user", "call_1", "bound", "not_found", "shadow", "legacy"):
        assert value in stored


def test_delivering_again_changes_nothing(store, span):
    records = [span(number) for number in range(1, 6)]
    first = ingest(store, records)
    before = dump(store)
    again = ingest(store, [*records, records[0]])

    assert (first.stored, again) == (5, Ingested(stored=0, duplicates=6))
    assert dump(store) == before


def test_a_late_row_gives_the_figures_that_it_would_have_given_in_time(store, span):
    ingest(store, [span(1), span(3)])
    assert [row[0] for row in marks(store)] == [True, False]
    ingest(store, [span(2, "ok", args="b")])

    assert [row[0] for row in marks(store)] == [False, False, False]
    assert single(store, "SELECT loops FROM rollup_hour") == 0
    assert single(store, "SELECT loops FROM session_tool") == 0


def test_an_answer_replaces_an_unanswered_call_and_never_the_other_way(store, span):
    ingest(store, [span(1, "unanswered"), span(2)])
    done = ingest(store, [span(1)])
    late = ingest(store, [span(1, "unanswered")])

    assert (done.stored, late.stored) == (1, 0)
    assert [row[0] for row in marks(store)] == [True, False]
    assert single(store, "SELECT errors FROM rollup_hour") == 2
    assert single(store, "SELECT unanswered FROM rollup_hour") == 0


def test_an_answer_may_come_under_another_session_and_tool(store, span):
    ingest(store, [span(1, "unanswered", session="old", tool="a")])
    ingest(store, [span(1, session="new", tool="b", start=5 * figures.NANOSECONDS_PER_HOUR)])

    found = dump(store)
    assert len(found["call"]) == len(found["session_tool"]) == len(found["rollup_hour"]) == 1
    assert found["rollup_hour"][0][:2] == ("b", 5)


def test_actors_of_one_session_are_apart(store, span):
    # BR-01-13 and BR-05-19: two sub-agents that make the same failing call do not repeat each other.
    ingest(store, [span(1, actor="a"), span(2, actor="b"), span(3, actor="a")])

    assert [row[0] for row in marks(store)] == [True, False, False]


def test_sessions_are_apart(store, span):
    ingest(store, [span(1, session="a"), span(2, session="b")])

    assert not any(row[0] for row in marks(store))


def test_a_call_without_a_session_is_grouped_by_its_trace(store, span):
    ingest(store, [span(1, session=None), span(2, session=None), span(3, session=None, trace=2)])

    assert [row[0] for row in marks(store)] == [True, False, False]
    assert single(store, "SELECT count(*) FROM session WHERE source = 'trace'") == 2


def test_a_conversation_named_like_a_trace_stays_apart(store, span):
    ingest(store, [span(1, session=None), span(2, session=f"{1:032x}")])

    assert single(store, "SELECT count(*) FROM session") == 2


def test_figures_are_kept_per_arm_and_hour(store, span):
    hour = figures.NANOSECONDS_PER_HOUR
    ingest(store, [span(1, start=hour), span(2, start=hour + 100, arm="structured"), span(3, start=2 * hour)])

    rows = dump(store)["rollup_hour"]
    assert [(row[1], row[2], row[3]) for row in rows] == [(1, "legacy", 1), (1, "structured", 1), (2, "legacy", 1)]


def test_a_replayed_call_is_ordered_by_turn_whatever_its_times_say(store, span):
    ours = {"source": "replay:test"}
    first = span(1, turn=1, start=9_000, end=9_999, **ours)
    second = span(2, turn=2, start=5_000, end=5_001, **ours)
    for record, sequence in ((first, 1), (second, 2)):
        record["attributes"]["changeover.sequence"] = sequence
    ingest(store, [second, first])

    assert [row[0] for row in marks(store)] == [True, False]


def test_a_payload_is_stored_once_however_often_it_comes(store, span):
    payload = {"legacy.payload": "boom", "legacy.digest": "ab" * 16, "legacy.bytes": 4}
    ingest(store, [span(1, **payload), span(2, **payload)])
    ingest(store, [span(3, **payload), span(4, **{"structured.payload": '{"b":1,"a":1.0,"a":2}'})])

    assert single(store, "SELECT count(*) FROM payload") == 2
    assert single(store, "SELECT count(*) FROM call WHERE legacy_payload_id IS NOT NULL") == 3


def test_br_07_15_a_payload_is_kept_character_for_character(store, span):
    ingest(store, [span(1, **{"structured.payload": '{"b":1,"a":1.0,"a":2}'})])

    assert single(store, "SELECT text FROM payload") == '{"b":1,"a":1.0,"a":2}'


def test_br_07_11_what_no_database_takes_is_replaced_visibly_and_no_row_is_lost(store, span):
    odd = "abc\x00def \ud800 \U0001f600"
    record = span(1, session=odd, actor=odd, tool=odd, **{"legacy.payload": odd})
    record["resource"]["service.name"] = odd
    done = ingest(store, [record, span(2, **{"legacy.payload": "fine"})])

    clean = "abc\ufffddef \ufffd \U0001f600"
    assert done.stored == 2
    assert dump(store)["call"][0][:4] == (clean, "conversation", clean, clean)
    assert single(store, "SELECT count(*) FROM call WHERE sanitized") == 1


def test_names_of_any_length_stay_apart(store, span):
    long = "s" * 100_000
    ingest(store, [span(1, session=long + "a"), span(2, session=long + "b"), span(3, session=long + "a")])

    assert single(store, "SELECT count(*) FROM session") == 2
    assert single(store, "SELECT max(length(name)) FROM session") <= 500


def broken(span_factory: Any, **changes: Any) -> dict[str, Any]:
    record = span_factory(1)
    for name, value in changes.items():
        target = record if name in record else record["attributes"]
        target[name.replace("__", ".")] = value
    return record


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"trace_id": "zz"}, "malformed_trace_id"),
        ({"trace_id": None}, "malformed_trace_id"),
        ({"trace_id": "a " * 32}, "malformed_trace_id"),
        ({"span_id": "00"}, "malformed_span_id"),
        ({"start_time_unix_nano": 2**63}, "malformed_start_time"),
        ({"start_time_unix_nano": -1}, "malformed_start_time"),
        ({"start_time_unix_nano": 1.5}, "malformed_start_time"),
        ({"start_time_unix_nano": True}, "malformed_start_time"),
        ({"end_time_unix_nano": "1"}, "malformed_end_time"),
        ({"attributes": []}, "malformed_attributes"),
        ({"resource": [1]}, "malformed_resource"),
        ({"kind": "metric"}, "unknown_record_kind"),
        ({"v": 2}, "unknown_record_version"),
        ({"changeover__sequence": 2**70}, "malformed_sequence"),
        ({"changeover__outcome": "fine"}, "malformed_outcome"),
        ({"changeover__arm": ["legacy"]}, "malformed_arm"),
        ({"changeover__stage": 1}, "malformed_stage"),
        ({"changeover__retryable": "no"}, "malformed_retryable"),
        ({"changeover__args__digest": "ab"}, "malformed_args_digest"),
        ({"changeover__legacy__payload": {"a": 1}}, "malformed_legacy_payload"),
        ({"gen_ai__tool__name": ""}, "malformed_tool_name"),
        ({"gen_ai__operation__name": "chat"}, "no_tool_call"),
    ],
)
def test_a_malformed_record_is_counted_and_the_rest_is_stored(sqlite_store, span, changes, reason):
    done = ingest(sqlite_store, [broken(span, **changes), span(2)])

    assert (done.stored, done.rejected) == (1, {reason: 1})
    assert losses(sqlite_store) == {reason: 1}


@pytest.mark.parametrize("record", [None, 1, "x", [], {}, {"v": 1}, {"kind": "span", "v": 1}, {"kind": "loss", "v": 1}])
def test_what_is_no_record_at_all_is_counted(sqlite_store, record):
    assert sum(ingest(sqlite_store, [record]).rejected.values()) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(data=st.data())
def test_no_value_anywhere_in_a_record_is_fatal(sqlite_store, span, data):
    record = span(1, turn=1, user_turn=1, **{"legacy.payload": "x"})
    spots = [(record, name) for name in record] + [(record["attributes"], name) for name in record["attributes"]]
    for target, name in data.draw(st.lists(st.sampled_from(spots), max_size=3, unique_by=lambda spot: spot[1])):
        target[name] = data.draw(json_values)
    done = ingest(sqlite_store, [record])

    assert done.stored + done.duplicates + sum(done.rejected.values()) + done.losses == 1


def test_absurd_times_are_tolerated(store, span):
    records = [span(1, start=0), span(2, start=2**63 - 1, end=2**63 - 1), span(3, start=5_000, end=1)]

    assert ingest(store, records).stored == 3
    assert single(store, "SELECT count(*) FROM call WHERE ended_at < started_at") == 0


def test_losses_are_counted_once_however_often_they_are_delivered(store):
    loss = {"kind": "loss", "v": 1, "reason": "spool_full", "count": 3, "time_unix_nano": 5, "process": "h:1"}
    ingest(store, [loss])
    ingest(store, [loss, {**loss, "process": "h:2"}])

    assert single(store, "SELECT sum(count) FROM loss") == 6


def test_a_batch_that_is_named_counts_its_malformed_records_once(store):
    for _ in range(2):
        ingest(store, [{"kind": "span"}], process="segment@0", at=5)

    assert single(store, "SELECT sum(count) FROM loss") == 1


def test_nothing_of_a_batch_is_stored_when_the_database_refuses(store, span, monkeypatch):
    def refuse(*_arguments: Any) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(figures.HourChanges, "apply", refuse)
    with pytest.raises(StoreError):
        ingest(store, [span(1)])

    assert all(not rows for rows in dump(store).values())


def test_an_empty_batch_is_fine(store):
    assert ingest(store, []) == Ingested(stored=0, duplicates=0)


def a_scene(random: Any, span: Any, size: int) -> list[dict[str, Any]]:
    """Calls of two sessions and two actors that repeat each other often, some unanswered at first."""
    records = []
    for number in range(1, size + 1):
        start = random.randrange(40) * figures.NANOSECONDS_PER_HOUR // 10
        outcome = random.choice(["ok", "empty", "error", "error", "cancelled", "unanswered"])
        record = span(
            number,
            outcome,
            tool=random.choice(["a", "b"]),
            args=random.choice(["x", "y"]),
            session=random.choice(["s", "t", None]),
            actor=random.choice(["p", None]),
            start=start,
            end=start + random.randrange(3) * figures.NANOSECONDS_PER_HOUR // 10,
            turn=random.choice([None, None, start, random.randrange(5)]),
            user_turn=random.choice([None, 1, 2]),
            arm=random.choice(["legacy", "structured"]),
            attributes={"changeover.result.digest": random.choice(["ab", "cd"]) * 16} if outcome != "error" else {},
        )
        records.append(record)
        if random.random() < 0.3:
            records.append(record)
        if outcome == "unanswered" and random.random() < 0.7:
            answer = json.loads(json.dumps(record))
            answer["attributes"]["changeover.outcome"] = random.choice(["ok", "error"])
            records.append(answer)
    return records


def in_batches(records: list[dict[str, Any]], random: Any) -> list[list[dict[str, Any]]]:
    batches, rest = [], list(records)
    random.shuffle(rest)
    while rest:
        size = random.randint(1, len(rest))
        batches.append(rest[:size])
        rest = rest[size:]
    return batches


def empty(store: Store) -> None:
    with store.write() as connection:
        for table in ("loss", "rollup_hour", "session_tool", "call", "payload", "setup", "session", "actor", "tool"):
            connection.execute(delete(tables.metadata.tables[table]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(random=st.randoms(use_true_random=False), size=st.integers(1, 14))
def test_order_and_batches_make_no_difference(sqlite_store, span, random, size):
    records = a_scene(random, span, size)
    empty(sqlite_store)
    ingest(sqlite_store, sorted(records, key=lambda record: record["start_time_unix_nano"]))
    expected = dump(sqlite_store)
    empty(sqlite_store)
    for batch in in_batches(records, random):
        ingest(sqlite_store, batch)

    assert dump(sqlite_store) == expected


@pytest.mark.parametrize("seed", range(4))
def test_both_databases_end_with_the_same_figures(store, tmp_path, span, seed):
    import random

    source = random.Random(seed)
    records = a_scene(source, span, 60)
    with open_store(f"sqlite:///{tmp_path / 'other.db'}") as other:
        ingest(other, records)
        expected = dump(other)
    for batch in in_batches(records, source):
        ingest(store, batch)

    assert dump(store) == expected


def test_kept_figures_equal_those_counted_from_the_calls(store, span):
    import random

    ingest(store, a_scene(random.Random(9), span, 200))
    counted = """
        SELECT sum(CASE WHEN outcome = 'error' THEN 1 ELSE 0 END), sum(CASE WHEN loop THEN 1 ELSE 0 END),
               sum(CASE WHEN runaway THEN 1 ELSE 0 END), sum(CASE WHEN episode THEN 1 ELSE 0 END),
               sum(CASE WHEN episode AND loop THEN 1 ELSE 0 END), sum(CASE WHEN recovered THEN 1 ELSE 0 END), count(*)
        FROM call"""
    kept = (
        "SELECT sum(errors), sum(loops), sum(runaways), sum(episodes), sum(looped_episodes), sum(recovered), sum(calls)"
    )
    with store.read() as connection:
        found = [
            [int(value) for value in connection.execute(text(statement)).one()]
            for statement in (counted, f"{kept} FROM rollup_hour", f"{kept} FROM session_tool")
        ]

    assert found[0] == found[1] == found[2]
    assert min(found[0]) > 0


def test_several_processes_may_ingest_at_once(store, store_url, tmp_path, span, side_by_side):
    shares = [tmp_path / f"{share}.json" for share in range(3)]
    records = [span(number, session=f"s{number % 5}") for number in range(1, 151)]
    for place, path in enumerate(shares):
        path.write_text(json.dumps([record for number, record in enumerate(records) if number % 3 in (place, 2)]))
    code = """
import json
from changeover.store.engine import open_store
from changeover.store.ingest import ingest
records = json.load(open(sys.argv[2]))
with open_store(sys.argv[1]) as store:
    print(sum(ingest(store, records[at : at + 7]).stored for at in range(0, len(records), 7)))
"""
    answers = side_by_side(code, [[store_url, str(path)] for path in shares])

    assert sum(map(int, answers)) == 150
    assert single(store, "SELECT sum(loops) FROM rollup_hour") == 145


def test_one_long_session_in_many_small_batches(sqlite_store, span):
    records = [span(number, turn=number) for number in range(1, 401)]
    for at in range(0, len(records), 20):
        ingest(sqlite_store, records[at : at + 20])

    assert single(sqlite_store, "SELECT sum(loops) FROM rollup_hour") == 399


def test_statements_a_batch_do_not_grow_with_the_session(sqlite_store, span):
    from sqlalchemy import event

    counts = []
    statements = itertools.count()
    event.listen(sqlite_store.engine, "before_cursor_execute", lambda *_arguments: next(statements))
    for at in range(0, 200, 20):
        before = next(statements)
        ingest(sqlite_store, [span(number) for number in range(at + 1, at + 21)])
        counts.append(next(statements) - before)

    assert counts[-1] <= counts[1] + 1


def test_ingest_never_reads_all_calls(sqlite_store, span):
    from sqlalchemy import event

    ingest(sqlite_store, [span(number, "unanswered", session=f"s{number % 9}") for number in range(1, 200)])
    plans: list[str] = []

    def explain(connection, _cursor, statement, parameters, _context, executemany):
        if not statement.startswith(("BEGIN", "INSERT")):
            first = parameters[0] if executemany else parameters
            explained = connection.connection.driver_connection.execute(f"EXPLAIN QUERY PLAN {statement}", first)
            plans.extend(row[3] for row in explained)

    event.listen(sqlite_store.engine, "before_cursor_execute", explain)
    ingest(sqlite_store, [span(number, session=f"s{number % 9}") for number in range(150, 250)])
    event.remove(sqlite_store.engine, "before_cursor_execute", explain)

    assert any(step.startswith("SEARCH found USING INDEX ix_call_session_id_actor_id_sequence") for step in plans)
    assert [step for step in plans if step.startswith(("SCAN call", "SCAN found", "SCAN session_tool"))] == []
