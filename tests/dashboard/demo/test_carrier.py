"""The demo's HTTP service limits rates, is too slow at times, and rejects what it must."""

from __future__ import annotations

import random
import sqlite3
from typing import TYPE_CHECKING

import pytest

from changeover.dashboard.demo.carrier import SLOW_REGION, Carrier, running_carrier
from changeover.dashboard.demo.orders import Orders
from changeover.dashboard.demo.tools import CarrierError, Desk, from_status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk whose tools are called bare, so that their own exceptions are seen."""
    with running_carrier() as address:
        yield Desk(Orders(tmp_path / "orders.db"), address, "test")


def bare(desk: Desk, name: str, *arguments: object) -> object:
    return getattr(Desk, name).__wrapped__(desk, *arguments)


def test_a_good_request_gets_a_price(desk: Desk):
    assert bare(desk, "quote_shipping", "O-1", "10115") == {"order": "O-1", "price": 4.9, "currency": "EUR"}


@pytest.mark.parametrize(
    ("tool", "arguments", "status", "code"),
    [
        ("quote_shipping", ("O-1", "D-1011"), 400, "validation_error"),
        ("create_label", ("O-1", "overnight"), 404, "not_found"),
        ("create_label", ("O-1", "express"), 403, "permission_denied"),
    ],
)
def test_a_rejection_arrives_as_its_status_and_gets_its_code(
    desk: Desk, tool: str, arguments: tuple[str, ...], status: int, code: str
):
    with pytest.raises(CarrierError) as caught:
        bare(desk, tool, *arguments)

    assert caught.value.status == status
    assert from_status(caught.value).code == code


def test_a_client_that_asks_too_often_is_told_when_to_come_back():
    carrier = Carrier()
    admitted = [carrier.admits("a", now) for now in (0.0, 0.1, 0.2, 0.9, 1.0)]
    error = from_status(CarrierError(429, {"error": "too many requests"}, "1"))

    assert admitted == [True, True, True, False, True]
    assert carrier.admits("another", 0.9)
    assert (error.code, error.context) == ("rate_limited", {"retry_after_ms": 1000})


def test_a_slow_place_times_out_once(desk: Desk):
    with pytest.raises(TimeoutError):
        bare(desk, "quote_shipping", "O-1", f"{SLOW_REGION}001")

    assert bare(desk, "quote_shipping", "O-1", f"{SLOW_REGION}001")


def test_a_refund_beyond_what_was_paid_is_refused_by_the_database(tmp_path: Path):
    orders = Orders(tmp_path / "orders.db")
    orders.fill(random.Random(1))

    with pytest.raises(sqlite3.IntegrityError):
        orders.refund("O-1001", 100_000.0)
    assert orders.refund("O-1001", 5.0) == 5.0
