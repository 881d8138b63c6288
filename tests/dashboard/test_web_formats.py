"""How figures are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from changeover.dashboard.web import formats
from changeover.dashboard.web.moments import from_unix

NOW = datetime(2025, 3, 14, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"), [(None, "no errors"), (0.0, "0.0 %"), (0.0001, "< 0.1 %"), (0.125, "12.5 %"), (1.0, "100.0 %")]
)
def test_a_rate(value: float | None, text: str):
    assert formats.rate(value) == text


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (-60, "just now"),
        (5, "just now"),
        (61, "1 min ago"),
        (7200, "2 h ago"),
        (3 * 86400, "3 days ago"),
        (4e8, "4,629 days ago"),
    ],
)
def test_an_age(age: float, text: str):
    assert formats.ago(NOW - timedelta(seconds=age), NOW) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1, "1 s"), (30, "30 s"), (300, "5 min"), (3600, "1 h"), (86400, "1 day"), (1209600, "14 days")],
)
def test_a_step_of_time(seconds: int, text: str):
    assert formats.span(seconds) == text


def test_numbers_sizes_and_durations():
    assert formats.count(24163) == "24,163"
    assert formats.share(12.5) == "12.5 %"
    assert formats.share(100.0) == "100 %"
    assert formats.size(431) == "431 B"
    assert formats.size(1536) == "1.5 KiB"
    assert formats.took(240.4) == "240 ms"
    assert formats.took(1440) == "1.4 s"


def test_nothing_is_written_as_a_dash():
    assert formats.percent(None) == formats.interval(None) == formats.utc(None) == formats.count(None) == "\N{EN DASH}"
    assert formats.ago(None, NOW) == "never"


def test_a_long_text_is_one_short_line():
    assert formats.first_line("a\n\tb" * 1000).startswith("a ba b")
    assert len(formats.first_line("a\n\tb" * 1000)) == 201


def test_a_time_beyond_the_calendar_is_the_last_one_there_is():
    assert from_unix(10**15).year == 9999
