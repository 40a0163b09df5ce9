"""Plots of the notebooks, drawn like those of the report: tables with bars, and charts over time.

In: counts, or frames of them with the column names of the reconciled tables. Out: `Plot`, which a notebook displays as
HTML without scripts. The same frame gives the same HTML. Names come from outside: they are shortened and escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd

from pipelines.reporting.charts import time_chart
from pipelines.reporting.report_data import Rows
from pipelines.reporting.tables import (
    Table,
    TableColumns,
    bar_column,
    build_table,
    findings_table,
    name_column,
    outcomes_table,
    promotions_table,
    render,
    words,
)


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot that a notebook displays as the last value of a cell."""

    html: str

    def _repr_html_(self) -> str:
        return self.html


def bars(counts: Mapping[str, int], title: str, unit: str) -> Plot:
    """Horizontal bars with their values, the first one on top, from counts of `unit` by label."""
    rows = [{"label": name, unit: count} for name, count in counts.items()]
    columns: TableColumns = {" ": name_column("label"), unit: unit, "": bar_column(rows, unit)}
    return _plot(build_table(rows, columns), title)


def promotions_by_status(frame: pd.DataFrame) -> Plot:
    """Promotions by status, in its colour, from `status` and `promotions`."""
    return _plot(promotions_table(_records(frame)), "Promotions by status")


def findings(frame: pd.DataFrame) -> Plot:
    """Findings in the colour of their severity; a row for each `entity`, `rule`, `severity` with its `findings`."""
    return _plot(findings_table(_records(frame), lambda row: words(row["rule"])), "Findings by rule (logarithmic bars)")


def funnel(frame: pd.DataFrame) -> Plot:
    """Customers of the ERP and the platform by outcome, from rows as `outcomes_table` takes them."""
    return _plot(outcomes_table(_records(frame)), "Customers of the ERP and the platform")


def over_time(days: pd.DataFrame, title: str, unit: str, today: date | None = None) -> Plot:
    """Values over time by day, month or year: the finest period that stays readable.

    The frame has `day` (dates) and `count` (numbers of `unit`), one row per day with a value. The period that contains
    `today` is marked: it is not over yet.
    """
    values = {day: Decimal(str(value)) for day, value in zip(_dates(days["day"]), days["count"], strict=True)}
    form = ",.0f" if all(value == value.to_integral_value() for value in values.values()) else ",.2f"
    chart = time_chart(f"{title} by {{period}}", values, today, lambda value: f"{value:{form}} {unit}")
    return Plot(render("plot.html.j2", content=chart))


def _plot(table: Table, title: str) -> Plot:
    return Plot(render("plot.html.j2", content=table, title=title))


def _records(frame: pd.DataFrame) -> Rows:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _dates(days: pd.Series[Any]) -> list[date]:
    return [day.date() if isinstance(day, datetime) else day for day in days]
