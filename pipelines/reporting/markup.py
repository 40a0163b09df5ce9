"""Markup for the report: elements, tables and pictures, in which every text from outside is escaped.

In: texts, numbers, instants and rows. Out: `Tag`, markup that is ready; no other way leads to markup.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from html import escape
from typing import Any, Final

from pipelines.reporting.facts import Rows
from pipelines.reporting.plots import Plot

MOST: Final = 40
"""So many rows of a table are shown; the rest is counted."""


class Tag(str):
    """Markup that is ready; any other text is escaped where it is put in."""

    __slots__ = ()


def tag(name: str, *inside: object, **attributes: str) -> Tag:
    """An element; what is inside is escaped unless it is a `Tag`. `class_` is the attribute class."""
    written = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    return Tag(f"<{name}{written}>{''.join(map(text, inside))}</{name}>")


def text(inside: object) -> str:
    """Escaped, without controls, which could turn text around; instants in UTC, numbers with their thousands apart."""
    if isinstance(inside, Tag):
        return inside
    if inside is None:
        return "–"
    if isinstance(inside, datetime):
        return f"{inside.astimezone(UTC):%Y-%m-%d %H:%M}"
    if isinstance(inside, int | Decimal) and not isinstance(inside, bool):
        return f"{inside:,}"
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(inside)))


def prose(words: str, **attributes: str) -> Tag:
    """A paragraph; what stands between backticks is code."""
    parts = words.split("`")
    return tag("p", *(tag("code", part) if n % 2 else part for n, part in enumerate(parts)), **attributes)


def table(rows: Rows, columns: Mapping[str, Callable[[dict[str, Any]], object]]) -> Tag:
    """A table of at most `MOST` rows; each column is made by its function. Numbers stand to the right."""
    shown = [[make(row) for make in columns.values()] for row in rows[:MOST]]
    kinds = ["number" if any(isinstance(row[n], int | Decimal) for row in shown) else "" for n in range(len(columns))]
    head = tag("tr", *(tag("th", name, **classed(kind)) for name, kind in zip(columns, kinds, strict=True)))
    body = [
        tag("tr", *(tag("td", cell, **classed(kind)) for cell, kind in zip(row, kinds, strict=True))) for row in shown
    ]
    made = tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="wide")
    if len(rows) > MOST:
        return Tag(made + tag("p", f"And {len(rows) - MOST:,} more.", class_="faint"))
    return made


def classed(kind: str) -> dict[str, str]:
    """The attribute class of `tag`, where there is one."""
    return {"class_": kind} if kind else {}


def name_of(name: object) -> Tag:
    """A name from outside, which may run from right to left and must not turn what stands around it."""
    return tag("bdi", name)


def picture(plot: Plot) -> Tag:
    """A plot within the page itself; its words for those who do not see it."""
    data = base64.b64encode(plot.svg()).decode()
    return Tag(f'<img class="plot" alt="{escape(plot.alt)}" src="data:image/svg+xml;base64,{data}">')


def beside(*parts: Tag) -> Tag:
    """Parts beside each other where there is room, else one below the other."""
    return tag("div", *(tag("div", part) for part in parts), class_="beside")


def get(column: str) -> Callable[[dict[str, Any]], object]:
    """A column of `table` as it is in the row."""
    return lambda row: row[column]
