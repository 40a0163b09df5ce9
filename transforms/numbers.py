"""Numbers as people write them, converted to the notation of JSON: in a given notation, or in one that a column proves.

In: text columns, as Arrow arrays (the rows of a CSV, batch by batch). Out: the same numbers with a decimal point and
no thousands separators, and a code for each text that is not a number. Digits are those of ASCII; `NaN`, `1_000`,
`0x1`, exponents and digits of other scripts are not numbers here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.frames import TEXT

Proof = Literal["comma", "point", "ambiguous", "both", "none"]

DOUBLE_DIGITS_MAX: Final = 15
"""Numbers of up to this many digits survive as a double, which is what numbers in JSON become."""
WHOLE_DIGITS_MAX: Final = 40
"""Longer whole numbers are beyond every limit of the interface; Python refuses to convert some of them."""


@dataclass(frozen=True, slots=True)
class Notation:
    """How numbers are written: the decimal separator, and the thousands separator ("" for none)."""

    decimal: str = "."
    thousands: str = ""


COMMA: Final = Notation(",", ".")
POINT: Final = Notation(".", ",")
DOT: Final = "·"
"""A decimal separator in every notation, and never a thousands separator: for numbers that need no proof, such as
numeric cells of a sheet. They prove nothing about the texts in the same column."""


_SIGN: Final = (
    r"(?:[A-Z]{0,2}\p{Sc}|S/\.?|Fr\.?|kr\.?|zł|Kč|EUR|USD|GBP|CHF|MXN|COP|PEN|CLP|ARS|UYU|BOB|BRL|CAD|AUD|PLN|CZK|SEK|NOK"
    r"|DKK)"
)
_PRICED: Final = rf"^(?P<before>{_SIGN})\s*[+-]?[0-9]|[0-9]\s*(?P<after>{_SIGN})$"
"""A number with a currency sign or code on one side of it."""


def currencies(texts: pa.Array) -> pa.Array:
    """The currency sign or code of each number that has one, "" of others, null of what is no number."""
    is_plain = pc.match_substring_regex(texts, f"^[+-]?[0-9][0-9.,{DOT}' ]*$")
    if pc.all(is_plain).as_py():
        return pc.if_else(is_plain, "", pa.scalar(None, TEXT))
    found = pc.extract_regex(texts, _PRICED)
    signs = pc.binary_join_element_wise(
        pc.struct_field(found, "before"), pc.struct_field(found, "after"), ""
    )
    return pc.if_else(pc.fill_null(is_plain, False), "", signs)


def without_currency(texts: pa.Array, sign: str) -> pa.Array:
    """Numbers without this sign or code before or after them."""
    return pc.replace_substring_regex(texts, rf"^{re.escape(sign)}\s*|\s*{re.escape(sign)}$", "")


class NotationEvidence:
    """What the texts of a column prove about its notation. Texts are added batch by batch.

    Args:
        whole: the column holds whole numbers: `2.5` is not one, so it proves nothing; `39,00` does. No amounts.

    Attributes:
        signs: the currency signs and codes of its numbers, "" for a number without one.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._patterns = _WHOLE if whole else _PATTERNS
        self._seen: set[str] = set()
        self._finds_signs = not whole
        self.signs: set[str] = set()

    def add(self, texts: pa.Array) -> None:
        """Examines texts; blank ones do not matter."""
        if self._finds_signs:
            signs = set(pc.unique(currencies(texts)).to_pylist()) - {None}
            for sign in signs - {""}:
                texts = without_currency(texts, sign)
            self.signs |= signs
        is_marked = pc.fill_null(pc.match_substring_regex(texts, f"[.,{DOT}]"), False)
        texts = texts.filter(is_marked)
        for proof, pattern in self._patterns.items() if len(texts) else ():
            if proof == "ambiguous" and self._seen & {"comma", "point"}:
                continue  # it matters only where nothing is proven
            if proof not in self._seen and pc.any(pc.match_substring_regex(texts, pattern)).as_py():
                self._seen.add(proof)

    @property
    def proof(self) -> Proof:
        """What the texts prove. `ambiguous`: only texts such as `1.234`, which may be either; `both`: they disagree.

        Where no text has a separator, numbers with `DOT` count as numbers with a point.
        """
        comma, point = "comma" in self._seen, "point" in self._seen
        if comma and point:
            return "both"
        if comma or point:
            return "comma" if comma else "point"
        if "ambiguous" in self._seen:
            return "ambiguous"
        return "point" if "certain" in self._seen else "none"


def _proves(decimal: str, thousands: str, digit: str = "[0-9]") -> str:
    """A number that is possible in one of the two notations only; `digit` is a digit of its fraction."""
    d, t = re.escape(decimal), re.escape(thousands)
    grouped = rf"[1-9][0-9]{{0,2}}({t}[0-9]{{3}})+{d}{digit}+"  # 1.234,5
    groups = rf"[1-9][0-9]{{0,2}}({t}[0-9]{{3}}){{2,}}"  # 1.234.567
    plain = rf"([0-9]{{4,}}|0[0-9]*){d}{digit}+"  # 1234,567 and 0,125
    short = rf"[0-9]+{d}({digit}{{1,2}}|{digit}{{4,}})"  # 1,5
    return rf"^[+-]?({grouped}|{groups}|{plain}|{short})$"


_PATTERNS: Final = {
    "comma": _proves(",", "."),
    "point": _proves(".", ","),
    "ambiguous": r"^[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}$",
    "certain": rf"^[+-]?[0-9]+{DOT}[0-9]+$",
}
_WHOLE: Final = _PATTERNS | {"comma": _proves(",", ".", "0"), "point": _proves(".", ",", "0")}


def is_fraction(texts: pa.Array) -> pa.Array:
    """Whether a text is a fraction in both notations (`2.5`, but not `1.234`): no whole number."""
    return pc.match_substring_regex(texts, f"{_PATTERNS['comma']}|{_PATTERNS['point']}")


def plain_numbers(texts: pa.Array, notation: Notation) -> tuple[pa.Array, pa.Array]:
    """Numbers of one notation, as texts with a decimal point and without thousands separators.

    Returns:
        The numbers, null where a text (without surrounding whitespace) is not one; and the code `not_a_number` there.
    """
    decimal, thousands = re.escape(notation.decimal), re.escape(notation.thousands)
    grouped = rf"|[1-9][0-9]{{0,2}}({thousands}[0-9]{{3}})+" if thousands else ""
    numbers, codes = _matching(
        texts, rf"^[+-]?([0-9]+{grouped})({decimal}[0-9]+)?$", "not_a_number"
    )
    if thousands and pc.any(pc.match_substring(numbers, notation.thousands)).as_py():
        numbers = pc.replace_substring(numbers, notation.thousands, "")
    if notation.decimal != ".":
        numbers = pc.replace_substring(numbers, notation.decimal, ".")
    if pc.any(
        pc.match_substring_regex(numbers, r"^(\+|-?0[0-9])")
    ).as_py():  # replacing takes ten times as long
        numbers = pc.replace_substring_regex(numbers, r"^(?:\+|(-))?0*([0-9])", r"\1\2")
    return numbers, codes


def whole_numbers(numbers: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The plain numbers that are whole (`18.00` is 18); the code `not_whole` or `too_many_digits` for the others."""
    codes = pa.nulls(len(numbers), TEXT)
    if pc.any(pc.match_substring(numbers, ".")).as_py():
        numbers, codes = _matching(
            pc.replace_substring_regex(numbers, r"\.0+$", ""), r"^-?[0-9]+$", "not_whole"
        )
    longest = pc.max(pc.binary_length(numbers)).as_py()
    if longest is not None and longest > WHOLE_DIGITS_MAX:
        numbers, too_long = _matching(numbers, f"^.{{1,{WHOLE_DIGITS_MAX}}}$", "too_many_digits")
        codes = pc.coalesce(codes, too_long)
    return numbers, codes


def doubles(numbers: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The plain numbers that a double represents exactly, and the code `too_many_digits` for the others."""
    longest = pc.max(pc.binary_length(numbers)).as_py()
    if longest is None or longest <= DOUBLE_DIGITS_MAX:
        return numbers, pa.nulls(len(numbers), TEXT)
    digits = pc.utf8_length(pc.replace_substring_regex(numbers, r"^-?0*\.?0*|\.", ""))
    return rejected(numbers, pc.greater(digits, DOUBLE_DIGITS_MAX), "too_many_digits")


def _matching(texts: pa.Array, pattern: str, code: str) -> tuple[pa.Array, pa.Array]:
    return rejected(texts, pc.invert(pc.match_substring_regex(texts, pattern)), code)


def rejected(values: pa.Array, where: pa.Array, code: str) -> tuple[pa.Array, pa.Array]:
    """The values, null where a condition holds (null: it does not); and the code there."""
    none = pa.scalar(None, TEXT)
    wrong = pc.fill_null(where, False)
    return pc.if_else(wrong, none, values), pc.if_else(wrong, code, none)
