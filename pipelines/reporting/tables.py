"""Tables of the report and the notebooks: rows laid out as columns of text, numbers, links and bars; and their HTML.

In: rows and, for each column, a key or a function of the row; the name of a template and its values. Out: `Table`, and
HTML without scripts, which loads nothing from elsewhere. Jinja2 escapes every value, and `_written` alone decides how a
value is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final

import jinja2
from markupsafe import Markup

from orderbridge.pipelines.warehouse.sql import Rows
from orderbridge.sources.words import template_environment

TableColumns = Mapping[str, str | Callable[[dict[str, Any]], object]]
"""By heading, the key of a row or a function of it."""
EXTRA_COLUMNS: Final = frozenset(
    {"read until (UTC)", "how it ended", "prices", "compared with (UTC)", "used", "quantity"}
)
"""Columns without which a table can be read on a phone: they are hidden there."""
MAX_LABEL: Final = 60
MAX_ROWS: Final = 40
"""Rows shown of a table; the others are counted."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table to render. `kinds`: the class of each column: `number` (to the right), `extra`, both, `bars`, or none."""

    headings: list[str]
    rows: list[tuple[object, ...]]
    kinds: list[str]
    hidden_rows: int


def build_table(rows: Rows, columns: TableColumns) -> Table:
    """A table of at most `MAX_ROWS` rows; a column is a key of the row, or a function of it.

    A column without a heading is one of bars, and left out where it has none.
    """
    drawn: dict[str, list[object]] = {}
    for heading, column in columns.items():
        cells = [row[column] if isinstance(column, str) else column(row) for row in rows[:MAX_ROWS]]
        if heading or any(cells):
            drawn[heading] = cells
    kinds = [_kind(heading, cells) for heading, cells in drawn.items()]
    return Table(
        list(drawn), list(zip(*drawn.values(), strict=True)), kinds, max(0, len(rows) - MAX_ROWS)
    )


def _kind(heading: str, cells: list[object]) -> str:
    extra = "extra" if heading in EXTRA_COLUMNS else ""
    if any(isinstance(cell, int | Decimal) or str(cell).endswith("%") for cell in cells):
        return f"{extra} number".strip()
    return extra if heading else "bars"


def tag(html: str, *values: object) -> Markup:
    """A cell that is more than its text: HTML with values in it, which are escaped."""
    return Markup(html).format(*map(_written, values))  # noqa: S704 # the HTML is that of this program


def bar_column(
    rows: Rows, column: str, css: str = "", *, is_logarithmic: bool = False
) -> Callable[[dict[str, Any]], str]:
    """A column of bars for the numbers of another column; without any where all are the same.

    The column `css` has the class that gives a bar its colour, such as a severity.
    """

    def length(row: dict[str, Any]) -> float:
        value = row[column] or 0
        return math.log1p(value) if is_logarithmic else float(value)

    def bar(row: dict[str, Any]) -> str:
        percent = f"{100 * length(row) / longest:.1f}"
        return (
            tag('<span class="bar {}" style="width:{}%"></span>', row.get(css, ""), percent)
            if row[column]
            else ""
        )

    longest = max(map(length, rows), default=0.0)
    return bar if len({row[column] for row in rows}) > 1 else lambda _: ""


def name_column(column: str) -> Callable[[dict[str, Any]], Markup | None]:
    """A column of names from outside: one may run from right to left, and must not turn the text around it."""

    def name(row: dict[str, Any]) -> Markup | None:
        if row[column] is None:
            return None
        text = label(row[column]).replace(" %", "\N{NO-BREAK SPACE}%")
        return tag(
            '<bdi class="{}">{}</bdi>', "" if " " in text else "short", text
        )  # no code is broken at a hyphen

    return name


def label(text: object) -> str:
    """A text from outside, shortened to `MAX_LABEL` characters."""
    shown = str(text)
    return shown if len(shown) <= MAX_LABEL else shown[: MAX_LABEL - 1] + "…"


def spaced(column: str) -> Callable[[dict[str, Any]], str]:
    """A column of identifiers, written as words."""
    return lambda row: words(row[column])


def mapped(column: str, texts: Mapping[str, str]) -> Callable[[dict[str, Any]], str]:
    """A column of values that the page has texts for."""
    return lambda row: texts.get(row[column], row[column])


def styled(column: str, css: str) -> Callable[[dict[str, Any]], Markup]:
    """A column with a class of the style sheet, or with the one that the column `css` has."""
    return lambda row: tag('<span class="{}">{}</span>', row.get(css, css), row[column])


def anchor(entity: str, rule: str) -> str:
    """The id of a rule's section, here and in the report."""
    return f"{entity}-{rule}".replace("_", "-")


def words(name: str) -> str:
    """An identifier as words."""
    return name.replace("_", " ")


def render(template: str, **values: object) -> str:
    """The HTML of a template."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> jinja2.Environment:
    environment = template_environment(
        "orderbridge.pipelines.reporting", "templates", autoescape=True, finalize=_written
    )
    environment.filters |= {"code": _with_code, "words": words}
    functions = (build_table, bar_column, mapped, name_column, spaced, styled)
    environment.globals |= {function.__name__: function for function in functions}
    return environment


def _written(value: object) -> object:
    """How a value is written: numbers with thousands separators, instants in UTC, no control characters."""
    if hasattr(value, "__html__"):
        return value
    if value is None:
        return "–"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"
    if isinstance(value, Decimal):
        return f"{value:,.2f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "".join(
        char if char.isprintable() or char == "\N{NO-BREAK SPACE}" else "\N{REPLACEMENT CHARACTER}"
        for char in str(value)
    )


def _with_code(text: str) -> Markup:
    """Text in which what is between backticks becomes code."""
    parts = (
        tag("<code>{}</code>" if n % 2 else "{}", part) for n, part in enumerate(text.split("`"))
    )
    return Markup("").join(parts)
