"""Cells that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.errors import UsageError
from sources.files import ReadOptions, RejectedRow, open_table
from sources.files.formulas import UnescapedTable, csv_lines, escape, neutralize, neutralize_column, unescape

ESCAPED = {text: f"'{text}" for text in
           ("=1+1", "+cmd|'/c calc'!A1", "-2+3", "@SUM(A1)", '=HYPERLINK("http://x")', "＝1", "+A1")} | {
    "x;=1+1;y": "x;'=1+1;y",
    "a,@SUM(A1)": "a,'@SUM(A1)",
    "x\t-2+3": "x\t'-2+3",
    'b|"=1"': 'b|\'"=1"',
    "two\n=lines": "two\n'=lines",
    "\t=1": "'\t'=1",
    "\r=1": "'\r'=1",
} | {text: text for text in
     ("-5", "+34 600 112 233", "-1.234,50", "+1", "-", "", "a=b", "'quoted'", "5-3", "1e5", "Ana", " =1", "12,-",
      "a; -1", "3,50;-4", "two\r\nlines")}  # fmt: skip
TEXTS = st.text(st.sampled_from("=a,;\"'\r\n é"), max_size=4)


@pytest.mark.parametrize("text", ESCAPED)
def test_a_formula_gets_an_apostrophe_and_numbers_and_texts_stay_readable(text: str) -> None:
    assert neutralize(text) == escape(text) == ESCAPED[text]
    assert unescape(ESCAPED[text]) == text


@given(st.text(st.sampled_from("'\"=+-@\t\r\n5,; .aＡ＝"), max_size=6))
def test_what_was_escaped_is_restored_and_never_runs(text: str) -> None:
    assert unescape(escape(text)) == text
    for cell in (escape(text), neutralize(text)):
        for part in re.split("[,;|\t\r\n]", cell):
            assert not re.match('"*[=+@＝-]', part) or re.fullmatch("[+-][0-9 .]*", part)
        assert neutralize(cell) == cell
    column = pa.array([None, text])
    assert neutralize_column(column).to_pylist() == [None, neutralize(text)]


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4), st.integers(1, 2))
def test_rows_written_by_columns_are_those_of_a_csv_writer(rows: list[tuple[str, ...]], width: int) -> None:
    rows = [row[:width] for row in rows]
    file = io.StringIO(newline="")
    csv.writer(file).writerows(rows)
    assert csv_lines([pa.chunked_array([column], pa.string()) for column in zip(*rows, strict=True)]) == file.getvalue()


def test_rejected_rows_of_a_file_of_rejects_are_restored_too(tmp_path: Path) -> None:
    (tmp_path / "rejects.csv").write_text("code;'=name\n'=1;a\n'=2;b;c\n'-x;d\n", "utf-8")
    again = UnescapedTable(open_table(tmp_path / "rejects.csv", ReadOptions(delimiter=";")))
    assert again.columns == ("code", "=name")
    taken: list[RejectedRow] = []
    rows = [row for batch in again.batches(2, taken.append) for row in batch.drop_columns("_line").to_pylist()]
    assert rows == [{"code": "=1", "=name": "a"}, {"code": "-x", "=name": "d"}]
    assert [row.cells for row in taken] == [("=2", "b", "c")]
    assert [row.cells for row in again.rows()] == [("=1", "a"), ("=2", "b", "c"), ("-x", "d")]
    with pytest.raises(UsageError, match="line 3: 3 cells"):
        list(again.batches())
    (tmp_path / "whole.csv").write_text("code;'=name\n" + "'=1;a\n" * 5, "utf-8")
    whole = UnescapedTable(open_table(tmp_path / "whole.csv", ReadOptions(delimiter=";")))  # read by Arrow
    assert [row.cells for row in whole.rows()] == [("=1", "a")] * 5
