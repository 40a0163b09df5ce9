"""Arrow's blocks and the reader of single rows give the same rows, rejected rows and errors, whatever is in a file.

The reader of single rows is the truth. Files are made of a seed: rows of plain and of quoted cells, over several lines
too, and in some files a row here and there that does not fit. Blocks are so small that records cross their ends, and so
are the pieces into which a block with an unusual line is cut.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from unittest import mock

import pytest

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import (
    ReadOptions,
    RejectedRow,
    Row,
    SourceTable,
    encoding,
    text_table,
)
from orderbridge.sources.files.arrow_blocks import ArrowBlock, ArrowBlocks
from tests.sources.files.reading import table

NAMES = ("code", "name", "note", "price")
WORDS = ("Perno", "Tuerca", "rojo vivo", "Öse", "7.50", "", "", "12", "A-7", "5 mm")
QUOTED = ("x; y", "", "Ana", 'the "best"', '"', '""', "7.50", 'end"', "Total")
LONG = (
    "two\nlines",
    "\n",
    "\r\n\r\n",
    "ends\n",
    "\nbegins",
    'a "b"\n"c"',
    "a return\ralone",
    "1;2;3;4\n5;6;7;8\n9;1;2;3",
    "a;b\nc;d",
    "Total\n9",
    "--\n--",
    "code\nname",
    "ñ\nö",
)
ODD = (
    "A1;Perno",
    "A1;Perno;x;7;8",
    "",
    ";;;",
    "  ",
    "Total;;;99.00",
    "Suma: 7;;;",
    "------;----;--;--",
    ";kg;m;EUR",
    "code;name;note;price",
    'A1;5" tube;x;7',
    'A1;"a"b;x;7',
    'A1;14"Perno, inox";x;7',
    'A1;"never closed;x;7',
    'A1;x";y;7',
    "A1;nu\0l;x;7",
    "A1;\x86;x;7",
    "cliente;ciudad;zona;agente",
    "LISTADO;;;",
    *(
        ";;;99.00",
        ";Total;x;9",
        "Perno;Total;x;9",
        "Familia;Perno;;",
        ";Perno;;",
        "A1 Perno;7.50;x;",
    ),
    "\ufeffA1;Perno;x;7",
)


def content(rng: random.Random) -> str:
    """A table of the columns `NAMES`, whose records end with one kind of line end."""
    end = rng.choice(("\n", "\n", "\r\n", "\r"))
    long_share = rng.choice((0.0, 0.05, 0.3))
    odd_share = rng.choice((0.0, 0.0, 0.02, 0.1))
    lines = [";".join(NAMES)]
    for number in range(rng.randrange(1, 60)):
        if rng.random() < odd_share:
            lines.append(rng.choice(ODD))
            continue
        price = rng.choice(("7.50", '"12"', "0.99"))
        cells = [f"A{number:03}", _cell(rng, long_share), _cell(rng, long_share), price]
        lines.append(";".join(cells))
    return end.join([*lines, ""] if rng.random() < 0.8 else lines)


def _cell(rng: random.Random, long_share: float) -> str:
    if rng.random() < long_share:
        text = rng.choice(LONG)
    elif rng.random() < 0.8:
        return rng.choice(WORDS)
    else:
        text = rng.choice(QUOTED)
    return '"' + text.replace('"', '""') + '"'


def outcome(opened: SourceTable) -> list[Row | RejectedRow | str]:
    """The rows in order, then the error that ends them."""
    found: list[Row | RejectedRow | str] = []
    try:
        found.extend(opened.rows())
    except UsageError as error:
        found.append(str(error))
    return found


@pytest.mark.parametrize("options", [{}, {"quote": '"'}, {"short_rows": "fill", "header_row": 1}])
def test_arrow_reads_what_the_reader_of_single_rows_does(
    tmp_path: Path, options: dict[str, str]
) -> None:
    counts = Counter[str]()
    own_read = ArrowBlocks.read

    def counted(blocks: ArrowBlocks, block: str, line: int) -> ArrowBlock | None:
        found = own_read(blocks, block, line)
        is_long = found is not None and found.rows.num_rows < found.lines
        counts[f"{found is not None} {'long' * is_long}".strip()] += 1
        return found

    for seed in range(150):
        rng = random.Random(seed)
        text = content(rng)
        with mock.patch.object(encoding, "CHUNK_BYTES", rng.choice((60, 250, 4000))):
            try:
                opened = table(
                    tmp_path,
                    text,
                    ReadOptions(delimiter=";", **options),  # type: ignore[arg-type]
                )
            except UsageError:
                continue
            with mock.patch.object(ArrowBlocks, "read", return_value=None):
                expected = outcome(opened)
            pieces = mock.patch.object(text_table, "PIECE_CHARS", rng.choice((20, 100, 1 << 14)))
            with pieces, mock.patch.object(ArrowBlocks, "read", counted):
                assert outcome(opened) == expected, (seed, text)
    assert counts["True long"] > 50, (
        "the comparison is empty unless Arrow reads cells of several lines"
    )
    assert counts["True"] > 200


def test_one_unusual_line_sends_no_whole_block_to_the_reader_of_single_rows(tmp_path: Path) -> None:
    rows = [f"A{number:05};Perno;x;7.50" for number in range(10_000)]
    rows[5_000:5_000] = ["", 'B1;5" tube;x;7.50', "B2;Perno"]
    opened = table(tmp_path, "\n".join([";".join(NAMES), *rows, ""]))
    single = sum(isinstance(part, Row) for part in opened.parts())
    assert 0 < single < 1_500
    assert len(outcome(opened)) == 10_002
