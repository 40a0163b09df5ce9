"""The report as HTML: `ReportData` laid out as tables and plots, and rendered by the templates beside this module.

In: `ReportData`. Out: the page as text; it loads nothing from elsewhere. Jinja2 escapes every value, and `_written` is
the one place that decides how a value is written. The page shows counts, ids, and names of promotions, price lists and
fields, and no personal data.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import jinja2
import pandas as pd
from markupsafe import Markup, escape

from pipelines.reporting import plots
from pipelines.reporting.plots import Plot
from pipelines.reporting.report_data import SOON_DAYS, TABLES, ReportData, Rows
from pipelines.reporting.rules_page import anchor
from transforms.rules import RULES
from transforms.rules.rule import SEVERITIES

START: Final = "<!doctype html>\n<!-- orderbridge report -->\n"
"""The first bytes of every report, by which a file is recognised as one."""
MAX_ROWS: Final = 40
"""Rows shown of a table; the others are counted."""
MAX_BARS: Final = 15
_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)
_CHAINS: Final = {
    "root": "has prices of its own",
    "linked": "derives from another list",
    "orphan": "derives from a list that is not listed",
    "unknown": "derives from a list that was not read",
    "cycle": "derives from itself, in a circle",
}
_CUSTOMER_LISTS: Final = {
    "matched": "on a listed price list",
    "default": "on the default list (none of their own)",
    "not_listed": "on a list that is not listed",
    "unknown": "on a list that was not read",
}
_ORDER_CUSTOMERS: Final = {
    "matched": "by a known customer",
    "unknown": "by a customer who is not in the table",
    "none": "without a customer",
    "not looked for": "not matched with customers",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell that is more than its text.

    Attributes:
        css: a class of the style sheet.
        href: what the text links to.
        is_name: a name from outside, which may run from right to left and must not turn the text around it.
    """

    text: object
    css: str = ""
    href: str = ""
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table to render: columns with a number are aligned to the right."""

    headings: list[str]
    rows: list[list[object]]
    is_number: list[bool]
    hidden_rows: int


def page(data: ReportData) -> str:
    """The whole page."""
    content = _summary(data) | _lists(data) | _findings(data) | _erp(data) | _catalogue(data)
    return START + _environment().get_template("report.html.j2").render(data=data, **content)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pipelines.reporting"),
        autoescape=True,
        finalize=_written,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"base64": _base64, "code": _with_code, "words": _words}
    return environment


def _written(value: object) -> object:
    """How a value is written: numbers with thousands separators, instants in UTC, no control characters."""
    if hasattr(value, "__html__"):
        return value
    if value is None:
        return "–"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return f"{value:,}"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(value))


def _base64(plot: Plot) -> str:
    return base64.b64encode(plot.svg()).decode()


def _words(name: str) -> str:
    return name.replace("_", " ")


def _with_code(text: str) -> Markup:
    """Text in which what is between backticks becomes code."""
    parts = [escape(_written(part)) for part in text.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(part) if n % 2 else part for n, part in enumerate(parts))


def _table(rows: Rows, columns: Mapping[str, str | Callable[[dict[str, Any]], object]]) -> Table:
    """A table of at most `MAX_ROWS` rows; a column is a key of the row, or a function of it."""
    shown = [
        [row[column] if isinstance(column, str) else column(row) for column in columns.values()]
        for row in rows[:MAX_ROWS]
    ]
    is_number = [any(isinstance(row[n], int | Decimal) for row in shown) for n in range(len(columns))]
    return Table(list(columns), shown, is_number, max(0, len(rows) - MAX_ROWS))


def _name(column: str) -> Callable[[dict[str, Any]], Cell]:
    return lambda row: Cell(row[column], is_name=True)


def _spaced(column: str) -> Callable[[dict[str, Any]], str]:
    return lambda row: _words(row[column])


def _summary(data: ReportData) -> dict[str, object]:
    by_severity = dict.fromkeys(SEVERITIES, 0)
    for row in data.findings:
        by_severity[row["severity"]] += row["findings"]
    return {"main_tables": TABLES, "by_severity": by_severity}


def _lists(data: ReportData) -> dict[str, object]:
    def verdict(row: dict[str, Any]) -> Cell:
        if not row["was_taken"]:
            return Cell(f"{row['verdict']}, not published", "error")
        return Cell(row["verdict"], "good" if row["verdict"] == "complete" else "warning")

    findings = {name: 0 for name in (*TABLES, "erp_customers") if name in data.counts}
    for row in data.findings:
        findings[row["entity"]] = findings.get(row["entity"], 0) + row["findings"]
    return {
        "lists": _table(
            data.lists,
            {
                "list": _spaced("resource"),
                "verdict": verdict,
                "records": "distinct",
                "quarantined": "quarantined",
                "age": lambda row: None if row["taken_at"] is None else _age(data.as_of - row["taken_at"]),
                "read until (UTC)": "taken_at",
                "ended by": "ended_by",
            },
        ),
        "tables": _table(
            [{"name": name, "rows": rows, "missing": missing} for name, (rows, missing) in data.counts.items()],
            {
                "table": _spaced("name"),
                "rows": "rows",
                "no longer listed": "missing",
                "findings": lambda row: findings.get(row["name"]),
            },
        ),
    }


def _age(duration: timedelta) -> str:
    if duration < 2 * _HOUR:
        return f"{max(duration, timedelta()) // timedelta(minutes=1)} min"
    return f"{duration // _HOUR} h" if duration < 2 * _DAY else f"{duration // _DAY} days"


def _findings(data: ReportData) -> dict[str, object]:
    if not data.findings:
        return {}
    rules = {(rule.entity, rule.name): rule for rule in RULES}
    return {
        "severities": SEVERITIES,
        "findings_plot": plots.findings(pd.DataFrame(data.findings)),
        "findings": _table(
            data.findings,
            {
                "severity": lambda row: Cell(row["severity"], row["severity"]),
                "findings": "findings",
                "table": _spaced("entity"),
                "rule": lambda row: Cell(row["rule"], href=f"#{anchor(row['entity'], row['rule'])}"),
            },
        ),
        "rules": [
            {
                "anchor": anchor(row["entity"], row["rule"]),
                "entity": row["entity"],
                "name": row["rule"],
                "severity": row["severity"],
                "findings": row["findings"],
                # a warehouse written by another version may have other rules
                "rule": rules.get((row["entity"], row["rule"])),
            }
            for row in data.findings
        ],
    }


def _erp(data: ReportData) -> dict[str, object]:
    content: dict[str, object] = {}
    if data.matches is not None:
        steps = plots.match_steps(frame := pd.DataFrame(data.matches))
        content["match_plot"] = plots.funnel(frame)
        content["matches"] = _table(
            [{"step": step, "count": count} for step, count in steps.items()], {"outcome": "step", "customers": "count"}
        )
    if data.differences:
        labels = {f"{row['entity']}: {row['field']}": row["differences"] for row in data.differences[:MAX_BARS]}
        content["differences_plot"] = plots.bars(labels, "Differences by field", "records")
        content["differences"] = _table(
            data.differences, {"table": "entity", "field": _name("field"), "records": "differences"}
        )
    if data.variants is not None:
        content["variants"] = _table(data.variants, {"status": _spaced("status"), "variants": "variants"})
    return content


def _catalogue(data: ReportData) -> dict[str, object]:
    """Price lists, promotions, orders."""

    def empty(name: str) -> str:
        """What an empty table means: nothing is listed only where its list was read whole."""
        walks = [row for row in data.lists if row["resource"] == name and row["was_taken"]]
        is_proven = any(row["verdict"] == "complete" and row["taken_at"] <= data.as_of for row in walks)
        singular = _words(name.removesuffix("s"))
        return f"No {singular} is listed." if is_proven else f"No {singular} was read."

    bars = [(row["name"], row["price_list_id"], row["customer_count"]) for row in data.price_lists[:MAX_BARS]]
    statuses = {row["status"]: row["promotions"] for row in data.promotion_status}
    colours = [plots.STATUS_COLOURS.get(name, plots.GREY) for name in statuses]
    return {
        "empty": empty,
        "customer_list_words": _CUSTOMER_LISTS,
        "price_lists_plot": plots.bars(_labelled(bars), "Customers by price list", "customers"),
        "price_lists": _table(
            data.price_lists,
            {
                "id": "price_list_id",
                "name": _name("name"),
                "prices": lambda row: _CHAINS[row["chain_status"]],
                "customers": "customer_count",
            },
        ),
        "soon_days": SOON_DAYS,
        "promotions_plot": plots.bars(statuses, "Promotions by status", "promotions", colours),
        "expiring": _table(
            data.expiring,
            {
                "id": "promotion_id",
                "name": _name("name"),
                "status": "status",
                "expires (UTC)": "expires_at",
                "used": "use_count",
                "left": "remaining_uses",
            },
        ),
        "order_customer_words": _ORDER_CUSTOMERS,
        "orders_plot": plots.over_time(pd.DataFrame(data.order_days, columns=["day", "count"]), "Orders", "orders"),
        "undated_orders": sum(row["orders"] - row["dated"] for row in data.order_status),
    }


def _labelled(named: Sequence[tuple[str | None, str, int]]) -> dict[str, int]:
    """Counts by name, or by name and id where a name is missing or not unique."""
    names = [name for name, _, _ in named]
    return {
        name if name and names.count(name) == 1 else f"{name or 'no name'} ({key})": count for name, key, count in named
    }
