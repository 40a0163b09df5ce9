"""What an office reads, by code and language: states, reasons, questions, next steps, headers of `result.xlsx`.

In: a code, and values to fill in. Out: the text. Files for scripts, JSON and logs stay English. Reasons are kept in
English in the files of a plan; in another language they are found by their code, and their values are read from the
English text.
"""

from __future__ import annotations

import os
import re
import string
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Final, Literal, cast, get_args

Language = Literal["en", "es"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
_VARIABLES: Final = ("LC_ALL", "LC_MESSAGES", "LANG")
_ONE: Final = ".one"
_OTHERS: Final = "texts"
_TOPICS: Final = ("finding", "evidence")
"""Codes that begin so are in a file of this name: more than half of all texts, which most commands do not show."""
_MARKS: Final[Mapping[Language, dict[int, int]]] = {
    "en": {},
    "es": str.maketrans(",.", ".,"),
}
"""What stands for the marks of a number as Python writes it."""
_DATES: Final[Mapping[Language, str]] = {"en": "%Y-%m-%d", "es": "%d/%m/%Y"}
KEPT_SPACES: Final = "\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}"
"""Characters of texts that are not printable to Python."""

Catalogue = Mapping[str, Mapping[Language, str]]
"""Texts by code, then by language."""


def language_of_locale() -> Language:
    """The language that the environment asks for; English where it asks for another one or for none."""
    name = next(filter(None, map(os.environ.get, _VARIABLES)), "")
    return "es" if name.startswith("es") else "en"


class Texts:
    """The texts in one language. A call returns the text of a code, with values filled in."""

    def __init__(self, language: Language = "en", more: Catalogue | None = None) -> None:
        """Of this catalogue, and `more`, such as that of pages."""
        self.language = language
        self._more = more or {}

    def __call__(self, code: str, /, **values: object) -> str:
        """The text of a code. With `count=1`, the text of `CODE.one`, if there is one."""
        one = f"{code}{_ONE}"
        chosen = one if values.get("count") == 1 and one in self else code
        written = {name: self.written(value) for name, value in values.items()}
        texts = self._more if chosen in self._more else _catalogue_of(chosen)
        return texts[chosen][self.language].format(**written)

    def __contains__(self, code: str) -> bool:
        """Whether there is a text of a code."""
        return code in self._more or code in _catalogue_of(code)

    def written(self, value: object) -> object:
        """How a value is written within a text: as it is. Pages separate thousands."""
        return value

    def number(self, value: float | Decimal, form: str = ",") -> str:
        """A number in the notation of the language: its thousands are separated."""
        return f"{value:{form}}".translate(_MARKS[self.language])

    def date(self, value: date) -> str:
        """A date as people of the language write it; of an instant, with its time."""
        written = f"{value:{_DATES[self.language]}}"
        return f"{written} {value:%H:%M}" if isinstance(value, datetime) else written

    def or_own(self, code: str, own: str, /, **values: object) -> str:
        """The text of a code; `own` where there is none, such as a word of the platform."""
        return self(code, **values) if code in self else own

    def field(self, path: str) -> str:
        """A field of the interface as people call it."""
        return self.or_own(f"field.{path}", path)

    def reworded(self, text: str, *codes: str) -> str:
        """A text that is kept in English, in this language; as it is where it is none of these.

        `codes`: what it may be; `reason` stands for `reason` and all that begin with `reason.`.
        """
        if self.language == "en" or not text:
            return text
        found = recognised(text, codes)
        if found is None:
            return text
        code, values = found
        return self(code, **{name: self.reworded(one, "part") for name, one in values.items()})


@cache
def catalogue() -> Catalogue:
    """All texts, by code, then by language."""
    return {code: texts for name in (_OTHERS, *_TOPICS) for code, texts in _read(name).items()}


def _catalogue_of(code: str) -> Catalogue:
    """The part of the catalogue that a code is in, if there is one."""
    topic = code.partition(".")[0]
    return _read(topic if topic in _TOPICS else _OTHERS)


@cache
def _read(name: str) -> Catalogue:
    text = resources.files(__package__ or "").joinpath(f"{name}.toml").read_text("utf-8")
    return cast("Catalogue", tomllib.loads(text))


def recognised(text: str, codes: tuple[str, ...]) -> tuple[str, dict[str, str]] | None:
    """The code and the values of an English text; None where it is none of these (see `Texts.reworded`)."""
    for code, pattern in _patterns(codes):
        if (found := pattern.fullmatch(text)) is not None:
            return code, found.groupdict()
    return None


@cache
def _patterns(codes: tuple[str, ...]) -> list[tuple[str, re.Pattern[str]]]:
    """The patterns of the English texts of these codes."""
    prefixes = tuple(f"{code}." for code in codes)
    return [
        (code, re.compile("".join(_parts(texts["en"])), re.DOTALL))
        for code, texts in catalogue().items()
        if code in codes or code.startswith(prefixes)
    ]


def _parts(text: str) -> Iterator[str]:
    """The pattern of a text with values, part by part; a value that is there twice is the same."""
    seen: set[str] = set()
    for literal, name, _, _ in string.Formatter().parse(text):
        yield re.escape(literal)
        if name:
            yield f"(?P={name})" if name in seen else f"(?P<{name}>.*?)"
            seen.add(name)


@cache
def english() -> Texts:
    """The texts that files, logs and scripts have."""
    return Texts()


def everywhere(code: str) -> tuple[str, ...]:
    """A text in each language, such as the names that a sheet can have."""
    texts = _catalogue_of(code)[code]
    return tuple(texts[language] for language in LANGUAGES)
