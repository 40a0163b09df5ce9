"""Lines that are no rows by their words: totals, units of columns, rules of dashes.

In: the cells of a line. Out: whether it is one of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

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
_AMOUNT: Final = re.compile(r"[-+]?[€$£]? ?[\d.,' \xa0]*\d[\d.,' \xa0]*[€$£%]?")
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
    name, *others = _filled(cells)
    is_total = _TOTALS.fullmatch(name) is not None
    is_total_of = not is_total and _TOTALS_OF.fullmatch(name) is not None
    if not (is_total or is_total_of) or not all(map(_AMOUNT.fullmatch, others)):  # a name or a code
        return False
    is_first = cells[0].strip() == name
    is_code = is_total_of and is_data(type_of(name))  # as TOTAL-5W30
    if has_codes and is_first and not is_code:
        return is_total or bool(others)
    is_sparse = len(cells) > 2 and 2 * (len(cells) - len(others) - 1) >= len(cells)
    is_dense = bool(others) and is_first and _NO_NAME.search(name) is not None
    if is_total:
        return is_sparse or is_dense
    return (is_dense and ":" in name) or (is_sparse and bool(others))


def has_word_of_totals(cells: Sequence[str]) -> bool:
    """Whether a line has a word such as Total, also beside other texts, and an amount."""
    filled = _filled(cells)
    first = filled[0]
    is_total_of = _TOTALS_OF.fullmatch(first) is not None and not is_data(type_of(first))
    has_amount = any(map(_AMOUNT.fullmatch, filled))
    return has_amount and (is_total_of or any(map(_TOTALS.fullmatch, filled)))


def _filled(cells: Sequence[str]) -> list[str]:
    """The cells with text, without the spaces around it; at least one."""
    return [cell.strip() for cell in cells if cell.strip()] or [""]


def is_units(cells: Sequence[str]) -> bool:
    """Whether a row has units of columns only, such as kg and EUR, and none in the first one."""
    return not cells[0] and any(cells) and all(_UNIT.fullmatch(cell) for cell in cells if cell)


def is_rule(cells: Sequence[str]) -> bool:
    """Whether a row draws a line: its cells have dashes only; some may be empty."""
    return any(cells) and all(_RULE.fullmatch(cell) for cell in cells if cell)
