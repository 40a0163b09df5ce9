"""Lines that are no rows by their words: totals, units of columns, rules of dashes.

In: the cells of a line. Out: whether it is one of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from orderbridge.sources.files.cell_types import is_data, type_of

_TOTALS: Final = re.compile(
    r"\W*(?:(?:grand|gran) )?(?:sub-?|sous-|zwischen)?"
    r"(?:total(?:es|s)?|suma|sum|gesamt(?:summe)?|insgesamt|summe|totale|somm[ae]|soma)\b[^\d\W]*"
    r"(?: (?:general|records|registros|rows|filas|final))?\W*|\W*sub-?total\b.*",
    re.IGNORECASE,
)
_TOTALS_OF: Final = re.compile(
    r"\W*(?:(?:grand|gran) )?(?:sub-?|sous-|zwischen|gesamt)?"
    r"(?:total(?:es|e)?|suma|(?:ins)?gesamt|summe|somm[ae]|soma)\b.+",
    re.IGNORECASE,
)
_NO_NAME: Final = re.compile("total|gesamt|zwischensumme", re.IGNORECASE)
"""A word of totals that is no name either, as Suma and Somme are."""
_AMOUNT: Final = re.compile(
    r"[-+]?[€$£]? ?[\d.,' \xa0]*\d[\d.,' \xa0]*(?:[€$£%]|(?<=[ \xa0])[A-Z]{3})?"
)
_RULE: Final = re.compile(r"[-=_+]{2,}")
_UNIT: Final = re.compile(
    r"[(\[]?(?:[€$£%]|eur|usd|gbp|[km]?g|t|lbs?|oz|[cm]?l|[cmk]?m[²³23]?|in|ft|h|min|days?|días?|tage?|jours?|giorni"
    r"|(?:u|ud|uds|pcs?|pz|un|st|stk|ea)\.?|stück|pièces?|unità|units?|unidad(?:es)?|°c|k?wh?)(?:/(?:s|h|min|m[²³23]?|l|kg))?"
    r"[)\]]?",
    re.IGNORECASE,
)


def is_totals(cells: Sequence[str], *, has_codes: bool = False) -> bool:
    """Whether a line has totals: a word such as Total, and amounts or empty cells next to it.

    A name such as Suma may be one of a product, unless the first column has codes and the word is in it, not as a part
    of a code.
    """
    name, *amounts = _filled(cells)
    kind = _kind_of_totals(name)
    if not kind or not all(map(_AMOUNT.fullmatch, amounts)):
        return False
    is_word = kind == "word"
    is_first = cells[0].strip() == name
    if has_codes and is_first and kind != "code":
        return is_word or bool(amounts)
    if len(cells) > 2 and 2 * (1 + len(amounts)) <= len(cells):
        return is_word or bool(amounts)
    is_no_name = is_first and _NO_NAME.search(name) is not None
    return is_no_name and bool(amounts) and (is_word or ":" in name)


def _kind_of_totals(name: str) -> Literal["", "word", "phrase", "code"]:
    """A word such as Total, a phrase such as Total Madrid, or a code such as TOTAL-5W30; "" for other texts."""
    if _TOTALS.fullmatch(name):
        return "word"
    if not _TOTALS_OF.fullmatch(name):
        return ""
    return "code" if is_data(type_of(name)) else "phrase"


def has_word_of_totals(cells: Sequence[str]) -> bool:
    """Whether a line has a word such as Total, also beside other texts, and an amount."""
    filled = _filled(cells)
    has_amount = any(map(_AMOUNT.fullmatch, filled))
    is_phrase = _kind_of_totals(filled[0]) == "phrase"
    return has_amount and (is_phrase or any(map(_TOTALS.fullmatch, filled)))


def _filled(cells: Sequence[str]) -> list[str]:
    """The cells with text, without the spaces around it; at least one."""
    return [cell.strip() for cell in cells if cell.strip()] or [""]


def is_units(cells: Sequence[str]) -> bool:
    """Whether a row has units of columns only, such as kg and EUR, and none in the first one."""
    return not cells[0] and any(cells) and all(_UNIT.fullmatch(cell) for cell in cells if cell)


def is_rule(cells: Sequence[str]) -> bool:
    """Whether a row draws a line: its cells have dashes only; some may be empty."""
    return any(cells) and all(_RULE.fullmatch(cell) for cell in cells if cell)
