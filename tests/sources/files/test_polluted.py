"""Damaged files are read equal or refused with the line, never silently wrong.

Seeds: ORDERBRIDGE_SOAK_SEEDS (default 150 for single damages, and as many pairs); ORDERBRIDGE_SOAK_FIRST is the first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from sources.files import Row
from sources.files.reader import TextTable
from tests.sources.files.business import export, judged
from tests.sources.files.peers import unexplained
from tests.sources.files.polluted import DAMAGES, clean, damaged, silent_errors, with_damages

SEEDS = int(os.environ.get("ORDERBRIDGE_SOAK_SEEDS", "150"))
FIRST = int(os.environ.get("ORDERBRIDGE_SOAK_FIRST", "0"))


@pytest.mark.parametrize("count", [1, 2])
def test_no_damage_is_silent(tmp_path: Path, count: int) -> None:
    for seed in range(FIRST, FIRST + SEEDS):
        document, name = damaged(seed, count)
        assert silent_errors(document, tmp_path)[0] == [], f"seed {seed}, {name}"


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_alone_is_not_silent(tmp_path: Path, name: str) -> None:
    for seed in range(4):
        assert silent_errors(with_damages(f"alone {seed}", [name]), tmp_path)[0] == [], f"seed {seed}"


FORMER_ERRORS = """
20104 second_table missing_delimiter repeated_header
20882 stray_opening_quote second_table repeated_header
21262 second_table trailing_delimiter_everywhere
21105 text_after_a_quote quoted_wrongly_header
21294 two_stray_quotes
30913 trailing_delimiter_in_some_rows quoted_wrongly_header backslash_escapes
31393 trailing_delimiter_everywhere backslash_escapes broken_row
40010 two_stray_quotes
50090 two_stray_quotes
90320 trailing_delimiter_in_some_rows text_after_a_quote
91150 truncated short_header trailing_delimiter_everywhere
91329 totals truncated missing_delimiter
301248 space_before_quotes no_header
400318 second_table page_breaks subtotals
400810 quoted_lines comment_lines first_table
500416 curly_quotes second_table comment_lines
602778 table_beside quoted_lines first_table
301727 second_table tab_in_a_cell blank_lines
733351 quoted_lines lone_return_in_a_cell trailing_delimiter_everywhere
733444 quoted_lines title trailing_delimiter_everywhere
742600 title quoted_lines trailing_delimiter_everywhere
722105 short_header missing_delimiter trailing_delimiter_everywhere
720218 quoted_lines first_table long_header
720381 rule_below_the_header short_header trailing_delimiter_everywhere
900243 blank_lines apostrophe_before_digits two_stray_quotes
100331 doubled_stray_quotes no_header
103264 quoted_lines trailing_delimiter_everywhere metadata
104551 no_header broken_last_row header_that_lacks_a_delimiter
200178 subtotals trailing_delimiter_everywhere table_in_another_order
300699 doubled_stray_quotes padding quoted_lines
301498 backslash_escapes second_table_of_equal_length subtotals
6000059 curly_closing_quote table_amid_the_rows lone_return_in_a_cell
7000119 missing_delimiter totals table_amid_the_rows
7000333 byte_order_mark_in_the_middle rule_below_the_header table_amid_the_rows
793 table_amid_the_rows byte_order_mark_in_the_middle
2100 page_breaks titles_of_pages
73 table_amid_the_rows extra_delimiter
1014 blank_lines comment_lines titles_of_pages
7710172 page_breaks two_encodings header_that_lacks_a_delimiter
712344 short_header trailing_delimiter_everywhere quote_inside_a_cell
"""


def test_files_that_were_once_read_wrongly(tmp_path: Path) -> None:
    for line in FORMER_ERRORS.split("\n")[1:-1]:
        seed, *names = line.split()
        assert silent_errors(with_damages(seed, names), tmp_path)[0] == [], line


def test_clean_exports_of_business_software_are_read_whole(tmp_path: Path) -> None:
    """In six languages; at most 3 % may be refused or have a row rejected."""
    costly = []
    for seed in range(FIRST, FIRST + SEEDS):
        errors, reason = judged(export(seed), tmp_path)
        assert not errors, f"seed {seed}: {errors[:3]}"
        costly += [f"seed {seed}: {reason}"] if reason else []
    assert 100 * len(costly) <= 3 * SEEDS, costly
    for seed in range(20):
        assert silent_errors(clean(f"clean {seed}"), tmp_path) == ([], False), seed


def _cells(rows: list[Row], at: int, *cells: str) -> list[Row]:
    return [*rows[:at], Row(rows[at].line, cells), *rows[at + 1 :]]


PLANTED: list[tuple[Callable[[list[Row]], list[Row]], str]] = [
    (lambda rows: rows[:-1], "is lost"),
    (lambda rows: _cells(rows, 3, *rows[3].cells[1:], ""), "was changed"),
    (lambda rows: _cells(rows, 0, "A000", *rows[0].cells[1:]), "was changed"),
    (lambda rows: [*rows, rows[-1]], "is read twice"),
    (lambda rows: [*rows, Row(1, rows[0].cells)], "line 1 is not a row"),
]


@pytest.mark.parametrize(("plant", "words"), PLANTED)
def test_the_judge_sees_an_error_of_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[list[Row]], list[Row]], words: str
) -> None:
    original = TextTable.rows

    def batches(table: TextTable, **_: object) -> list[pa.Table]:
        names = [*table.columns, "_line"]
        rows = [row for row in table.rows() if isinstance(row, Row)]
        return [pa.table([[cell] for cell in (*row.cells, row.line)], names) for row in rows]

    monkeypatch.setattr(TextTable, "rows", lambda self: iter(plant([r for r in original(self) if isinstance(r, Row)])))
    monkeypatch.setattr(TextTable, "batches", batches)
    assert words in silent_errors(clean("clean 3"), tmp_path)[0][0]


def test_the_judges_see_other_batches_other_columns_and_other_rows_than_those_of_the_peers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document, original = clean("clean 3"), TextTable.batches
    assert unexplained(document, tmp_path) == []
    with monkeypatch.context() as patched:
        patched.setattr(TextTable, "batches", lambda table, **kwargs: (b.slice(1) for b in original(table, **kwargs)))
        assert silent_errors(document, tmp_path) == (["the rows in batches are others"], False)
    monkeypatch.setattr(TextTable, "rows", lambda table: iter([Row(2, ("wrong",) * len(table.columns))]))
    assert [reader for reader, _ in unexplained(document, tmp_path)] == ["csv", "duckdb"]
    monkeypatch.undo()
    document.columns = document.columns[::-1]
    assert "the columns are" in silent_errors(document, tmp_path)[0][0]
