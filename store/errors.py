"""What the store says when it cannot do its work."""

from __future__ import annotations


class StoreError(Exception):
    """The store cannot be opened, read or written; the message is one line and says what to do."""


class EmptyStoreError(StoreError):
    """The database has no tables yet, and the caller did not ask for them to be made."""


class FlagError(ValueError):
    """A flag cannot be set as asked; the message is one line for people and says what to do."""


class UnknownToolError(StoreError):
    """No call of a tool of that name was recorded; the message names the ones that are known."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(
            f"no call of a tool named {name!r} was recorded; known: {', '.join(sorted(known)) or 'none yet'}"
        )
        self.name = name


class CursorError(ValueError):
    """A place in a list was asked for that no page of it gave out."""
