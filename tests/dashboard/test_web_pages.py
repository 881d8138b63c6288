"""What the pages show, and that the JSON says the same."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from changeover.contract import ToolError
from changeover.store.ingest import ingest
from changeover.store.report import report

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask.testing import FlaskClient

    from changeover.store.engine import Store

TIMEOUT = ToolError("upstream_timeout")


def text_of(page: str) -> str:
    """The page as a reader sees it, on one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_the_first_page_lists_tools_with_most_loops_first(busy_store: Store, client_of: Callable[..., FlaskClient]):
    page = client_of(busy_store).get("/").text
    names = re.findall(r'href="/tool\?name=([a-z_]+)"', page)

    assert names[:3] == ["search_orders", "refund_payment", "get_inventory"]
    assert names[-1] == "list_calendars"


def test_a_tool_without_errors_has_no_rate_in_words_and_in_json(
    busy_store: Store, client_of: Callable[..., FlaskClient]
):
    client = client_of(busy_store)
    row = next(row for row in client.get("/").text.split("<tr") if "list_calendars" in row and "badge" in row)
    figures = client.get("/api/tool?name=list_calendars").json

    assert "no errors" in row
    assert "0.0 %" not in row
    assert figures["loop_rate"] is None
    assert figures["arms"]["legacy"]["interval"] is None


def test_the_first_page_shows_stage_rollout_interval_and_n(busy_store: Store, client_of: Callable[..., FlaskClient]):
    client = client_of(busy_store)
    page = text_of(client.get("/").text)
    arm = client.get("/api/tool?name=search_orders").json["arms"]["legacy"]
    low, high = arm["interval"]

    assert "cutover 100 %" in page
    assert "cutover 50 %" in page
    assert f"{low * 100:.1f} \N{EN DASH} {high * 100:.1f} % n {arm['errors']}" in page


def test_an_empty_store_tells_the_next_step(empty_store: Store, client_of: Callable[..., FlaskClient]):
    page = text_of(client_of(empty_store).get("/").text)

    for step in ("changeover demo", "changeover replay", "@changeover.tool"):
        assert step in page


def test_losses_are_named_on_the_first_page_and_on_the_tools(
    empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]
):
    loss = {"kind": "loss", "v": 1, "reason": "spool_full", "count": 1203, "time_unix_nano": 5, "process": "host:1"}
    ingest(empty_store, [loss, record("find")])
    client = client_of(empty_store)

    for address in ("/", "/tool?name=find"):
        assert "1,203 drops and faults were counted" in text_of(client.get(address).text)
    assert client.get("/api/overview").json["losses"] == {"spool_full": 1203}


def test_without_losses_there_is_no_banner(busy_store: Store, client_of: Callable[..., FlaskClient]):
    assert "drops and faults" not in client_of(busy_store).get("/").text


def test_one_tools_page_sets_the_arms_side_by_side_with_the_verdict_in_words(
    busy_store: Store, client_of: Callable[..., FlaskClient]
):
    page = text_of(client_of(busy_store).get("/tool?name=search_orders").text)

    assert "Verdict: better" in page
    assert "descriptive" in page
    assert re.search(r"n: \d+ sessions with an error \(\d+ episodes\) in the legacy arm, \d+ sessions", page)
    for figure in ("Loop rate", "95 % interval", "Futile loops", "Episode loop rate", "Recovered errors", "Runaways"):
        assert re.search(rf"{figure} \d", page)


def test_too_few_errors_says_how_many_sessions_are_missing(busy_store: Store, client_of: Callable[..., FlaskClient]):
    page = text_of(client_of(busy_store).get("/tool?name=refund_payment").text)

    assert "Verdict: too few errors" in page
    assert re.search(r"still needed before anything is said: \d+ in the structured arm", page)


def test_a_tool_in_shadow_says_that_there_is_nothing_to_compare(
    busy_store: Store, client_of: Callable[..., FlaskClient]
):
    page = text_of(client_of(busy_store).get("/tool?name=get_inventory").text)

    assert "No session has read the structured payload yet" in page


def test_an_error_shows_both_payloads_and_which_one_was_served(
    empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]
):
    ingest(empty_store, [record("find", error=TIMEOUT, legacy="it timed out", arm="structured", actor="planner")])
    page = client_of(empty_store).get("/tool?name=find").text
    legacy, structured = re.findall(r'<section class="side .*?</section>', page, re.DOTALL)

    assert "it timed out" in legacy
    assert "recorded only" in legacy
    assert "upstream_timeout" in structured
    assert "served to the model" in structured
    assert "actor planner" in text_of(page)


def test_payloads_are_shown_letter_for_letter(
    empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]
):
    said = 'Traceback:\n  File "x.py", line 1\n\tü 名前 & <tag>'
    ingest(empty_store, [record("find", error=TIMEOUT, legacy=said)])
    page = client_of(empty_store).get("/tool?name=find").text

    assert html.unescape(re.search(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL)[1]) == said


def test_errors_are_paged_by_key_and_each_is_shown_once(busy_store: Store, client_of: Callable[..., FlaskClient]):
    client = client_of(busy_store)
    total = client.get("/api/tool?name=search_orders").json["errors"]
    address, seen = "/tool?name=search_orders", []
    while address:
        page = client.get(address).text
        seen += re.findall(r'id="error-(\d+)"', page)
        following = re.search(r'href="([^"]+)" rel="next"', page)
        address = html.unescape(following[1]) if following else ""

    assert len(seen) == len(set(seen)) == total > 100


def test_br_09_07_a_page_of_errors_never_counts_all_calls(busy_store: Store, client_of: Callable[..., FlaskClient]):
    from sqlalchemy import event

    asked: list[str] = []
    event.listen(busy_store.engine, "before_cursor_execute", lambda *seen: asked.append(seen[2]))
    client_of(busy_store).get("/api/errors?tool=search_orders")
    about_calls = [sql for sql in asked if re.search(r"FROM call\b", sql)]

    assert about_calls
    assert all("LIMIT" in sql and "count(" not in sql for sql in about_calls)


def test_a_session_shows_its_calls_in_order_with_its_loops_and_runaways(
    empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]
):
    calls = [
        record("find", order=0, error=TIMEOUT, args="a"),
        record("find", order=2, error=TIMEOUT, args="a"),
        record("find", order=4, args="b", result="[]"),
        record("find", order=6, args="b", result="[]"),
        record("other", order=8),
    ]
    ingest(empty_store, reversed(calls))
    client = client_of(empty_store)
    rows = client.get("/api/sessions?id=conv-1").json["calls"]
    page = text_of(client.get("/session?id=conv-1").text)

    assert [row["tool"] for row in rows] == ["find", "find", "find", "find", "other"]
    assert [row["loop"] for row in rows] == [True, False, False, False, False]
    assert [row["runaway"] for row in rows] == [False, False, False, True, False]
    assert "5 calls, 2 errors, 1 loops, 1 runaways" in page


def test_a_recording_without_times_claims_no_duration(
    empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]
):
    timeless, timed = record("find"), record("find", order=1)
    ingest(empty_store, [timeless | {"end_time_unix_nano": timeless["start_time_unix_nano"]}, timed])
    page = text_of(client_of(empty_store).get("/session?id=conv-1").text)

    assert "0 ms" not in page.replace("240 ms", "")
    assert "240 ms" in page


def test_a_long_session_is_shown_a_page_at_a_time(
    empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]
):
    ingest(empty_store, [record("find", order=number) for number in range(450)])
    client = client_of(empty_store)
    address, sizes = "/session?id=conv-1", []
    while address:
        page = client.get(address).text
        sizes.append(len(re.findall(r'id="call-\d+"', page)))
        earlier = re.search(r'href="([^"]+)">Earlier calls', page)
        address = html.unescape(earlier[1]) if earlier else ""

    assert sizes == [200, 200, 50]


def test_a_call_without_a_conversation_is_found_by_its_trace(
    empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]
):
    line = record("find", session=None, error=TIMEOUT)
    ingest(empty_store, [line])
    client = client_of(empty_store)
    link = re.search(r'href="(/session[^"]+)"', client.get("/tool?name=find").text)[1]

    assert line["trace_id"] in link
    assert client.get(html.unescape(link)).status_code == 200


def test_the_chart_of_the_first_page_can_be_that_of_one_tool(busy_store: Store, client_of: Callable[..., FlaskClient]):
    page = client_of(busy_store).get("/?tool=search_orders").text

    assert 'data-series="/api/series?tool=search_orders"' in page
    assert '<option value="search_orders" selected>' in page


def test_the_chart_has_a_table_with_the_same_figures(busy_store: Store, client_of: Callable[..., FlaskClient]):
    client = client_of(busy_store)
    points = client.get("/api/series?tool=search_orders").json["points"]
    table = re.search(r'id="chart-table".*?</table>', client.get("/tool?name=search_orders").text, re.DOTALL)[0]

    assert table.count("<tr>") == len(points) + 1


def test_a_point_without_errors_has_no_rate(busy_store: Store, client_of: Callable[..., FlaskClient]):
    points = client_of(busy_store).get("/api/series?tool=send_email").json["points"]

    assert {point["loop_rate"] for point in points if not point["errors"]} == {None}
    assert all(point["loop_rate"] is not None for point in points if point["errors"])


def test_the_series_brings_the_flips_to_mark(busy_store: Store, client_of: Callable[..., FlaskClient]):
    (change,) = client_of(busy_store).get("/api/series?tool=refund_payment").json["changes"]

    assert (change["from_stage"], change["to_stage"], change["to_rollout"]) == ("shadow", "cutover", 50)
    assert change["at"] == "2025-03-14T10:45:00+00:00"


def test_the_json_agrees_with_the_report(busy_store: Store, client_of: Callable[..., FlaskClient]):
    shown = {tool["tool"]: tool for tool in client_of(busy_store).get("/api/overview").json["tools"]}
    for said in report(busy_store)["tools"]:
        for arm, figures in said["arms"].items():
            assert shown[said["tool"]]["arms"][arm].items() <= figures.items()
        for key in ("stage", "rollout", "sessions", "mixed_sessions", "verdict", "comparison"):
            assert shown[said["tool"]][key] == said[key]


def test_flags_are_listed_with_their_history(busy_store: Store, client_of: Callable[..., FlaskClient]):
    answer = client_of(busy_store).get("/api/flags?tool=search_orders").json

    assert answer["flags"] == [{"tool": "search_orders", "stage": "cutover", "rollout": 100, "version": 1}]
    assert answer["history"][0]["who"] == "mara"
    assert len(client_of(busy_store).get("/api/flags").json["flags"]) == 6


def test_when_a_tool_was_last_seen_is_told_in_one_unit(
    empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]
):
    from_now = record("find")["start_time_unix_nano"]
    ingest(empty_store, [record("find")])
    client = client_of(empty_store)

    assert "5 min ago" in text_of(client.get("/").text)
    assert client.get("/api/overview").json["tools"][0]["last_seen"] == "2025-03-14T11:55:00+00:00"
    assert from_now == 1_741_953_300 * 10**9


@pytest.mark.parametrize(
    "name",
    [
        '"><svg onload=1>',
        "a/b/../c",
        "/",
        "..",
        "?name=other&x=1#part",
        "%2F%00%",
        "名前 🔧 ü",
        "new\nline\ttab",
        "x" * 300,
        " spaces ",
        "+",
        "{{ 7 * 7 }}",
        "'; DROP TABLE tool; --",
    ],
)
def test_a_tool_of_any_name_has_a_page_a_series_and_errors(
    name: str, empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]
):
    ingest(empty_store, [record(name, error=TIMEOUT)])
    client = client_of(empty_store)
    link = html.unescape(re.search(r'href="(/tool\?[^"]+)"', client.get("/").text)[1])
    source = html.unescape(re.search(r'data-series="([^"]+)"', client.get(link).text)[1])

    assert parse_qs(urlsplit(link).query, keep_blank_values=True) == {"name": [name]}
    assert client.get(link).status_code == 200
    assert client.get(source).json["points"][0]["errors"] == 1
    assert client.get("/api/errors", query_string={"tool": name}).json["rows"][0]["code"] == "upstream_timeout"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=60))
def test_no_name_breaks_a_page(
    name: str, empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]
):
    ingest(empty_store, [record(name, session=name, error=TIMEOUT, legacy=name, actor=name)])
    client = client_of(empty_store)

    assert client.get("/").status_code == 200
    assert client.get("/tool", query_string={"name": name}).status_code == 200
    assert client.get("/session", query_string={"id": name}).status_code == 200


def test_a_name_longer_than_the_store_keeps_still_leads_to_its_page(
    empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]
):
    ingest(empty_store, [record("n" * 800)])

    assert client_of(empty_store).get("/tool", query_string={"name": "n" * 800}).status_code == 200


def test_a_flip_far_from_the_calls_is_still_in_the_history(
    empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]
):
    from changeover.store.flags import set_flag

    ingest(empty_store, [record("find", error=TIMEOUT)])
    change = set_flag(empty_store, "find", stage="cutover", rollout=10, who="ops", reason="now, years later")
    answer = client_of(empty_store).get("/api/series?tool=find").json

    assert answer["changes"][0]["t"] - answer["points"][0]["t"] > timedelta(days=30).total_seconds()
    assert change.reason in client_of(empty_store).get("/tool?name=find").text
