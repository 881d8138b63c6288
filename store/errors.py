"""What the store says when it cannot do its work."""

from __future__ import annotations


class StoreError(Exception):
    """The store cannot be opened, read or written; the message is one line and says what to do."""


class FlagError(ValueError):
    """A flag cannot be set as asked; the message is one line for people and says what to do."""
