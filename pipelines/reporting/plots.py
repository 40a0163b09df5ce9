"""The plots of the report and the notebooks.

In: frames of counts, with the column names of the reconciled tables. Out: figures that a notebook displays. The same
frame gives the same SVG bytes: no date, fixed ids, no user settings. Labels come from outside: they are shortened,
stripped of control characters, and never parsed as formulas.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any, Final

import matplotlib as mpl
import pandas as pd
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from pipelines.reporting.match_outcomes import LABELS, count_outcomes
from pipelines.reporting.periods import MAX_DAYS, MONTHS, by_period, months_later, start_of

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # the first run builds a font cache and would log that

BLUE: Final = "#0072b2"
GREEN: Final = "#009e73"
ORANGE: Final = "#e69f00"
RED: Final = "#d55e00"
SKY: Final = "#56b4e9"
GREY: Final = "#8a8f98"
SEVERITY_COLOURS: Final = {"error": RED, "warning": ORANGE, "info": SKY}
STATUS_COLOURS: Final = {
    "running": GREEN,
    "scheduled": SKY,
    "exhausted": ORANGE,
    "expired": RED,
    "inactive": GREY,
    "unknown": "#000000",
}
MATCH_COLOURS: Final = {"matched": GREEN, "ambiguous": ORANGE, "only_in_erp": RED, "only_in_platform": BLUE}
MAX_LABEL: Final = 40
_WIDTH_IN: Final = 6.0
_BAR_IN: Final = 0.3
_TICKS_MAX: Final = 7
_YEAR: Final = 12
_STEPS: Final = (1, 2, 3, 6, *(_YEAR * years for years in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)))
_STYLE: Final[dict[Any, Any]] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "orderbridge",
    "svg.fonttype": "path",
    "text.parse_math": False,  # a name with dollar signs is not a formula
    "timezone": "UTC",
}


class Plot(Figure):
    """A figure that a notebook displays as the last value of a cell.

    Attributes:
        alt: a description for readers who cannot see it.
    """

    alt: str

    def svg(self) -> bytes:
        """The picture; the same content gives the same bytes."""
        buffer = io.BytesIO()
        with _styled(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a name in a script that the font lacks
            self.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        return buffer.getvalue()

    def _repr_svg_(self) -> str:
        return self.svg().decode()


def bars(
    counts: Mapping[str, int],
    title: str,
    unit: str,
    colours: Sequence[str] = (BLUE,),
    legend: Mapping[str, str] | None = None,
    *,
    is_logarithmic: bool = False,
) -> Plot:
    """Horizontal bars with their values, the first one on top.

    Args:
        counts: by label.
        title: of the plot.
        unit: what is counted, for the axis.
        colours: one per bar, or one for all.
        legend: meaning to colour.
        is_logarithmic: scale on which a few are visible beside many.
    """
    with _plot(_BAR_IN * max(len(counts), 1) + 1.1 + (0.3 if legend else 0), title) as (plot, axes):
        values = list(counts.values())
        drawn = axes.barh(range(len(values)), values, color=list(colours) if values else None)
        axes.bar_label(drawn, labels=[f"{value:,}" for value in values], padding=3)
        axes.set_yticks(range(len(values)), [label(name) for name in counts])
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(unit)
        if is_logarithmic:
            axes.set_xscale("symlog", linthresh=1)
        else:
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlim(left=0, right=None if any(values) else 1)
        if legend:
            handles = [Patch(color=colour, label=meaning) for meaning, colour in legend.items()]
            plot.legend(handles=handles, loc="outside lower right", ncols=len(legend), frameon=False)
        plot.alt = f"{title}: " + ", ".join(f"{label(name)} {value:,}" for name, value in counts.items())
    return plot


def findings(frame: pd.DataFrame, most: int = 15) -> Plot:
    """Findings by rule, in the colour of their severity.

    Args:
        frame: `entity`, `rule`, `severity`, `findings`: one row per rule, in drawing order.
        most: maximum number of rules.
    """
    shown = frame.head(most)
    rows = shown.to_dict("records")
    counts = {f"{row['entity']}: {row['rule'].replace('_', ' ')}": int(row["findings"]) for row in rows}
    title = "Findings by rule" + (f", the first {most} of {len(frame)}" if len(frame) > most else "")
    colours = [SEVERITY_COLOURS[row["severity"]] for row in rows]
    return bars(counts, title, "findings (logarithmic)", colours, SEVERITY_COLOURS, is_logarithmic=True)


def funnel(frame: pd.DataFrame) -> Plot:
    """Customers of the ERP and the platform by outcome, in the order in which matches are tried.

    Args:
        frame: `status`, `step` (the key that matched, else the side of the row: `erp` or `platform`) and `customers`,
            counted from `reconciled.erp_customers`.
    """
    colours = [MATCH_COLOURS[status] for status, _ in LABELS]
    title = "Customers of the ERP and the platform"
    return bars(match_steps(frame), title, "customers (logarithmic)", colours, is_logarithmic=True)


def match_steps(frame: pd.DataFrame) -> dict[str, int]:
    """The counts of `funnel` by label."""
    return {LABELS[outcome]: count for outcome, count in count_outcomes(frame.to_dict("records")).items()}


def over_time(days: pd.DataFrame, title: str, unit: str, as_of: datetime | None = None) -> Plot:
    """Counts over time by day, month or year: the finest period that stays readable.

    Args:
        days: `day` (dates) and `count`, one row per day with a count.
        title: of the plot.
        unit: what is counted.
        as_of: the period that contains this time is lighter: it is not over yet.
    """
    counts = {day: int(count) for day, count in zip(_dates(days["day"]), days["count"], strict=True)}
    period, starts = by_period(counts)
    with _plot(2.9, f"{title} by {period}") as (plot, axes):
        at = [start.toordinal() for start in starts]
        widths = [0.9 * (months_later(start, MONTHS[period]).toordinal() - start.toordinal()) for start in starts]
        running = None if as_of is None else start_of(as_of.astimezone(UTC).date(), period)
        colours = [SKY if start == running else BLUE for start in starts]
        axes.bar(at, list(starts.values()), widths, align="edge", color=colours or None)
        if running in starts:
            handle = Patch(color=SKY, label=f"{period} of the run, so far")
            plot.legend(handles=[handle], loc="outside lower right", frameon=False)
        _date_axis(axes)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_ylabel(unit)
        axes.set_ylim(bottom=0, top=None if any(counts.values()) else 1)
        plot.alt = f"{plot.alt}: {sum(counts.values()):,} {unit}; {len(starts)} {period}s have any"
    return plot


def timeline(frame: pd.DataFrame, as_of: datetime) -> Plot:
    """Promotions as bars from start to end, coloured by status, with a line at the time of the run.

    Args:
        frame: `name`, `status`, `starts_at`, `expires_at` (both not null), in drawing order.
        as_of: time of the line, with its offset.
    """
    with _plot(_BAR_IN * max(len(frame), 1) + 1.4, "When promotions run") as (plot, axes):
        starts, ends = ([day.toordinal() for day in _dates(frame[name])] for name in ("starts_at", "expires_at"))
        lengths = [max(end - start, 0) for start, end in zip(starts, ends, strict=True)]
        colours = [STATUS_COLOURS.get(status, GREY) for status in frame["status"]]
        axes.barh(range(len(frame)), lengths, left=starts, color=colours or None, height=0.7)
        axes.axvline(as_of.toordinal(), color="#000000", linewidth=1, linestyle="--")
        axes.set_yticks(range(len(frame)), [label(name) for name in frame["name"]])
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        _date_axis(axes)
        axes.set_xlabel(f"date (UTC); the dashed line is {as_of.astimezone(UTC):%Y-%m-%d}")
        statuses = {name: colour for name, colour in STATUS_COLOURS.items() if name in set(frame["status"])}
        handles = [Patch(color=colour, label=name) for name, colour in statuses.items()]
        plot.legend(handles=handles, loc="outside lower right", ncols=len(handles) or 1, frameon=False)
        plot.alt = f"When {len(frame)} promotions run"
    return plot


def label(text: object, most: int = MAX_LABEL) -> str:
    """A text from outside as a label: one line, no control characters, limited length."""
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(text))
    return shown if len(shown) <= most else shown[: most - 1] + "…"


@contextmanager
def _styled() -> Iterator[None]:
    """The style of these plots, whatever the user's settings."""
    with style.context("default", after_reset=True), mpl.rc_context(_STYLE):
        yield


@contextmanager
def _plot(height_in: float, title: str) -> Iterator[tuple[Plot, Axes]]:
    with _styled():
        plot = Plot(figsize=(_WIDTH_IN, height_in), layout="constrained")
        plot.alt = title
        axes = plot.subplots()
        axes.set_title(title)
        yield plot, axes


def _dates(days: pd.Series[Any]) -> list[date]:
    return [day.date() if isinstance(day, datetime) else day for day in days]


def _date_axis(axes: Axes) -> None:
    """At most eight ticks, by day, month or year. matplotlib's own locators warn about long spans."""
    left, right = (round(edge) for edge in axes.get_xlim())
    first, last = (date.fromordinal(min(max(edge, 1), date.max.toordinal())) for edge in (left, right))
    axes.set_xlabel("date (UTC)")
    if (last - first).days < MAX_DAYS:
        step = max(1, -(-(last - first).days // 7))
        ticks = [date.fromordinal(day) for day in range(first.toordinal() + 1, last.toordinal() + 1, step)]
        form = "%m-%d"
        axes.set_xlabel(f"day of {first.year} (UTC)" if first.year == last.year else "day (UTC)")
    else:
        months = (last.year - first.year) * 12 + last.month - first.month
        step = next(size for size in _STEPS if months / size <= _TICKS_MAX)
        tick = date(max(1, first.year - first.year % max(1, step // _YEAR)), 1, 1)
        ticks = []
        while tick <= last and tick < date.max:
            ticks += [tick] if tick >= first else []
            tick = months_later(tick, step)
        form = "%Y" if step >= _YEAR else "%Y-%m"
    axes.set_xticks([tick.toordinal() for tick in ticks], [tick.strftime(form) for tick in ticks])
