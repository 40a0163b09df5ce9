"""Phone numbers as people write them, compared by the subscriber that they reach.

In: two text columns, and the country of numbers that name none. Out: whether they hold a number in common. Extensions,
a second number, punctuation, a trunk prefix `0`, a missing country code and a missing `+` or `00` make no difference.
The habits of single countries (`8` in front in Russia, `15` amid mobile numbers in Argentina) are those that
phonenumbers knows: it is asked about numbers whose last digits are equal. The match with the ERP and the check of a
create that was read back use the same rule.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Final

import pandas as pd

from orderbridge.transforms.frames import joined_text
from orderbridge.transforms.values.texts import single_spaced

CALLING_CODES: Final = {
    country: code
    for code, countries in tomllib.loads(
        files("orderbridge.transforms.values").joinpath("calling_codes.toml").read_text("utf-8")
    ).items()
    for country in countries.split()
}
"""Calling codes (ITU-T E.164) by country (ISO 3166-1 alpha-2)."""
_EXTENSION: Final = (
    r"(?i)[\s,;.(\-]*(?:\b(?:ext(?:ensi[oó]n)?|extn|anexo|anx|interno|int|ramal|x)|#)"
    r"[.:\s]*[0-9]{1,6}\)?"
)
_SEPARATOR: Final = r"(?i)\s*(?:[/;,|]|\s(?:y|e|o|u|and|or)\s)\s*"
_SEVERAL: Final = f"{_EXTENSION}|{_SEPARATOR}"
_LAST_DIGITS: Final = 6
"""Numbers of one subscriber end with the same digits: countries differ in what they write in front."""


def same_phone(
    left: pd.Series[str], right: pd.Series[str], country: str | None = None
) -> pd.Series[bool]:
    """Whether two columns hold a phone number in common, row by row.

    Texts may hold several numbers. Where neither of two has a digit, they are compared as texts, in any case. A number
    without a country code is one of `country` (ISO 3166-1 alpha-2); if that is None, it is equal only to one with the
    same digits, regardless of zeros at the beginning.
    """
    left, right = single_spaced(left).str.lower(), single_spaced(right).str.lower()
    is_same = left == right
    for one, other in zip(_readings(left, country), _readings(right, country), strict=True):
        is_same |= one == other
    is_same = is_same.fillna(False).astype("bool")
    has_several = (
        joined_text([left, right], "\n")
        .str.contains(_SEVERAL, regex=True)
        .fillna(False)
        .astype("bool")
    )
    is_open = ~is_same & has_several
    if is_open.any():
        numbers = _numbers(left[is_open], country).merge(
            _numbers(right[is_open], country), validate="1:1"
        )
        is_same[numbers["row"].unique()] = True
    if country is not None and country in CALLING_CODES:
        is_alike = (_last_digits(left) == _last_digits(right)).fillna(False).astype("bool")
        is_open = ~is_same & (is_alike | has_several)
        is_same[_with_one_subscriber(left[is_open], right[is_open], country)] = True
    return is_same


def _last_digits(texts: pd.Series[str]) -> pd.Series[str]:
    return texts.str.replace(r"[^0-9]+", "", regex=True).str[-_LAST_DIGITS:]


def _with_one_subscriber(left: pd.Series[str], right: pd.Series[str], country: str) -> list[int]:
    """The rows in which both texts hold a number that is the same in the international form."""
    sides = [_parts(side).rename("number").rename_axis("row") for side in (left, right)]
    ours, theirs = (side.reset_index().assign(end=_last_digits(side).array) for side in sides)
    pairs = ours[ours["end"].str.len() == _LAST_DIGITS].merge(
        theirs, on=["row", "end"], suffixes=("", "_theirs")
    )
    numbers = zip(pairs["row"], pairs["number"], pairs["number_theirs"], strict=True)
    return [row for row, one, other in numbers if _is_one_subscriber(one, other, country)]


def _is_one_subscriber(one: str, other: str, country: str) -> bool:
    # Imported where it is needed: most comparisons end without it.
    from phonenumbers import NumberParseException, PhoneNumberFormat, format_number, parse

    try:
        numbers = [parse(text, country) for text in (one, other)]
    except NumberParseException:
        return False
    first, second = (format_number(number, PhoneNumberFormat.E164) for number in numbers)
    return first == second


def _numbers(texts: pd.Series[str], country: str | None) -> pd.DataFrame:
    """`row` (index of the text) and `number`: each number of each text once."""
    numbers = (
        pd.concat(_readings(_parts(texts), country)).rename("number").rename_axis("row").dropna()
    )
    return numbers.reset_index().drop_duplicates()


def _parts(texts: pd.Series[str]) -> pd.Series[str]:
    """The numbers of texts as they are written, without extensions; by the index of the text."""
    parts = (
        texts.str.replace(_EXTENSION, "", regex=True)
        .str.replace(_SEPARATOR, "|", regex=True)
        .str.split("|")
    )
    return parts.explode()


def _readings(texts: pd.Series[str], country: str | None) -> list[pd.Series[str]]:
    """The digits of a number without zeros in front, and with `00` and the country's code; null without digits."""
    digits = texts.str.replace(r"^\(?\+", "00", regex=True).str.replace(r"[^0-9]+", "", regex=True)
    significant = digits.str.lstrip("0")
    significant = significant.where(significant != "", digits.where(digits != ""))
    if country is None or country not in CALLING_CODES:
        return [significant]
    prefix = f"00{CALLING_CODES[country]}"
    # The trunk prefix goes: (0)20 7946 0000 at home is +44 20 7946 0000, which some write +44 (0)20 7946 0000.
    national = digits.str.removeprefix(prefix).str.replace("^0", "", regex=True)
    is_national = digits.str.startswith(prefix) | ~digits.str.startswith("00")
    return [
        significant,
        digits.mask(is_national.fillna(False), prefix + national).where(digits != ""),
    ]
