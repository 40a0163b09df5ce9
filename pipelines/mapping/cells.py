"""Cells of a file to the values of fields, whole columns at a time.

In: text columns of a file, and how each is to be read. Out: the values as text (numbers in JSON's notation) or
booleans, and a code for each cell that is not valid. Nothing is repaired: a code that a spreadsheet has turned into
`7,50123E+12` has lost its digits, and is reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.frames import BOOLEAN, TEXT, array, column
from orderbridge.transforms.values.keys import clean_text, fold_case
from orderbridge.transforms.values.numbers import (
    DOT,
    Notation,
    currencies,
    doubles,
    in_usual_signs,
    is_fraction,
    plain_numbers,
    rejected,
    whole_numbers,
    with_certain_marks,
    without_currency,
)

ValueKind = Literal["text", "secret", "id", "number_id", "integer", "number", "boolean", "date"]

YES: Final = (
    *("true", "yes", "y", "1"),
    *("sí", "si", "s", "verdadero"),
    *("sim", "verdadeiro"),
    *("oui", "vrai"),
    *("sì", "vero"),
    *("ja", "j", "wahr"),
)
NO: Final = (
    *("false", "no", "n", "0"),
    "falso",
    *("não", "nao"),
    *("non", "faux"),
    *("nein", "falsch"),
)
"""Words of a boolean where the mapping sets none, in any case: in the languages of the known column names."""
WORDS: Final = {
    "not_a_number": "not a number{example}: correct the cell, or name in the mapping what is not part of the number: "
    'currency = "kg" for a unit, empty = ["-"] for an empty cell',
    "ambiguous_number": "the column does not prove its separators, as 1.234 may be a thousand or one: set decimal and "
    "thousands in the mapping",
    "mixed_numbers": "the column has numbers in two notations: set decimal and thousands in the mapping",
    "currency": 'a number with a currency sign that the mapping does not name: currency = "€" under [numbers]',
    "not_whole": "not a whole number",
    "too_many_digits": "more digits than a number in JSON can hold",
    "not_yes_or_no": "not a word for yes or no: set yes and no under [booleans] in the mapping",
    "damaged_code": "a spreadsheet changed the code to a number and lost digits: export that column as text",
    "formula": "a formula of a spreadsheet: export its result",
    "damaged_text": "characters were lost when the file was written: export it again as UTF-8",
    "cell_error": "an error value of a spreadsheet",
    "not_an_id": "not an id: digits only, or letters, digits and - _ . ~ where the interface accepts them; 3.0 is what "
    "a spreadsheet or a script makes of the id 3: export that column as text",
    "not_a_date": "not a date in the form {form}: set the form in the mapping, under [dates]",
    "no_value": "\\N is how databases export no value: name it in the mapping as an empty cell, under [rows]: "
    r"empty = ['\N']",
    "not_an_address": "not a valid e-mail address: the customer could not log in with it",
    "several_addresses": "several addresses: write the one with which the customer logs in",
}
"""The meaning of each code, without the value."""
_OTHER_NOTATION: Final = (
    "may be in another notation than most numbers of the column, which look like {example}: write it so, with its "
    "decimals, or set decimal and thousands in the mapping"
)
"""The meaning of `mixed_numbers` where most numbers of the column prove one notation."""
ADDRESS: Final = r"""[^@\s",;:<>()\\'][^@\s",;:<>()\\]*@[^@\s",;:<>()\\]+\.[^@\s",;:<>()\\.]+"""
"""Pattern of one e-mail address, as a text or as the inside of a JSON text."""
_NO_MAILBOX: Final = r"^\"?\.|\.\.|\.@"
"""Dots that no name of a mailbox has: at its beginning, at its end, or two together."""
_NO_DOMAIN: Final = r"@[.-]|@[^@]*(?:\.-|-\.)|@[^@]*-\"?$"
"""Parts that no domain has: one that is empty, or that begins or ends with a dash."""
IMPOSSIBLE_ADDRESS: Final = f"{_NO_MAILBOX}|{_NO_DOMAIN}"
"""Pattern of what looks like an `ADDRESS` and cannot be one, as a text or a JSON text."""
_SEVERAL: Final = rf'{ADDRESS}[\s",;:<>()/|].*{ADDRESS}'
_POWER: Final = r"^[+-]?[0-9]+(([.,][0-9]+)?[eE]\+|[.,][0-9]+[eE]-)[0-9]+$"
_CELL_ERROR: Final = r"^(#([¡¿]?[\p{Lu}/0]+[!?]|N/\p{Lu}+( [(].*[)])?|I/T|NV|##+)|Err:5[0-9]{2})$"
"""In all languages: #REF!, #¡VALOR!, #BEZUG!, #N/A, #N/D; in LibreOffice also Err:502."""
_MARKED: Final = r"""^(?:="([^"]*)"|'([0-9+(][0-9 ()./-]*))$"""
"""="00038", or an apostrophe before a code or phone number: so exported, a spreadsheet keeps it as text."""
_NO_VALUE: Final = r"\N"
_LOST: Final = "\ufffd"
_UNPROVEN: Final = r"^[+-]?[0-9][0-9]*[.,' ][0-9.,' ]*$"
_NUMBER_ID: Final = r"^[0-9]{1,18}$"
_ID: Final = r"^[A-Za-z0-9_~-][A-Za-z0-9_.~-]{0,127}$"
_PARTS: Final = {"DD": "(?P<d>[0-9]{2})", "MM": "(?P<m>[0-9]{2})", "YYYY": "(?P<y>[0-9]{4})"}


@dataclass(frozen=True, slots=True)
class Reading:
    """How the cells of a column are read.

    Attributes:
        kind: of the values. A `secret` is not changed; an `id` is part of a request's path.
        notation: of numbers; None: the column does not prove one.
        currency: the sign or code that its numbers may have, "" for none.
        signs: of a column without one sign throughout, those of its numbers.
        unproven: without a notation, the code of a number that may be read in two ways.
        usual: of a column with numbers in two notations, that of most of them.
        yes, no: words, in any case.
        date: DD, MM and YYYY in their order, with their separators.
        empty: texts that mean an empty cell.
        trim: whether surrounding whitespace is removed.
        is_address: whether a text has to be one e-mail address.
    """

    kind: ValueKind
    notation: Notation | None = None
    currency: str = ""
    signs: tuple[str, ...] = ()
    unproven: Literal["ambiguous_number", "mixed_numbers"] = "ambiguous_number"
    usual: Notation | None = None
    yes: tuple[str, ...] = YES
    no: tuple[str, ...] = NO
    date: str = "YYYY-MM-DD"
    empty: tuple[str, ...] = ()
    trim: bool = True
    is_address: bool = False

    @property
    def certain_notation(self) -> Notation | None:
        """The notation in which other rows of the file are read, none of which may be read in two ways."""
        if self.usual is not None:
            return Notation(self.usual.decimal, "")
        return self.notation

    def words(self, code: str) -> str:
        """The meaning of a code for this column, without the value."""
        example = ""
        if self.notation is not None:
            number = f"1{self.notation.thousands}234{self.notation.decimal}5"
            example = f" (those of the column look like {number})"
        if code == "mixed_numbers" and self.usual:
            return _OTHER_NOTATION.format(example=f"1234{self.usual.decimal}5")
        if code == "currency" and self.signs:
            shown = ", ".join(sign or "no sign" for sign in self.signs)
            return f"the numbers of the column have different currency signs ({shown}): which one is meant?"
        return WORDS[code].format(form=self.date, example=example)

    def read(self, cells: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The values of cells, null for empty and for wrong ones; a code for each wrong one, else null.

        Numbers are text with a decimal point, booleans are booleans, dates are YYYY-MM-DD, other texts are unchanged.
        """
        texts = filled(cells, self.empty)
        if self.kind == "boolean":
            return self._booleans(texts)
        if self.kind in ("integer", "number"):
            return self._numbers(texts)
        if self.kind == "date":
            return dates(texts, self.date)
        if self.kind in ("id", "number_id"):
            return _ids(texts, _NUMBER_ID if self.kind == "number_id" else _ID)
        if self.kind == "secret" or not self.trim:
            whole = cells if self.kind == "secret" else _unmarked(cells)
            texts = pc.if_else(pc.is_valid(texts), whole, pa.scalar(None, TEXT))
        if self.kind == "secret":
            return texts, pa.nulls(len(texts), TEXT)
        texts, codes = _whole(texts)
        if self.is_address:
            texts, several = rejected(
                texts, pc.match_substring_regex(texts, _SEVERAL), "several_addresses"
            )
            texts, wrong = rejected(
                texts, pc.invert(pc.match_substring_regex(texts, f"^{ADDRESS}$")), "not_an_address"
            )
            codes = pc.coalesce(codes, several, wrong)
        return texts, codes

    def _numbers(self, texts: pa.Array) -> tuple[pa.Array, pa.Array]:
        texts = in_usual_signs(texts)
        if self.currency:
            texts = without_currency(texts, self.currency)
        values, codes = self._plain_numbers(texts)
        if codes.null_count < len(codes):
            has_sign = pc.and_(
                pc.is_valid(codes), pc.fill_null(pc.not_equal(currencies(texts), ""), False)
            )
            codes = pc.if_else(has_sign, "currency", codes)
        return values, codes

    def _plain_numbers(self, texts: pa.Array) -> tuple[pa.Array, pa.Array]:
        if self.notation is None:
            # a number without a separator is the same in every notation; any other may be read in two ways
            if self.usual is not None:
                texts = with_certain_marks(texts, self.usual)
            values, wrong = plain_numbers(texts, Notation(DOT, ""))
            _, codes = rejected(values, pc.match_substring_regex(texts, _UNPROVEN), self.unproven)
            if self.kind == "integer" and self.unproven == "ambiguous_number":
                codes = pc.if_else(pc.fill_null(is_fraction(texts), False), "not_whole", codes)
            codes = pc.coalesce(codes, wrong)
        else:
            if pc.any(pc.match_substring(texts, DOT)).as_py():
                texts = pc.replace_substring(texts, DOT, self.notation.decimal)
            values, codes = plain_numbers(texts, self.notation)
        last, more = whole_numbers(values) if self.kind == "integer" else doubles(values)
        return last, pc.coalesce(codes, more)

    def _booleans(self, texts: pa.Array) -> tuple[pa.Array, pa.Array]:
        words = array(fold_case(column(texts)))
        yes, no = (
            pa.array([word.casefold() for word in known], TEXT) for known in (self.yes, self.no)
        )
        is_yes, is_no = pc.is_in(words, yes), pc.is_in(words, no)
        known = pc.or_(is_yes, is_no)
        values = pc.if_else(known, is_yes, pa.scalar(None, BOOLEAN))
        wrong = pc.and_(pc.is_valid(words), pc.invert(known))
        return values, pc.if_else(wrong, "not_yes_or_no", pa.scalar(None, TEXT))


def filled(cells: pa.Array, empty: tuple[str, ...] = ()) -> pa.Array:
    """Cells without surrounding whitespace and marks; null where blank, or one of the texts that mean an empty cell."""
    texts = array(clean_text(column(cells)))
    if (plain := _unmarked(texts)) is not texts:
        texts = array(clean_text(column(plain)))
    return (
        pc.if_else(pc.is_in(texts, pa.array(empty, TEXT)), pa.scalar(None, TEXT), texts)
        if empty
        else texts
    )


def _unmarked(texts: pa.Array) -> pa.Array:
    """Texts without the marks that make a spreadsheet keep them as text."""
    is_marked = pc.or_(pc.starts_with(texts, '="'), pc.starts_with(texts, "'"))
    return (
        pc.replace_substring_regex(texts, _MARKED, r"\1\2") if pc.any(is_marked).as_py() else texts
    )


def _whole(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The unchanged texts; a code for those that a spreadsheet or an encoding has damaged."""
    codes = pa.nulls(len(texts), TEXT)
    for code, is_damaged in (
        ("damaged_code", pc.match_substring_regex(texts, _POWER)),
        ("cell_error", pc.match_substring_regex(texts, _CELL_ERROR)),
        ("formula", pc.and_(pc.starts_with(texts, '="'), pc.ends_with(texts, '"'))),
        ("no_value", pc.equal(texts, _NO_VALUE)),
        ("damaged_text", pc.match_substring(texts, _LOST)),
    ):
        if pc.any(is_damaged).as_py():
            texts, more = rejected(texts, is_damaged, code)
            codes = pc.coalesce(codes, more)
    return texts, codes


def _ids(texts: pa.Array, pattern: str) -> tuple[pa.Array, pa.Array]:
    """Ids of a request's path. Digits alone are a number: `007` is `7`."""
    wrong = pc.invert(pc.match_substring_regex(texts, pattern))
    values, codes = rejected(texts, wrong, "not_an_id")
    if codes.null_count < len(codes):
        codes = pc.if_else(
            pc.fill_null(pc.match_substring_regex(texts, _POWER), False), "damaged_code", codes
        )
    if pattern == _NUMBER_ID and pc.any(pc.starts_with(values, "0")).as_py():
        values = pc.replace_substring_regex(values, "^0+([0-9])", r"\1")
    return values, codes


def dates(texts: pa.Array, form: str) -> tuple[pa.Array, pa.Array]:
    """Dates of a form such as DD/MM/YYYY, as YYYY-MM-DD; the code `not_a_date` for other texts."""
    pattern = re.escape(form)
    for part, group in _PARTS.items():
        pattern = pattern.replace(part, group)
    parts = pc.extract_regex(texts, f"^{pattern}$")
    iso = pc.binary_join_element_wise(
        *(pc.struct_field(parts, name) for name in ("y", "m", "d")), "-"
    )
    days = pc.strptime(iso, format="%Y-%m-%d", unit="s", error_is_null=True)
    # 31 of February would be rolled over
    is_day = pc.equal(pc.strftime(days, format="%Y-%m-%d"), iso)
    wrong = pc.and_(pc.is_valid(texts), pc.invert(pc.fill_null(is_day, False)))
    return rejected(iso, wrong, "not_a_date")


def is_date_form(form: str) -> bool:
    """Whether a form has day, month and year once each, and no other letters."""
    found = re.findall(rf"{'|'.join(_PARTS)}|\w", form)
    return sorted(found) == sorted(_PARTS)
