"""The texts of the pages, by code and language."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final, Literal, cast, get_args

Language = Literal["en", "es"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
_VARIABLES: Final = ("LC_ALL", "LC_MESSAGES", "LANG")


def language_of_locale() -> Language:
    """The language that the environment asks for; English where it asks for another one or for none."""
    name = next(filter(None, map(os.environ.get, _VARIABLES)), "")
    return "es" if name.startswith("es") else "en"


class Texts:
    """The texts in one language. A call returns the text of a code, with values filled in."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._texts = {code: texts[language] for code, texts in catalogue().items()}

    def __call__(self, code: str, /, **values: object) -> str:
        """The text of a code. With `count=1`, the text of `CODE.one`, if there is one."""
        one = f"{code}.one"
        chosen = one if values.get("count") == 1 and one in self._texts else code
        return self._texts[chosen].format(**values)

    def or_own(self, code: str, own: str, **values: object) -> str:
        """The text of a code; `own` where there is none, such as a word of the platform."""
        return self(code, **values) if code in self._texts else own


@cache
def catalogue() -> Mapping[str, Mapping[Language, str]]:
    """All texts, by code, then by language."""
    text = resources.files(__package__ or "").joinpath("texts.toml").read_text("utf-8")
    return cast("Mapping[str, Mapping[Language, str]]", tomllib.loads(text))
