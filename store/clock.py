"""Unix nanoseconds, as the tables keep times, and what people read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

NANOSECONDS: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def moment(nanoseconds: int) -> datetime:
    """Return *nanoseconds* since 1970 as a UTC time, to the microsecond."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
