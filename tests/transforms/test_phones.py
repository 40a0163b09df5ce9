"""Phone numbers in two notations: one rule for the match with the ERP and for a create that is read back."""

from __future__ import annotations

import pandas as pd
import pytest

from orderbridge.pipelines.push.listing import differing_fields
from orderbridge.transforms.frames import TEXT
from orderbridge.transforms.values.phones import same_phone


@pytest.mark.parametrize(
    ("left", "right", "country", "is_same"),
    [
        ("+34 600-11 22 33", "34600112233", None, True), ("0034600112233 / 915550103", "34600112233", None, True),
        ("600 112 233", "+34600112233", "ES", True), ("600 112 233", "+34600112233", None, False),
        ("600 112 233", "600112234", "ES", False), ("+44 (0)20 7946 0000", "020 7946 0000", "GB", True),
        ("915 550 103 ext. 4", "915550103", None, True), ("France", "france ", None, True),
        ("France", "", None, False), ("0", "00", None, False),
    ],
)  # fmt: skip
def test_reconcile_and_push_have_one_rule(
    left: str, right: str, country: str | None, is_same: bool
) -> None:
    one, other = (pd.Series([text], dtype=pd.ArrowDtype(TEXT)) for text in (left, right))
    assert same_phone(one, other, country).tolist() == [is_same]
    assert differing_fields({"phone": left}, {"phone": right}, country) == (
        [] if is_same else ["phone"]
    )


@pytest.mark.parametrize(
    ("country", "at_home", "abroad"),
    [
        ("AR", "011 15-2345-6789", "+54 9 11 2345-6789"), ("AR", "(11) 15 2345-6789", "+54 9 11 2345-6789"),
        ("BR", "0 15 11 91234-5678", "+55 11 91234-5678"), ("RU", "8 (495) 123-45-67", "+7 495 123-45-67"),
        ("KZ", "8 727 250 1234", "+7 727 250 1234"), ("HU", "06 1 234 5678", "+36 1 234 5678"),
        ("LT", "8 5 212 3456", "+370 5 212 3456"), ("BY", "8 017 212 34 56", "+375 17 212 34 56"),
        ("US", "011 34 911 234 567", "+34 911 234 567"), ("AU", "0011 34 911 234 567", "+34 911 234 567"),
        ("JP", "010 34 911 234 567", "+34 911 234 567"), ("CN", "17951 139 1234 5678", "+86 139 1234 5678"),
        ("IT", "06 1234 5678", "+39 06 1234 5678"), ("DE", "0911/123456", "+49 911 123456"),
        ("US", "1 (212) 555-0123", "+1 212 555 0123"),
        ("RU", "8 (495) 123-45-67 доб. 4 / 8 (495) 765-43-21", "+7 495 765-43-21"),
    ],
)  # fmt: skip
def test_a_number_as_it_is_written_at_home_is_the_international_one(
    country: str, at_home: str, abroad: str
) -> None:
    texts = [at_home, abroad, at_home]
    others = [abroad, at_home, abroad[:-1] + "0"]
    one, other = (pd.Series(side, dtype=pd.ArrowDtype(TEXT)) for side in (texts, others))
    assert same_phone(one, other, country).tolist() == [True, True, False]


def test_numbers_that_only_end_alike_are_two() -> None:
    pairs = [
        ("8 (495) 123-45-67", "+7 499 123-45-67", "RU"),
        ("234567", "+34 911 234 567", "ES"),
        ("8 (495) 123-45-67", "+49 5123 4567", "RU"),
        ("12345678901234567890 123456", "+7 495 12 34 56", "RU"),
    ]
    for left, right, country in pairs:
        one, other = (pd.Series([text], dtype=pd.ArrowDtype(TEXT)) for text in (left, right))
        assert same_phone(one, other, country).tolist() == [False], (left, right)
