"""``Empty``: a tool ran and found nothing, which is an answer and never an error."""

from __future__ import annotations

from typing import Any


class Empty(dict[str, Any]):
    """The result of a search that found nothing; return it from a tool.

    It is a plain JSON object in the ``mcp`` dialect, ``{"isError": false, "empty": true, "matches": 0}``, so that any
    host serializes it as it is.

    Args:
        attempted_query: what was looked for, when that helps the model to reword it.
    """

    def __init__(self, *, attempted_query: Any = None) -> None:
        super().__init__(isError=False, empty=True, matches=0)
        if attempted_query is not None:
            self["attempted_query"] = attempted_query
