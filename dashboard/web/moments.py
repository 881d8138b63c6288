"""Times on their way to a page: always UTC, in JSON as ISO 8601."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from flask.json.provider import DefaultJSONProvider

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class IsoJSON(DefaultJSONProvider):
    """JSON with ISO 8601 times and keys in the order in which they were given."""

    sort_keys = False

    @staticmethod
    def default(value: Any) -> Any:
        """Return what JSON can hold instead of *value*."""
        return value.isoformat() if isinstance(value, datetime) else DefaultJSONProvider.default(value)


def from_unix(seconds: int) -> datetime:
    """Return the moment of unix *seconds*, the last one a calendar knows when they lie beyond it."""
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)
