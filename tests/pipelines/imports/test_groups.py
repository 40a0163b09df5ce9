"""Lines that stand for each other: cells from above, and where groups begin."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipelines.imports.groups import blank_lines, changes, filled_down


def table(**columns: list[str]) -> pa.Table:
    return pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})


def test_an_empty_cell_takes_the_cell_above_within_its_group() -> None:
    rows = table(handle=["a", "a", "b", "b"], option=["Size", "", " ", "Color"])
    filled, rows_from = filled_down(rows, ["option"], ["handle"])
    assert filled["option"].to_pylist() == ["Size", "Size", " ", "Color"]
    assert rows_from["option"].tolist() == [0, 0, -3, 3]  # nothing was found from row 2 on
    filled, rows_from = filled_down(rows, ["option"], [])
    assert filled["option"].to_pylist() == ["Size", "Size", "Size", "Color"]
    assert rows_from["option"].tolist() == [0, 0, 0, 3]


def test_a_column_that_reports_the_group_can_be_filled_itself() -> None:
    rows = table(handle=["a", "", "b", ""], option=["Size", "", "", "Color"])
    filled, _ = filled_down(rows, ["option", "handle"], ["handle"])
    assert filled["handle"].to_pylist() == ["a", "a", "b", "b"]
    assert filled["option"].to_pylist() == ["Size", "Size", "", "Color"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "x", "y"]))))
def test_filling_is_what_a_loop_does(rows: list[tuple[str, str]]) -> None:
    expected: list[str] = []
    for at, (key, cell) in enumerate(rows):
        same = at > 0 and rows[at - 1][0] == key
        expected.append(cell or (expected[-1] if same else ""))
    made = table(key=[key for key, _ in rows], cell=[cell for _, cell in rows])
    assert filled_down(made, ["cell"], ["key"])[0]["cell"].to_pylist() == expected


def test_a_group_begins_where_one_of_its_columns_changes() -> None:
    rows = table(a=["1", "1", "1", "2"], b=["x", "x", "y", "y"])
    assert changes(rows, ["a", "b"]).tolist() == [True, False, True, True]
    assert changes(rows, []).tolist() == [True, False, False, False]
    assert changes(table(a=[]), ["a"]).tolist() == []


def test_a_line_is_blank_where_all_of_the_columns_are() -> None:
    rows = table(a=["", " ", "x", "NULL"], b=["", "y", "", ""])
    assert blank_lines(rows, ["a", "b"]).tolist() == [True, False, False, False]
    assert blank_lines(rows, ["a", "b"], ("NULL",)).tolist() == [True, False, False, True]
