"""How figures are written on a page: the same number looks the same everywhere.

A rate is a share between 0 and 1, or ``None`` when there were no errors; ``None`` is written in words, never as 0.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flask import Flask

NO_ERRORS = "no errors"
NOT_YET = "\N{EN DASH}"

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_KIBIBYTE = 1024
_SUMMARY_CHARACTERS = 200


def register(app: Flask) -> None:
    """Make the formats filters of *app*'s templates."""
    filters = {
        "percent": percent,
        "rate": rate,
        "interval": interval,
        "count": count,
        "share": share,
        "utc": utc,
        "iso": iso,
        "span": span,
        "ago": ago,
        "bytes": size,
        "took": took,
        "first_line": first_line,
    }
    app.jinja_env.filters.update(filters)


def percent(value: float | None) -> str:
    """Return ``12.5 %``; below one tenth of a percent but above zero it says so rather than ``0.0 %``."""
    if value is None:
        return NOT_YET
    if 0 < value < 0.0005:  # noqa: PLR2004 - what would round to 0.0 %
        return "< 0.1 %"
    return f"{value * 100:.1f} %"


def rate(value: float | None) -> str:
    """Return a loop rate, or ``no errors`` when there is nothing to divide by."""
    return NO_ERRORS if value is None else percent(value)


def interval(bounds: Sequence[float] | None) -> str:
    """Return ``9.1`` and ``14.2 %``, a dash between, for the bounds of an interval."""
    if bounds is None:
        return NOT_YET
    low, high = bounds
    return f"{low * 100:.1f} {NOT_YET} {high * 100:.1f} %"


def count(value: int | None) -> str:
    """Return ``24,163``."""
    return NOT_YET if value is None else f"{value:,}"


def share(value: float) -> str:
    """Return a rollout as it was typed: ``25 %`` or ``12.5 %``."""
    return f"{value:g} %"


def utc(moment: datetime | None) -> str:
    """Return ``2025-03-14 10:32:05``; every page says once that its times are UTC."""
    return NOT_YET if moment is None else f"{_aware(moment).astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def iso(moment: datetime) -> str:
    """Return *moment* for a ``datetime`` attribute."""
    return _aware(moment).astimezone(UTC).isoformat()


def ago(moment: datetime | None, now: datetime) -> str:
    """Return how long before *now* the *moment* was, in one unit: ``3 min ago``."""
    if moment is None:
        return "never"
    seconds = (now - _aware(moment)).total_seconds()
    if seconds < _MINUTE:
        return "just now"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)} min ago"
    if seconds < 2 * _DAY:
        return f"{int(seconds // _HOUR)} h ago"
    return f"{int(seconds // _DAY):,} days ago"


def span(seconds: float) -> str:
    """Return a bucket's width in words: ``30 s``, ``5 min``, ``1 h``, ``1 day``."""
    for unit, name in ((_DAY, "day"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= unit:
            number = seconds / unit
            return f"{number:g} {name}{'s' if name == 'day' and number != 1 else ''}"
    return f"{seconds:g} s"


def size(number: int) -> str:
    """Return ``431 B`` or ``1.2 KiB``."""
    return f"{number:,} B" if number < _KIBIBYTE else f"{number / _KIBIBYTE:,.1f} KiB"


def took(milliseconds: float) -> str:
    """Return ``240 ms`` or ``1.4 s``."""
    return f"{milliseconds:,.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.1f} s"  # noqa: PLR2004


def first_line(text: str) -> str:
    """Return *text* on one line, short enough for a row of a table."""
    line = " ".join(text[: 4 * _SUMMARY_CHARACTERS].split())
    return line if len(line) <= _SUMMARY_CHARACTERS else f"{line[:_SUMMARY_CHARACTERS]}…"


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
