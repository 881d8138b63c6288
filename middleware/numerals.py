"""Texts of numbers in canonical JSON: equal numbers get equal text, whatever type they come in.

Separate from `canonical` because these are the rules that are easiest to get subtly wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from decimal import Decimal

MAX_DECIMAL_BITS: Final = 2048
"""Above this an integer is written in hexadecimal: Python can be told to refuse long decimal conversions."""

_MAX_DIGITS: Final = 600
_INFINITE: Final = (float("inf"), float("-inf"))


def integer_text(value: int) -> str:
    """Return an exact text, however large the number."""
    return str(value) if value.bit_length() <= MAX_DECIMAL_BITS else f"{value:#x}"


def float_text(value: float) -> str:
    """Return the integer's text for an integral float (so ``-0.0`` is ``0``), else the shortest one that reads back."""
    if value.is_integer():
        return integer_text(int(value))
    if value != value:  # noqa: PLR0124 - the one value that differs from itself
        return "NaN"
    if value in _INFINITE:
        return "Infinity" if value > 0 else "-Infinity"
    return float.__repr__(value)


def decimal_text(value: Decimal) -> str:
    """Return the text that int or float has for the same number, else the exact digits.

    No arithmetic: that would round to the caller's decimal context, or raise by its traps.
    """
    if value.is_nan():
        return "NaN"
    if value.is_infinite():
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = value.as_tuple()
    figures = "".join(map(str, digits)).lstrip("0")
    shortened = figures.rstrip("0")
    power = int(exponent) + len(figures) - len(shortened)
    if not shortened:
        return "0"
    minus = "-" if sign else ""
    if power >= 0 and len(shortened) + power <= _MAX_DIGITS:
        return f"{minus}{shortened}{'0' * power}"
    near = float(value)
    if near not in _INFINITE and type(value)(float.__repr__(near)) == value:
        return float_text(near)
    return f"{minus}{shortened}e{power}"
