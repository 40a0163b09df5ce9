"""Numbers as people write them: read where their notation is given or proven, rejected where it is ambiguous."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.numbers import COMMA, POINT, Notation, NotationEvidence, doubles, plain_numbers, whole_numbers

NO_NUMBERS = [
    "NaN", "nan", "inf", "-Infinity", "1_000", "0x1", "0b1", "1e5", "1E5", "7,50123E+12", "１２", "٣", "²", "½", "−5",
    "1.2.3,4", "1,23.456", "12.34.567", "--1", "5-", "(5)", "12 €", "$5", "1 ,5", ",", ".", "-", "+", "1,", ",5",
    "1 000", "0.125",
]  # fmt: skip


def texts(*values: str | None) -> pa.Array:
    return pa.array(values, pa.string())


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_a_text_that_is_not_a_number_in_its_notation_has_a_code(text: str) -> None:
    numbers, codes = plain_numbers(texts(text), COMMA)
    assert (numbers.to_pylist(), codes.to_pylist()) == ([None], ["not_a_number"])


@pytest.mark.parametrize(
    ("text", "notation", "number"),
    [
        ("19.367,25", COMMA, "19367.25"),
        ("19,367.25", POINT, "19367.25"),
        ("1.234", COMMA, "1234"),
        ("1.234", POINT, "1.234"),
        ("1.234.567", COMMA, "1234567"),
        ("1 234,5", Notation(",", " "), "1234.5"),
        ("1'234.5", Notation(".", "'"), "1234.5"),
        ("0,125", COMMA, "0.125"),
        ("007", COMMA, "7"),
        ("+5", COMMA, "5"),
        ("-0,50", COMMA, "-0.50"),
        ("000", COMMA, "0"),
        ("1234,5", COMMA, "1234.5"),
    ],
)
def test_a_number_in_its_notation_is_read_exactly(text: str, notation: Notation, number: str) -> None:
    numbers, codes = plain_numbers(texts(text, None), notation)
    assert (numbers.to_pylist(), codes.to_pylist()) == ([number, None], [None, None])


def test_without_a_mark_for_thousands_none_is_taken() -> None:
    numbers, _ = plain_numbers(texts("1.234", "1234"), Notation(",", ""))
    assert numbers.to_pylist() == [None, "1234"]


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**11), max_value=10**11)))
def test_what_a_spreadsheet_writes_in_either_notation_comes_back(values: list[Decimal]) -> None:
    written = [f"{value:,.3f}" for value in values]
    swapped = [text.translate(str.maketrans(",.", ".,")) for text in written]
    for column, notation in ((written, POINT), (swapped, COMMA)):
        numbers, codes = plain_numbers(texts(*column), notation)
        assert codes.null_count == len(values)
        assert [Decimal(number) for number in numbers.to_pylist()] == values


@pytest.mark.parametrize(
    ("column", "proof"),
    [
        (["1.234", "12"], "ambiguous"),
        (["1.234", "1.234,56"], "comma"),
        (["1.234", "0,5"], "comma"),
        (["1,234", "0.5"], "point"),
        (["0.125"], "point"),
        (["1.234.567"], "comma"),
        (["1234.567"], "point"),
        (["1.5", "1,5"], "both"),
        (["12", "0", ""], "none"),
        (["gratis"], "none"),
        ([], "none"),
        (["19·99", "12"], "point"),
        (["19·99", "1.234"], "ambiguous"),
        (["1·234", "0,5"], "comma"),
    ],
)
def test_a_column_proves_its_notation_as_a_whole(column: list[str], proof: str) -> None:
    found, split = NotationEvidence(), NotationEvidence()
    found.add(texts(*column))
    for text in column:
        split.add(texts(text))
    assert found.proof == split.proof == proof


@pytest.mark.parametrize(
    ("column", "proof"),
    [
        (["1.000", "2.5"], "ambiguous"),
        (["1.000", "2,50"], "ambiguous"),
        (["1.000", "1.234,5"], "ambiguous"),
        (["1.000", "1234.567"], "ambiguous"),
        (["2.5", "2,5"], "none"),
        (["1.000", "39,00"], "comma"),
        (["1.000", "1.234.567"], "comma"),
        (["1.000", "1,234.00"], "point"),
        (["1,000", "0.000"], "point"),
        (["39.00", "39,00", "2.5"], "both"),
    ],
)
def test_a_column_of_whole_numbers_is_proven_by_whole_numbers_alone(column: list[str], proof: str) -> None:
    found = NotationEvidence(whole=True)
    for text in column:
        found.add(texts(text))
    assert found.proof == proof


def test_whole_numbers_lose_nothing() -> None:
    numbers, codes = whole_numbers(texts("18.00", "18", "18.50", "-3", None))
    assert numbers.to_pylist() == ["18", "18", None, "-3", None]
    assert codes.to_pylist() == [None, None, "not_whole", None, None]


def test_more_digits_than_a_double_holds_have_a_code() -> None:
    kept = ["123456789012345", "0.000123456789012345", "-12345678901234.5", None]
    numbers, codes = doubles(texts(*kept, "1234567890123456", "0.1234567890123456"))
    assert numbers.to_pylist() == [*kept, None, None]
    assert codes.to_pylist()[4:] == ["too_many_digits"] * 2
    assert all(Decimal(repr(float(text))) == Decimal(text) for text in kept if text)
