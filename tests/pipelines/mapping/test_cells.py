"""Cells to values: texts as they stand, damage reported and not repaired."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.mapping.cells import WORDS, Reading, is_date_form
from transforms.numbers import COMMA, POINT, Notation

KINDS: Any = ["text", "secret", "id", "number_id", "integer", "number", "boolean", "date"]
POWERS = ["7,50123E+12", "7.50123E+12", "1E+15", "-1e+03", "1,00E-05"]
ERRORS = ["#N/A", "#REF!", "Err:502", "#N/A (2026-01-01)", "#¡REF!", "#VALUE!", "#DIV/0!", "########", "#NV", "#BEZUG!",
          "#NOM?", "#N/DISP", "#NAVN?", "#I/T", "#VÄRDEFEL!"]  # fmt: skip
TEXTS = ["00038", "Tunnbröd  med", "O'Neill", "1E5", "1E-5", "NULL", "None", "NaN", "+34600", "1.0", "Ⅻ", "#1", "# 5",
         "##", "#A1", "#NO", "#Hola!", "#1!", "'", "'s-Hertogenbosch", "00038'", "'90s", "5'11", "d'Ors"]  # fmt: skip
MARKED = ['="00038"', " '00038 ", "'+34 600-112 (3)", "'38.1", '=" "']


def read(reading: Reading, *cells: str) -> list[Any]:
    """A value, or the code in brackets."""
    values, codes = reading.read(pa.array(cells, pa.string()))
    assert set(codes.to_pylist()) <= {None, *WORDS}
    return [[code] if code else value for value, code in zip(values.to_pylist(), codes.to_pylist(), strict=True)]


CELLS: list[tuple[Reading, list[str], list[Any]]] = [
    (Reading("text"), TEXTS, TEXTS),
    (Reading("text"), [f"  {text}\t" for text in TEXTS], TEXTS),
    (Reading("text", empty=("NULL", "-")), ["", "  ", "\u00a0", "NULL", " - ", "null"], [None] * 5 + ["null"]),
    *((Reading(kind), POWERS, [["damaged_code"]] * 5) for kind in ("text", "id", "number_id")),
    (Reading("text"), ERRORS, [["cell_error"]] * len(ERRORS)),
    (Reading("text"), ["Tunnbr\ufffdd"], [["damaged_text"]]),
    (Reading("secret"), [" 7,5E+12 ", "#N/A", "  ", *MARKED[:4]], [" 7,5E+12 ", "#N/A", None, *MARKED[:4]]),
    # the marks that keep a code a text in a spreadsheet
    (Reading("text"), MARKED, ["00038", "00038", "+34 600-112 (3)", "38.1", None]),
    (Reading("text", trim=False), ['=" 00038"'], [" 00038"]),
    (Reading("number_id"), MARKED[:2], ["38", "38"]),
    (Reading("text"), ['="A"&"B"', '="5"""'], [["formula"]] * 2),
    # numbers without proof are read only where they need none
    (Reading("number"), ["12", "1.234", "x"], ["12", ["ambiguous_number"], ["not_a_number"]]),
    (Reading("number", unproven="mixed_numbers"), ["12", "1,5"], ["12", ["mixed_numbers"]]),
    (Reading("number", COMMA), ["19.367,25", "0,1234567890123456"], ["19367.25", ["too_many_digits"]]),
    (Reading("number", Notation(",", " ")), ["1 234,5", "1\u00a0234,5"], ["1234.5", "1234.5"]),
    (Reading("number", COMMA, "€"), ["1,50 €", "2,00", "3,00 $"], ["1.50", "2.00", ["currency"]]),
    (Reading("integer", COMMA), ["1.234", "39,00", "39,50", "1E3"], ["1234", "39", ["not_whole"], ["not_a_number"]]),
    (Reading("integer"), ["1.000", "2.5", "2,50", "1.2.3", "12"],
     [["ambiguous_number"], ["not_whole"], ["not_whole"], ["ambiguous_number"], "12"]),
    (Reading("integer", unproven="mixed_numbers"), ["39,00", "2.5"], [["mixed_numbers"]] * 2),
    *((Reading("number", notation), ["1·234", "-0·5", "1·2·3", "·5"], ["1.234", "-0.5", *[["not_a_number"]] * 2])
      for notation in (None, COMMA, POINT, Notation(",", " "))),
    (Reading("integer", COMMA), ["2·5"], [["not_whole"]]),
    (Reading("boolean"), ["S", "sí", "TRUE", "1", "no", "FALSO", "0", "x", "", "2"],
     [True] * 4 + [False] * 3 + [["not_yes_or_no"], None, ["not_yes_or_no"]]),
    (Reading("boolean", yes=("X",), no=("-",)), ["x", "-", "S"], [True, False, ["not_yes_or_no"]]),
    (Reading("number_id"), ["1001", "007", "0", "1.001", "-1", "1e3", "１", "9" * 19],
     ["1001", "7", "0", *[["not_an_id"]] * 5]),
    (Reading("id"), ["A-1_b~", "007", "a.b", "..", ".", "a/b", "a b", "a?b", "a" * 129],
     ["A-1_b~", "007", "a.b", *[["not_an_id"]] * 6]),
    (Reading("date", date="DD/MM/YYYY"), ["31/01/2026", "31/02/2026", "1/1/2026", "2026-01-31", ""],
     ["2026-01-31", ["not_a_date"], ["not_a_date"], ["not_a_date"], None]),
    *((Reading(kind), [], []) for kind in KINDS),
    *((Reading(kind), ["", " "], [None, None]) for kind in KINDS),
]  # fmt: skip


@pytest.mark.parametrize(("reading", "cells", "values"), CELLS)
def test_a_cell_is_a_value_or_has_a_code(reading: Reading, cells: list[str], values: list[Any]) -> None:
    assert read(reading, *cells) == values


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_a_text_that_is_not_trimmed_is_equal_in_every_byte(text: str) -> None:
    found = read(Reading("text", trim=False), text)[0]
    assert isinstance(found, list) or found == (text if text.strip() else None)


def test_the_words_of_a_code_say_what_the_column_expects_and_no_value() -> None:
    assert all("{" not in Reading("date").words(code) for code in WORDS)
    assert Reading("number", COMMA).words("not_a_number").endswith("1.234,5)")
    assert "DD/MM/YYYY" in Reading("date", date="DD/MM/YYYY").words("not_a_date")
    assert "(€, no sign)" in Reading("number", signs=("€", "")).words("currency")
    assert [is_date_form(form) for form in ("DD/MM/YYYY", "DD/MM", "DD/MM/YYYY hh")] == [True, False, False]
