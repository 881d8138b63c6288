"""The report and what pages ask: the figures, by hand, and no page that reads every call."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from sqlalchemy import event

from changeover.semconv import Arm, Stage
from changeover.store.errors import CursorError, UnknownToolError
from changeover.store.figures import NANOSECONDS_PER_HOUR
from changeover.store.flags import set_flag
from changeover.store.ingest import ingest
from changeover.store.queries import changes, losses, overview, recent_errors, series, session_calls, summary
from changeover.store.report import report
from changeover.store.series import MOST_POINTS
from changeover.store.verdict import Verdict

SECOND = 1_000_000_000
NOON = 1_700_049_600 * SECOND


@pytest.fixture
def two_arms(store, span):
    """One loop in the legacy arm, none in the structured one, one session that saw both; another tool without errors."""
    ingest(
        store,
        [
            span(1, session="a"),
            span(2, session="a"),
            span(3, "ok", session="a"),
            span(11, session="b", arm="structured"),
            span(12, "ok", session="b", arm="structured", args="b"),
            span(21, session="c"),
            span(22, session="c", arm="structured"),
            span(31, "ok", session="a", tool="save", args="s"),
            {"kind": "loss", "v": 1, "reason": "spool_full", "count": 3, "time_unix_nano": 5, "process": "h:1"},
        ],
    )
    return store


def test_the_report_counts_each_arm(two_arms):
    found = report(two_arms, now=lambda: datetime(2024, 5, 1, 12, tzinfo=UTC))
    find, save = found["tools"]
    legacy, structured = find["arms"]["legacy"], find["arms"]["structured"]

    assert found["generated_at"] == "2024-05-01T12:00:00+00:00"
    assert found["losses"] == {"spool_full": 3}
    assert (find["tool"], find["stage"], find["sessions"], find["mixed_sessions"]) == ("find", "shadow", 3, 1)
    assert [legacy[name] for name in ("sessions", "calls", "errors", "loops", "futile_loops", "episodes")] == [
        2,
        4,
        3,
        3,
        3,
        2,
    ]
    assert [structured[name] for name in ("sessions", "calls", "errors", "loops", "recovered")] == [2, 3, 2, 0, 1]
    assert (legacy["loop_rate"], structured["loop_rate"]) == (1.0, 0.0)
    assert save["arms"]["legacy"]["calls"] == 1
    assert json.loads(json.dumps(found)) == found


def test_without_errors_there_is_no_rate(two_arms):
    arm = report(two_arms, "save")["tools"][0]["arms"]["legacy"]

    assert (arm["errors"], arm["loop_rate"], arm["interval"], arm["episode_loop_rate"]) == (0, None, None, None)


def test_mixed_sessions_are_left_out_of_the_comparison(two_arms):
    comparison = report(two_arms, "find")["tools"][0]["comparison"]

    assert comparison["legacy"]["sessions"] == comparison["structured"]["sessions"] == 1
    assert (comparison["legacy"]["rate"], comparison["structured"]["rate"]) == (1.0, 0.0)
    assert comparison["missing_sessions"] == {"legacy": 19, "structured": 19}


def test_the_actors_of_a_session_are_one_session(store, span):
    ingest(store, [span(1, actor="a"), span(2, actor="b")])

    assert report(store)["tools"][0]["arms"]["legacy"]["sessions"] == 1


def test_a_tool_that_nobody_called_is_refused_by_name(two_arms):
    with pytest.raises(UnknownToolError, match="known: find, save"):
        report(two_arms, "fnd")


def test_an_empty_store_has_an_empty_report(store):
    found = report(store)

    assert (found["tools"], found["losses"]) == ([], {})
    assert overview(store) == []
    assert series(store).points == ()


def test_a_flag_without_calls_is_shown(store):
    set_flag(store, "later", stage="cutover", rollout=5, who="ada", reason="soon", force=True)
    tool = overview(store)[0]

    assert (tool.tool, tool.stage, tool.rollout, tool.calls, tool.last_seen) == ("later", Stage.CUTOVER, 5.0, 0, None)
    assert tool.comparison.verdict is Verdict.TOO_FEW_ERRORS


def test_the_overview_sums_over_arms(two_arms):
    find = summary(two_arms, "find")

    assert find is not None
    assert (find.sessions, find.mixed_sessions, find.calls, find.errors, find.loops) == (3, 1, 7, 5, 3)
    assert find.arms[Arm.LEGACY].loop_rate.rate == 1.0
    assert summary(two_arms, "never") is None
    assert [tool.tool for tool in overview(two_arms)] == ["find", "save"]


def test_a_short_time_is_drawn_in_seconds_from_single_calls(store, span):
    records = [span(number, start=NOON + number * SECOND) for number in range(1, 31)]
    ingest(store, records)
    found = series(store, "find")

    assert found.bucket_seconds == 1
    assert [(point.t, point.errors, point.loops) for point in found.points[-2:]] == [
        (NOON // SECOND + 29, 1, 1),
        (NOON // SECOND + 30, 1, 0),
    ]
    assert series(store) == found


@pytest.mark.parametrize(
    ("hours", "step"), [(1, 60), (30, 1_800), (70, 7_200), (24 * 30, 43_200), (24 * 4_000, 3 * 2_592_000)]
)
def test_any_span_is_drawn_in_about_sixty_steps(store, span, hours, step):
    records = [span(number, start=NOON + number * hours * 3_600 * SECOND // 200) for number in range(200)]
    ingest(store, records)
    found = series(store, "find")

    assert found.bucket_seconds == step
    assert 20 < len(found.points) <= MOST_POINTS + 1
    assert all(point.t % step == 0 for point in found.points)
    assert sum(point.calls for point in found.points) == 200


def test_arms_are_drawn_apart(store, span):
    ingest(store, [span(1, start=NOON), span(2, start=NOON + 1, arm="structured")])

    assert [point.arm for point in series(store).points] == [Arm.LEGACY, Arm.STRUCTURED]


def test_an_unknown_tool_has_no_points(two_arms):
    assert series(two_arms, "never").points == ()


def test_recent_errors_come_newest_first_with_both_payloads(store, span):
    cut = "x" * 50 + "…[cut: 9000 characters]"
    payloads = {"legacy.payload": "KeyError: 'x'", "structured.payload": cut, "structured.bytes": 9_000}
    ingest(
        store,
        [span(1, args="ab"), span(2, "ok"), span(3, actor="p", served="structured", arm="structured", **payloads)],
    )
    newest, oldest = recent_errors(store, "find")

    assert (newest.actor, newest.served, newest.arm, newest.code) == ("p", "structured", Arm.STRUCTURED, "not_found")
    assert (newest.legacy_payload, newest.legacy_truncated, newest.legacy_bytes) == ("KeyError: 'x'", False, 13)
    assert (newest.structured_payload, newest.structured_truncated, newest.structured_bytes) == (cut, True, 9_000)
    assert (oldest.legacy_payload, oldest.session, oldest.session_source) == (None, "s", "conversation")
    assert oldest.args_digest == b"ab".hex().zfill(32)


def test_pages_of_errors_hold_each_error_once(store, span):
    ingest(store, [span(number, start=NOON + number // 3) for number in range(1, 24)])
    pages, before = [], None
    while page := recent_errors(store, "find", 5, before):
        pages.append([row.cursor for row in page])
        before = page[-1].cursor
        if len(pages) == 2:
            ingest(store, [span(99, start=NOON + 99)])
    cursors = [cursor for page in pages for cursor in page]

    assert [len(page) for page in pages] == [5, 5, 5, 5, 3]
    assert len(set(cursors)) == 23


@pytest.mark.parametrize("cursor", ["", "x", "1", "1-", "-1", "1-x", "²-1", f"{2**64}-1", "9" * 5_000 + "-1"])
def test_a_place_that_no_page_gave_out_is_refused(store, cursor):
    with pytest.raises(CursorError, match="first page"):
        recent_errors(store, "find", before=cursor)
    with pytest.raises(CursorError, match="first page"):
        session_calls(store, "s", before=cursor)


def test_the_calls_of_a_session_come_newest_first(two_arms):
    calls = session_calls(two_arms, "a")

    assert [(call.tool, call.outcome, call.loop) for call in calls] == [
        ("save", "ok", False),
        ("find", "ok", False),
        ("find", "error", True),
        ("find", "error", True),
    ]
    assert [call.tool for call in session_calls(two_arms, "a", 10, calls[1].cursor)] == ["find", "find"]
    assert session_calls(two_arms, "never") == []


def test_changes_come_oldest_first(two_arms):
    for stage in ("cutover", "shadow"):
        set_flag(two_arms, "find", stage=stage, who="ada", reason="why")

    assert [change.to_stage for change in changes(two_arms, "find")] == [Stage.CUTOVER, Stage.SHADOW]
    assert len(changes(two_arms)) == 2
    assert losses(two_arms) == {"spool_full": 3}


def test_no_page_reads_every_call(sqlite_store, span):
    records = [span(number, start=NOON + number * NANOSECONDS_PER_HOUR) for number in range(1, 300)]
    ingest(sqlite_store, records)
    plans: list[str] = []

    def explain(connection, cursor, statement, parameters, _context, _executemany):
        if statement.startswith("SELECT"):
            explained = connection.connection.driver_connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans.extend(row[3] for row in explained)

    event.listen(sqlite_store.engine, "before_cursor_execute", explain)
    overview(sqlite_store)
    report(sqlite_store, "find")
    series(sqlite_store)
    series(sqlite_store, "find")
    recent_errors(sqlite_store, "find", before=f"{NOON + 40 * NANOSECONDS_PER_HOUR}-9")
    session_calls(sqlite_store, "s", before="5-5")
    changes(sqlite_store, "find")
    event.remove(sqlite_store.engine, "before_cursor_execute", explain)

    assert [step for step in plans if step.startswith("SCAN call")] == []
    assert any("ix_call_error" in step for step in plans)
    assert any("ix_session_tool_tool_id_session_id" in step for step in plans)


def test_the_pages_work_on_replayed_sessions_of_another_year(store, span):
    ingest(store, [span(1, start=0, source="replay:x", turn=1), span(2, start=NOON, turn=2)])

    assert len(series(store).points) == 2
    assert overview(store)[0].last_seen == datetime(2023, 11, 15, 12, tzinfo=UTC)


def test_a_short_time_with_very_many_calls_is_drawn_from_hours(store, span, monkeypatch):
    monkeypatch.setattr("changeover.store.series.MOST_SINGLE_CALLS", 10)
    ingest(store, [span(number, start=NOON + number) for number in range(20)])

    assert series(store).bucket_seconds == 3_600
