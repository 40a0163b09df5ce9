"""Files with two possible readings: each check raises an error that names both and the options that choose one.

In: the records at the beginning of a file and the header that was detected. Out: nothing, or `Unclear`. Detection
only proceeds if one reading is left; taking the other one would lose rows or columns silently.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from sources.files.cell_types import column_types, is_data, type_of
from sources.files.dialect import DELIMITER, DELIMITERS, Record, lines_of, looks_like_names
from sources.files.model import DELIMITER_NAMES, Unclear
from sources.files.row_shape import number_of_cells

_MAY_BE_NAME: Final = re.compile(r"[1-9]\d{0,3}|[^\W\d_]+\d")
"""A number or code that may be a name: 2024, Q1."""
ROWS_COMPARED: Final = 200
TYPED_ROWS: Final = 8
"""Later ones may be those of another table."""


def check_header(records: Sequence[Record], header: Record, width: int) -> bool:
    """All checks of a header that was detected, not given; returns whether it is certainly a row.

    Args:
        records: the records of the sample, with blank and broken ones.
        header: the first record of the header.
        width: the number of columns.

    Raises:
        Unclear: there is a second reading.
    """
    at = next(index for index, record in enumerate(records) if record.line == header.line)
    after = [record for record in records[at + 1 :] if record.cells is not None]
    rows = [record.cells for record in after if record.cells and len(record.cells) >= width][:ROWS_COMPARED]
    types = column_types(rows[:TYPED_ROWS], width)
    if any('"' in name for name in header.cells or ()):
        raise Unclear(
            f"line {header.line}, the header, has a quote that does not enclose a whole name",
            "Fix the quotes in that line.",
            {"they belong to the name": {"header_row": header.line}},
        )
    _check_line_above(records[at - 1] if at else None, header, width)
    _check_earlier_table(records[:at], header, width)
    _check_table_beside(header, rows)
    return _is_row(header, types, is_first=header is records[0])


def check_single_column(sample: str) -> None:
    """Raises if a file that would be read as one column has a delimiter in most lines, as where lines are quoted."""
    lines = [line for line in lines_of(sample) if line.strip()]
    for mark in DELIMITERS if len(lines) > 2 else ():
        counts = [line.count(mark) for line in lines]
        if mark == "," and mark not in lines[0]:  # without those of prose
            counts = [line.replace(", ", "").count(mark) for line in lines]
        if 2 * sum(map(bool, counts)) > len(lines):
            name, another = DELIMITER_NAMES[mark], "tab" if mark != "\t" else "pipe"
            raise Unclear(
                f"most lines contain a {name}, but not as cells of equal number: {min(counts)} to {max(counts)} a line",
                "Export the file again, without quotes around whole lines.",
                {
                    f"a {name} separates the cells": {"delimiter": mark},
                    "the file has a single column": {"delimiter": "\t" if another == "tab" else "|"},
                },
            )


def has_labels(cells: Sequence[str], width: int) -> bool:
    """Whether a line above a table of this width has labels (`Date:`) with a value each, not names that end so."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    labels = sum(cell.endswith(":") for cell in filled)
    return labels > 0 and (len(filled) < width or labels < len(filled) <= 2 * labels)


def _check_line_above(above: Record | None, header: Record, width: int) -> None:
    """A broken line, or one of another width, right above the header may be the header itself."""
    if above is None or above.cells == [] or above.last + 1 != header.line:
        return
    fix, choice = f"Fix line {above.line}.", {f"line {header.line} has the names": {"header_row": header.line}}
    if above.cells is None:
        raise Unclear(
            f"line {above.line} has misplaced quotes; it may be the header, or the header is line {header.line}",
            fix,
            choice,
        )
    filled = [cell for cell in above.cells if cell.strip()]
    is_other_dialect = len(filled) == 1 and any(filled[0].count(mark) >= width - 1 > 0 for mark in DELIMITERS)
    if not is_other_dialect and (len(filled) < 2 or len(above.cells) == len(header.cells or ())):
        return
    is_metadata = any(type_of(cell) in ("number", "date", "address") for cell in filled)
    if has_labels(filled, width) or (is_metadata and looks_like_names((header.cells or [])[:width])):
        return
    raise Unclear(
        f"line {above.line} looks like the header, but has {number_of_cells(above.cells)} where the rows have {width}; "
        f"otherwise line {header.line} is the header",
        fix,
        choice | {f"line {above.line} has them": {"header_row": above.line}},
    )


def _is_row(header: Record, types: Sequence[str], *, is_first: bool) -> bool:
    """Whether the line of a header is a row: its cells are of the same types as those below, e.g. codes or dates."""
    alike, different = [], 0
    for name, kind in zip(header.cells or (), types, strict=False):
        own = type_of(name)
        is_alike = own == kind if any(types) else not _MAY_BE_NAME.fullmatch(name)
        alike += [name] if is_alike and is_data(own) else []
        different += bool(own) and not is_data(own) and (is_data(kind) or not any(types))
    if len(alike) <= different:
        return False
    if is_first and not different and any(types) and any(not _MAY_BE_NAME.fullmatch(name) for name in alike):
        return True
    raise Unclear(
        f"line {header.line} looks like a row, not like column names: it has numbers, dates or codes",
        "",
        {
            f"line {header.line} has the names": {"header_row": header.line},
            "there are no names": {"header_row": 0},
        },
    )


def _check_earlier_table(records: Sequence[Record], header: Record, width: int) -> None:
    """Lines before the header may be a table: several of equal width, or with as many delimiters inside of quotes."""
    in_quotes = [replace(record, cells=_split(record)) for record in records]
    for block in (*_blocks(records, width), *(block for block in _blocks(in_quotes, width) if len(block) > 2)):
        size = max(len(_filled(row)) for row in block)
        if len(block) >= (2 if size > 2 else 5):
            first, second = block[0].line, header.line
            raise Unclear(
                f"two tables: lines {first} to {block[-1].last} have {size} cells, and another one begins on line "
                f"{second}",
                "Move each to a file of its own, or choose one.",
                {f"it is that of line {line}": {"header_row": line} for line in (first, second)},
            )


def _check_table_beside(header: Record, rows: Sequence[list[str]]) -> None:
    """After an empty column without a name, further names and rows without cells before it may be another table."""
    names = [name.strip() for name in header.cells or ()]
    rows = [row for row in rows if len(row) == len(names)]
    for column in range(1, len(names) - 1):
        is_empty = not names[column] and 10 * sum(bool(row[column]) for row in rows) <= len(rows)
        if is_empty and any(names[:column]) and any(not any(row[:column]) and any(row[column:]) for row in rows):
            raise Unclear(
                f"two tables side by side: columns 1 to {column}, and those from column {column + 2} on",
                "Move each to a file of its own.",
                {"it is one table": {"header_row": header.line}},
            )


def _split(record: Record) -> list[str]:
    """The cells of a line that is quoted as a whole; none of other lines."""
    filled = [cell for cell in record.cells or () if cell.strip()]
    marks = Counter(DELIMITER.findall(filled[0])).most_common(1) if len(filled) == 1 else []
    return filled[0].split(marks[0][0]) if marks else []


def _blocks(records: Sequence[Record], width: int) -> Iterator[list[Record]]:
    """Consecutive records of equal width with at least two filled cells; those of labels do not count."""
    block: list[Record] = []
    for record in records:
        cells = record.cells or []
        filled = [cell.strip() for cell in cells if cell.strip()]
        is_row = len(filled) >= 2 and not has_labels(filled, width)
        if block and not (is_row and len(cells) == len(block[0].cells or ()) and block[-1].last + 1 == record.line):
            yield block
            block = []
        if is_row:
            block.append(record)
    if block:
        yield block


def _filled(record: Record) -> list[str]:
    """The cells without empty ones at the end."""
    cells = list(record.cells or ())
    while cells and not cells[-1].strip():
        cells.pop()
    return cells
