"""Cells to values: texts as they stand, damage reported and not repaired."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.mapping.cells import WORDS, Reading, is_date_form
from transforms.numbers import COMMA, POINT, Notation


def read(reading: Reading, *cells: str) -> list[Any]:
    """A value, or the code in brackets."""
    values, codes = reading.read(pa.array(cells, pa.string()))
    assert set(codes.to_pylist()) <= {None, *WORDS}
    return [[code] if code else value for value, code in zip(values.to_pylist(), codes.to_pylist(), strict=True)]


@pytest.mark.parametrize(
    "text", ["00038", "Tunnbröd  med", "O'Neill", "1E5", "1E-5", "NULL", "None", "NaN", "+34600", "1.0", "Ⅻ"]
)
def test_a_text_is_not_changed(text: str) -> None:
    assert read(Reading("text"), text, f"  {text}\t") == [text, text]


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_a_text_that_is_not_trimmed_is_equal_in_every_byte(text: str) -> None:
    found = read(Reading("text", trim=False), text)[0]
    assert isinstance(found, list) or found == (text if text.strip() else None)


def test_blank_cells_are_nothing_and_so_are_the_texts_that_say_so() -> None:
    assert read(Reading("text", empty=("NULL", "-")), "", "  ", "\u00a0", "NULL", " - ", "null") == [
        None, None, None, None, None, "null",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["7,50123E+12", "7.50123E+12", "1E+15", "-1e+03", "1,00E-05"])
def test_a_code_that_became_a_power_of_ten_is_damaged(text: str) -> None:
    for kind in ("text", "id", "number_id"):
        assert read(Reading(kind), text) == [["damaged_code"]]


@pytest.mark.parametrize(
    "text",
    [
        "#N/A",
        "#REF!",
        "Err:502",
        "#N/A (2026-01-01)",
        "#¡REF!",
        "#VALUE!",
        "#DIV/0!",
        "########",
        "#NV",
        "#BEZUG!",
        "#NOM?",
        "#N/DISP",
        "#NAVN?",
        "#I/T",
        "#VÄRDEFEL!",
    ],
)
def test_the_error_of_a_spreadsheet_is_no_text(text: str) -> None:
    others = ["#1", "# 5", "##", "#A1", "#NO", "#Hola!", "#1!"]
    assert read(Reading("text"), text, *others) == [["cell_error"], *others]


def test_a_letter_that_was_lost_is_reported() -> None:
    assert read(Reading("text"), "Tunnbr\ufffdd") == [["damaged_text"]]


def test_a_secret_is_taken_unchanged() -> None:
    assert read(Reading("secret"), " 7,5E+12 ", "#N/A", "  ") == [" 7,5E+12 ", "#N/A", None]


def test_numbers_without_proof_are_read_only_where_they_need_none() -> None:
    assert read(Reading("number"), "12", "1.234", "x") == ["12", ["ambiguous_number"], ["not_a_number"]]
    mixed = Reading("number", unproven="mixed_numbers")
    assert read(mixed, "12", "1,5") == ["12", ["mixed_numbers"]]


def test_integers_are_whole() -> None:
    assert read(Reading("integer", COMMA), "1.234", "39,00", "39,50", "1E3") == [
        "1234", "39", ["not_whole"], ["not_a_number"],
    ]  # fmt: skip


def test_a_fraction_is_no_whole_number_in_a_column_that_proves_no_notation() -> None:
    assert read(Reading("integer"), "1.000", "2.5", "2,50", "1.2.3", "12") == [
        ["ambiguous_number"], ["not_whole"], ["not_whole"], ["ambiguous_number"], "12",
    ]  # fmt: skip
    assert read(Reading("integer", unproven="mixed_numbers"), "39,00", "2.5") == [["mixed_numbers"]] * 2


@pytest.mark.parametrize("notation", [None, COMMA, POINT, Notation(",", " ")])
def test_a_number_with_a_sign_of_its_own_is_read_in_every_notation(notation: Notation | None) -> None:
    for unproven in ("ambiguous_number", "mixed_numbers"):
        number = Reading("number", notation, unproven)
        assert read(number, "1·234", "-0·5", "1·2·3", "·5") == ["1.234", "-0.5", ["not_a_number"], ["not_a_number"]]
        assert read(Reading("integer", notation, unproven), "2·5") == [["not_whole"]]


def test_decimals_have_no_more_digits_than_json_keeps() -> None:
    assert read(Reading("number", COMMA), "19.367,25", "0,1234567890123456") == ["19367.25", ["too_many_digits"]]


def test_words_of_a_boolean_are_reported_or_the_usual_ones() -> None:
    usual = read(Reading("boolean"), "S", "sí", "TRUE", "1", "no", "FALSO", "0", "x", "", "2")
    assert usual == [True, True, True, True, False, False, False, ["not_yes_or_no"], None, ["not_yes_or_no"]]
    assert read(Reading("boolean", yes=("X",), no=("-",)), "x", "-", "S") == [True, False, ["not_yes_or_no"]]


def test_ids_of_a_path_are_digits_or_safe_signs() -> None:
    assert read(Reading("number_id"), "1001", "007", "0", "1.001", "-1", "1e3", "１", "9" * 19) == [
        "1001", "7", "0", *([["not_an_id"]] * 5),
    ]  # fmt: skip
    assert read(Reading("id"), "A-1_b~", "..", ".", "a/b", "a b", "a?b", "007", "a.b") == [
        "A-1_b~", ["not_an_id"], ["not_an_id"], ["not_an_id"], ["not_an_id"], ["not_an_id"], "007", "a.b",
    ]  # fmt: skip


def test_a_code_is_read_without_the_marks_that_keep_it_a_text_in_a_spreadsheet() -> None:
    marked = ['="00038"', " '00038 ", "'+34 600-112 (3)", "'38.1", '=" "']
    assert read(Reading("text"), *marked) == ["00038", "00038", "+34 600-112 (3)", "38.1", None]
    assert read(Reading("text", trim=False), '=" 00038"') == [" 00038"]
    assert read(Reading("number_id"), *marked[:2]) == ["38", "38"]
    assert read(Reading("secret"), *marked[:4]) == marked[:4]
    assert read(Reading("text"), '="A"&"B"', '="5"""') == [["formula"]] * 2
    texts = ["'", "'s-Hertogenbosch", "00038'", "'90s", "5'11", "d'Ors"]
    assert read(Reading("text"), *texts) == texts


def test_dates_of_a_form_are_days_that_there_are() -> None:
    form = Reading("date", date="DD/MM/YYYY")
    assert read(form, "31/01/2026", "31/02/2026", "1/1/2026", "2026-01-31", "") == [
        "2026-01-31", ["not_a_date"], ["not_a_date"], ["not_a_date"], None,
    ]  # fmt: skip
    assert is_date_form("DD/MM/YYYY")
    assert not is_date_form("DD/MM")
    assert not is_date_form("DD/MM/YYYY hh")


def test_no_words_of_a_code_hold_a_value() -> None:
    assert all("{" not in words for words in WORDS.values())


@pytest.mark.parametrize("kind", ["text", "secret", "id", "number_id", "integer", "number", "boolean", "date"])
def test_a_column_without_rows_or_without_values_is_read(kind: Any) -> None:
    assert read(Reading(kind)) == []
    assert read(Reading(kind), "", " ") == [None, None]
