"""The texts of the pages, by code and language: those that the commands have too, and their own."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Final, cast

from orderbridge.sources import texts
from orderbridge.sources.texts import LANGUAGES, Catalogue, Language, language_of_locale

__all__ = ["LANGUAGES", "Language", "Texts", "catalogue", "language_of_locale"]


_KEPT_IN_ENGLISH: Final = ("evidence", "finding", "plan_note", "ask")
"""First words of the codes of texts that commands keep in English."""
_PART: Final = "; "


class Texts(texts.Texts):
    """The texts in one language. See `sources.texts.Texts`."""

    def __init__(self, language: Language) -> None:
        super().__init__(language, catalogue())

    def known(self, text: str) -> str:
        """A text of a command, which is in English, in this language; as it is where it is not known."""
        return self.reworded(text, *_KEPT_IN_ENGLISH)

    def known_parts(self, text: str) -> list[tuple[str, bool]]:
        """A text of a command, part by part, and whether it is still in English: a word alone is a value."""
        if self.language == "en" or self.known(text) != text:
            return [(self.known(text), False)]
        parts = text.split(_PART)
        return [
            (self.known(part), self.known(part) == part and " " in part.strip()) for part in parts
        ]


@cache
def catalogue() -> Catalogue:
    """The texts that only pages have, by code, then by language."""
    text = resources.files(__package__ or "").joinpath("texts.toml").read_text("utf-8")
    return cast("Catalogue", tomllib.loads(text))
