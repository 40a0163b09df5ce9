"""Documents of customers: in what order they stand, and which of them is the default one.

In: the raw child table, with the position of each row's customer. Out: rows by owner and position, and the row that
counts for each owner. One rule for all that asks for a customer's document.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.frames import Bools, Ints


def sort_documents(table: pa.Table) -> pa.Table:
    """The rows by owner and position; by their values too, where two have one position.

    Args:
        table: `owner` (bigint), `position` (bigint) and values of text and boolean, each column in one chunk.
    """
    position = pc.fill_null(table["position"], np.iinfo(np.int64).max).to_numpy()
    owner = table["owner"].to_numpy()
    if ((owner[1:] > owner[:-1]) | ((owner[1:] == owner[:-1]) & (position[1:] > position[:-1]))).all():
        return table
    order = np.lexsort((position, owner))
    moved_owner, moved_position = owner[order], position[order]
    if not ((moved_owner[1:] == moved_owner[:-1]) & (moved_position[1:] == moved_position[:-1])).any():
        return table.take(pa.array(order))
    names = ["owner", "position", *(name for name in table.column_names if name not in ("owner", "position"))]
    flags = {name: table[name].cast(pa.int8()) if table[name].type == pa.bool_() else table[name] for name in names}
    return table.take(pc.sort_indices(pa.table(flags), sort_keys=[(name, "ascending") for name in names]))


def first_row_per_owner(owner: Ints, where: Bools, size: int) -> Ints:
    """For each owner, the first of its rows where that is so; -1 for none. The rows are in the order of owners."""
    rows = np.flatnonzero(where)
    owners, at = np.unique(owner[rows], return_index=True)
    made = np.full(size, -1, np.int64)
    made[owners] = rows[at]
    return made


def default_row_per_owner(owner: Ints, is_default: Bools, size: int) -> Ints:
    """For each owner the row flagged as default, the first of several; where none is, the only one there is, or -1."""
    flagged = first_row_per_owner(owner, is_default, size)
    count = np.bincount(owner, minlength=size)
    only = np.where(count == 1, first_row_per_owner(owner, np.ones(len(owner), np.bool_), size), -1)
    return np.where(flagged >= 0, flagged, only)


def take_or_null(column: pa.ChunkedArray, rows: Ints) -> pa.Array:
    """The values in these rows; null for -1."""
    return column.combine_chunks().take(pa.array(rows, mask=rows < 0))
