"""Lines of a file that belong together: cells filled from above, where groups begin, and which may lack a line.

In: tables of text columns and line numbers, in file order. Out: the same with empty cells filled; the groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.mapping.cells import filled
from orderbridge.sources.files.model import LINE_COLUMN
from orderbridge.transforms.frames import Bools, Ints


def changes(table: pa.Table, columns: Sequence[str]) -> Bools:
    """Where one of these columns differs from the line above, spaces around it apart, and the first line."""
    is_change = np.zeros(table.num_rows, np.bool_)
    is_change[:1] = True
    for name in columns:
        texts = pc.utf8_trim_whitespace(whole(table, name))
        is_change[1:] |= pc.not_equal(texts[1:], texts[:-1]).to_numpy(zero_copy_only=False)
    return is_change


def blank_lines(table: pa.Table, columns: Sequence[str], empty: tuple[str, ...] = ()) -> Bools:
    """Where all of these columns are empty."""
    is_blank = np.ones(table.num_rows, np.bool_)
    for name in columns:
        is_blank &= pc.is_null(filled(whole(table, name), empty)).to_numpy(zero_copy_only=False)
    return is_blank


def filled_down(
    table: pa.Table, columns: Sequence[str], within: Sequence[str], empty: tuple[str, ...] = ()
) -> tuple[pa.Table, dict[str, Ints]]:
    """Empty cells take the cell above them.

    Args:
        table: of text columns. Its first line is not changed.
        columns: that are filled, in this order.
        within: cells are filled only from lines that are equal in these columns. One of these that is itself filled is
            filled from any line.
        empty: texts that mean an empty cell.

    Returns:
        The table; and by column the row that each cell is from. For a cell that stays empty, -1 - n, where row n is the
        first one that it could be from.
    """
    places = np.arange(table.num_rows)
    origins: dict[str, Ints] = {}
    for name in sorted(columns, key=lambda column: column not in within):
        begins = changes(table, () if name in within else within)
        first = np.maximum.accumulate(np.where(begins, places, 0))
        texts = whole(table, name)
        is_given = pc.is_valid(filled(texts, empty)).to_numpy(zero_copy_only=False)
        last = np.maximum.accumulate(np.where(is_given, places, -1))
        is_found = last >= first
        table = table.set_column(
            table.column_names.index(name),
            name,
            texts.take(pa.array(np.where(is_found, last, places))),
        )
        origins[name] = np.where(is_found, last, -1 - first)
    return table, origins


def whole(table: pa.Table, column: str) -> pa.Array:
    """A column in one chunk."""
    texts = table[column].combine_chunks()
    return texts.chunk(0) if isinstance(texts, pa.ChunkedArray) else texts


def scattered_keys(table: pa.Table, columns: Sequence[str]) -> set[str]:
    """The keys of groups that come again after another key."""
    keys = group_keys(table, columns).filter(pa.array(changes(table, columns))).to_pylist()
    counts = Counter(
        key for before, key in pairwise([None, *keys]) if key is not None and key != before
    )
    return {key for key, count in counts.items() if count > 1}


def group_keys(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The group columns joined to one key; null where all of them are empty."""
    texts = [pc.fill_null(filled(whole(table, name)), "") for name in columns]
    keys = pc.binary_join_element_wise(*texts, "\x1f")
    return pc.if_else(pa.array(blank_lines(table, columns)), pa.scalar(None, pa.string()), keys)


def torn_groups(table: pa.Table, groups: Ints, torn: Iterable[int]) -> set[int]:
    """The groups next to lines that could not be read, which may belong to them.

    Args:
        table: the lines of groups.
        groups: the group of each.
        torn: numbers of lines that are not among them.
    """
    lines = table[LINE_COLUMN].to_numpy()
    after = np.searchsorted(lines, np.array(list(torn), np.int64))
    rows = np.concatenate((after - 1, after))
    return set(groups[rows[(rows >= 0) & (rows < len(lines))]].tolist())
