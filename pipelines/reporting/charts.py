"""Bar charts over time, as shapes that a template draws as SVG in the report or in a notebook's output.

In: values by day. Out: `TimeChart`. The value of a bar is shown while the pointer or the focus is on it, by the style
sheet alone: mail programs remove scripts. Altair would add 900 kB to each page and 100 MB to the installation (measured
with Altair 6 and vl-convert, which embeds its scripts).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Decimal
from typing import Final, Literal, TypeVar

import numpy as np

Period = Literal["day", "month", "year"]
N = TypeVar("N", int, Decimal)
MAX_DAYS: Final = 62
MAX_MONTHS: Final = 72
UNITS: Final[Mapping[Period, Literal["D", "M", "Y"]]] = {"day": "D", "month": "M", "year": "Y"}
FORMATS: Final[Mapping[Period, str]] = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
WIDTH: Final = 480
HEIGHT: Final = 190
LEFT: Final = 52
TOP: Final = 20
BOTTOM: Final = 24
MAX_X_LABELS: Final = 6
Y_STEPS: Final = 3
_FACTORS: Final = tuple(map(Decimal, ("1", "1.5", "2", "2.5", "3", "4", "5", "6", "8", "10")))
_SIZES: Final = ((10**12, "tn"), (10**9, "bn"), (10**6, "M"), (10**3, "k"))


@dataclass(frozen=True, slots=True)
class Bar:
    """One period: its shape, and the text shown while it is pointed at.

    `is_running`: the period had not ended at the time of the run.
    """

    x: str
    y: str
    width: str
    height: str
    tooltip: str
    is_running: bool


@dataclass(frozen=True, slots=True)
class TimeChart:
    """A chart: bars, and labels with their positions.

    Attributes:
        title: what is shown, and by which period.
        running: the name of the running period, if one is drawn.
    """

    title: str
    bars: list[Bar]
    x_labels: list[tuple[str, str]]
    y_labels: list[tuple[str, str]]
    running: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    base: int = HEIGHT - BOTTOM


def time_chart(
    title: str,
    values: Mapping[date, Decimal],
    as_of: date | None,
    tooltip: Callable[[Decimal], str],
    days: tuple[date, date] | None = None,
) -> TimeChart:
    """Bars over time by day, month or year.

    Args:
        title: of the chart; `{period}` becomes the period.
        values: by day; days without one may be left out.
        as_of: the day of the run; the period that contains it is marked. None: no period is.
        tooltip: a value in words.
        days: the first and the last day to show, if not those of the values.
    """
    period, sums = by_period({**dict.fromkeys(days or (), Decimal(0)), **values})
    starts = starts_between(min(sums), max(sums), period) if sums else []
    highest, lowest = max(sums.values(), default=Decimal(0)), min(sums.values(), default=Decimal(0))
    interval = _interval(max(highest, -lowest))
    below = math.ceil(max(-lowest, Decimal(0)) / interval)
    above = math.ceil(max(highest, Decimal(0)) / interval) if below else Y_STEPS
    step = (WIDTH - LEFT) / max(len(starts), 1)
    height = (HEIGHT - TOP - BOTTOM) / (below + above)
    zero = TOP + height * above
    running = starts_between(as_of, as_of, period)[0] if as_of else None
    bars = []
    for number, start in enumerate(starts):
        if value := sums.get(start):
            x, size = LEFT + step * (number + 0.08), float(value / interval) * height
            name = f"{start.strftime(FORMATS[period])}{' so far' if start == running else ''}"
            shape = (f"{x:.1f}", f"{zero - max(size, 0):.1f}", f"{step * 0.84:.2f}", f"{abs(size):.1f}")
            bars.append(Bar(*shape, f"{name}: {tooltip(value)}", start == running))
    every = max(1, math.ceil(len(starts) / MAX_X_LABELS))
    short = FORMATS[period].removeprefix("%Y-") if period == "day" else FORMATS[period]
    return TimeChart(
        title.format(period=period),
        bars,
        [(f"{LEFT + step * (n + 0.5):.1f}", starts[n].strftime(short)) for n in range(0, len(starts), every)],
        [(f"{zero - height * n:.1f}", _short(interval * n)) for n in range(-below, above + 1)],
        period if any(bar.is_running for bar in bars) else "",
    )


def _interval(value: Decimal) -> Decimal:
    """A third of a value, rounded up to a round number, and a whole one: there is no half order."""
    third = max(value / Y_STEPS, Decimal(1))
    magnitude = Decimal(10) ** third.adjusted()
    return next(n * magnitude for n in _FACTORS if third <= n * magnitude).to_integral_value(ROUND_CEILING)


def _short(value: Decimal) -> str:
    size, name = next((one for one in _SIZES if abs(value) >= one[0]), (1, ""))
    return f"{(value / size).normalize():f}{name}"


def by_period(values: Mapping[date, N]) -> tuple[Period, dict[date, N]]:
    """The sums of the values by first day of their period, in order of time."""
    if not values:
        return "day", {}
    first, last = min(values), max(values)
    months = (last.year - first.year) * 12 + last.month - first.month + 1
    period: Period = "day" if (last - first).days < MAX_DAYS else "month" if months <= MAX_MONTHS else "year"
    sums: dict[date, N] = {}
    for day in sorted(values):
        (start,) = starts_between(day, day, period)
        sums[start] = sums[start] + values[day] if start in sums else values[day]
    return period, sums


def starts_between(first: date, last: date, period: Period) -> list[date]:
    """The first day of each period from the one that contains a day to the one that contains another."""
    unit = UNITS[period]
    begin, end = (np.datetime64(day).astype(f"datetime64[{unit}]") for day in (first, last))
    starts: list[date] = np.arange(begin, end + np.timedelta64(1, unit)).astype("datetime64[D]").tolist()
    return starts
