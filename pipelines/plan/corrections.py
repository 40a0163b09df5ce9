"""The sheet `all lines` of a `result.xlsx`: what was typed there is noticed, since only `to correct` is imported.

In: a workbook whose rejected rows are imported. Out: an error that names the rows of `all lines` which are not as they
were written. Their hashes are in a hidden sheet of the workbook, so that it can be sorted, copied and sent elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from orderbridge.pipelines.imports import Inputs
from orderbridge.pipelines.imports.open import REJECT_COLUMNS
from orderbridge.sources.command_line import run_again
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import ReadOptions, RejectedRow, Row, open_table
from orderbridge.sources.files.workbook import HASHES_SHEET, corrections_sheet
from orderbridge.sources.texts import everywhere
from orderbridge.sources.words import listed

ALL_LINES: Final = everywhere("sheet.all_lines")
"""The names of the sheet in all languages."""
_HASH_BYTES: Final = 8
_HASHES_A_CELL: Final = 1_000
"""Hashes that share a cell, which holds twice as much: a cell for each would take as long as a column of the rows."""


def row_hash(cells: Sequence[str]) -> str:
    """Hash of the cells of a row. Spaces and line ends do not count: programs save them in their own way."""
    text = "\x1f".join(" ".join(cell.split()) for cell in cells)
    return hashlib.blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()


def hash_cells(hashes: Sequence[str]) -> list[str]:
    """The cells of the hidden sheet, the header first."""
    starts = range(0, len(hashes), _HASHES_A_CELL)
    return ["rows", *(" ".join(hashes[at : at + _HASHES_A_CELL]) for at in starts)]


def check_all_lines(inputs: Inputs, file: Path) -> None:
    """Compares the sheet `all lines` of a corrected workbook with what was written.

    Raises:
        UsageError: something was typed there; nothing of it would be imported.
    """
    table = inputs.table
    sheets = table.format.sheets
    all_lines = next((name for name in ALL_LINES if name in sheets), None)
    corrections = corrections_sheet(sheets)
    if not table.is_excerpt or all_lines is None or HASHES_SHEET not in sheets:
        return
    written: set[str] = set()
    for row in _rows(file, HASHES_SHEET):
        written.update(*(cell.split() for cell in row.cells))
    own = len(table.columns) - len(REJECT_COLUMNS)
    changed = [
        _name(row, own)
        for row in _rows(file, all_lines)
        if any(row.cells[:own]) and row_hash(row.cells[:own]) not in written
    ]
    if not changed:
        return
    raise UsageError(
        f"{file.name}: cells of the sheet `{all_lines}` were changed, and only `{corrections}` is imported: "
        f"{listed(changed)}",
        f"Type these corrections into `{corrections}`, or, for a line that is not there, import it in a file of "
        f"its own. Then delete the sheet `{all_lines}`, save the workbook, and {run_again()}",
    )


def _rows(file: Path, sheet: str) -> Iterator[Row | RejectedRow]:
    """The rows of a sheet below its first line, also those that no table would have."""
    return open_table(file, ReadOptions(sheet=sheet, header_row=1, totals="keep")).rows()


def _name(row: Row | RejectedRow, own: int) -> str:
    """The line of a row in the file of the import; of a row that was added, its place in the sheet."""
    line = row.cells[own] if len(row.cells) > own else ""
    return f"line {line}" if line.isdecimal() else f"row {row.line} of the sheet"
