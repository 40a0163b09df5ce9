"""Ids, codes and texts that are compared: cleaned the same way everywhere.

In: raw columns. Out: the same with blank texts as nulls, and ids in one notation for both families.
"""

from __future__ import annotations

from typing import Any, Final

from orderbridge.transforms.frames import TEXT, TIMESTAMP, Column
from orderbridge.transforms.values.texts import without_blank, without_zero_fraction

BOOKKEEPING: Final = {
    "_run_id": TEXT,
    "_first_seen_at": TIMESTAMP,
    "_last_seen_at": TIMESTAMP,
    "_missing_since": TIMESTAMP,
}
"""The columns that every raw table has."""


def clean_text(texts: Column[Any]) -> Column[Any]:
    """Texts without surrounding whitespace; null where nothing is left."""
    return without_blank(texts.str.strip())


def canonical_id(ids: Column[Any]) -> Column[Any]:
    """Ids in one notation for both families: the number `1.0` is the text `1`. Leading zeros stay: `01` is another."""
    return without_zero_fraction(clean_text(ids))


def fold_case(texts: Column[Any]) -> Column[Any]:
    """Cleaned texts that are equal whatever their case."""
    cleaned = clean_text(texts)
    lower = cleaned.str.lower()
    is_other = ~cleaned.str.isascii().fillna(True)
    if not is_other.any():
        return lower
    # Beyond ASCII only Python folds all case (ß is ss), and such addresses are few.
    return lower.where(~is_other, cleaned[is_other].str.casefold())


def phone_digits(phones: Column[Any]) -> Column[Any]:
    """Digits only, a leading `+` written as `00`; null where there are none."""
    international = clean_text(phones).str.replace(r"^\(?\+", "00", regex=True)
    digits = international.str.replace(r"[^0-9]+", "", regex=True)
    return digits.where(phones.str.contains("[0-9]", regex=True))
