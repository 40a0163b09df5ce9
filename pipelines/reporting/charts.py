"""Bar charts over time, which a template draws as SVG in the report or in a notebook's output.

In: values by day. Out: `TimeChart`. The value of a bar is shown while the pointer or the focus is on it, by the style
sheet alone: mail programs remove scripts. Altair would add 900 kB to each page and 100 MB to the installation (measured
with Altair 6 and vl-convert, which embeds its scripts).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Decimal
from typing import Final

from orderbridge.pipelines.reporting.texts import ReportTexts

MAX_DAYS: Final = 62
MAX_MONTHS: Final = 72
MAX_X_LABELS: Final = 6
Y_STEPS: Final = 3
_FACTORS: Final = tuple(map(Decimal, ("1", "1.5", "2", "2.5", "3", "4", "5", "6", "8", "10")))
_SIZES: Final = (10**12, 10**9, 10**6, 10**3)
_PERIODS: Final[Sequence[tuple[str, int, Callable[[date], int], Callable[[int], date]]]] = (
    ("day", MAX_DAYS, date.toordinal, date.fromordinal),
    (
        "month",
        MAX_MONTHS,
        lambda day: day.year * 12 + day.month - 1,
        lambda number: date(number // 12, number % 12 + 1, 1),
    ),
    ("year", date.max.year, lambda day: day.year, lambda number: date(number, 1, 1)),
)
"""The units of time, and the most bars drawn of each; the number of the one with a day, the first day of a number."""


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
    first, last = min(shown, default=date.min), max(shown, default=date.min)
    period, _, number_of, first_day = next(
        one for one in _PERIODS if one[2](last) - one[2](first) < one[1]
    )
    numbers = range(number_of(first), number_of(last) + 1)
    running = None if as_of is None else number_of(as_of)
    sums = defaultdict[int, Decimal](Decimal)
    for day in sorted(shown):
        sums[number_of(day)] += shown[day]
    interval, y_labels = _y_axis(sums.values(), texts)
    bars = []
    for number, value in sums.items():
        if value:
            is_running = number == running
            name = texts.period(period, first_day(number))
            name = texts("chart.so_far", period=name) if is_running else name
            steps = float(value / interval)
            bars.append(Bar(number - numbers[0], steps, f"{name}: {tooltip(value)}", is_running))
    labelled = numbers[:: math.ceil(len(numbers) / MAX_X_LABELS)]
    label = "axis_day" if period == "day" else period
    x_labels = [
        (number - numbers[0], texts.period(label, first_day(number))) for number in labelled
    ]
    period_name = texts(f"period.{period}")
    is_any_running = any(bar.is_running for bar in bars)
    running_name = period_name if is_any_running else ""
    return TimeChart(title(period_name), len(numbers), bars, x_labels, y_labels, running_name)


def _y_axis(
    values: Collection[Decimal], texts: ReportTexts
) -> tuple[Decimal, list[tuple[int, str]]]:
    """The interval of the axis, and its labels; below 0 only where a value is."""
    highest = max(values, default=Decimal(0))
    lowest = min(values, default=Decimal(0))
    interval = _interval(max(highest, -lowest))
    below = math.ceil(max(-lowest, Decimal(0)) / interval)
    above = math.ceil(max(highest, Decimal(0)) / interval) if below else Y_STEPS
    return interval, [(step, _short(interval * step, texts)) for step in range(-below, above + 1)]


def _interval(value: Decimal) -> Decimal:
    """A third of a value, rounded up to a round number, and a whole one: there is no half order."""
    third = max(value / Y_STEPS, Decimal(1))
    magnitude = Decimal(10) ** third.adjusted()
    return next(n * magnitude for n in _FACTORS if third <= n * magnitude).to_integral_value(
        ROUND_CEILING
    )


def _short(value: Decimal, texts: ReportTexts) -> str:
    size = next((one for one in _SIZES if abs(value) >= one), 1)
    short = texts.number((value / size).normalize(), "f")
    return texts(f"axis.{size}", short=short)
