"""Lines of a file that stand for each other: cells filled from above, and lines that belong together.

In: tables of text columns, in the file's order. Out: the same with empty cells filled, and where a new group begins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.frames import Bools
from transforms.upserts.cells import filled


def changes(table: pa.Table, columns: Sequence[str]) -> Bools:
    """Where one of these columns differs from the line above; the first line is one."""
    found = np.zeros(table.num_rows, np.bool_)
    found[:1] = True
    for name in columns:
        texts = whole(table, name)
        found[1:] |= pc.not_equal(texts[1:], texts[:-1]).to_numpy(zero_copy_only=False)
    return found


def blank_lines(table: pa.Table, columns: Sequence[str], empty: tuple[str, ...] = ()) -> Bools:
    """Where all of these columns are empty."""
    found = np.ones(table.num_rows, np.bool_)
    for name in columns:
        found &= pc.is_null(filled(whole(table, name), empty)).to_numpy(zero_copy_only=False)
    return found


def filled_down(
    table: pa.Table, columns: Sequence[str], within: Sequence[str], empty: tuple[str, ...] = ()
) -> pa.Table:
    """Empty cells take the cell above them.

    Args:
        table: of text columns. Its first line is taken as it is.
        columns: that are filled, in this order.
        within: only from lines that are equal in these columns; one of them that is filled itself is filled from any.
        empty: texts that stand for an empty cell.
    """
    places = np.arange(table.num_rows)
    for name in sorted(columns, key=lambda column: column not in within):
        begins = changes(table, () if name in within else within)
        first = np.maximum.accumulate(np.where(begins, places, 0))
        texts = whole(table, name)
        is_given = pc.is_valid(filled(texts, empty)).to_numpy(zero_copy_only=False)
        last = np.maximum.accumulate(np.where(is_given, places, -1))
        table = table.set_column(
            table.column_names.index(name), name, texts.take(pa.array(np.where(last >= first, last, places)))
        )
    return table


def whole(table: pa.Table, column: str) -> pa.Array:
    """A column in one chunk."""
    made = table[column].combine_chunks()
    return made.chunk(0) if isinstance(made, pa.ChunkedArray) else made
