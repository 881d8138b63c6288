"""Five tools as a team might have written them, ad-hoc errors and all, and the rules that give these errors codes.

The functions raise what such functions raise: ``LookupError``, ``ValueError``, an HTTP client's exception,
``TimeoutError``. In the first phase that is all a model gets to read. The rules beside them say what each one means in
the contract.
"""

from __future__ import annotations

import json
import sqlite3
from datetime import date
from http.client import HTTPConnection, HTTPResponse
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import changeover
from changeover.contract import CODES, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .orders import Orders

CLIENT_SECONDS: Final = 0.5
"""How long the tools wait for the carrier."""

REFUND_LIMIT: Final = 150.0
"""What an agent may give back without a person's approval."""

_FACTS: Final = ("field", "received", "allowed")


class CarrierError(Exception):
    """The carrier answered with an HTTP status that is no success."""

    def __init__(self, status: int, body: dict[str, Any], retry_after: str | None) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body
        self.retry_after = retry_after


def from_status(error: CarrierError) -> ToolError:
    """Give a carrier's answer its code: by HTTP status, with the facts of its body as context."""
    code = next((spec.code for spec in CODES.values() if error.status in spec.http), "upstream_error")
    context: dict[str, Any] = {name: error.body[name] for name in _FACTS if name in error.body}
    if error.retry_after is not None:
        context["retry_after_ms"] = int(error.retry_after) * 1000
    message = None
    if code == "validation_error":
        message = "The postcode must be five digits, for example 10115."
    return ToolError(code, message, context=context or None)


def from_bad_date(_error: ValueError) -> ToolError:
    """Say which date format is expected; the exception's own text may hold anything and stays out of it."""
    return ToolError(
        "validation_error",
        "The argument 'since' must be an ISO 8601 date, for example 2025-03-14.",
        context={"field": "since", "expected": "YYYY-MM-DD"},
    )


class Desk:
    """What the agent of an order desk may call.

    Args:
        orders: the order book.
        carrier: address of the carrier's service.
        client: the name under which the carrier counts this desk's requests.
    """

    def __init__(self, orders: Orders, carrier: str, client: str) -> None:
        self._orders = orders
        self._carrier = urlsplit(carrier)
        self._client = client

    @changeover.tool(idempotent=True, rules={LookupError: "not_found"})
    def find_order(self, order_id: str) -> dict[str, Any]:
        """Return one order by its number, for example O-1001."""
        order = self._orders.find(order_id)
        if order is None:
            raise LookupError(order_id)
        return order

    @changeover.tool(idempotent=True, rules={ValueError: from_bad_date})
    def search_orders(self, customer: str, since: str) -> list[dict[str, Any]]:
        """Return a customer's orders since a date."""
        return self._orders.of_customer(customer, date.fromisoformat(since))

    @changeover.tool(idempotent=True, rules={CarrierError: from_status})
    def quote_shipping(self, order_id: str, postcode: str) -> dict[str, Any]:
        """Return the price of sending an order to a postcode."""
        return self._ask("GET", f"/quote?order={quote(order_id)}&postcode={quote(postcode)}")

    @changeover.tool(rules={CarrierError: from_status})
    def create_label(self, order_id: str, service: str) -> dict[str, Any]:
        """Buy a shipping label for an order."""
        return self._ask("POST", "/label", {"order": order_id, "service": service})

    @changeover.tool(rules={sqlite3.IntegrityError: "business_rule"})
    def refund_order(self, order_id: str, amount: float) -> dict[str, Any]:
        """Give back money of an order."""
        if amount > REFUND_LIMIT:
            raise PermissionError("refund not permitted")
        return {"order": order_id, "refunded": self._orders.refund(order_id, amount)}

    def tools(self) -> Mapping[str, Callable[..., Any]]:
        """Return the tools by the names under which the agent knows them."""
        return {name: getattr(self, name) for name in TOOLS}

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        connection = HTTPConnection(self._carrier.hostname or "", self._carrier.port, timeout=CLIENT_SECONDS)
        try:
            connection.request(method, path, json.dumps(body), {"X-Client": self._client})
            return _read(connection.getresponse())
        finally:
            connection.close()


TOOLS: Final = ("find_order", "search_orders", "quote_shipping", "create_label", "refund_order")


def _read(response: HTTPResponse) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(response.read())
    if response.status >= 400:  # noqa: PLR2004 - HTTP's own line between success and failure
        raise CarrierError(response.status, body, response.headers.get("Retry-After"))
    return body
