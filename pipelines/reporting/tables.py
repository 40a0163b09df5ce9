"""Tables of the report and the notebooks: rows laid out as columns of text, numbers, links and bars; and their HTML.

In: rows and, for each column, a key or a function of the row; the name of a template and its values. Out: `Table`, and
HTML without scripts, which loads nothing from elsewhere. Jinja2 escapes every value, and `ReportTexts.written` alone
decides how a value is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from decimal import Decimal
from functools import cache, partial
from typing import Any, Final

import jinja2
from markupsafe import Markup

from orderbridge.pipelines.reporting.texts import Language, ReportTexts, report_texts
from orderbridge.pipelines.warehouse.sql import Rows
from orderbridge.sources.words import template_environment

TableColumns = Mapping[str, str | Callable[[dict[str, Any]], object]]
"""By heading, the key of a row or a function of it."""
EXTRA_COLUMNS: Final = (
    "report.read_until",
    "report.ended_by",
    "report.prices",
    "report.compared_at",
    "report.used",
    "report.quantity",
)
"""Headings of columns without which a table can be read on a phone: they are hidden there."""
_CODE: Final = re.compile("`([^`]+)`")
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


def build_table(texts: ReportTexts, rows: Rows, columns: TableColumns) -> Table:
    """A table of at most `MAX_ROWS` rows; a column is a key of the row, or a function of it.

    A column without a heading is one of bars, and left out where it has none.
    """
    extra = {texts(code) for code in EXTRA_COLUMNS}
    drawn: dict[str, list[object]] = {}
    for heading, column in columns.items():
        cells = [row[column] if isinstance(column, str) else column(row) for row in rows[:MAX_ROWS]]
        if heading or any(cells):
            drawn[heading] = cells
    kinds = [_kind(heading, cells, is_extra=heading in extra) for heading, cells in drawn.items()]
    return Table(
        list(drawn), list(zip(*drawn.values(), strict=True)), kinds, max(0, len(rows) - MAX_ROWS)
    )


def _kind(heading: str, cells: list[object], *, is_extra: bool) -> str:
    extra = "extra" if is_extra else ""
    if any(isinstance(cell, int | Decimal) or str(cell).endswith("%") for cell in cells):
        return f"{extra} number".strip()
    return extra if heading else "bars"


def tag(html: str, *values: object) -> Markup:
    """A cell that is more than its text: HTML with texts, dates or times in it, which are escaped."""
    written = map(report_texts().written, values)
    return Markup(html).format(*written)  # noqa: S704 # the HTML is that of this program


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


def name_column(column: str, otherwise: str | None = None) -> Callable[[dict[str, Any]], object]:
    """A column of names from outside: one may run from right to left, and must not turn the text around it.

    `otherwise` is shown where there is no name.
    """

    def name(row: dict[str, Any]) -> object:
        if row[column] is None:
            return otherwise
        text = label(row[column]).replace(" %", "\N{NO-BREAK SPACE}%")
        # no code is broken at a hyphen
        return tag('<bdi class="{}">{}</bdi>', "" if " " in text else "short", text)

    return name


def label(text: object) -> str:
    """A text from outside, shortened to `MAX_LABEL` characters."""
    shown = str(text)
    return shown if len(shown) <= MAX_LABEL else shown[: MAX_LABEL - 1] + "…"


def named(texts: ReportTexts, kind: str, column: str) -> Callable[[dict[str, Any]], str]:
    """A column of identifiers: the text of each, such as `table.price_lists`, or its words."""
    return lambda row: texts.named(kind, row[column])


def price_list_column(texts: ReportTexts) -> Callable[[dict[str, Any]], object]:
    """A column of price lists: the name; else what the row says of the list."""
    name = name_column("price_list")

    def shown(row: dict[str, Any]) -> object:
        if row["list_state"] == "named":
            return name(row)
        return texts(f"price_list.{row['list_state']}", id=row["price_list"])

    return shown


def styled(texts: ReportTexts, column: str, css: str) -> Callable[[dict[str, Any]], Markup]:
    """A column with a class of the style sheet."""
    return lambda row: tag('<span class="{}">{}</span>', css, texts.written(row[column]))


def _severity(texts: ReportTexts, row: dict[str, Any]) -> Markup:
    """A severity in its colour."""
    name = row["severity"]
    return tag('<span class="{}">{}</span>', name, texts.named("severity", name))


def anchor(entity: str, rule: str) -> str:
    """The id of a rule's section, here and in the report."""
    return f"{entity}-{rule}".replace("_", "-")


def render(
    template: str, language: Language = "en", zone: tzinfo | None = UTC, **values: object
) -> str:
    """The HTML of a template."""
    return _environment(language, zone).get_template(template).render(**values)


@cache
def _environment(language: Language, zone: tzinfo | None) -> jinja2.Environment:
    texts = report_texts(language, zone)
    environment = template_environment(
        "orderbridge.pipelines.reporting", "templates", autoescape=True
    ).overlay(finalize=texts.written)
    environment.filters["code"] = with_code
    environment.globals = {
        **environment.globals,
        "t": partial(_text, texts),
        "plain": texts,
        "language": language,
        "named": texts.named,
        "foreign": partial(_foreign, texts),
        "build_table": partial(build_table, texts),
        "named_column": partial(named, texts),
        "severity_column": partial(_severity, texts),
        "price_list_column": partial(price_list_column, texts),
        "styled": partial(styled, texts),
    }
    for function in (bar_column, name_column):
        environment.globals[function.__name__] = function
    return environment


def _text(texts: ReportTexts, code: str, /, **values: object) -> Markup:
    """The text of a code, in which what is between backticks is code."""
    return with_code(texts(code, **values))


def _foreign(texts: ReportTexts, text: str, *codes: str) -> Markup:
    """A text of the program, which is English, in this language; marked as English where it is not known."""
    found = texts.reworded(text, *codes)
    if texts.language == "en" or found != text:
        return with_code(found)
    return tag('<span lang="en">{}</span>', with_code(text))


def with_code(text: str) -> Markup:
    """Text in which what is between backticks becomes code."""
    parts = (
        tag("<code>{}</code>" if n % 2 else "{}", part) for n, part in enumerate(_CODE.split(text))
    )
    return Markup("").join(parts)
