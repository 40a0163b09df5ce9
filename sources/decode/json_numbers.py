"""Numbers of JSON as they were written, and what they are exactly."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

from orderbridge.sources.contract import INT64_MAX

DIGITS_MAX: Final = 1000
"""Digits of a number in its plain form: `1e999999999` would fill the memory."""


class Number(str):
    """A JSON number, as it was written."""

    __slots__ = ()


def exact(number: Number) -> Decimal | None:
    """The value of a number; None if its plain form is longer than `DIGITS_MAX`."""
    try:
        value = Decimal(number)
    except InvalidOperation:
        return None
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or len(digits) + abs(exponent) > DIGITS_MAX:
        return None
    return value


def canonical(number: Number) -> str | None:
    """A number in plain form: `1` for 1.0, `1000` for 1e3, `1.5` for 1.50. None if it is too long."""
    value = exact(number)
    if value is None:
        return None
    if value == 0:
        return "0"
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def integer(number: Number) -> int | None:
    """A number as an integer, `1.0` too; None if it has a fraction or exceeds 64 bits."""
    value = exact(number)
    if value is None or value != value.to_integral_value():
        return None
    whole = int(value)
    return whole if -INT64_MAX - 1 <= whole <= INT64_MAX else None
