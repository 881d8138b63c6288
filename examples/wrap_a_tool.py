"""Wrap one tool, let it fail in a session, and look at what was recorded.

python examples/wrap_a_tool.py
changeover report
"""

from __future__ import annotations

import changeover

ORDERS = {"O-7": {"id": "O-7", "total": 19.5}}


@changeover.tool(idempotent=True, rules={KeyError: "not_found"})
def find_order(order_id: str) -> dict[str, object]:
    """Look an order up by its number."""
    return ORDERS[order_id]


def main() -> None:
    """Call the tool as an agent would: once for an order that exists, twice for one that does not."""
    with changeover.session("conv-42") as conversation:
        conversation.user_message()
        for order_id in ("O-7", "O-8", "O-8"):
            conversation.turn()
            try:
                print(order_id, find_order(order_id))
            except KeyError as error:  # in shadow the model still gets what the bare tool gives it
                print(order_id, f"Error: {error!r}")
    print("recorded" if changeover.flush() else "still in the spool: the next command takes it in")


if __name__ == "__main__":
    main()
