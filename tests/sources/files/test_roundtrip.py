"""Both readers of text agree, and any table of text, in any dialect, encoding and line end, comes back equal.

Limits: a text has no NUL. A row without any text is a blank line; a byte order mark does not begin a row, and totals
and dashes are no rows.
"""

from __future__ import annotations

import contextlib
import csv
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from unittest import mock

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sources.errors import UsageError
from sources.files import ReadOptions, RejectedRow, Row, SourceTable, encoding, open_table
from sources.files.dialect import Dialect
from sources.files.formulas import CsvFile
from sources.files.reader import ArrowBlocks
from sources.files.row_shape import RowShape
from tests.sources.files.reading import exact_rows

PIECES = st.sampled_from(
    ["a", "é", "b c", " ", "  ", "", "Total", "SUM", "ſuma", "subtotal", "gesamt", '"', '""', "'", ";", ",", "\n", "\r",
     "\r\n", "\0", "\ufeff", "\\", '";"', '\n"', '"\n', ";;", "h0"]
)  # fmt: skip
CELLS = st.sampled_from(
    ["a", "", "é", '"b;c"', '"d ""e"""', '""', '"f', 'g"', "Total", "Sum", " gesamt", "h0", '"x\ny"']
)
REGULAR = st.lists(st.lists(CELLS, min_size=3, max_size=4).map(";".join), max_size=8).map("\n".join)
GIVEN: list[dict[str, str]] = [
    {}, {"quote": '"'}, {"quote": "'"}, {"quote": ""}, {"quote": '"', "escape": "\\"}, {"short_rows": "fill"},
]  # fmt: skip
ANY = st.one_of(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\x1a"), st.sampled_from("\"'\\;,|\t\r\n ñ€ 07E")
)
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"]


@contextlib.contextmanager
def opened(data: bytes, options: ReadOptions) -> Iterator[SourceTable]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.csv"
        path.write_bytes(data)
        yield open_table(path, options)


def in_batches(table: SourceTable) -> list[Row | RejectedRow]:
    rows: list[Row | RejectedRow] = []
    for batch in table.batches(2, rows.append):
        *cells, lines = (column.to_pylist() for column in batch.columns)
        rows += map(Row, lines, zip(*cells, strict=True))
    return sorted(rows, key=lambda row: row.line)


def outcomes(table: SourceTable) -> Iterator[object]:
    for read in (in_batches, exact_rows):
        try:
            yield read(table)
        except UsageError as error:
            yield error.message


@settings(max_examples=5 * settings().max_examples)
@given(
    st.lists(PIECES, max_size=25).map("".join) | REGULAR,
    st.sampled_from([";h1;h2", "", ";", ";h1;h2;"]),
    st.sampled_from(GIVEN),
    st.sampled_from([7, 40, 1 << 17]),
)
@example("Sum;;\nb;c;d\n", ";h1;h2", {}, 1 << 17)
@example('a;"b";"c"\nd;"e ""f""";\n', ";h1;h2", {}, 1 << 17)
@example('a;"b\nc;d;e\nf;g;h"\n', ";h1;h2", {}, 1 << 17)
def test_both_readers_agree(body: str, more_names: str, options: dict[str, str], chunk: int) -> None:
    given = ReadOptions(delimiter=";", header_row=1, **options)  # type: ignore[arg-type]
    data = f"h0{more_names}\n{body}".encode()
    with (
        mock.patch.object(encoding, "CHUNK_BYTES", chunk),
        contextlib.suppress(UsageError),
        opened(data, given) as table,
    ):
        fast, exact = outcomes(table)
        assert fast == exact


@pytest.mark.parametrize(
    ("body", "surplus", "is_fast"),
    [
        *((body, 0, True) for body in (
            "a;b;c\nd;e;f\n", 'a;"b;x";c\n"d";"e ""y""";""\n', "a;b;c\r\nd;;f\r\n", "a;b;c\rd;e;f",
            "ñ;Total;x\nsum;a;b\n", "x;b;c\nx;y;c\n")),
        *((body, 0, False) for body in (
            'a;b"x;c\n', 'a;"b"x;c\n', 'a;"b\nc";d\n', 'a;"b;c;d\n', "a;b\n", "a;b;c;d\n", "\na;b;c\n", "x;y;z\n",
            "a;\0;c\n", "Total;;\n", ";Sum;\n", "\ufeffa;b;c\n", 'a;b; "c"\n', 'a;b;"c" \n')),
        (f"a;b;c{';' * 10}\n", 10, True),
        (f"a;b;c{';' * 16_000}\n", 16_000, False),
    ],
)  # fmt: skip
def test_ordinary_blocks_are_read_by_arrow(body: str, surplus: int, is_fast: bool) -> None:
    blocks = ArrowBlocks(Dialect(";"), RowShape(("x", "y", "z"), False, surplus), quote_given=False)
    lines = len(body.splitlines())
    table = blocks.read(body, 5, lines)
    assert (table is not None) is is_fast
    assert table is None or table["_line"].to_pylist() == [*range(5, 5 + lines)]


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    width = draw(st.integers(2, 6))
    return draw(st.lists(st.lists(st.text(ANY, max_size=8), min_size=width, max_size=width), max_size=12))


@settings(max_examples=3 * settings().max_examples)
@given(
    tables(),
    st.sampled_from(";,|\t^"),
    st.sampled_from("\"'"),
    st.sampled_from(["", "\\"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(ENCODINGS),
    st.sampled_from([1, 5, 1 << 17]),
)
def test_any_text_comes_back_where_the_dialect_is_given(
    rows: list[list[str]], delimiter: str, quote: str, escape: str, end: str, name: str, chunk: int
) -> None:
    if name == "cp1252":
        rows = [[cell.encode("cp1252", "ignore").decode("cp1252") for cell in row] for row in rows]
    names = tuple(f"column {position}" for position in range(len(rows[0]) if rows else 3))
    shape = RowShape(names, fill=False)
    rows = [row for row in rows if any(row)]
    assume(all(isinstance(shape.fit(0, 0, [*row], marks=True), Row) for row in rows))
    quoting: Literal[0, 1] = csv.QUOTE_ALL if escape else csv.QUOTE_MINIMAL
    out = io.StringIO(newline="")
    csv.writer(
        CsvFile(out, end), delimiter=delimiter, quotechar=quote, escapechar=escape or None, doublequote=not escape,
        quoting=quoting,
    ).writerows([names, *rows])  # fmt: skip
    data, options = out.getvalue().encode(name), ReadOptions(name, delimiter, quote, escape, header_row=1)
    with mock.patch.object(encoding, "CHUNK_BYTES", chunk), opened(data, options) as table:
        found = exact_rows(table)
        assert table.columns == names
        assert [row.cells for row in found] == [tuple(row) for row in rows]
        assert in_batches(table) == found
