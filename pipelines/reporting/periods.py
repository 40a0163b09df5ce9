"""Time in periods for charts: values by day, month or year, whichever is the finest that stays readable.

In: values by day. Out: the period and the values by the first day of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Final, Literal, TypeVar

Period = Literal["day", "month", "year"]
N = TypeVar("N", int, Decimal)

MAX_DAYS: Final = 62
MAX_MONTHS: Final = 72
MONTHS: Final[Mapping[Period, int]] = {"day": 0, "month": 1, "year": 12}
FORMATS: Final[Mapping[Period, str]] = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}


def by_period(values: Mapping[date, N]) -> tuple[Period, dict[date, N]]:
    """The sums of the values by first day of their period, in order of time."""
    if not values:
        return "day", {}
    first, last = min(values), max(values)
    months = (last.year - first.year) * 12 + last.month - first.month + 1
    period: Period = "day" if (last - first).days < MAX_DAYS else "month" if months <= MAX_MONTHS else "year"
    sums: dict[date, N] = {}
    for day in sorted(values):
        start = start_of(day, period)
        sums[start] = sums[start] + values[day] if start in sums else values[day]
    return period, sums


def start_of(day: date, period: Period) -> date:
    """The first day of the period that contains a day."""
    return {"day": day, "month": day.replace(day=1), "year": day.replace(month=1, day=1)}[period]


def months_later(day: date, months: int) -> date:
    """The first of the month that is `months` later, or the next day if `months` is 0; at most `date.max`."""
    if not months:
        return date.fromordinal(min(day.toordinal() + 1, date.max.toordinal()))
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return day.replace(year=year, month=month + 1) if year <= date.max.year else date.max
