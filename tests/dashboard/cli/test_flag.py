"""Flags are changed with who and why, and every change is in the audit trail."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from changeover.store.engine import Store

    from .conftest import Ran

STEP = ("--stage", "cutover", "--rollout", "25", "--reason", "first quarter", "--who", "mara")


@pytest.fixture
def flag(busy_store: Store, run_cli: Callable[..., Ran]) -> Callable[..., Ran]:
    """Run ``changeover flag …`` on a store with traffic."""
    return lambda *arguments: run_cli("flag", *arguments, "--store", busy_store.url.render_as_string())


def test_setting_a_flag_says_from_what_to_what_and_when_it_is_seen(flag: Callable[..., Ran]):
    ran = flag("set", "get_inventory", *STEP)

    assert ran.code == 0
    assert ran.out == "get_inventory: shadow → cutover 25 %; running processes see it within 2 seconds\n"


def test_a_change_is_in_the_audit_trail_with_who_and_why(flag: Callable[..., Ran]):
    flag("set", "get_inventory", *STEP)
    (change,) = json.loads(flag("history", "--tool", "get_inventory", "--json").out)

    assert change.pop("at").endswith("+00:00")
    assert change == {
        "tool": "get_inventory",
        "who": "mara",
        "reason": "first quarter",
        "from_stage": "shadow",
        "from_rollout": 0.0,
        "to_stage": "cutover",
        "to_rollout": 25.0,
        "version": 1,
        "forced": False,
    }


def test_the_audit_trail_names_the_current_user_when_nobody_is_named(
    flag: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LOGNAME", "noor")
    flag("rollback", "search_orders", "--reason", "x")
    newest, *_ = json.loads(flag("history", "--json").out)

    assert newest["who"] == "noor"


def test_a_rollback_is_a_step_to_shadow(flag: Callable[..., Ran]):
    ran = flag("rollback", "search_orders", "--reason", "customers complain")

    assert ran.out.startswith("search_orders: cutover 100 % → shadow;")
    assert {f["tool"]: f["stage"] for f in json.loads(flag("list", "--json").out)}["search_orders"] == "shadow"


def test_an_unseen_tool_needs_force_and_the_trail_says_so(flag: Callable[..., Ran]):
    refused, forced = flag("set", "new_tool", *STEP), flag("set", "new_tool", *STEP, "--force", "--json")

    assert refused.code == 2
    assert json.loads(forced.out)["forced"] is True


def test_the_list_shows_stage_and_rollout(flag: Callable[..., Ran]):
    rows = [line.split() for line in flag("list").out.splitlines()]

    assert rows[0] == ["tool", "stage", "rollout", "version"]
    assert ["refund_payment", "cutover", "50", "%", "1"] in rows


def test_the_history_is_newest_first_and_bounded(flag: Callable[..., Ran]):
    flag("set", "get_inventory", *STEP)
    lines = flag("history", "--limit", "1").out.splitlines()

    assert len(lines) == 2
    assert "get_inventory" in lines[1]
