"""The form that flips a tool: what it changes, and what it refuses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from changeover.store.flags import history, list_flags
from changeover.store.ingest import ingest

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask.testing import FlaskClient

    from changeover.store.engine import Store


@pytest.fixture
def client(empty_store: Store, client_of: Callable[..., FlaskClient], record: Callable[..., Any]) -> FlaskClient:
    ingest(empty_store, [record("find/orders")])
    return client_of(empty_store)


def send(client: FlaskClient, **fields: str) -> Any:
    page = client.get("/tool?name=find/orders").text
    token = re.search(r'name="csrf_token" value="([^"]+)"', page)[1]
    form = {"tool": "find/orders", "stage": "cutover", "rollout": "25", "reason": "try a quarter"}
    return client.post("/flag", data={**form, "csrf_token": token, **fields})


def test_a_flip_is_in_force_and_in_the_history_with_who_and_why(client: FlaskClient, empty_store: Store):
    answer = send(client, who="mara")
    (flag,) = list_flags(empty_store)
    page = client.get(answer.headers["Location"]).text

    assert (flag.tool, str(flag.stage), flag.rollout) == ("find/orders", "cutover", 25)
    assert "find/orders is in cutover at 25 % of new sessions." in page
    assert re.search(r"mara.*shadow.*cutover 25 %.*try a quarter", page, re.DOTALL)


def test_a_name_may_be_left_out(client: FlaskClient, empty_store: Store):
    send(client, who="  ")

    assert history(empty_store)[0].who == "dashboard"


def test_roll_back_is_one_button_once_a_tool_is_cut_over(client: FlaskClient, empty_store: Store):
    before = client.get("/tool?name=find/orders").text
    send(client)
    form = re.search(r'<form id="roll-back".*?</form>', client.get("/tool?name=find/orders").text, re.DOTALL)[0]
    send(client, **dict(re.findall(r'type="hidden" name="(stage|rollout)" value="([^"]+)"', form)), reason="worse")
    (flag,) = list_flags(empty_store)

    assert "Roll back" not in before
    assert (str(flag.stage), flag.rollout, flag.version) == ("shadow", 0, 2)


@pytest.mark.parametrize("rollout", ["150", "-1", "half", "", "nan", "inf", "1e999", "NaN %"])
def test_a_bad_rollout_is_refused_with_the_form_as_it_was_typed(rollout: str, client: FlaskClient, empty_store: Store):
    answer = send(client, rollout=rollout, who="mara", reason="so far so good")

    assert answer.status_code == 400
    assert "rollout is a share of sessions in percent, 0 to 100" in answer.text
    assert 'value="so far so good"' in answer.text
    assert 'value="mara"' in answer.text
    assert "<option selected>cutover" in answer.text
    assert history(empty_store) == []


@pytest.mark.parametrize("rollout", ["12.5", " 12.5 ", "12.5 %", "12.5%"])
def test_a_rollout_may_be_written_as_people_do(rollout: str, client: FlaskClient, empty_store: Store):
    send(client, rollout=rollout)

    assert list_flags(empty_store)[0].rollout == 12.5


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"stage": "live"}, "unknown stage"),
        ({"stage": ""}, "unknown stage"),
        ({"stage": "dual"}, "needs a channel that carries two payloads"),
        ({"reason": "   "}, "say why"),
        ({"reason": "x" * 2001}, "keep it to"),
        ({"tool": ""}, "names no tool"),
    ],
)
def test_what_cannot_be_set_is_refused_in_words(
    fields: dict[str, str], says: str, client: FlaskClient, empty_store: Store
):
    answer = send(client, **fields)

    assert answer.status_code == 400
    assert says in answer.text
    assert history(empty_store) == []


def test_an_unknown_tool_cannot_be_flipped(client: FlaskClient, empty_store: Store):
    answer = send(client, tool="fnid")

    assert answer.status_code == 404
    assert "fnid" in answer.text
    assert history(empty_store) == []


def test_the_form_says_what_each_stage_will_do(client: FlaskClient):
    page = client.get("/tool?name=find/orders").text

    assert "Every session reads the legacy payload at once" in page
    assert "Sessions that have begun keep their arm" in page
    assert re.findall(r"<option[^>]*>(\w+)</option>", page) == ["legacy", "shadow", "cutover"]
