"""The lines of a file, prepared to be converted.

In: a source table, a mapping, and the columns that are read. Out: batches of these columns, empty cells filled from
above, with skipped and rejected lines apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports.groups import blank_lines, filled_down, whole
from orderbridge.pipelines.imports.model import SkippedLine
from orderbridge.pipelines.mapping import Mapping
from orderbridge.sources.files import RejectedRow, SourceTable
from orderbridge.sources.files.model import LINE_COLUMN, RejectCode
from orderbridge.transforms.frames import Bools

BATCH_ROWS: Final = 16_384
_WITHOUT_CELLS: Final = ("repeated_header", "totals", "rule")
"""Codes of lines without a cell that others are filled from."""


class LineBatch(NamedTuple):
    """Lines that are inputs, lines that are skipped, and rows that do not fit the file."""

    table: pa.Table
    skipped: list[SkippedLine]
    rejected: list[RejectedRow]


def prepared_lines(
    table: SourceTable, mapping: Mapping, columns: Sequence[str]
) -> Iterator[LineBatch]:
    """The lines of a file with the columns that are read, in batches."""
    columns = [*columns, LINE_COLUMN]
    empty = mapping.formats.empty or ()
    rejected: list[RejectedRow] = []
    fill = FillDown(mapping) if mapping.fill_down and not table.is_excerpt else None
    for batch in table.batches(BATCH_ROWS, rejected.append):
        lines = batch.select(columns)
        numbers = lines[LINE_COLUMN].to_numpy()
        is_skipped = np.zeros(len(numbers), np.bool_)
        if mapping.skip_blank:
            is_skipped = blank_lines(lines, mapping.skip_blank, empty)
        if fill is not None:
            lines, is_torn = fill.add(lines, rejected)
        else:
            is_torn = _unfilled(batch, mapping)
        is_lost = np.zeros_like(is_torn)
        if table.is_excerpt and not mapping.group:
            is_lost = _without_cells(batch, rejected)
        is_skipped &= ~is_lost
        is_torn &= ~is_lost
        rejected += map(_torn, numbers[is_torn & ~is_skipped].tolist())
        reason = f"{', '.join(mapping.skip_blank)}: empty"
        skipped = [SkippedLine((line,), reason) for line in numbers[is_skipped].tolist()]
        skipped += _take_totals(rejected, mapping)
        is_left_out = is_skipped | is_torn | is_lost
        lines = lines.filter(pa.array(~is_left_out)) if is_left_out.any() else lines
        yield LineBatch(lines, skipped, rejected)
        rejected.clear()
    if rejected:
        types = {name: pa.int64() if name == LINE_COLUMN else pa.string() for name in columns}
        yield LineBatch(pa.schema(types).empty_table(), _take_totals(rejected, mapping), rejected)


def _without_cells(excerpt: pa.Table, rejected: list[RejectedRow]) -> Bools:
    """Lines of an excerpt whose cells could not be repeated and were not filled in: they are rejected as they were."""
    *own, _, _, code, words, line = excerpt.column_names
    is_lost = blank_lines(excerpt, own)
    is_lost &= pc.is_in(whole(excerpt, code), pa.array(get_args(RejectCode))).to_numpy(
        zero_copy_only=False
    )
    lost = excerpt.filter(pa.array(is_lost))
    rejected += map(RejectedRow, *(lost[name].to_pylist() for name in (line, line, code, words)))
    return is_lost


def _take_totals(rejected: list[RejectedRow], mapping: Mapping) -> list[SkippedLine]:
    """Removes lines of totals from the rejected rows if they are to be skipped, and returns them."""
    if mapping.read_options.totals != "skip":
        return []
    totals = [
        SkippedLine((row.line,), "a line of totals") for row in rejected if row.code == "totals"
    ]
    rejected[:] = [row for row in rejected if row.code != "totals"]
    return totals


def _unfilled(excerpt: pa.Table, mapping: Mapping) -> Bools:
    """Lines of an excerpt with a cell that may have to be filled from a line that is not in it.

    The cells of `fill_down` were filled when it was written, except in lines that could not be read or were torn. With
    `fill_within`, others are empty because there is nothing to fill them from.
    """
    is_unfilled = np.zeros(excerpt.num_rows, np.bool_)
    for name in mapping.fill_down:
        is_unfilled |= blank_lines(excerpt, [name], mapping.formats.empty or ())
    if mapping.fill_within:
        code = whole(excerpt, excerpt.column_names[-3])  # before the words and the line number
        is_unfilled &= pc.is_in(code, pa.array(get_args(RejectCode))).to_numpy(zero_copy_only=False)
    return is_unfilled


class FillDown:
    """Fills empty cells from the line above, over all batches of a file.

    A line that cannot be read may have had the cell to fill from: lines that would be filled across it are torn.
    """

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._empty = mapping.formats.empty or ()
        self._last: pa.Table | None = None
        self._last_origins: dict[str, int] = {}
        self._unread = np.array([], np.int64)

    def add(self, lines: pa.Table, rejected: Sequence[RejectedRow]) -> tuple[pa.Table, Bools]:
        """Fills the next lines; returns them, and which are torn. `rejected` has what was rejected since the last."""
        mapping = self._mapping
        begin = int(self._last is not None)
        unread = [row.line for row in rejected if row.code not in _WITHOUT_CELLS]
        self._unread = np.sort(np.concatenate((self._unread, np.array(unread, np.int64))))
        joined = lines if self._last is None else pa.concat_tables([self._last, lines])
        joined, origins = filled_down(joined, mapping.fill_down, mapping.fill_within, self._empty)
        numbers = joined[LINE_COLUMN].to_numpy()
        unread_above = np.searchsorted(self._unread, numbers)
        is_torn = np.zeros(len(numbers), np.bool_)
        for name, rows in origins.items():
            of_last = self._last_origins.get(name, -1)
            line_above = np.concatenate(([of_last], numbers))
            origin = numbers.copy()
            origin[:begin] = of_last
            above = np.where(rows < 0, line_above[-1 - rows], origin[rows])
            is_torn |= np.searchsorted(self._unread, above) < unread_above
            self._last_origins[name] = int(above[-1])
        self._last = joined.slice(joined.num_rows - 1)
        return joined.slice(begin), is_torn[begin:]


def _torn(line: int) -> RejectedRow:
    reason = "a cell is filled from above, and the line above could not be read or is not in the file; fill the cell"
    return RejectedRow(line, line, "fill_torn", reason)
