"""Plots of the notebooks, drawn like those of the report: tables with bars, and charts over time.

In: counts, or frames of them with the column names of the reconciled tables. Out: `Plot`, which a notebook displays as
HTML without scripts. The same frame gives the same HTML. Names come from outside: they are shortened and escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import pandas as pd
from markupsafe import Markup

from orderbridge.pipelines.reporting.charts import time_chart
from orderbridge.pipelines.reporting.tables import named, render
from orderbridge.pipelines.reporting.texts import report_texts


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot that a notebook displays as the last value of a cell."""

    html: str

    def _repr_html_(self) -> str:
        return self.html


def bars(counts: Mapping[str, int], title: str, unit: str) -> Plot:
    """Horizontal bars with their values, the first one on top, from counts of `unit` by label."""
    return _plot(
        "bars", [{"label": name, "count": count} for name, count in counts.items()], title, unit
    )


def promotions_by_status(frame: pd.DataFrame) -> Plot:
    """Promotions by status, in its colour, from `status` and `promotions`."""
    return _plot("promotions_table", frame.to_dict("records"), "Promotions by status")


def findings(frame: pd.DataFrame) -> Plot:
    """Findings in the colour of their severity; a row for each `entity`, `rule`, `severity` with its `findings`."""
    return _plot(
        "findings_table",
        frame.to_dict("records"),
        "Findings by rule (logarithmic bars)",
        named(report_texts(), "rule", "rule"),
    )


def funnel(frame: pd.DataFrame) -> Plot:
    """Customers by outcome, from `status`, `step` (the key that matched, else the side of the row) and `customers`."""
    return _plot(
        "outcomes_table", frame.to_dict("records"), "Customers of the ERP and the platform"
    )


def over_time(days: pd.DataFrame, title: str, unit: str, today: date | None = None) -> Plot:
    """Values over time by day, month or year: the finest period that stays readable.

    The frame has `day` (dates) and `count` (numbers of `unit`), one row per day with a value. The period that contains
    `today` is marked: it is not over yet.
    """
    dates = (day.date() if isinstance(day, datetime) else day for day in days["day"])
    values = {day: Decimal(str(value)) for day, value in zip(dates, days["count"], strict=True)}
    form = (
        ",.0f" if all(value == value.to_integral_value() for value in values.values()) else ",.2f"
    )
    chart = time_chart(
        report_texts(),
        lambda period: f"{title} by {period}",
        values,
        today,
        lambda value: f"{value:{form}} {unit}",
    )
    return _plot("chart", chart if chart.bars else None, chart.title)


def titled(frame: pd.DataFrame, title: str) -> Plot:
    """A table below its title, from a frame such as that of `tidy`."""
    return _plot("frame", Markup(frame.to_html(index=False)) if len(frame) else None, title)  # noqa: S704 # pandas escapes


def _plot(macro: str, content: object, title: str, *more: object) -> Plot:
    """Draws by a macro of `macros.html.j2`."""
    return Plot(render("plot.html.j2", macro=macro, content=content, title=title, more=more))
