"""Bar charts over time, which a template draws as SVG in the report or in a notebook's output.

In: values by day. Out: `TimeChart`. The value of a bar is shown while the pointer or the focus is on it, by the style
sheet alone: mail programs remove scripts. Altair would add 900 kB to each page and 100 MB to the installation (measured
with Altair 6 and vl-convert, which embeds its scripts).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Decimal
from typing import Final, NamedTuple

from orderbridge.pipelines.reporting.texts import ReportTexts

MAX_DAYS: Final = 62
MAX_MONTHS: Final = 72
MAX_X_LABELS: Final = 6
Y_STEPS: Final = 3
_FACTORS: Final = tuple(map(Decimal, ("1", "1.5", "2", "2.5", "3", "4", "5", "6", "8", "10")))
_SIZES: Final = (10**12, 10**9, 10**6, 10**3)


class _Period(NamedTuple):
    """A unit of time.

    Attributes:
        name: of its texts.
        most: bars that are drawn of it.
        number_of: the number of the one with a day.
        first_day: of a number.
    """

    name: str
    most: int
    number_of: Callable[[date], int]
    first_day: Callable[[int], date]


_PERIODS: Final = (
    _Period("day", MAX_DAYS, date.toordinal, date.fromordinal),
    _Period(
        "month",
        MAX_MONTHS,
        lambda day: day.year * 12 + day.month - 1,
        lambda number: date(number // 12, number % 12 + 1, 1),
    ),
    _Period("year", date.max.year, lambda day: day.year, lambda number: date(number, 1, 1)),
)
"""The shortest first."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One period: its place on the axis, its value in steps of the scale, and the text shown while it is pointed at.

    `is_running`: the period had not ended at the time of the run.
    """

    place: int
    steps: float
    tooltip: str
    is_running: bool


@dataclass(frozen=True, slots=True)
class TimeChart:
    """A chart: bars, and labels with their places or steps. The template draws it (`macros.html.j2`).

    Attributes:
        title: what is shown, and by which period.
        periods: the number of places.
        running: the name of the running period, if one is drawn.
    """

    title: str
    periods: int
    bars: list[Bar]
    x_labels: list[tuple[int, str]]
    y_labels: list[tuple[int, str]]
    running: str


def time_chart(
    texts: ReportTexts,
    title: Callable[[str], str],
    values: Mapping[date, Decimal],
    as_of: date | None,
    tooltip: Callable[[Decimal], str],
    days: tuple[date, date] | None = None,
) -> TimeChart:
    """Bars over time by day, month or year: the shortest period of which there are not too many.

    Args:
        texts: in the language of the chart.
        title: of the chart, from the name of the period.
        values: by day; days without one may be left out.
        as_of: the day of the run; the period that contains it is marked. None: no period is.
        tooltip: a value in words.
        days: the first and the last day to show, if not those of the values.
    """
    shown = {**dict.fromkeys(days or (), Decimal(0)), **values}
    first = min(shown, default=date.min)
    last = max(shown, default=date.min)
    period = next(one for one in _PERIODS if one.number_of(last) - one.number_of(first) < one.most)
    numbers = range(period.number_of(first), period.number_of(last) + 1)
    running = None if as_of is None else period.number_of(as_of)
    sums = defaultdict[int, Decimal](Decimal)
    for day in sorted(shown):
        sums[period.number_of(day)] += shown[day]
    interval, y_labels = _y_axis(sums.values(), texts)
    bars = []
    for number, value in sums.items():
        if value:
            is_running = number == running
            name = texts.period(period.name, period.first_day(number))
            name = texts("chart.so_far", period=name) if is_running else name
            steps = float(value / interval)
            bars.append(Bar(number - numbers[0], steps, f"{name}: {tooltip(value)}", is_running))
    period_name = texts(f"period.{period.name}")
    is_any_running = any(bar.is_running for bar in bars)
    running_name = period_name if is_any_running else ""
    x_labels = _x_labels(numbers, period, texts)
    return TimeChart(title(period_name), len(numbers), bars, x_labels, y_labels, running_name)


def _x_labels(numbers: range, period: _Period, texts: ReportTexts) -> list[tuple[int, str]]:
    """Labels of some periods, each with its place."""
    label = "axis_day" if period.name == "day" else period.name
    every = math.ceil(len(numbers) / MAX_X_LABELS)
    return [
        (number - numbers[0], texts.period(label, period.first_day(number)))
        for number in numbers[::every]
    ]


def _y_axis(
    values: Collection[Decimal], texts: ReportTexts
) -> tuple[Decimal, list[tuple[int, str]]]:
    """The interval of the axis, and its labels; below 0 only where a value is."""
    highest = max([*values, Decimal(0)])
    lowest = min([*values, Decimal(0)])
    interval = _interval(max(highest, -lowest))
    below = math.ceil(-lowest / interval)
    above = math.ceil(highest / interval) if below else Y_STEPS
    labels = [(step, _short(interval * step, texts)) for step in range(-below, above + 1)]
    return interval, labels


def _interval(value: Decimal) -> Decimal:
    """A third of a value, rounded up to a round number, and a whole one: there is no half order."""
    third = max(value / Y_STEPS, Decimal(1))
    magnitude = Decimal(10) ** third.adjusted()
    rounded = next(n * magnitude for n in _FACTORS if third <= n * magnitude)
    return rounded.to_integral_value(ROUND_CEILING)


def _short(value: Decimal, texts: ReportTexts) -> str:
    size = next((one for one in _SIZES if abs(value) >= one), 1)
    short = texts.number((value / size).normalize(), "f")
    return texts(f"axis.{size}", short=short)
