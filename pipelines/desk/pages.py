"""Pages from templates: HTML in which every value is escaped, and which needs no script."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final
from zoneinfo import ZoneInfo

from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse

from orderbridge.pipelines.desk.texts import Texts
from orderbridge.pipelines.reporting.tables import with_code
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import reconcile_settings
from orderbridge.sources.texts import KEPT_SPACES
from orderbridge.sources.words import template_environment

_KEPT: Final = f"\n{KEPT_SPACES}"


def zone() -> ZoneInfo | None:
    """The time zone of the project; None: none is set, and the clock is that of this machine."""
    with suppress(UsageError):  # the page that the person asked for says what is wrong
        name = reconcile_settings().timezone
        return None if name is None else ZoneInfo(name)
    return None


class Pages:
    """The templates in one language.

    Attributes:
        texts: of that language.
        globals: what each page has, such as the path of all pages.
    """

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self._environment = template_environment(
            "orderbridge.pipelines.desk", "templates", autoescape=True
        ).overlay(finalize=self._written)
        self.globals: dict[str, Any] = {
            "t": texts,
            "language": texts.language,
            "known": self._known,
            "with_code": self._with_code,
        }

    def page(self, name: str, status: HTTPStatus = HTTPStatus.OK, **values: object) -> HTMLResponse:
        """A page from the template of a name. Its times are by the clock of the project, where one is set."""
        self.texts.zone = zone()
        template = self._environment.get_template(f"{name}.html.j2")
        return HTMLResponse(template.render({"tab": "", **self.globals, **values}), status)

    def see(self, path: str) -> RedirectResponse:
        """To a page after a form: reloading it sends nothing again."""
        return RedirectResponse(f"{self.globals['base']}{path}", HTTPStatus.SEE_OTHER)

    def _known(self, text: str) -> Markup:
        """A text of a command in the language of the page; marked as English where it is not known."""
        parts = [
            Markup('<span lang="en">{}</span>').format(self._with_code(part))
            if is_english
            else self._with_code(part)
            for part, is_english in self.texts.known_parts(text)
        ]
        return Markup("; ").join(parts)

    def _with_code(self, text: str) -> Markup:
        """A text as it is written on pages, in which what is between backticks becomes code."""
        return with_code(str(self._written(text)))

    def _written(self, value: object) -> object:
        """How a value is written: thousands separated, a time by the clock of the page, no control characters."""
        if value is None:
            return ""
        if hasattr(value, "__html__") or isinstance(value, bool):
            return value
        if isinstance(value, datetime):
            return self.texts.date(value.astimezone(self.texts.zone))
        if isinstance(value, int):
            return self.texts.written(value)
        return "".join(
            char if char.isprintable() or char in _KEPT else "\N{REPLACEMENT CHARACTER}"
            for char in str(value)
        )
