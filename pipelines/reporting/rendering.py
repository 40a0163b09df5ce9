"""Templates rendered as HTML, for the report and the notebooks.

In: the name of a template and its values. Out: HTML without scripts, which loads nothing from elsewhere. Jinja2 escapes
every value, and `_written` alone decides how a value is written.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import jinja2
from markupsafe import Markup, escape

from pipelines.reporting.tables import words


def render(template: str, **values: object) -> str:
    """The HTML of a template."""
    return _environment().get_template(template).render(**values)


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
    environment.filters |= {"code": _with_code, "words": words}
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
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(value))


def _with_code(text: str) -> Markup:
    """Text in which what is between backticks becomes code."""
    parts = [escape(_written(part)) for part in text.split("`")]
    return Markup("").join(Markup("<code>{}</code>").format(part) if n % 2 else part for n, part in enumerate(parts))
