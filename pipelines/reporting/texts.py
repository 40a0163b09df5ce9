"""The texts of the report and the plots, by code and language: those that the commands have too, and their own."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Final, cast

from orderbridge.sources import texts
from orderbridge.sources.texts import Catalogue, Language

__all__ = ["Language", "ReportTexts", "catalogue", "report_texts"]

NO_VALUE: Final = "–"
_UTC: Final = re.compile(r" UTC\b| \(UTC\)")


class ReportTexts(texts.Texts):
    """The texts in one language. Values are written as in tables: see `written`.

    Attributes:
        zone: by whose clock instants are written; None: that of this machine. Texts name it where it is UTC, as in a
            report that is sent.
    """

    def __init__(self, language: Language, zone: tzinfo | None = UTC) -> None:
        super().__init__(language, catalogue() if zone is UTC else _without_utc())
        self.zone = zone

    def written(self, value: object) -> object:
        """How a value is written: thousands separated, instants by the clock of `zone`, no control characters."""
        if hasattr(value, "__html__"):
            return value
        if value is None:
            return NO_VALUE
        if isinstance(value, datetime):
            return self.date(value.astimezone(self.zone))
        if isinstance(value, date):
            return self.date(value)
        if isinstance(value, Decimal):
            return self.number(value, ",.2f")
        if isinstance(value, int) and not isinstance(value, bool):
            return self.number(value)
        return "".join(
            char if char.isprintable() or char in texts.KEPT_SPACES else "\N{REPLACEMENT CHARACTER}"
            for char in str(value)
        )

    def period(self, name: str, day: date) -> str:
        """How the day, month or year that begins with a day is written; `axis_day`: a day without its year."""
        parts = {"year": f"{day.year:04}", "month": f"{day.month:02}", "day": f"{day.day:02}"}
        return self(f"written.{name}", **parts)

    def named(self, kind: str, name: str) -> str:
        """The text of an identifier, such as the name of a table; its words where there is none."""
        return self.or_own(f"{kind}.{name}", words(name))


def words(name: str) -> str:
    """An identifier as words."""
    return name.replace("_", " ")


@cache
def report_texts(language: Language = "en", zone: tzinfo | None = UTC) -> ReportTexts:
    """The texts in a language, with instants by a clock."""
    return ReportTexts(language, zone)


@cache
def catalogue() -> Catalogue:
    """The texts that only the report and the plots have, by code, then by language."""
    text = resources.files(__package__ or "").joinpath("texts.toml").read_text("utf-8")
    return cast("Catalogue", tomllib.loads(text))


@cache
def _without_utc() -> Catalogue:
    """The same for instants by another clock."""
    return {
        code: {language: _UTC.sub("", text) for language, text in texts.items()}
        for code, texts in catalogue().items()
    }
