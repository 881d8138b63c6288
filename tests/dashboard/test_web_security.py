"""Who may ask, from where, and what a request may change."""

from __future__ import annotations

import itertools
import re
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from changeover.dashboard.web.app import create_app
from changeover.dashboard.web.headers import CONTENT_SECURITY_POLICY
from changeover.dashboard.web.hosts import is_allowed
from changeover.store.flags import history

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask.testing import FlaskClient

    from changeover.store.engine import Store

TOKEN = "k7Zp-a-long-random-text"
FLIP = {"tool": "search_orders", "stage": "shadow", "rollout": "0", "reason": "because"}


def everything_in(store: Store) -> list[str]:
    with closing(sqlite3.connect(store.url.database)) as connection:
        return list(connection.iterdump())


def csrf_token(client: FlaskClient, page: str = "/tool?name=search_orders") -> str:
    return re.search(r'name="csrf_token" value="([^"]+)"', client.get(page).text)[1]


# reading never changes anything


def test_br_09_05_no_get_or_head_route_changes_state(busy_store: Store, client_of: Callable[..., FlaskClient]):
    client = client_of(busy_store)
    before = everything_in(busy_store)
    queries = (
        "",
        "?name=search_orders",
        "?tool=search_orders",
        "?id=conv-1000",
        "?" + "&".join(f"{k}={v}" for k, v in FLIP.items()),
    )
    rules = [rule for rule in client.application.url_map.iter_rules() if "GET" in rule.methods]
    failed = []
    for rule, query, method in itertools.product(rules, queries, ("GET", "HEAD", "OPTIONS")):
        with client.open(rule.rule.replace("<path:filename>", "page.css") + query, method=method) as answer:
            failed += [(rule.rule, query, method)] * (answer.status_code >= 500)

    assert len(rules) >= 10
    assert everything_in(busy_store) == before
    assert failed == []


def test_br_09_05_the_route_that_changes_a_flag_answers_405_to_get(
    busy_store: Store, client_of: Callable[..., FlaskClient]
):
    client = client_of(busy_store)

    for method in ("GET", "HEAD"):
        answer = client.open("/flag?tool=search_orders&stage=shadow&reason=x", method=method)
        assert answer.status_code == 405
        assert "POST" in answer.headers["Allow"]
    assert len(history(busy_store, "search_orders")) == 1


def test_every_route_that_accepts_a_post_is_known(busy_store: Store, client_of: Callable[..., FlaskClient]):
    unsafe = {
        rule.rule
        for rule in client_of(busy_store).application.url_map.iter_rules()
        if rule.methods - {"GET", "HEAD", "OPTIONS"}
    }

    assert unsafe == {"/flag", "/login", "/logout"}


# forms


def test_a_form_with_its_token_is_taken(busy_store: Store, client_of: Callable[..., FlaskClient]):
    client = client_of(busy_store)
    answer = client.post("/flag", data={**FLIP, "csrf_token": csrf_token(client)})

    assert answer.status_code == 303
    assert history(busy_store, "search_orders")[0].reason == "because"


@pytest.mark.parametrize("token", ["", "made-up", "eyJhIjoxfQ.Zm9v.YmFy", "."])
def test_a_form_without_a_valid_token_changes_nothing_and_says_what_to_do(
    token: str, busy_store: Store, client_of: Callable[..., FlaskClient]
):
    client = client_of(busy_store)
    csrf_token(client)
    answer = client.post("/flag", data={**FLIP, "csrf_token": token})

    assert answer.status_code == 403
    assert "Nothing was changed. Open the page again" in answer.text
    assert len(history(busy_store, "search_orders")) == 1


def test_a_token_of_another_visitor_is_refused(busy_store: Store, client_of: Callable[..., FlaskClient]):
    mine = client_of(busy_store)
    other = mine.application.test_client()
    csrf_token(mine)

    assert mine.post("/flag", data={**FLIP, "csrf_token": csrf_token(other)}).status_code == 403


def test_a_token_without_its_cookie_is_refused(busy_store: Store, client_of: Callable[..., FlaskClient]):
    client = client_of(busy_store)
    bare = client.application.test_client(use_cookies=False)

    assert bare.post("/flag", data={**FLIP, "csrf_token": csrf_token(client)}).status_code == 403


def test_a_token_of_another_process_is_refused(busy_store: Store, client_of: Callable[..., FlaskClient]):
    before, after = client_of(busy_store), client_of(busy_store)
    csrf_token(after)

    assert after.post("/flag", data={**FLIP, "csrf_token": csrf_token(before)}).status_code == 403


def test_a_token_does_not_outlive_twelve_hours(
    busy_store: Store, client_of: Callable[..., FlaskClient], monkeypatch: pytest.MonkeyPatch
):
    client = client_of(busy_store)
    token = csrf_token(client)
    later = time.time() + 13 * 3600
    monkeypatch.setattr("itsdangerous.timed.time.time", lambda: later)

    assert client.post("/flag", data={**FLIP, "csrf_token": token}).status_code == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:9999"])
def test_a_form_sent_from_another_origin_is_refused(
    origin: str, busy_store: Store, client_of: Callable[..., FlaskClient]
):
    client = client_of(busy_store)
    form = {**FLIP, "csrf_token": csrf_token(client)}

    assert client.post("/flag", data=form, headers={"Origin": origin}).status_code == 403
    assert client.post("/flag", data=form, headers={"Origin": "http://localhost"}).status_code == 303


def test_the_session_cookie_is_strict_and_out_of_reach_of_scripts(
    busy_store: Store, client_of: Callable[..., FlaskClient]
):
    client = client_of(busy_store)
    plain = client.get("/tool?name=search_orders").headers["Set-Cookie"]
    encrypted = client.application.test_client().get("https://localhost/tool?name=search_orders").headers["Set-Cookie"]

    for cookie in (plain, encrypted):
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
    assert "Secure" not in plain
    assert "Secure" in encrypted


def test_two_dashboards_on_one_machine_keep_their_cookies_apart(
    busy_store: Store, client_of: Callable[..., FlaskClient]
):
    client = client_of(busy_store)
    names = {
        client.get("/tool?name=search_orders", base_url=f"http://127.0.0.1:{port}").headers["Set-Cookie"].split("=")[0]
        for port in (8321, 8322)
    }

    assert names == {"changeover_8321", "changeover_8322"}


def test_br_09_09_each_process_signs_with_a_secret_of_its_own(busy_store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SECRET_KEY", raising=False)
    one, two = create_app(busy_store), create_app(busy_store)

    assert len(one.secret_key) >= 32
    assert one.secret_key != two.secret_key


# headers


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/tool?name=search_orders",
        "/tool?name=none",
        "/api/overview",
        "/healthz",
        "/static/page.css",
        "/flag",
        "/login",
    ],
)
def test_every_answer_carries_the_security_headers(
    address: str, busy_store: Store, client_of: Callable[..., FlaskClient]
):
    with client_of(busy_store).get(address) as answer:
        headers = answer.headers

    assert headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"


def test_the_policy_allows_no_inline_script_or_style():
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "script-src 'self';" in CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY


def test_pages_are_kept_by_no_cache(busy_store: Store, client_of: Callable[..., FlaskClient]):
    assert client_of(busy_store).get("/").headers["Cache-Control"] == "no-store"


# host names


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8321",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "",
        "a@localhost",
        "localhost/x",
        "[::1",
        "localhost:port",
    ],
)
def test_a_request_for_a_foreign_name_is_refused(host: str, busy_store: Store, client_of: Callable[..., FlaskClient]):
    answer = client_of(busy_store).get("/", headers={"Host": host})

    assert answer.status_code == 400
    assert "search_orders" not in answer.text


def test_a_refused_name_is_told_how_to_allow_it(busy_store: Store, client_of: Callable[..., FlaskClient]):
    assert "--allow-host" in client_of(busy_store).get("/", headers={"Host": "team.example"}).text


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8321", "127.0.0.1:8321", "[::1]:8321", "192.168.1.7", "LOCALHOST", "x.localhost"]
)
def test_addresses_and_localhost_are_answered(host: str, busy_store: Store, client_of: Callable[..., FlaskClient]):
    assert client_of(busy_store).get("/", headers={"Host": host}).status_code == 200


def test_an_allowed_name_is_answered_whatever_its_case():
    assert is_allowed("Team.Example:443", frozenset({"team.example"}))


# the token


@pytest.fixture
def guarded(busy_store: Store, client_of: Callable[..., FlaskClient]) -> FlaskClient:
    return client_of(busy_store, token=TOKEN)


def test_with_a_token_no_page_shows_a_figure_to_a_stranger(guarded: FlaskClient):
    rules = [
        rule.rule
        for rule in guarded.application.url_map.iter_rules()
        if rule.endpoint not in ("static", "health.healthz")
    ]
    answers: list[Any] = [guarded.open(rule, method=method) for rule in rules for method in ("GET", "POST")]

    assert {answer.status_code for answer in answers} <= {200, 401, 403, 405}
    assert not [answer for answer in answers if "search_orders" in answer.text]
    assert {guarded.get(rule).status_code for rule in rules if rule.startswith("/api/")} == {401}


def test_a_bearer_token_opens_pages_and_json(guarded: FlaskClient):
    headers = {"Authorization": f"Bearer {TOKEN}"}

    assert guarded.get("/", headers=headers).status_code == 200
    assert guarded.get("/api/overview", headers=headers).json["tools"]


@pytest.mark.parametrize(
    "value", ["Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer é"]
)
def test_a_wrong_bearer_token_opens_nothing(value: str, guarded: FlaskClient):
    answer = guarded.get("/api/overview", headers={"Authorization": value})

    assert answer.status_code == 401
    assert "CHANGEOVER_TOKEN" in answer.json["error"]["message"]


def test_the_form_lets_a_person_in_and_leads_to_where_they_were_going(guarded: FlaskClient):
    page = guarded.get("/tool?name=search_orders")
    token = re.search(r'name="csrf_token" value="([^"]+)"', page.text)[1]
    answer = guarded.post("/login", data={"csrf_token": token, "token": TOKEN, "next": "/tool?name=search_orders"})

    assert page.status_code == 401
    assert answer.headers["Location"] == "/tool?name=search_orders"
    assert "Verdict" in guarded.get(answer.headers["Location"]).text


def test_a_wrong_token_in_the_form_is_refused(guarded: FlaskClient):
    form = {"csrf_token": csrf_token(guarded, "/login"), "token": "wrong", "next": "/"}
    answer = guarded.post("/login", data=form)

    assert answer.status_code == 403
    assert "That is not the token." in answer.text
    assert guarded.get("/").status_code == 401


def test_signing_out_closes_the_dashboard_again(guarded: FlaskClient):
    guarded.post("/login", data={"csrf_token": csrf_token(guarded, "/login"), "token": TOKEN, "next": "/"})
    guarded.post("/logout", data={"csrf_token": csrf_token(guarded, "/")})

    assert guarded.get("/").status_code == 401


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        "javascript:alert(1)",
        "",
    ],
)
def test_signing_in_never_leads_to_another_site(target: str, guarded: FlaskClient):
    form = {"csrf_token": csrf_token(guarded, "/login"), "token": TOKEN, "next": target}

    assert guarded.post("/login", data=form).headers["Location"] == "/"


def test_a_link_from_elsewhere_brings_the_strict_cookie_along_by_one_hop(guarded: FlaskClient):
    answer = guarded.get("/", headers={"Sec-Fetch-Site": "cross-site"})

    assert answer.status_code == 200
    assert 'http-equiv="refresh" content="0"' in answer.text
    assert "search_orders" not in answer.text


def test_health_tells_a_stranger_the_status_only(guarded: FlaskClient):
    assert guarded.get("/healthz").json == {"status": "ok"}
