"""A small shop's orders in a real SQLite database: what two of the demo's tools read and one writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

FIRST_ORDER: Final = 1001
ORDERS: Final = 200
FIRST_DAY: Final = date(2025, 1, 6)
CUSTOMERS: Final = ("Abebe", "Castillo", "Haddad", "Ivanova", "Lindqvist", "Okafor", "Sato", "Weber")

_SCHEMA: Final = """
CREATE TABLE orders (
    id TEXT PRIMARY KEY,
    customer TEXT NOT NULL,
    placed TEXT NOT NULL,
    total REAL NOT NULL,
    refunded REAL NOT NULL DEFAULT 0
)
"""


class Orders:
    """The shop's order book.

    Args:
        path: the database file; safe to use from several threads, since each call opens it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def fill(self, random: Random) -> None:
        """Create the table and put in some orders, one or two a day."""
        day = FIRST_DAY
        with closing(self._connect()) as connection, connection:
            connection.execute(_SCHEMA)
            for number in range(FIRST_ORDER, FIRST_ORDER + ORDERS):
                row = (f"O-{number}", random.choice(CUSTOMERS), day.isoformat(), round(random.uniform(20, 140), 2))
                connection.execute("INSERT INTO orders (id, customer, placed, total) VALUES (?, ?, ?, ?)", row)
                day += timedelta(days=random.randint(0, 1))

    def find(self, order_id: str) -> dict[str, Any] | None:
        """Return one order, or ``None``."""
        found = self._select("WHERE id = ?", order_id)
        return found[0] if found else None

    def of_customer(self, customer: str, since: date) -> list[dict[str, Any]]:
        """Return the orders of *customer* placed on or after *since*, oldest first."""
        return self._select("WHERE customer = ? AND placed >= ? ORDER BY placed, id", customer, since.isoformat())

    def refund(self, order_id: str, amount: float) -> float:
        """Add *amount* to what was refunded of an order and return the sum.

        Raises:
            sqlite3.IntegrityError: when more would be refunded than was paid.
        """
        with closing(self._connect()) as connection, connection:
            changed = connection.execute(
                "UPDATE orders SET refunded = refunded + ? WHERE id = ? AND refunded + ? <= total RETURNING refunded",
                (amount, order_id, amount),
            ).fetchone()
        if changed is None:
            raise sqlite3.IntegrityError("refund exceeds total")
        return float(changed[0])

    def _select(self, where: str, *values: str) -> list[dict[str, Any]]:
        query = f"SELECT id, customer, placed, total, refunded FROM orders {where}"  # noqa: S608 - our own words
        with closing(self._connect()) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query, values)]

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=10)
