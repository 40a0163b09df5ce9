"""Numbers as people write them: read where their notation is given or proven, rejected where it is ambiguous."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from orderbridge.transforms.values.numbers import (
    COMMA,
    POINT,
    Notation,
    NotationEvidence,
    doubles,
    plain_numbers,
    whole_numbers,
)

NO_NUMBERS = [
    "NaN", "nan", "inf", "-Infinity", "1_000", "0x1", "0b1", "1e5", "1E5", "7,50123E+12", "１２", "٣", "²", "½", "−5",
    "1.2.3,4", "1,23.456", "12.34.567", "--1", "5-", "(5)", "12 €", "$5", "1 ,5", ",", ".", "-", "+", "1,", ",5",
    "1 000", "0.125",
]  # fmt: skip


def texts(*values: str | None) -> pa.Array:
    return pa.array(values, pa.string())


READ: tuple[tuple[Notation, dict[str, str | None]], ...] = (
    (COMMA, {"19.367,25": "19367.25", "1.234": "1234", "1.234.567": "1234567", "0,125": "0.125", "007": "7",
             "+5": "5", "-0,50": "-0.50", "000": "0", "1234,5": "1234.5"}),
    (POINT, {"19,367.25": "19367.25", "1.234": "1.234"}),
    (Notation(",", " "), {"1 234,5": "1234.5"}), (Notation(".", "'"), {"1'234.5": "1234.5"}),
    (Notation(",", ""), {"1.234": None, "1234": "1234"}),  # no mark for thousands
    (COMMA, dict.fromkeys(NO_NUMBERS)),
)  # fmt: skip


def test_a_number_is_read_exactly_another_text_has_a_code() -> None:
    for notation, numbers in READ:
        read, codes = plain_numbers(texts(*numbers, None), notation)
        assert read.to_pylist() == [*numbers.values(), None]
        assert codes.to_pylist() == [
            None if one else "not_a_number" for one in numbers.values()
        ] + [None]


@pytest.mark.parametrize(
    ("column", "proof", "of_whole"),
    [
        ("1.234 12", "ambiguous", "ambiguous"), ("1.234 0,5", "comma", "ambiguous"), ("0.125", "point", "none"),
        ("1,234 0.5", "point", "ambiguous"), ("1.234.567", "comma", "comma"), ("1.5 1,5", "both", "none"),
        ("1234.567 gratis", "point", "none"), ("", "none", "none"),
        ("19·99 12", "point", None), ("19·99 1.234", "ambiguous", None), ("1·234 0,5", "comma", None),
        # a column of whole numbers is proven by whole numbers alone
        ("1.000 2.5", "point", "ambiguous"), ("1.000 39,00", "comma", "comma"), ("1.000 1,234.00", "point", "point"),
        ("1,000 0.000", "point", "point"), ("39.00 39,00 2.5", "both", "both"),
    ],
)  # fmt: skip
def test_a_column_proves_its_notation_as_a_whole(
    column: str, proof: str, of_whole: str | None
) -> None:
    found, split, whole = NotationEvidence(), NotationEvidence(), NotationEvidence(whole=True)
    found.add(texts(*column.split()))
    for text in column.split():
        split.add(texts(text))
        whole.add(texts(text))
    assert found.proof == split.proof == proof
    assert of_whole is None or whole.proof == of_whole


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
