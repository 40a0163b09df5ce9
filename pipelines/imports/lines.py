"""The lines of a file, prepared: empty cells filled from above, lines that are no input separated.

In: a source table and a mapping. Out: batches of the columns that are read, with skipped and rejected lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from pipelines.mapping import Mapping
from sources.files import RejectedRow, SourceTable
from sources.files.model import LINE_COLUMN
from transforms.upserts.lines import blank_lines, filled_down

BATCH_ROWS: Final = 16_384


class LineBatch(NamedTuple):
    """Lines that are inputs, the numbers of lines that are skipped, and rows that do not fit the file."""

    table: pa.Table
    skipped: list[int]
    rejected: list[RejectedRow]


class Lines:
    """The prepared lines of a file; it can be iterated any number of times.

    Args:
        table: the file.
        mapping: checked.
        columns: the columns that are read.
    """

    def __init__(self, table: SourceTable, mapping: Mapping, columns: Sequence[str]) -> None:
        self._table, self._mapping = table, mapping
        self._columns = [*columns, LINE_COLUMN]

    def __iter__(self) -> Iterator[LineBatch]:
        mapping = self._mapping
        empty = mapping.formats.empty or ()
        rejected: list[RejectedRow] = []
        last_row: pa.Table | None = None
        for batch in self._table.batches(BATCH_ROWS, rejected.append):
            table = batch.select(self._columns)
            is_skipped = blank_lines(table, mapping.skip_blank, empty) if mapping.skip_blank else None
            if mapping.fill_down:
                joined = table if last_row is None else pa.concat_tables([last_row, table])
                table = filled_down(joined, mapping.fill_down, mapping.fill_within, empty)
                table = table if last_row is None else table.slice(1)
                last_row = table.slice(table.num_rows - 1)
            skipped: list[int] = []
            if is_skipped is not None and is_skipped.any():
                skipped = table[LINE_COLUMN].to_numpy()[is_skipped].tolist()
                table = table.filter(pa.array(~is_skipped))
            yield LineBatch(table, skipped, rejected)
            rejected.clear()
        if rejected:
            types = {name: pa.int64() if name == LINE_COLUMN else pa.string() for name in self._columns}
            yield LineBatch(pa.schema(types).empty_table(), [], rejected)
