"""The lines of a file, prepared: cells filled from above, lines that are no input set aside.

In: a table of the intake, and a mapping. Out: batches of the columns that are needed, and what is not among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from pipelines.mapping import Mapping
from sources.files import RejectedRow, SourceTable
from sources.files.model import LINE_COLUMN
from transforms.upserts.lines import blank_lines, filled_down

WALK_ROWS: Final = 16_384


class Prepared(NamedTuple):
    """Lines of a batch that are inputs; those that are none; those that the intake refused."""

    table: pa.Table
    skipped: list[int]
    refused: list[RejectedRow]


class Lines:
    """The lines of a file: cells filled from above, lines that are no input set aside.

    Args:
        table: of the intake.
        mapping: checked.
        columns: that are needed.
    """

    def __init__(self, table: SourceTable, mapping: Mapping, columns: Sequence[str]) -> None:
        self._table, self._mapping = table, mapping
        self._columns = [*columns, LINE_COLUMN]

    def __iter__(self) -> Iterator[Prepared]:
        mapping = self._mapping
        empty = mapping.formats.empty or ()
        refused: list[RejectedRow] = []
        above: pa.Table | None = None
        for batch in self._table.batches(WALK_ROWS, refused.append):
            table = batch.select(self._columns)
            is_none = blank_lines(table, mapping.skip_blank, empty) if mapping.skip_blank else None
            if mapping.fill_down:
                joined = table if above is None else pa.concat_tables([above, table])
                table = filled_down(joined, mapping.fill_down, mapping.fill_within, empty)
                table = table if above is None else table.slice(1)
                above = table.slice(table.num_rows - 1)
            skipped: list[int] = []
            if is_none is not None and is_none.any():
                skipped = table[LINE_COLUMN].to_numpy()[is_none].tolist()
                table = table.filter(pa.array(~is_none))
            yield Prepared(table, skipped, refused)
            refused.clear()
        if refused:
            yield Prepared(pa.table({name: pa.array([], _type(name)) for name in self._columns}), [], refused)


def _type(name: str) -> pa.DataType:
    return pa.int64() if name == LINE_COLUMN else pa.string()
