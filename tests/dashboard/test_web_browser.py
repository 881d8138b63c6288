"""The dashboard in a real browser: what is drawn, what may run, what a flip looks like."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from changeover.contract import ToolError
from changeover.store.flags import history, set_flag
from changeover.store.ingest import ingest

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from changeover.store.engine import Store

pytestmark = pytest.mark.browser

NARROW = {"width": 390, "height": 844}
NASTY_TOOL = '"><svg onload=alert(1)>'
NASTY_TEXT = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"

PAINTED = """canvas => {
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const seen = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200) seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
    return [...seen];
}"""
"""The opaque colours on a canvas."""

DRAWN_IN_CIRCLES_OR_LINES = """([canvas, name]) => {
    const probe = document.createElement("i");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const [r, g, b] = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
    probe.remove();
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const columns = new Set();
    for (let i = 0; i < data.length; i += 4)
        if (data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] > 200) columns.add((i / 4) % canvas.width);
    return [...columns].sort((one, other) => one - other);
}"""
"""The columns of a canvas in which a colour of the style sheet appears."""


def chart(page: Page) -> Any:
    canvas = page.locator(".uplot canvas")
    canvas.wait_for()
    return canvas.element_handle()


def columns(page: Page, colour: str) -> list[int]:
    return page.evaluate(DRAWN_IN_CIRCLES_OR_LINES, [chart(page), colour])


def overflow(page: Page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.mark.parametrize("address", ["/", "/?tool=search_orders", "/tool?name=search_orders", "/session?id=conv-1003"])
def test_a_page_loads_without_a_complaint_of_the_browser(
    address: str, busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    page = open_page(serve_app(busy_store) + address)
    page.wait_for_load_state("networkidle")

    assert page.complaints == []
    assert page.locator("#live").inner_text() == "Live"


def test_the_chart_is_drawn_with_both_arms_and_the_cutover_marked(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    page = open_page(serve_app(busy_store) + "/tool?name=search_orders")
    legacy, structured = columns(page, "legacy"), columns(page, "structured")
    label = page.locator(".flip.cutover span")

    assert len(page.evaluate(PAINTED, chart(page))) > 4
    assert label.inner_text() == "cutover 100 %"
    assert label.is_visible()
    assert max(legacy) < min(structured)
    place = page.locator(".flip").bounding_box()["x"] - page.locator(".uplot canvas").bounding_box()["x"]
    assert max(legacy) - 60 < place < min(structured) + 4


def test_the_chart_leaves_a_gap_where_there_were_no_errors(
    empty_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page], record: Callable[..., Any]
):
    error = ToolError("internal_error")
    ingest(
        empty_store,
        [
            record("find", session=f"s{t}", order=t, error=error if t < 100 or t > 500 else None)
            for t in range(0, 600, 10)
        ],
    )
    page = open_page(serve_app(empty_store) + "/tool?name=find")
    drawn = columns(page, "legacy")
    gaps = [after - before for before, after in itertools.pairwise(drawn)]

    assert max(gaps) > 0.5 * (drawn[-1] - drawn[0])


def test_the_legend_names_n(busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]):
    page = open_page(serve_app(busy_store) + "/tool?name=search_orders")
    chart(page)
    whole = page.locator(".u-legend").inner_text()
    page.locator(".u-over").hover(position={"x": 200, "y": 100})
    at_a_time = page.locator(".u-legend").inner_text()

    assert "(69 of 150 errors)" in whole
    assert "2025-03-14 09:" in at_a_time
    assert "errors)" in at_a_time
    assert "(69 of 150 errors)" not in at_a_time


def test_flips_of_all_tools_are_named_on_the_first_page(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    page = open_page(serve_app(busy_store))
    chart(page)

    assert sorted(page.locator(".flip span").all_inner_texts()) == [
        "refund_payment: cutover 50 %",
        "search_orders: cutover 100 %",
    ]


@pytest.mark.parametrize("width", [390, 1280])
def test_flips_of_many_tools_at_one_time_are_one_mark_that_counts_them(
    width: int, busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    flipped = history(busy_store, "search_orders")[0].at
    at = {"clock": lambda: int(flipped.timestamp()) * 1_000_000_000}
    for number in range(6):
        set_flag(busy_store, f"t{number}", stage="cutover", rollout=100, who="mara", reason="all", force=True, **at)
    page = open_page(serve_app(busy_store), viewport={"width": width, "height": 800})
    chart(page)

    assert "7 tools: cutover 100 %" in page.locator(".flip span").all_inner_texts()


def test_every_column_of_the_tools_is_in_sight_on_a_common_screen(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    page = open_page(serve_app(busy_store), viewport={"width": 1280, "height": 800})

    assert page.locator("#tools-scroll").evaluate("box => box.scrollWidth - box.clientWidth") == 0


def test_a_flip_by_the_form_shows_in_badge_and_history(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    page = open_page(serve_app(busy_store) + "/tool?name=get_inventory")
    before = page.locator("#effect").inner_text()
    page.get_by_label("Stage").select_option("cutover")
    page.get_by_label("Rollout, %").fill("25")
    announced = page.locator("#effect").inner_text()
    page.get_by_label("Reason").fill("a quarter first")
    page.get_by_label("Your name (optional)").fill("mara")
    page.get_by_role("button", name="Flip").click()
    page.get_by_text("get_inventory is in cutover at 25 % of new sessions.").wait_for()

    assert "No effect on the model" in before
    assert announced.startswith("About 25 % of new sessions read the structured payload")
    assert page.locator("#stage").inner_text() == "cutover 25 %"
    assert "a quarter first" in page.locator("#history tbody tr").first.inner_text()
    assert history(busy_store, "get_inventory")[0].who == "mara"
    assert page.complaints == []


def test_a_refused_form_keeps_what_was_typed_and_the_page_stays_live(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page], record: Callable[..., Any]
):
    page = open_page(serve_app(busy_store, refresh_seconds=1) + "/tool?name=get_inventory")
    page.get_by_label("Stage").select_option("cutover")
    page.get_by_label("Reason").fill("   ")
    page.get_by_role("button", name="Flip").click()
    page.get_by_text("say why").wait_for()
    calls = page.locator("#compare tr", has=page.get_by_role("rowheader", name="Calls", exact=True))
    before = int(calls.locator("td").first.inner_text())
    ingest(busy_store, [record("get_inventory", session="late")])
    calls.get_by_text(str(before + 1), exact=True).wait_for()

    assert page.get_by_label("Stage").input_value() == "cutover"
    assert page.locator("#live").inner_text() == "Live"


def test_roll_back_takes_a_reason_and_one_click(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    page = open_page(serve_app(busy_store) + "/tool?name=search_orders")
    page.get_by_placeholder("Reason").fill("more loops than before")
    page.get_by_role("button", name="Roll back to shadow").click()
    page.get_by_text("search_orders is in shadow.").wait_for()

    assert page.locator("#stage").inner_text() == "shadow"


def test_br_09_01_nothing_recorded_runs(
    empty_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page], record: Callable[..., Any]
):
    error = ToolError("validation_error", NASTY_TEXT)
    ingest(empty_store, [record(NASTY_TOOL, session=NASTY_TEXT, actor=NASTY_TEXT, error=error, legacy=NASTY_TEXT)])
    set_flag(empty_store, NASTY_TOOL, stage="cutover", rollout=5, who=NASTY_TEXT, reason=NASTY_TEXT)
    base = serve_app(empty_store, refresh_seconds=1)
    for address in ("/", f"/tool?name={quote(NASTY_TOOL)}", f"/session?id={quote(NASTY_TEXT)}"):
        page = open_page(base + address)
        # The page has fetched and replaced its figures once.
        page.wait_for_event("response", lambda answer: answer.request.resource_type == "fetch")
        page.wait_for_timeout(200)

        assert page.complaints == []
        assert page.locator("img").count() == 0


def test_an_inline_script_would_not_run(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    page = open_page(serve_app(busy_store))
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = true\">')")
    page.wait_for_timeout(300)

    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in complaint for complaint in page.complaints)


def test_figures_refresh_while_scroll_open_rows_and_typed_text_stay(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page], record: Callable[..., Any]
):
    page = open_page(serve_app(busy_store, refresh_seconds=1) + "/tool?name=search_orders")
    page.get_by_label("Reason").first.fill("half a sente")
    page.locator("#chart-fold summary").click()
    row = page.locator("#errors details").nth(3)
    row.locator("summary").click()
    opened = row.get_attribute("id")
    page.evaluate("window.scrollTo(0, 900)")
    scrolled = page.evaluate("window.scrollY")
    calls = page.locator("#compare tr", has=page.get_by_role("rowheader", name="Calls", exact=True))
    before = int(calls.locator("td").first.inner_text())
    ingest(busy_store, [record("search_orders", session=f"late-{n}", order=n) for n in range(3)])
    calls.get_by_text(str(before + 3), exact=True).wait_for()

    assert page.get_by_label("Reason").first.input_value() == "half a sente"
    assert page.locator(f"#{opened}").get_attribute("open") is not None
    assert page.locator("#chart-fold").get_attribute("open") is not None
    assert abs(page.evaluate("window.scrollY") - scrolled) < 5
    assert page.locator("#live").inner_text() == "Live, open rows held still"


def test_the_first_calls_appear_on_the_empty_page_by_themselves(
    empty_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page], record: Callable[..., Any]
):
    page = open_page(serve_app(empty_store, refresh_seconds=1))
    empty = page.locator("#empty").inner_text()
    ingest(empty_store, [record("find")])
    page.locator("#tools").get_by_text("find").wait_for()

    assert "changeover demo" in empty


def test_an_open_page_says_that_the_store_is_away_and_goes_on_when_it_is_back(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    import sqlite3
    from contextlib import closing

    page = open_page(serve_app(busy_store, refresh_seconds=1))
    with closing(sqlite3.connect(busy_store.url.database)) as connection:
        connection.execute("ALTER TABLE session_tool RENAME TO elsewhere")
        page.get_by_text("The store cannot be read; trying again").wait_for()
        figures_meanwhile = page.locator("#tools tbody tr").count()
        connection.execute("ALTER TABLE elsewhere RENAME TO session_tool")
    page.locator("#live", has_text="Live").wait_for()

    assert figures_meanwhile == 6


@pytest.mark.parametrize("address", ["/", "/tool?name=search_orders", "/session?id=conv-1003"])
def test_a_narrow_screen_never_scrolls_sideways(
    address: str, busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    page = open_page(serve_app(busy_store) + address, viewport=NARROW)
    page.wait_for_load_state("networkidle")
    for summary in page.locator("details > summary").all()[:3]:
        summary.click()

    assert overflow(page) == 0


def test_a_narrow_screen_shows_both_arms_whole_and_an_error_on_one_line(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    page = open_page(serve_app(busy_store) + "/tool?name=search_orders", viewport=NARROW)

    assert page.locator("#compare-scroll").evaluate("box => box.scrollWidth - box.clientWidth") == 0
    assert page.locator(".errors tr.main").first.bounding_box()["height"] < 40


def test_a_name_of_300_characters_never_scrolls_sideways(
    empty_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page], record: Callable[..., Any]
):
    ingest(empty_store, [record("n" * 300, session="s" * 300, error=ToolError("internal_error"), legacy="l" * 5000)])
    set_flag(empty_store, "n" * 300, stage="cutover", rollout=5, who="w" * 200, reason="r" * 500)
    base = serve_app(empty_store)
    for address in ("/", f"/tool?name={'n' * 300}", f"/session?id={'s' * 300}"):
        page = open_page(base + address, viewport=NARROW)
        page.wait_for_load_state("networkidle")

        assert overflow(page) == 0


def test_dark_and_light_follow_the_system_and_both_are_readable(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    base = serve_app(busy_store)
    for scheme in ("light", "dark"):
        page = open_page(base + "/tool?name=search_orders", color_scheme=scheme)
        chart(page)
        contrasts = page.evaluate(CONTRASTS)

        assert {name: ratio for name, ratio in contrasts.items() if ratio < 4.5} == {}
        assert columns(page, "legacy")


CONTRASTS = """() => {
    const value = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    const light = (hex) => {
        const [r, g, b] = hex.match(/[0-9a-f]{2}/gi).map((pair) => parseInt(pair, 16) / 255)
            .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const pairs = [["ink", "ground"], ["ink", "sheet"], ["soft", "ground"], ["soft", "sheet"], ["soft", "sunk"],
        ["accent", "sheet"], ["accent-ink", "accent"], ["legacy", "sheet"], ["legacy", "legacy-wash"],
        ["structured", "sheet"], ["structured", "structured-wash"], ["good", "sheet"], ["bad", "sheet"], ["bad", "bad-wash"]];
    return Object.fromEntries(pairs.map(([ink, paper]) => {
        const [one, other] = [light(value(ink)), light(value(paper))].sort((a, b) => b - a);
        return [`${ink} on ${paper}`, (one + 0.05) / (other + 0.05)];
    }));
}"""
"""Contrast ratios of the colours that text is set in (WCAG 2.2, 1.4.3: at least 4.5)."""


def test_the_keyboard_reaches_an_error_and_opens_it(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    page = open_page(serve_app(busy_store) + "/tool?name=search_orders")
    page.locator("#errors summary").first.focus()
    page.keyboard.press("Enter")

    assert page.locator("#errors .pair").first.is_visible()
    assert page.locator("#errors summary").first.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"


def test_everything_with_a_name_to_a_screen_reader_has_one(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    page = open_page(serve_app(busy_store) + "/tool?name=search_orders")
    unlabelled = page.evaluate(
        "[...document.querySelectorAll('input:not([type=hidden]), select')].filter(field => !field.labels.length).length"
    )

    assert unlabelled == 0
    assert page.get_by_role("region", name="Recent errors").first.is_visible()
    assert page.get_by_role("group", name="Chart: loop rate over time").is_visible()


def test_without_scripts_everything_but_the_chart_works(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    page = open_page(serve_app(busy_store) + "/tool?name=get_inventory", java_script_enabled=False)
    page.locator("#errors summary").first.click()
    opened = page.locator("#errors .pair").first.is_visible()
    page.get_by_label("Stage").select_option("cutover")
    page.get_by_label("Rollout, %").fill("10")
    page.get_by_label("Reason").fill("no scripts here")
    page.get_by_role("button", name="Flip").click()

    assert opened
    assert page.locator("#stage").inner_text() == "cutover 10 %"
    assert "the table below holds the same figures" in page.locator("noscript").inner_text()


def test_a_person_signs_in_and_stays_signed_in_when_coming_from_another_site(
    busy_store: Store, serve_app: Callable[..., str], open_page: Callable[..., Page]
):
    base = serve_app(busy_store, token="a-long-random-text")
    page = open_page(base + "/tool?name=search_orders")
    page.get_by_label("Token").fill("a-long-random-text")
    page.get_by_role("button", name="Sign in").click()
    page.locator("#compare").wait_for()
    page.route(
        "http://chat.localhost/",
        lambda route: route.fulfill(body=f'<a href="{base}/">look</a>', content_type="text/html"),
    )
    page.goto("http://chat.localhost/")
    page.get_by_text("look").click()
    page.locator("#tools").wait_for()

    assert page.locator("#tools tbody tr").count() == 6
