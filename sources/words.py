"""Texts for people: counts with their noun, lists of names, and templates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import jinja2

MAX_LISTED: Final = 10
"""Columns listed in a message; a file may have thousands."""

_LONGEST: Final = 60
VERDICTS: Final = {
    "complete": "complete",
    "unproven": "partial",
    "incomplete": "failed",
    "tail": "recent only",
}
"""What people read for the verdict of a list (docs/glossary.md)."""


def number(count: int, one: str, many: str = "") -> str:
    """A count with its noun."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def listed(names: Sequence[str], label: Callable[[str], str] = str) -> str:
    """The first `MAX_LISTED` names, labelled and separated by commas, and the number of further ones."""
    text = ", ".join(map(label, names[:MAX_LISTED]))
    return f"{text} and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else text


def shortened(text: str) -> str:
    """A text that fits into a line with others: the whole, or its beginning."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def format_time(seconds: float) -> str:
    """A time for people, from epoch seconds: that of this machine. A machine in UTC says so."""
    local = datetime.fromtimestamp(seconds, UTC).astimezone()
    zone = "" if local.utcoffset() else " UTC"
    return f"{local:%Y-%m-%d %H:%M:%S}{zone}"


def duration(seconds: float) -> str:
    """A time in the unit that a person would use: `45 s`, `10 min`, `26 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h"


def render_text(package: str, template: str, **values: object) -> str:
    """The text of a Jinja2 template in the folder of a package: Markdown or TOML, in which nothing is escaped."""
    return template_environment(package).get_template(template).render(values)


@cache
def template_environment(package: str, folder: str = "", **options: Any) -> jinja2.Environment:  # noqa: ANN401 # of Jinja2
    """The templates in a folder of a package; it keeps those that it has compiled."""
    import jinja2  # takes time, and most commands render nothing

    environment = jinja2.Environment(  # noqa: S701 # HTML has `autoescape` among the options
        loader=jinja2.PackageLoader(package, folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    environment.filters["number"] = number
    return environment
