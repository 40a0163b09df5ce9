"""What the intake is told, what it finds, and what it hands on: rows of text cells, or rows refused with a reason."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import pyarrow as pa

from sources.errors import UsageError

LINE_COLUMN: Final = "_line"
BATCH_ROWS: Final = 65_536
MAX_COLUMNS: Final = 16_384
"""What a sheet can have; a file with more is a delimiter misread, or hostile."""


@dataclass(frozen=True)
class ReadOptions:
    """What a person says instead of leaving it to be found; None is "find it".

    Attributes:
        encoding: a name that Python knows.
        delimiter: one character; two spaces are "runs of at least two spaces", one space "runs of spaces".
        quote: one character, or "" where nothing is quoted.
        escape: a backslash, or "" where a quote inside quotes is doubled.
        header_row: the 1-based line of the header; 0 where there is none, and columns are numbered.
        header_rows: over how many records the header runs.
        short_rows: what happens to a row with fewer cells than the header: it is refused, or filled with empty cells.
        sheet: of a workbook; a name, or a 1-based number.
    """

    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    escape: str | None = None
    header_row: int | None = None
    header_rows: int | None = None
    short_rows: Literal["refuse", "fill"] = "refuse"
    sheet: str | None = None


@dataclass(frozen=True)
class DetectedFormat:
    """How the file is read. The same file and the same `ReadOptions` give the same `DetectedFormat`; lines are 1-based.

    Attributes:
        kind: text or workbook; what belongs to the other kind is None or empty.
        line_ends: of LF, CRLF and CR those that occur, within cells too.
        header_lines: the line on which each row of the header begins.
        preamble: lines before the header that hold something.
        footnotes: lines after the table that hold something.
        columns: names, in order.
        renamed: columns whose name was empty or taken, and so was numbered.
        dropped_columns: columns without name and cells after the last one: a delimiter at the end of each line.
        lines: of the whole file.
        sheets: all sheets of the workbook.
    """

    kind: Literal["text", "workbook"]
    columns: tuple[str, ...]
    header_lines: tuple[int, ...]
    preamble: tuple[int, ...] = ()
    footnotes: tuple[int, ...] = ()
    renamed: tuple[str, ...] = ()
    dropped_columns: int = 0
    lines: int = 0
    encoding: str | None = None
    has_bom: bool = False
    delimiter: str | None = None
    quote: str | None = None
    escape: str | None = None
    line_ends: tuple[str, ...] = ()
    sheet: str | None = None
    sheets: tuple[str, ...] = ()


class Row(NamedTuple):
    """A row that fits: as many cells as there are columns. `line` is where it begins, 1-based."""

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class RejectedRow:
    """A row that does not fit. `reason` names lines and columns, never what a cell holds."""

    line: int
    last_line: int
    code: Literal["too_short", "too_long", "quoting", "nul", "cell_error"]
    reason: str
    cells: tuple[str, ...] = field(default=(), repr=False)


class SourceTable(ABC):
    """A file as rows of text cells. It may be walked any number of times."""

    found: DetectedFormat

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.found.columns

    @abstractmethod
    def rows(self) -> Iterator[Row | RejectedRow]:
        """Each row in the file's order, or why it was refused; blank lines are passed over.

        Raises:
            UsageError: the file cannot be read any further, e.g. a quote is never closed.
        """

    def batches(
        self, size: int = BATCH_ROWS, refuse: Callable[[RejectedRow], object] | None = None
    ) -> Iterator[pa.Table]:
        """The rows as Arrow tables of text columns, and `_line` (int64); none is longer than `size`.

        Args:
            size: rows of a table.
            refuse: called with each refused row; without it, the first of them is an error.

        Raises:
            UsageError: as for rows(); or a row was refused, and nobody takes it; or a column is named `_line`.
        """
        self.refuse_line_column()
        rows: list[Row] = []
        for row in self.rows():
            if isinstance(row, RejectedRow):
                take(row, refuse)
                continue
            rows.append(row)
            if len(rows) >= size:
                yield to_arrow(rows, self.columns)
                rows = []
        if rows:
            yield to_arrow(rows, self.columns)

    def with_decimals(self, signs: Mapping[str, str]) -> SourceTable:
        """The same table; in these columns, cells that are numbers and not texts have this decimal sign.

        A file of text has no such cells.
        """
        return self

    def refuse_line_column(self) -> None:
        """A column of the file with the name of ours would take its place."""
        if LINE_COLUMN in self.columns:
            raise UsageError(f"a column is named {LINE_COLUMN}, which is taken", "Give it another name in the file.")


def take(refused: RejectedRow, refuse: Callable[[RejectedRow], object] | None) -> None:
    """Hands a refused row on; where nobody takes it, it is an error."""
    if refuse is None:
        raise UsageError(f"line {refused.line}: {refused.reason}", "Mend the line, or leave it out.")
    refuse(refused)


def to_arrow(rows: list[Row], columns: tuple[str, ...]) -> pa.Table:
    """Rows that fit, as columns of text and `_line`."""
    cells = zip(*(row.cells for row in rows), strict=True)
    arrays = [pa.array(column, pa.string()) for column in cells]
    lines = pa.array([row.line for row in rows], pa.int64())
    return pa.Table.from_arrays([*arrays, lines], names=[*columns, LINE_COLUMN])


class Shape(NamedTuple):
    """What a record must look like to be a row: so many cells, and so many empty ones may follow."""

    columns: tuple[str, ...]
    fill: bool

    def fit(self, line: int, last: int, cells: list[str], *, nul: bool) -> Row | RejectedRow:
        """The record as a row, or why it is none.

        A longer record whose surplus cells are all empty loses nothing when it is cut, so it is. A shorter one may lack
        any cell, not the last ones, as where a line was broken in two; it is refused unless filling was asked for.
        """
        width = len(self.columns)
        count = len(cells)
        if count > width:
            if any(cells[width:]):
                words = f"{count} cells, and the header has {width}"
                return RejectedRow(line, last, "too_long", words, tuple(cells))
            del cells[width:]
        elif count < width:
            if not self.fill:
                words = (
                    f"{count} cells, and the header has {width}: {self.columns[count]!r} and what follows is missing"
                )
                return RejectedRow(line, last, "too_short", words, tuple(cells))
            cells += [""] * (width - count)
        if nul:
            for name, cell in zip(self.columns, cells, strict=True):
                if "\0" in cell:
                    return RejectedRow(line, last, "nul", f"a NUL character in {name!r}", tuple(cells))
        return Row(line, tuple(cells))
