"""What bad requests and bad times get: a clear answer, never a traceback."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask.testing import FlaskClient

    from changeover.store.engine import Store


def execute(store: Store, statement: str) -> None:
    with closing(sqlite3.connect(store.url.database)) as connection:
        connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    ("address", "status", "says"),
    [
        ("/nothing", 404, ""),
        ("/tool?name=fnid", 404, "fnid"),
        ("/?tool=fnid", 404, "fnid"),
        ("/tool", 400, "?name="),
        ("/session", 400, "?id="),
        ("/session?id=none", 404, "none"),
        ("/tool?name=search_orders&before=yesterday", 400, "yesterday"),
        ("/tool?name=search_orders&before=", 400, "no place in this list"),
        ("/session?id=conv-1000&before=9-9-9", 400, "no place in this list"),
        ("/tool?name=search_orders&before=" + "9" * 60 + "-1", 400, "no place in this list"),
        ("/flag", 405, "GET"),
    ],
)
def test_a_bad_address_gets_a_page_that_says_what_is_wrong(
    address: str, status: int, says: str, busy_store: Store, client_of: Callable[..., FlaskClient]
):
    answer = client_of(busy_store).get(address)

    assert answer.status_code == status
    assert says in answer.text
    assert "All tools" in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/api/nothing", 404),
        ("/api/tool", 400),
        ("/api/tool?name=fnid", 404),
        ("/api/series?tool=fnid", 404),
        ("/api/errors", 400),
        ("/api/errors?tool=fnid", 404),
        ("/api/errors?tool=search_orders&before=x", 400),
        ("/api/errors?tool=search_orders&limit=0", 400),
        ("/api/errors?tool=search_orders&limit=9999", 400),
        ("/api/errors?tool=search_orders&limit=٣", 400),
        ("/api/sessions?id=none", 404),
        ("/api/flags?tool=fnid", 404),
    ],
)
def test_a_bad_api_request_gets_json(
    address: str, status: int, busy_store: Store, client_of: Callable[..., FlaskClient]
):
    answer = client_of(busy_store).get(address)

    assert answer.status_code == status
    assert answer.json["error"]["status"] == status
    assert answer.json["error"]["message"]


def test_a_post_to_a_page_is_refused(busy_store: Store, client_of: Callable[..., FlaskClient]):
    client = client_of(busy_store)
    token = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/tool?name=search_orders").text)[1]

    assert client.post("/", data={"csrf_token": token}).status_code == 405
    assert client.post("/api/overview", data={"csrf_token": token}).json["error"]["status"] == 405


def test_a_form_of_megabytes_is_refused(busy_store: Store, client_of: Callable[..., FlaskClient]):
    assert client_of(busy_store).post("/flag", data={"reason": "x" * 200_000}).status_code == 413


def test_while_the_store_cannot_be_read_pages_say_so_and_come_back_by_themselves(
    busy_store: Store, client_of: Callable[..., FlaskClient]
):
    client = client_of(busy_store)
    execute(busy_store, "ALTER TABLE session_tool RENAME TO elsewhere")
    away = client.get("/")
    json = client.get("/api/overview")
    execute(busy_store, "ALTER TABLE elsewhere RENAME TO session_tool")

    assert away.status_code == json.status_code == 503
    assert "The store cannot be read right now" in away.text
    assert '<meta http-equiv="refresh" content="5">' in away.text
    assert away.headers["Retry-After"] == json.headers["Retry-After"] == "5"
    assert "Traceback" not in away.text + json.text
    assert "SELECT" not in away.text + json.text
    assert client.get("/").status_code == 200


def test_a_store_that_is_locked_for_long_gives_the_flip_a_503(busy_store: Store, client_of: Callable[..., FlaskClient]):
    from changeover.store.engine import open_store

    with open_store(str(busy_store.url), timeout=0.1) as impatient:
        client = client_of(impatient)
        token = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/tool?name=search_orders").text)[1]
        form = {"csrf_token": token, "tool": "search_orders", "stage": "shadow", "rollout": "0", "reason": "back"}
        with closing(sqlite3.connect(busy_store.url.database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            locked = client.post("/flag", data=form)
            read_meanwhile = client.get("/")
        freed = client.post("/flag", data=form)

    assert locked.status_code == 503
    assert "another process has been writing for too long" in locked.text
    assert "Nothing was changed: go back and send the form again" in locked.text
    assert "http-equiv" not in locked.text
    assert read_meanwhile.status_code == 200
    assert freed.status_code == 303


def test_health_follows_the_store(busy_store: Store, client_of: Callable[..., FlaskClient]):
    client = client_of(busy_store)
    well = client.get("/healthz")
    execute(busy_store, "ALTER TABLE call RENAME TO elsewhere")
    ill = client.get("/healthz")
    execute(busy_store, "ALTER TABLE elsewhere RENAME TO call")

    assert well.status_code == 200
    assert well.json["status"] == "ok"
    assert well.json["revision"] == well.json["head"]
    assert ill.status_code == 503
    assert ill.json["status"] == "unavailable"
    assert client.get("/healthz").status_code == 200


def test_a_fault_of_ours_is_a_page_without_a_traceback(
    busy_store: Store, client_of: Callable[..., FlaskClient], monkeypatch: pytest.MonkeyPatch, caplog: Any
):
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a secret detail")

    monkeypatch.setattr("changeover.dashboard.web.pages.overview_figures", fail)
    answer = client_of(busy_store).get("/")

    assert answer.status_code == 500
    assert "a secret detail" not in answer.text
    assert "a secret detail" in caplog.text
