"""Any table of text, written in any dialect, encoding and line end, comes back equal.

Limits: a given dialect takes any text without NUL; a dialect that is to be detected gets a header of words, and cells
without the other delimiters. A text may not end in NUL or Ctrl-Z, which pad files. A row without any text is a blank
line; a byte order mark does not begin a row, and totals and dashes are no rows.
"""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import Literal

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sources.files import ReadOptions, Row, open_table
from sources.files.row_shape import RowShape

WIDTHS = st.integers(2, 6)
LATIN = st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_categories=["Cc"])
ANY = st.one_of(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\x1a"), st.sampled_from("\"'\\;,|\t\r\n ñ€ 07E")
)
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]
ENDS = ["\n", "\r\n", "\r"]


def written(
    rows: list[list[str]], delimiter: str, quote: str, escape: str, end: str, quoting: Literal[0, 1] = csv.QUOTE_MINIMAL
) -> str:
    out = io.StringIO(newline="")
    # csv quotes a CR or LF only where its own line end has it, so that stands in for the one asked for
    made = []
    for row in rows:
        line = csv.writer(
            out, delimiter=delimiter, quotechar=quote, escapechar=escape or None, doublequote=not escape,
            lineterminator="\r\n", quoting=quoting,
        )  # fmt: skip
        line.writerow(row)
        made.append(out.getvalue().removesuffix("\r\n") + end)
        out.seek(0)
        out.truncate()
    return "".join(made)


def back(data: bytes, reported: ReadOptions) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.csv"
        path.write_bytes(data)
        table = open_table(path, reported)
        rows = list(table.rows())
        assert all(isinstance(row, Row) for row in rows), rows
        cells = [row.cells for row in rows if isinstance(row, Row)]
        parts = [part.drop_columns("_line").to_pylist() for part in table.batches(3)]
        assert [tuple(row.values()) for part in parts for row in part] == cells
        return table.columns, cells


@st.composite
def tables(draw: st.DrawFn, letters: st.SearchStrategy[str]) -> list[list[str]]:
    width = draw(WIDTHS)
    cell = st.text(letters, max_size=8)
    return draw(st.lists(st.lists(cell, min_size=width, max_size=width), max_size=12))


@settings(max_examples=3 * settings().max_examples)
@given(
    tables(ANY),
    st.sampled_from(";,|\t^"),
    st.sampled_from("\"'"),
    st.sampled_from(["", "\\"]),
    st.sampled_from(ENDS),
    st.sampled_from(ENCODINGS),
)
def test_any_text_comes_back_where_the_dialect_is_reported(
    cells: list[list[str]], delimiter: str, quote: str, escape: str, end: str, encoding: str
) -> None:
    if encoding == "cp1252":
        cells = [[cell.encode("cp1252", "ignore").decode("cp1252") for cell in row] for row in cells]
    names = [f"column {position}" for position in range(len(cells[0]) if cells else 3)]
    shape = RowShape(tuple(names), fill=False)
    cells = [row for row in cells if any(row)]
    assume(all(isinstance(shape.fit(0, 0, [*row], marks=True), Row) for row in cells))
    quoting: Literal[0, 1] = csv.QUOTE_ALL if escape else csv.QUOTE_MINIMAL
    text = written([names, *cells], delimiter, quote, escape, end, quoting)
    reported = ReadOptions(encoding, delimiter, quote, escape, header_row=1)
    assert back(text.encode(encoding), reported) == (tuple(names), [tuple(row) for row in cells])


@settings(max_examples=2 * settings().max_examples)
@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.text(LATIN, max_size=12), st.integers(0, 99999)), min_size=2),
    st.sampled_from(";,|\t"),
    st.sampled_from(ENDS),
    st.sampled_from(ENCODINGS),
)
def test_a_dialect_that_is_found_gives_the_cells_back(
    made: list[tuple[int, str, int]], delimiter: str, end: str, encoding: str
) -> None:
    kept = [(n, "".join(char for char in name if char not in "\"';,|\t "), cents) for n, name, cents in made]
    cells = [[f"{n:010}", f"{name}{delimiter}{name}", f"{cents / 100:.2f}"] for n, name, cents in kept]
    text = written([["Code", "Name", "Price"], *cells], delimiter, '"', "", end)
    found = back(
        text.encode(encoding), ReadOptions(encoding if encoding in ("cp1252", "utf-16-le", "utf-16-be") else None)
    )
    assert found == (("Code", "Name", "Price"), [tuple(row) for row in cells])
