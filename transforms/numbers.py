"""Numbers as people write them, to numbers as JSON has them: in a told notation, or in one that a column proves.

In: text columns. Out: the same numbers with a point and nothing else, and a reason for each text that is none. Digits
are ASCII's; `NaN`, `1_000`, `0x1`, exponents and digits of other scripts are no numbers here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from transforms.frames import TEXT

Proof = Literal["comma", "point", "ambiguous", "both", "none"]

DIGITS_MAX: Final = 15
"""So many digits pass through a double, which is what JSON's numbers become, unchanged."""


@dataclass(frozen=True, slots=True)
class Notation:
    """How numbers are written: the decimal sign, and what stands between thousands ("" where nothing does)."""

    decimal: str = "."
    thousands: str = ""


COMMA: Final = Notation(",", ".")
POINT: Final = Notation(".", ",")
DOT: Final = "·"
"""A decimal sign in every notation, and none that stands between thousands: for numbers that need no proof, as the
cells of a sheet that are numbers. How these are written says nothing of the texts beside them."""


class NotationEvidence:
    """What the texts of a column show of its notation; texts are added batch by batch.

    Args:
        whole: the column is one of whole numbers: `2.5` is none, and so proves nothing; `39,00` does.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._patterns = _WHOLE if whole else _PATTERNS
        self._seen: set[str] = set()

    def add(self, texts: pa.Array) -> None:
        """Looks at texts, blank ones aside."""
        is_marked = pc.fill_null(pc.match_substring_regex(texts, f"[.,{DOT}]"), False)
        texts = texts.filter(is_marked)
        for proof, pattern in self._patterns.items() if len(texts) else ():
            if proof == "ambiguous" and self._seen & {"comma", "point"}:
                continue  # it matters only where nothing is proven
            if proof not in self._seen and pc.any(pc.match_substring_regex(texts, pattern)).as_py():
                self._seen.add(proof)

    @property
    def proof(self) -> Proof:
        """What they prove. `ambiguous`: `1.234` and the like alone, which may be either; `both`: they disagree.

        Where no text has a mark, numbers with a sign of their own are taken for ones with a point.
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
    """A number that can be written so in one of the two notations only; `digit`: of its fraction."""
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
    """Where a text of a column that proves no notation of whole numbers is none in either: `2.5`, and not `1.234`."""
    return pc.match_substring_regex(texts, f"{_PATTERNS['comma']}|{_PATTERNS['point']}")


def plain_numbers(texts: pa.Array, notation: Notation) -> tuple[pa.Array, pa.Array]:
    """Numbers of one notation, with a point and without signs between thousands.

    Args:
        texts: without blanks around them; null where there is none.
        notation: that they are in.

    Returns:
        The numbers as texts, null where there is none; and the code `not_a_number` where a text is none.
    """
    decimal, thousands = re.escape(notation.decimal), re.escape(notation.thousands)
    grouped = rf"|[1-9][0-9]{{0,2}}({thousands}[0-9]{{3}})+" if thousands else ""
    made, codes = _kept(texts, rf"^[+-]?([0-9]+{grouped})({decimal}[0-9]+)?$", "not_a_number")
    if thousands and pc.any(pc.match_substring(made, notation.thousands)).as_py():
        made = pc.replace_substring(made, notation.thousands, "")
    if notation.decimal != ".":
        made = pc.replace_substring(made, notation.decimal, ".")
    if pc.any(pc.match_substring_regex(made, r"^(\+|-?0[0-9])")).as_py():  # to replace takes ten times as long
        made = pc.replace_substring_regex(made, r"^(?:\+|(-))?0*([0-9])", r"\1\2")
    return made, codes


def whole_numbers(numbers: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Those of the plain numbers that are whole: `18.00` is 18; the code `not_whole` for the others."""
    if pc.any(pc.match_substring(numbers, ".")).as_py():
        return _kept(pc.replace_substring_regex(numbers, r"\.0+$", ""), r"^-?[0-9]+$", "not_whole")
    return numbers, pa.nulls(len(numbers), TEXT)


def doubles(numbers: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Those of the plain numbers that a double holds as they are; the code `too_many_digits` for the others."""
    longest = pc.max(pc.binary_length(numbers)).as_py()
    if longest is None or longest <= DIGITS_MAX:
        return numbers, pa.nulls(len(numbers), TEXT)
    digits = pc.utf8_length(pc.replace_substring_regex(numbers, r"^-?0*\.?0*|\.", ""))
    return _coded(numbers, pc.less_equal(digits, DIGITS_MAX), "too_many_digits")


def _kept(texts: pa.Array, pattern: str, code: str) -> tuple[pa.Array, pa.Array]:
    return _coded(texts, pc.match_substring_regex(texts, pattern), code)


def _coded(texts: pa.Array, where: pa.Array, code: str) -> tuple[pa.Array, pa.Array]:
    none = pa.scalar(None, TEXT)
    return pc.if_else(where, texts, none), pc.if_else(where, none, code)
