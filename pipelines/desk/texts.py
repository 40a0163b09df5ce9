"""The texts of the pages, by code and language: those that the commands have too, and their own."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import cast

from orderbridge.sources import texts
from orderbridge.sources.texts import LANGUAGES, Catalogue, Language, language_of_locale

__all__ = ["LANGUAGES", "Language", "Texts", "catalogue", "language_of_locale"]


class Texts(texts.Texts):
    """The texts in one language. See `sources.texts.Texts`."""

    def __init__(self, language: Language) -> None:
        super().__init__(language, catalogue())


@cache
def catalogue() -> Catalogue:
    """The texts that only pages have, by code, then by language."""
    text = resources.files(__package__ or "").joinpath("texts.toml").read_text("utf-8")
    return cast("Catalogue", tomllib.loads(text))
