"""What speaks for a pair of a line and a customer, and what against it.

In: pairs, and the fields in which they agree and differ. Out: for each pair and field a mark, the sum of their weights,
and whether the pair is contradicted. A pair that agrees in its ERP code and in nothing else weighs 10; one that has an
e-mail address in common and differs in document and name weighs less than nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from stdnum.eu import vat

from orderbridge.transforms.erp.candidates import Candidates, UsableKeys
from orderbridge.transforms.erp.compare import Compared, Notation, Pairs, is_given
from orderbridge.transforms.erp.match_keys import MATCH_KEYS
from orderbridge.transforms.erp.names import NameWords, has_other_alphabet, split_names
from orderbridge.transforms.frames import TEXT, Bools, Ints, array, column, joined_text, positions

Marks = npt.NDArray[np.int8]
NOTHING, EQUAL, SHARED, NEAR, PARTLY, DIFFERENT = range(6)
"""The marks of a field. `SHARED`: the key is equal, and other rows of a side have it too."""


class Weights(NamedTuple):
    """The weights of a field by its mark, in the order of the marks."""

    nothing: int = 0
    equal: int = 0
    shared: int = 0
    near: int = 0
    partly: int = 0
    different: int = 0


WEIGHTS: Final = {
    "erp_code": Weights(equal=10, shared=6, near=3, different=-4),
    "login_code": Weights(equal=10, shared=5, near=2, different=-3),
    "email": Weights(equal=6, shared=3, different=-2),
    "document_number": Weights(equal=9, shared=3, near=5, partly=1, different=-6),
    "person": Weights(equal=5, near=4, partly=-2, different=-4),
    "firm": Weights(equal=3, near=1, partly=-4, different=-4),
    "branch": Weights(equal=2, partly=-5, different=-9),
    "phone": Weights(equal=3, different=-1),
    "fiscal_address": Weights(equal=4, near=3, different=-3),
    "document_email": Weights(equal=2, different=-1),
}
"""What is missing on a side weighs nothing, nor does a stand-in."""
NAMES: Final = ("person", "firm", "branch")
_COLUMNS_OF_NAMES: Final = ("first_name", "last_name", "fiscal_name")
_PHONE_FORM: Final = r"[0-9](?:[^0-9]*[0-9]){5}"
_SAME_ADDRESS_MIN, _OTHER_ADDRESS_MAX = 0.7, 0.34
"""Addresses that have this part of the words of the shorter one in common are nearly the same, and another one."""


_LENGTH_MIN: Final = 7
"""Numbers with fewer signs are too near to each other to see a typing error in one."""


class Evidence(NamedTuple):
    """What speaks for each pair and against it.

    Attributes:
        marks: of each field of `WEIGHTS`.
        weight: the sum of their weights.
    """

    marks: dict[str, Marks]
    weight: Ints

    def has(self, field: str, *marks: int) -> Bools:
        """Whether a field of each pair has one of some marks."""
        found: Bools = np.logical_or.reduce([self.marks[field] == mark for mark in marks])
        return found

    def any_has(self, fields: Mapping[str, Any] | tuple[str, ...], *marks: int) -> Bools:
        """Whether one of some fields has one of some marks."""
        found: Bools = np.logical_or.reduce([self.has(field, *marks) for field in fields])
        return found

    @property
    def is_unlike(self) -> Bools:
        """Whether the names of each pair differ and none is the same, or they are of two branches of a firm."""
        differs = self.any_has(NAMES, DIFFERENT) & ~self.any_has(NAMES, EQUAL, NEAR)
        return differs | self.has("branch", DIFFERENT)

    @property
    def is_contradicted(self) -> Bools:
        """Whether the documents of each pair differ, and so do names, or there is no ERP code in common.

        Such pairs are two firms of one owner or of one group, or a firm and its successor.
        """
        has_code = self.has("erp_code", EQUAL)
        return self.has("document_number", DIFFERENT) & (self.any_has(NAMES, DIFFERENT) | ~has_code)


def weigh(
    lines: pd.DataFrame,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    candidates: Candidates,
    compared: Compared,
    notation: Notation,
) -> Evidence:
    """The evidence of pairs of lines, customers and their documents. `compared` is what `compare` made of them."""
    pairs, usable = candidates.pairs, candidates.usable
    is_both = is_given(array(compared.differences["platform_value"]))
    both = compared.differences[is_both.to_numpy(zero_copy_only=False)]
    values = {str(field): rows.set_index("row") for field, rows in both.groupby("field")}
    nothing = np.zeros(len(pairs.line), np.int8)
    marks = dict.fromkeys(WEIGHTS, nothing)
    for field, agrees in compared.agrees.items():
        if field not in WEIGHTS:
            continue
        marks[field] = np.where(agrees, EQUAL, NOTHING).astype(np.int8)
        if field in values:
            differing = values[field]
            marks[field][differing.index] = _marks_of(field, differing, notation)
        if field in MATCH_KEYS:
            marks[field] = _by_use(marks[field], pairs, usable[field])
    if "phone" in lines:
        is_phone = pc.fill_null(pc.match_substring_regex(array(lines["phone"]), _PHONE_FORM), False)
        marks["phone"][~is_phone.to_numpy(zero_copy_only=False)[pairs.line]] = NOTHING
    marks |= _marks_of_names(lines, customers, documents, pairs, compared)
    weight = np.sum([np.array(WEIGHTS[field])[of] for field, of in marks.items()], axis=0)
    return Evidence(marks, weight)


def _by_use(marks: Marks, pairs: Pairs, usable: UsableKeys) -> Marks:
    """The marks of a key: `SHARED` of a value that several have, none of one that identifies nobody."""
    equal = marks == EQUAL
    counts = [np.bincount(side[equal], minlength=side.max(initial=0) + 1) for side in pairs]
    is_shared = (counts[0][pairs.line] > 1) | (counts[1][pairs.customer] > 1)
    is_known = usable.lines[pairs.line] & usable.customers[pairs.customer]
    return np.select([~is_known, equal & is_shared], [NOTHING, SHARED], marks).astype(np.int8)


def _marks_of(field: str, values: pd.DataFrame, notation: Notation) -> Marks:
    """The marks of pairs whose values of a field differ as they are written: `erp_value` and `platform_value`."""
    ours, theirs = values["erp_value"], values["platform_value"]
    if field == "fiscal_address":
        return _address_marks(ours, theirs)
    if field not in MATCH_KEYS:
        return np.full(len(values), DIFFERENT, np.int8)
    key = MATCH_KEYS[field]
    normalize = notation.codes.key if field == "erp_code" else key.normalize
    ours, theirs = normalize(ours), normalize(theirs)
    is_equal, is_near = (
        (one == other).fillna(False).to_numpy(np.bool_)
        for one, other in ((ours, theirs), (key.loose(ours), key.loose(theirs)))
    )
    is_different = (key.identifies(ours) & key.identifies(theirs)).to_numpy(np.bool_)
    marks = np.select([is_equal, is_near, is_different], [EQUAL, NEAR, DIFFERENT])
    for mark, rule in _RULES_OF_KEYS.get(field, ()):
        rows = np.flatnonzero(np.isin(marks, (NEAR, DIFFERENT)))
        holds = [
            rule(one, other) for one, other in zip(ours.iloc[rows], theirs.iloc[rows], strict=True)
        ]
        marks[rows[np.array(holds, np.bool_)]] = mark
    return marks.astype(np.int8)


def _is_one_tax_number(one: str, other: str) -> bool:
    """Whether the longer of two numbers is the shorter one with the valid prefix of its country."""
    short, long = sorted((one, other), key=len)
    return long.endswith(short) and len(long) - len(short) in (2, 4) and bool(vat.is_valid(long))


def _is_slip(one: str, other: str) -> bool:
    """Whether one sign of two numbers is another one, or two beside each other are swapped: a typing error."""
    if len(one) != len(other) or len(one) < _LENGTH_MIN:
        return False
    at = [n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    is_swapped = (
        len(at) == 2
        and at[1] - at[0] == 1
        and one[at[0]] + one[at[1]] == other[at[1]] + other[at[0]]
    )
    return len(at) == 1 or is_swapped


def _has_other_form(one: str, other: str) -> bool:
    """Whether one of two codes is a number, and the other has letters: `12` and `C-12` may be one, which is asked."""
    return one.isdecimal() != other.isdecimal()


_RULES_OF_KEYS: Final[Mapping[str, tuple[tuple[int, Callable[[str, str], bool]], ...]]] = {
    "document_number": ((EQUAL, _is_one_tax_number), (PARTLY, _is_slip)),
    "erp_code": ((NOTHING, _has_other_form),),
}
"""Marks of keys that are not equal, by what holds for both values."""


def _address_marks(ours: pd.Series[str], theirs: pd.Series[str]) -> Marks:
    one, other = split_names(ours, theirs)
    part = one.common(other) / np.maximum(np.minimum(one.sizes, other.sizes), 1)
    is_other = (part < _OTHER_ADDRESS_MAX) & (
        has_other_alphabet(ours) == has_other_alphabet(theirs)
    )
    return np.select([part >= _SAME_ADDRESS_MIN, is_other], [NEAR, DIFFERENT]).astype(np.int8)


def _marks_of_names(
    lines: pd.DataFrame,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    pairs: Pairs,
    compared: Compared,
) -> dict[str, Marks]:
    """The marks of `NAMES`; of pairs whose names are not the same in every column, by their words."""
    agree = [compared.agrees[name] for name in _COLUMNS_OF_NAMES if name in lines]
    is_same = np.logical_and.reduce(agree) if agree else np.zeros(len(pairs.line), np.bool_)
    marks = {
        name: np.where(is_same & (name != "branch"), EQUAL, NOTHING).astype(np.int8)
        for name in NAMES
    }
    rows = np.flatnonzero(~is_same)
    of_lines, of_customers, of_documents = (
        positions(numbers)
        for numbers in (pairs.line[rows], pairs.customer[rows], compared.document[rows])
    )
    none = pa.nulls(len(rows), TEXT)
    first, last, firm = (
        array(lines[name]).take(of_lines) if name in lines else none for name in _COLUMNS_OF_NAMES
    )
    ours = _joined(first, last), _joined(firm)
    theirs = (
        _joined(*(array(customers[name]).take(of_customers) for name in _COLUMNS_OF_NAMES[:2])),
        _joined(array(documents["fiscal_name"]).take(of_documents)),
    )
    for name, of in compare_names(ours, theirs).items():
        marks[name][rows] = of
    return marks


def _joined(*texts: pa.Array) -> pd.Series[str]:
    return joined_text([column(pc.fill_null(one, "")) for one in texts], " ")


def compare_names(
    ours: tuple[pd.Series[str], pd.Series[str]], theirs: tuple[pd.Series[str], pd.Series[str]]
) -> dict[str, Marks]:
    """The marks of `NAMES`. Both sides have a name of a person and one of a firm, empty for none."""
    person, firm, other_person, other_firm = split_names(*ours, *theirs)
    is_firm = person.covers(firm) | person.covers(other_firm)
    is_other_firm = other_person.covers(other_firm) | other_person.covers(firm)
    firm_marks = _word_marks(
        firm.or_else(person.where(is_firm)), other_firm.or_else(other_person.where(is_other_firm))
    )
    person_marks = _word_marks(person, other_person)
    person_marks[is_firm | is_other_firm] = NOTHING
    is_one_firm = is_firm & is_other_firm & np.isin(firm_marks, (EQUAL, NEAR))
    branch, other_branch = (one.without(firm, other_firm) for one in (person, other_person))
    branch_marks = np.select(
        [~is_one_firm, branch.is_same(other_branch), (branch.sizes > 0) & (other_branch.sizes > 0)],
        [NOTHING, EQUAL, DIFFERENT],
        PARTLY,
    )
    whole, other_whole = firm.joined(person), other_firm.joined(other_person)
    is_one_name = whole.covers(other_whole) & (whole.common(other_whole) > 1)
    has_one_column = (person.sizes == 0) != (other_person.sizes == 0)
    says_nothing = (person_marks == NOTHING) & ((firm_marks == NOTHING) | has_one_column)
    person_marks[says_nothing & is_one_name] = NEAR
    alphabets = [has_other_alphabet(joined_text(list(side), " ")) for side in (ours, theirs)]
    made = {"person": person_marks, "firm": firm_marks, "branch": branch_marks}
    for marks in made.values():
        marks[(alphabets[0] != alphabets[1]) & np.isin(marks, (PARTLY, DIFFERENT))] = NOTHING
    return {name: marks.astype(np.int8) for name, marks in made.items()}


def _word_marks(one: NameWords, other: NameWords) -> Ints:
    """Of two names: the same words, all of the shorter one's, some, or none in common."""
    has_both = (one.sizes > 0) & (other.sizes > 0)
    marks: Ints = np.select(
        [~has_both, one.is_same(other), one.covers(other), one.common(other) > 0],
        [NOTHING, EQUAL, NEAR, PARTLY],
        DIFFERENT,
    )
    return marks
