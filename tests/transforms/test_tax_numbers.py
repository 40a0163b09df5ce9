"""Which numbers are pointed out as perhaps mistyped tax numbers, and which are other documents."""

from __future__ import annotations

import pytest

from orderbridge.transforms.values.tax_numbers import tax_number_problem


@pytest.mark.parametrize(
    ("country", "number"),
    [
        ("ES", "B5837843"),
        ("ES", "ES B5837843"),
        ("PE", "2051266741"),
        ("PE", "1234567"),
        ("AR", "20-1234567-1"),
        ("PT", "5019648431"),
    ],
)
def test_a_number_with_a_digit_too_few_or_too_many_is_pointed_out(
    country: str, number: str
) -> None:
    assert tax_number_problem(number, country) == "tax_number_length"


@pytest.mark.parametrize(
    ("country", "number"),
    [
        ("PE", "12345678"),
        ("PE", "001234567"),
        ("AR", "12345678"),
        ("CO", "123456"),
        ("ES", "PT50196484"),
    ],
)
def test_a_number_as_long_as_another_document_is_none_of_these(country: str, number: str) -> None:
    assert tax_number_problem(number, country) is None
