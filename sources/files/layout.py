"""Detects the layout of a table: preamble, header, and the names and types of its columns.

In: the records at the beginning of a file. Out: `Layout`. Nothing that could be data is left out without evidence.
Where a second reading would lose rows or columns silently, `Unclear` names both, and the options that choose one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.cell_types import (
    VALUES,
    column_kinds,
    column_types,
    is_data,
    type_of,
)
from orderbridge.sources.files.column_names import column_name, numbered_names
from orderbridge.sources.files.header import find_header, find_known_header
from orderbridge.sources.files.header_evidence import TYPED_ROWS
from orderbridge.sources.files.layout_checks import ROWS_COMPARED, check_header, check_widths
from orderbridge.sources.files.model import ReadOptions
from orderbridge.sources.files.records import Record, is_blank, looks_like_names, width_of
from orderbridge.sources.files.row_pattern import pattern_of, steady_columns
from orderbridge.sources.files.row_shape import RowShape
from orderbridge.sources.files.row_words import is_rule, is_totals
from orderbridge.sources.files.table_width import names_width, surplus_cells, trimmed_width


@dataclass(frozen=True)
class Layout:
    """The rows of a table, and the position of its header.

    Attributes:
        shape: the cells that a row must have; with the types of the columns if the header was detected.
        data_line: the first line after the header.
    """

    shape: RowShape
    header_lines: tuple[int, ...]
    data_line: int
    preamble: tuple[int, ...]
    renamed: tuple[str, ...]

    def found(self) -> dict[str, Any]:
        """The attributes of a `DetectedFormat` that are the same for texts and sheets."""
        return {
            "columns": self.shape.columns,
            "renamed": self.renamed,
            "dropped_columns": self.shape.surplus,
            "header_lines": self.header_lines,
            "preamble": self.preamble,
        }


def detect_layout(
    records: list[Record], options: ReadOptions, *, skipped: tuple[int, ...] = ()
) -> Layout:
    """The layout of a table, from the records at its beginning.

    Args:
        records: in order, with blank lines.
        options: header_row, and which rows are rejected.
        skipped: non-blank lines before the first record.

    Raises:
        UsageError: there is no header at the given line, or no line looks like one.
    """
    filled = [record for record in records if record.filled]
    if not filled:
        raise UsageError(
            "no table found: every line is blank or broken", "Check how the file was exported."
        )
    rows = [record.cells or [] for record in filled]
    width = trimmed_width(rows, width_of(filled))
    line = options.header_row
    if line is None:
        line = _header_line(records, filled, rows, options.known_columns, width)
    at = _first_of_table(filled, line, width)
    names = [""] * width
    surplus = len(rows[at]) - width
    if line:
        count = names_width(rows[at], rows[at + 1 :])
        names = list(map(column_name, rows[at][:count]))
        surplus = surplus_cells(rows[at + 1 :], count, len(rows[at]) - count)
        if options.header_row is None:
            check_widths(line, count, surplus, rows[at], rows[at + 1 :])
    columns, renamed = numbered_names(names)
    shape = RowShape(
        columns,
        options.short_rows == "fill",
        surplus,
        header=line,
        keeps_totals=options.totals == "keep",
        keeps_headings=options.keeps_headings,
        titles=_titles(filled[:at], len(columns), surplus) if line else (),
    )
    if options.header_row is None:
        shape = _with_pattern(shape, filled[at + bool(line) :], records)
    if not options.checks_rows:
        shape = shape.with_earlier_checks()
    preamble = skipped + tuple(record.line for record in filled[:at])
    data_line = filled[at].last + 1 if line else filled[at].line
    return Layout(shape, (line,) if line else (), data_line, preamble, renamed)


def _header_line(
    records: list[Record],
    filled: list[Record],
    rows: list[list[str]],
    known_columns: Sequence[str],
    width: int,
) -> int:
    """The line of the header that is detected; 0 where the table has none. Raises UsageError, see `check_header`."""
    known = find_known_header(filled, known_columns, width)
    header = known or filled[find_header(filled, rows)]
    is_row = check_header(records, header, width, is_known=known is not None)
    return 0 if is_row else header.line


def _first_of_table(filled: Sequence[Record], line: int, width: int) -> int:
    """The index of the header on a line, or of the first row if there is none (0)."""
    if line == 0:
        return next(at for at, record in enumerate(filled) if len(record.cells or ()) >= width)
    for at, record in enumerate(filled):
        if record.line == line:
            return at
    raise UsageError(
        f"no header begins on line {line}", "Look at the lines of the file in a text editor."
    )


def _titles(above: list[Record], width: int, surplus: int) -> tuple[tuple[str, ...], ...]:
    """The cells of lines that have as many as a row of several."""
    lines = [record.cells or [] for record in above] if width > 1 else []
    return tuple(tuple(cells[:width]) for cells in lines if len(cells) == width + surplus)


def _with_pattern(shape: RowShape, rows: list[Record], records: list[Record]) -> RowShape:
    """The shape with the pattern of its rows, up to a blank line or to the names of another table."""
    width = len(shape.columns)
    has_second = shape.header > 0 and _has_second_names(rows, width)
    usual = _usual_rows(rows[has_second:ROWS_COMPARED], records, shape)
    return shape._replace(
        pattern=pattern_of(usual, width), second_names=rows[0].line if has_second else 0
    )


def _usual_rows(rows: list[Record], records: list[Record], shape: RowShape) -> list[list[str]]:
    """The cells of rows, without odd ones, up to a blank line or to the names of another table."""
    width = len(shape.columns)
    names = {name.casefold() for name in shape.columns}
    # a broken line is not blank
    blank = {
        record.line for record in records if record.cells is not None and is_blank(record.cells, 2)
    }
    usual: list[list[str]] = []
    ended = False
    for row in rows:
        cells = row.cells or []
        ended = ended or (len(usual) > 1 and row.line - 1 in blank)
        if _is_odd(cells, names, width):
            continue
        if ended or looks_like_names(cells[:width]):
            break
        usual.append(cells)
    return usual


def _is_odd(cells: list[str], names: set[str], width: int) -> bool:
    """Whether a line is short, or has totals, a rule, one cell of several, or names of the header."""
    if len(cells) < width or is_rule(cells) or is_totals(cells):
        return True
    repeated = names.intersection(map(str.casefold, cells))
    return width > 1 and (sum(map(bool, cells)) < 2 or len(repeated) > 1)


def _has_second_names(rows: list[Record], width: int) -> bool:
    """Whether the first row has no data in any of the columns with numbers, dates or codes, and a text in one.

    It fills all columns; or it has no code and nothing but words, where names go on: `Code;Name;Date` above `;;am`.
    """
    first, *others = [row.cells or [] for row in rows[: TYPED_ROWS + 1]] or [[]]
    whole = [cells for cells in others if len(cells) >= width]
    if len(whole) < 2 or len(first) < width:
        return False
    kinds = column_kinds(whole, width)
    types = column_types(kinds)
    steady = steady_columns(kinds)
    if not all(first[:width]) and not _goes_on(first[:width], steady):
        return False
    own = {at: type_of(first[at]) for at in steady}
    has_own = any(kinds[at][kind] for at, kind in own.items())
    has_other = any(kind == "text" or types[at] in VALUES for at, kind in own.items() if kind)
    return len(steady) > 1 and has_other and not has_own


def _goes_on(cells: Sequence[str], steady: Sequence[int]) -> bool:
    """Whether a line has no code, where the rows have one, and words only."""
    return 0 in steady and not cells[0] and not any(is_data(type_of(cell)) for cell in cells)
