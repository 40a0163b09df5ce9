"""What Arrow reads is what the exact reader reads."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sources.errors import UsageError
from sources.files import ReadOptions, RejectedRow, Row, SourceTable, open_table
from sources.files import encoding as texts
from sources.files.dialect import Dialect
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
OPTIONS = [
    ReadOptions(delimiter=";", header_row=1),
    ReadOptions(delimiter=";", header_row=1, quote='"'),
    ReadOptions(delimiter=";", header_row=1, quote="'"),
    ReadOptions(delimiter=";", header_row=1, quote=""),
    ReadOptions(delimiter=";", header_row=1, quote='"', escape="\\"),
    ReadOptions(delimiter=";", header_row=1, short_rows="fill"),
]


def in_batches(table: SourceTable, size: int) -> list[Row | RejectedRow]:
    rows: list[Row | RejectedRow] = []
    for batch in table.batches(size, rows.append):
        lines, *cells = (batch[name].to_pylist() for name in ("_line", *table.columns))
        rows += map(Row, lines, zip(*cells, strict=True))
    return sorted(rows, key=lambda row: row.line)


def outcome(table: SourceTable, size: int | None) -> object:
    try:
        return exact_rows(table) if size is None else in_batches(table, size)
    except UsageError as error:
        return error.message


@settings(max_examples=5 * settings().max_examples)
@given(
    st.lists(PIECES, max_size=25).map("".join) | REGULAR,
    st.sampled_from([";h1;h2", "", ";", ";h1;h2;"]),
    st.sampled_from(OPTIONS),
    st.sampled_from([7, 40, 1 << 17]),
)
@example("Sum;;\nb;c;d\n", ";h1;h2", OPTIONS[0], 1 << 17)
@example('a;"b";"c"\nd;"e ""f""";\n', ";h1;h2", OPTIONS[0], 1 << 17)
@example('a;"b\nc;d;e\nf;g;h"\n', ";h1;h2", OPTIONS[0], 1 << 17)
def test_both_readers_agree(body: str, more_names: str, options: ReadOptions, chunk: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "CHUNK_BYTES", chunk)
        path = Path(folder) / "in.csv"
        path.write_bytes(f"h0{more_names}\n{body}".encode())
        try:
            table = open_table(path, options)
        except UsageError:
            return
        assert outcome(table, 2) == outcome(table, None)


@pytest.mark.parametrize(
    "body",
    [
        "a;b;c\nd;e;f\n",
        'a;"b;x";c\n"d";"e ""y""";""\n',
        "a;b;c\r\nd;;f\r\n",
        "a;b;c\rd;e;f",
        "ñ;Total;x\nsum;a;b\n",
        "x;b;c\nx;y;c\n",
    ],
)
def test_ordinary_blocks_are_read_by_arrow(body: str) -> None:
    blocks = ArrowBlocks(Dialect(";"), RowShape(("x", "y", "z"), fill=False), quote_given=False)
    table = blocks.read(body, 5, 2)
    assert table is not None
    assert table["_line"].to_pylist() == [5, 6]


@pytest.mark.parametrize(
    "body",
    ['a;b"x;c\n', 'a;"b"x;c\n', 'a;"b\nc";d\n', 'a;"b;c;d\n', "a;b\n", "a;b;c;d\n", "\na;b;c\n", "x;y;z\n", "a;\0;c\n",
     "Total;;\n", ";Sum;\n", "\ufeffa;b;c\n", 'a;b; "c"\n', 'a;b;"c" \n'],
)  # fmt: skip
def test_other_blocks_are_left_to_the_exact_reader(body: str) -> None:
    blocks = ArrowBlocks(Dialect(";"), RowShape(("x", "y", "z"), fill=False), quote_given=False)
    assert blocks.read(body, 2, body.count("\n")) is None


def test_a_wide_block_is_read_row_by_row() -> None:
    for surplus, is_fast in ((0, True), (16_000, False)):
        blocks = ArrowBlocks(Dialect(";"), RowShape(("x", "y"), False, surplus), quote_given=False)
        assert (blocks.read(f"a;b{';' * surplus}\n", 2, 1) is not None) is is_fast
