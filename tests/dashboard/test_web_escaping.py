"""Text from tools, sessions and people is text on every page, whatever it looks like."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from changeover.contract import ToolError
from changeover.store.flags import set_flag
from changeover.store.ingest import ingest

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask.testing import FlaskClient

    from changeover.store.engine import Store

NASTY_TOOL = '"><svg onload=1>'
NASTY_SESSION = "<b onmouseover=alert(1)>x</b>"
NASTY_TEXT = "<script>alert(1)</script>"
NASTY_LEGACY = "</script><img src=x onerror=alert(1)></pre></td>"
OWN_TAGS = frozenset(
    [
        "a",
        "body",
        "br",
        "button",
        "caption",
        "circle",
        "code",
        "details",
        "div",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "head",
        "header",
        "html",
        "input",
        "label",
        "li",
        "line",
        "link",
        "main",
        "meta",
        "nav",
        "noscript",
        "ol",
        "option",
        "p",
        "path",
        "pre",
        "script",
        "section",
        "select",
        "span",
        "strong",
        "summary",
        "svg",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "time",
        "title",
        "tr",
    ]
)


class Inspector(HTMLParser):
    """Collects what a browser would run, and every tag."""

    def __init__(self) -> None:
        super().__init__()
        self.runnable: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        names = dict(attrs)
        if tag == "style" or (tag == "script" and not (names.get("src") or "").startswith("/static/")):
            self.runnable.append(tag)
        self.runnable += [name for name in names if name.startswith("on") or name == "style"]
        self.runnable += [value for value in names.values() if (value or "").strip().startswith("javascript:")]


def inspect(page: str) -> Inspector:
    inspector = Inspector()
    inspector.feed(page)
    return inspector


@pytest.fixture
def nasty(empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]) -> FlaskClient:
    error = ToolError("validation_error", NASTY_TEXT, context={"q": "<img src=x onerror=alert(1)>"})
    more = {"actor": NASTY_TEXT, "legacy": NASTY_LEGACY, "session": NASTY_SESSION}
    ingest(empty_store, [record(NASTY_TOOL, error=error, **more)])
    ingest(
        empty_store,
        [{"kind": "loss", "v": 1, "reason": NASTY_TEXT, "count": 1, "time_unix_nano": 1, "process": NASTY_TEXT}],
    )
    set_flag(empty_store, NASTY_TOOL, stage="cutover", rollout=5, who=NASTY_TEXT, reason=NASTY_LEGACY)
    return client_of(empty_store)


PAGES = (
    "/",
    f"/?tool={NASTY_TOOL}",
    f"/tool?name={NASTY_TOOL}",
    f"/session?id={NASTY_SESSION}",
    f"/tool?name={NASTY_TEXT}",
    f"/session?id={NASTY_TEXT}",
    f"/{NASTY_TEXT}",
    f"/tool?name={NASTY_TOOL}&before={NASTY_TEXT}",
    f"/login?next={NASTY_TEXT}",
)


@pytest.mark.parametrize("address", PAGES)
def test_br_09_01_nothing_recorded_becomes_markup(address: str, nasty: FlaskClient):
    page = nasty.get(address).text
    found = inspect(page)

    assert found.runnable == []
    assert found.tags <= OWN_TAGS
    assert NASTY_TEXT not in page


def test_br_09_01_the_text_itself_is_there_to_read(nasty: FlaskClient):
    page = nasty.get("/tool", query_string={"name": NASTY_TOOL}).text

    assert page.count("&#34;&gt;&lt;svg onload=1&gt;") >= 3
    assert "<title>&#34;&gt;&lt;svg onload=1&gt; · changeover</title>" in page
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in page


def test_br_09_01_a_flash_message_and_a_refused_form_are_escaped(nasty: FlaskClient):
    token = re.search(r'name="csrf_token" value="([^"]+)"', nasty.get(f"/tool?name={NASTY_TOOL}").text)[1]
    form = {"csrf_token": token, "tool": NASTY_TOOL, "stage": "cutover", "rollout": "5", "reason": NASTY_LEGACY}
    flashed = nasty.post("/flag", data=form, follow_redirects=True).text
    refused = nasty.post("/flag", data={**form, "rollout": f'"{NASTY_TEXT}', "who": f'" autofocus {NASTY_LEGACY}'}).text

    for page in (flashed, refused):
        assert inspect(page).runnable == []
        assert inspect(page).tags <= OWN_TAGS


def test_br_09_03_names_are_escaped_inside_attributes_and_addresses(nasty: FlaskClient):
    page = nasty.get(f"/tool?name={NASTY_TOOL}").text

    assert "/session?id=%3Cb+onmouseover%3Dalert(1)%3Ex%3C/b%3E#call-" in page
    assert 'title="&lt;b onmouseover=alert(1)&gt;x&lt;/b&gt;"' in page
    assert 'data-series="/api/series?tool=%22%3E%3Csvg+onload%3D1%3E"' in page


def test_br_09_03_json_is_served_as_json_and_never_sniffed(nasty: FlaskClient):
    answer = nasty.get("/api/errors", query_string={"tool": NASTY_TOOL})

    assert answer.content_type == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.json["rows"][0]["session"] == NASTY_SESSION
