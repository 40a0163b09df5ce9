"""Bar charts over time, as shapes that a template draws as SVG in the report or in a notebook's output.

In: values by day. Out: `TimeChart`. The value of a bar is shown while the pointer or the focus is on it, by the style
sheet alone: mail programs remove scripts. Altair would add 900 kB to each page and 100 MB to the installation (measured
with Altair 6 and vl-convert, which embeds its scripts).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, Decimal
from typing import Final, Literal

MAX_DAYS: Final = 62
MAX_MONTHS: Final = 72
Period = Literal["day", "month", "year"]
_PERIODS: Final[Mapping[Period, tuple[Callable[[date], int], Callable[[int], str]]]] = {
    "day": (date.toordinal, lambda number: date.fromordinal(number).isoformat()),
    "month": (lambda day: day.year * 12 + day.month - 1, lambda number: f"{number // 12:04}-{number % 12 + 1:02}"),
    "year": (lambda day: day.year, lambda number: f"{number:04}"),
}
"""The number of the period that contains a day, and the name of the one with a number."""
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
    shown = {**dict.fromkeys(days or (), Decimal(0)), **values}
    period = _period(shown)
    number_of, name_of = _PERIODS[period]
    sums: dict[int, Decimal] = {}
    for day in sorted(shown):
        sums[number_of(day)] = sums.get(number_of(day), Decimal(0)) + shown[day]
    first, count = (min(sums), max(sums) - min(sums) + 1) if sums else (0, 0)
    highest, lowest = max(sums.values(), default=Decimal(0)), min(sums.values(), default=Decimal(0))
    interval = _interval(max(highest, -lowest))
    below = math.ceil(max(-lowest, Decimal(0)) / interval)
    above = math.ceil(max(highest, Decimal(0)) / interval) if below else Y_STEPS
    step = (WIDTH - LEFT) / max(count, 1)
    height = (HEIGHT - TOP - BOTTOM) / (below + above)
    zero = TOP + height * above
    bars = []
    for number, value in sums.items():
        if value:
            x, size = LEFT + step * (number - first + 0.08), float(value / interval) * height
            is_running = as_of is not None and number == number_of(as_of)
            shape = (f"{x:.1f}", f"{zero - max(size, 0):.1f}", f"{step * 0.84:.2f}", f"{abs(size):.1f}")
            words = f"{name_of(number)}{' so far' if is_running else ''}: {tooltip(value)}"
            bars.append(Bar(*shape, words, is_running))
    x_labels = [
        (f"{LEFT + step * (n + 0.5):.1f}", name_of(first + n)[5 if period == "day" else 0 :])
        for n in range(0, count, max(1, math.ceil(count / MAX_X_LABELS)))
    ]
    return TimeChart(
        title.format(period=period),
        bars,
        x_labels,
        [(f"{zero - height * n:.1f}", _short(interval * n)) for n in range(-below, above + 1)],
        period if any(bar.is_running for bar in bars) else "",
    )


def _period(days: Collection[date]) -> Period:
    """The shortest period of which there are not too many bars."""
    first, last = min(days, default=date.min), max(days, default=date.min)
    if (last - first).days < MAX_DAYS:
        return "day"
    months, _ = _PERIODS["month"]
    return "month" if months(last) - months(first) < MAX_MONTHS else "year"


def _interval(value: Decimal) -> Decimal:
    """A third of a value, rounded up to a round number, and a whole one: there is no half order."""
    third = max(value / Y_STEPS, Decimal(1))
    magnitude = Decimal(10) ** third.adjusted()
    return next(n * magnitude for n in _FACTORS if third <= n * magnitude).to_integral_value(ROUND_CEILING)


def _short(value: Decimal) -> str:
    size, name = next((one for one in _SIZES if abs(value) >= one[0]), (1, ""))
    return f"{(value / size).normalize():f}{name}"
