"""Several tables in one file, one below the other or side by side: the user has to choose, so each check raises.

In: the records at the beginning of a file, the detected header and the types of its columns. Out: nothing, or a
UsageError that names the lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sources.errors import UsageError
from sources.files.dialect import DELIMITER, Record
from sources.files.model import Unclear


def check_earlier_table(records: Sequence[Record], header: Record) -> None:
    """Lines before the header may be a table: several of equal width, or with as many delimiters inside of quotes."""
    in_quotes = [replace(r, cells=_split(r) if len(r.cells or ()) == 1 else []) for r in records]
    for block in (*_blocks(records), *(block for block in _blocks(in_quotes) if len(block) > 2)):
        width = max(len(_filled(row)) for row in block)
        if len(block) >= (2 if width > 2 else 5):
            first, second = block[0].line, header.line
            raise Unclear(
                f"two tables: lines {first} to {block[-1].last} have {width} cells, and another one begins on line "
                f"{second}",
                "Move each to a file of its own, or choose one.",
                {f"it is that of line {line}": {"header_row": line} for line in (first, second)},
            )


def _split(record: Record) -> list[str]:
    """The cells; those of a line that is quoted as a whole."""
    cells = record.cells or []
    marks = Counter(DELIMITER.findall(cells[0])).most_common(1) if len(cells) == 1 else []
    return cells[0].split(marks[0][0]) if marks else cells


def _blocks(records: Sequence[Record]) -> Iterator[list[Record]]:
    """Consecutive records of equal width with at least two filled cells; those of a label (`Date:`) do not count."""
    block: list[Record] = []
    for record in records:
        cells = record.cells or []
        filled = [cell.strip() for cell in cells if cell.strip()]
        is_row = len(filled) >= 2 and not filled[0].endswith(":")
        if block and not (is_row and len(cells) == len(block[0].cells or ()) and block[-1].last + 1 == record.line):
            yield block
            block = []
        if is_row:
            block.append(record)
    if block:
        yield block


def check_table_beside(header: Record, rows: Sequence[list[str]]) -> None:
    """After an empty column without a name, further names and rows without cells before it may be another table."""
    names = [name.strip() for name in header.cells or ()]
    rows = [row for row in rows if len(row) == len(names)]
    for column in range(1, len(names) - 1):
        if names[column] or not any(names[:column]) or not any(names[column:]) or _fills(rows, column):
            continue
        if any(not any(row[:column]) and any(row[column:]) for row in rows):
            raise UsageError(
                f"two tables side by side: columns 1 to {column}, and those from column {column + 2} on",
                f"Move each to a file of its own, or if it is one table: --header-row {header.line}.",
            )


def _fills(rows: Sequence[list[str]], column: int) -> bool:
    """Whether a column has cells in more than a tenth of the rows."""
    return 10 * sum(bool(row[column]) for row in rows) > len(rows)


def _filled(record: Record) -> list[str]:
    """The cells without empty ones at the end."""
    cells = list(_split(record))
    while cells and not cells[-1].strip():
        cells.pop()
    return cells
