"""Numbers as people write them, converted to the notation of JSON: in a given notation, or in one that a column proves.

In: text columns, as Arrow arrays (the rows of a CSV, batch by batch). Out: the same numbers with a decimal point and
no thousands separators, and a code for each text that is not a number. Digits are those of ASCII; `NaN`, `1_000`,
`0x1`, exponents and digits of other scripts are not numbers here.
"""

from __future__ import annotations

import re
from collections import Counter
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
_WITH_UNIT: Final = r"^[+-]?[0-9][0-9.,' ]*?\s*(?P<unit>\pL{1,12}\.?)$"


_SPACES: Final = "[\u00a0\u2007\u2009\u202f]"
"""No-break, figure, thin and narrow no-break space."""
_APOSTROPHE: Final = "’"
_DASH: Final = "[-–—]{1,2}"
_WITHOUT_FRACTION: Final = {
    rf"^([^,]*[0-9]),{_DASH}([^0-9]*)$": r"\1,00\2",  # 1.234,-
    rf"^([^.]*,[^.]*[0-9])\.{_DASH}([^0-9]*)$": r"\1.00\2",  # 1,234.-
    rf"^([^.,]*[0-9])\.{_DASH}([^0-9]*)$": r"\1\2",  # 12.-
}
"""Numbers with a dash for the fraction, and how they are written in full. `12.-` proves no decimal point: where points
separate thousands, people write `500.-` too. `12.000.-` is left as it is."""


def in_usual_signs(texts: pa.Array) -> pa.Array:
    """Texts with plain spaces and apostrophes, and without a dash for the fraction (`12,-` is `12,00`)."""
    if not _any_match(texts, f"{_SPACES}|{_APOSTROPHE}|[.,]{_DASH}"):
        return texts
    texts = pc.replace_substring_regex(texts, _SPACES, " ")
    texts = pc.replace_substring(texts, _APOSTROPHE, "'")
    for pattern, written in _WITHOUT_FRACTION.items():
        texts = pc.replace_substring_regex(texts, pattern, written)
    return texts


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


def is_currency(sign: str) -> bool:
    """Whether a sign or code is known as that of a currency; others, such as `kg`, are units."""
    return bool(sign) and currencies(pa.array([f"1 {sign}"], TEXT))[0].as_py() == sign


def units(texts: pa.Array) -> pa.Array:
    """The word after the number in each text that is a number and a word, such as `kg`; null elsewhere."""
    found = pc.extract_regex(in_usual_signs(texts), _WITH_UNIT)
    return pc.struct_field(found, "unit")


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
        self._seen: Counter[str] = Counter()
        self._finds_signs = not whole
        self.signs: set[str] = set()

    def add(self, texts: pa.Array) -> None:
        """Examines texts; blank ones do not matter."""
        if self._finds_signs:
            signs = set(pc.unique(currencies(texts)).to_pylist()) - {None}
            for sign in signs - {""}:
                texts = without_currency(texts, sign)
            self.signs |= signs
        self._add_proofs(texts)

    def add_all(self, other: NotationEvidence) -> None:
        """Adds what other texts of the column prove."""
        self._seen += other._seen
        self.signs |= other.signs

    def _add_proofs(self, texts: pa.Array) -> None:
        is_marked = pc.fill_null(pc.match_substring_regex(texts, f"[.,{DOT}]"), False)
        texts = texts.filter(is_marked)
        for proof, pattern in self._patterns.items() if len(texts) else ():
            if proof == "ambiguous" and self._seen.keys() & {"comma", "point"}:
                continue  # it matters only where nothing is proven
            found = pc.sum(pc.match_substring_regex(texts, pattern)).as_py()
            if found:
                self._seen[proof] += found

    @property
    def usual(self) -> Notation | None:
        """The notation that more texts prove than the other; None: as many prove each, or none proves any."""
        more = self._seen["comma"] - self._seen["point"]
        if not more:
            return None
        return COMMA if more > 0 else POINT

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


class ColumnEvidence:
    """What a column of a file proves about its notation, with other signs than the usual ones as well.

    Spaces and apostrophes between thousands, no-break spaces before a currency and `12,-` prove something only where
    the usual signs prove nothing else: a column that is read without them is read in the same way with them.

    Args:
        whole: the column holds whole numbers.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._usual = NotationEvidence(whole=whole)
        self._rewritten = NotationEvidence(whole=whole)
        self._grouped = {mark: NotationEvidence(whole=whole) for mark in _GROUPED}
        self._sure: set[str] = set()
        self._stray: set[str] = set()
        self._marks: set[str] = set()

    def add(self, texts: pa.Array) -> None:
        """Examines texts; blank ones do not matter."""
        self._usual.add(texts)
        rewritten = in_usual_signs(texts)
        if rewritten is not texts:
            self._rewritten.add(rewritten)
        for mark in {",", "."} - self._marks:
            if _any_match(rewritten, f"[0-9]{re.escape(mark)}[0-9]"):
                self._marks.add(mark)
        for mark in _GROUPED:
            self._add_groups(rewritten.filter(_matches(rewritten, f"[0-9]{mark}[0-9]")), mark)

    def _add_groups(self, texts: pa.Array, mark: str) -> None:
        """Examines texts with a mark between digits."""
        if not len(texts):
            return
        for sign in set(pc.unique(currencies(texts)).to_pylist()) - {None, ""}:
            texts = without_currency(texts, sign)
        is_grouped = _matches(texts, _GROUPED[mark])
        if not pc.all(is_grouped).as_py():
            self._stray.add(mark)
        if _any_match(texts, _SURELY_GROUPED[mark]):
            self._sure.add(mark)
        self._grouped[mark].add(pc.replace_substring(texts.filter(is_grouped), mark, ""))

    @property
    def signs(self) -> set[str]:
        """The currency signs and codes of its numbers, "" for a number without one."""
        return self._usual.signs | self._rewritten.signs

    @property
    def currency(self) -> str:
        """The sign or code that all numbers have, "" if they do not have the same one."""
        usual = self._usual.signs
        signs = usual if usual - {""} else self.signs
        return min(signs) if len(signs) == 1 else ""

    @property
    def proof(self) -> Proof:
        """What the texts prove of the decimal mark, as of `NotationEvidence`."""
        mark = self._thousands
        if mark:
            return self._proof_with(mark)
        proof = self._usual.proof
        rewritten = self._rewritten.proof
        is_proven = proof in ("comma", "point", "both")
        return proof if is_proven or rewritten == "none" else rewritten

    @property
    def notation(self) -> Notation | None:
        """The notation, if it is proven."""
        proof = self.proof
        if proof not in ("comma", "point"):
            return None
        usual = COMMA if proof == "comma" else POINT
        return Notation(usual.decimal, self._thousands or usual.thousands)

    @property
    def usual_notation(self) -> Notation | None:
        """The notation that more of the numbers prove, if both are proven; None: as many prove the other."""
        mixed = self._usual if self._usual.proof == "both" else self._rewritten
        return mixed.usual

    @property
    def _thousands(self) -> str:
        """The space or apostrophe that is proven to separate thousands, "" if none is.

        No number may have it elsewhere, or the other of comma and point, which would separate thousands too.
        """
        if len(self._sure) != 1 or self._sure & self._stray:
            return ""
        [mark] = self._sure
        others = {"comma": {","}, "point": {"."}}
        is_alone = self._marks == others.get(self._proof_with(mark))
        return mark if is_alone else ""

    def _proof_with(self, mark: str) -> Proof:
        """What the texts prove if a mark separates thousands."""
        joined = NotationEvidence()
        for evidence in (self._usual, self._rewritten, self._grouped[mark]):
            joined.add_all(evidence)
        return joined.proof


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.fill_null(pc.match_substring_regex(texts, pattern), False)


def _any_match(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.any(_matches(texts, pattern)).as_py())


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
_GROUPED: Final = {
    mark: rf"^[+-]?[1-9][0-9]{{0,2}}({mark}[0-9]{{3}})+([.,][0-9]+)?$" for mark in (" ", "'")
}
_SURELY_GROUPED: Final = {
    " ": _GROUPED[" "],
    "'": r"^[+-]?[1-9][0-9]{0,2}(('[0-9]{3})+[.,][0-9]+|('[0-9]{3}){2,})$",
}
"""Numbers in which the mark can only separate thousands. `1'234` may be 1.234: an apostrophe is a decimal mark too."""
_WHOLE: Final = _PATTERNS | {"comma": _proves(",", ".", "0"), "point": _proves(".", ",", "0")}


def is_fraction(texts: pa.Array) -> pa.Array:
    """Whether a text is a fraction in both notations (`2.5`, but not `1.234`): no whole number."""
    return pc.match_substring_regex(texts, f"{_PATTERNS['comma']}|{_PATTERNS['point']}")


def with_certain_marks(texts: pa.Array, notation: Notation) -> pa.Array:
    """Texts in which each number that is possible in one notation only, and in this one, is written with `DOT`."""
    proof = "comma" if notation.decimal == "," else "point"
    written = pc.replace_substring(texts, notation.thousands, "")
    written = pc.replace_substring(written, notation.decimal, DOT)
    return pc.if_else(_matches(texts, _PATTERNS[proof]), written, texts)


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
