"""What the scripted users want: mostly plain wishes, some with the mistakes that people make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .agent import Goal
from .carrier import REQUESTS_A_SECOND, SLOW_REGION
from .orders import CUSTOMERS, FIRST_ORDER, ORDERS
from .tools import REFUND_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

MISTAKE: Final = 0.4
"""Share of wishes with a mistake in them."""

GOALS_A_SESSION: Final = 4


def goals_of_a_session(random: Random) -> list[Goal]:
    """Return what one user wants, in order."""
    wanted: list[Goal] = []
    while len(wanted) < GOALS_A_SESSION:
        (kind,) = random.choices(list(_KINDS), list(_KINDS.values()))
        wanted += kind(random)
    return wanted


def _order(random: Random) -> str:
    return f"O-{random.randrange(FIRST_ORDER, FIRST_ORDER + ORDERS)}"


def _find(random: Random) -> list[Goal]:
    order = _order(random)
    if random.random() < MISTAKE:
        return [Goal("find_order", {"order_id": order.replace("O-", "0-")}, {"order_id": order})]
    return [Goal("find_order", {"order_id": order})]


def _search(random: Random) -> list[Goal]:
    customer, day = random.choice(CUSTOMERS), f"2025-03-{random.randint(1, 28):02}"
    good = {"customer": customer, "since": day}
    if random.random() < MISTAKE:
        return [Goal("search_orders", {"customer": customer, "since": "last week"}, good)]
    return [Goal("search_orders", good)]


def _quote(random: Random) -> list[Goal]:
    order = _order(random)
    good = {"order_id": order, "postcode": f"{random.randrange(10_000, 90_000)}"}
    if random.random() < MISTAKE:
        return [Goal("quote_shipping", {"order_id": order, "postcode": "D-1011"}, good)]
    return [Goal("quote_shipping", good)]


def _quote_far_away(random: Random) -> list[Goal]:
    return [
        Goal("quote_shipping", {"order_id": _order(random), "postcode": f"{SLOW_REGION}{random.randrange(1000):03}"})
    ]


def _compare_prices(random: Random) -> list[Goal]:
    order = _order(random)
    postcodes = random.sample(range(10_000, 90_000), REQUESTS_A_SECOND + 1)
    return [Goal("quote_shipping", {"order_id": order, "postcode": str(postcode)}) for postcode in postcodes]


def _label(random: Random) -> list[Goal]:
    good = {"order_id": _order(random), "service": "standard"}
    if random.random() < MISTAKE:
        return [Goal("create_label", {**good, "service": random.choice(("express", "overnight"))}, good)]
    return [Goal("create_label", good)]


def _refund(random: Random) -> list[Goal]:
    order = _order(random)
    if random.random() < MISTAKE:
        too_much = random.choice((REFUND_LIMIT + 250, REFUND_LIMIT))
        return [Goal("refund_order", {"order_id": order, "amount": too_much}, {"order_id": order, "amount": 5.0})]
    return [Goal("refund_order", {"order_id": order, "amount": float(random.randint(1, 9))})]


_KINDS: Final[Mapping[Callable[[Random], list[Goal]], int]] = {
    _find: 5,
    _search: 5,
    _quote: 6,
    _quote_far_away: 1,
    _compare_prices: 1,
    _label: 5,
    _refund: 5,
}
"""Each kind of wish, and how often it is had compared with the others."""
