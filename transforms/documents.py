"""Documents of customers: their order, and which of them is the default. One rule for all that need a document.

In: the raw child table with the position of each row's customer (`owner`). Out: its rows in order, and the row that
counts for each owner.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from transforms.frames import Bools, Ints


def sort_documents(documents: pd.DataFrame) -> pd.DataFrame:
    """The rows by owner and position, nulls last; by their values too, where two have the same position.

    Args:
        documents: `owner` (bigint), `position` (bigint) and values of text and boolean.
    """
    documents = documents.reset_index(drop=True)
    # numpy is ten times as fast here as `sort_values`, which makes categories of each column.
    owner = documents["owner"].to_numpy(np.int64)
    position = documents["position"].fillna(np.iinfo(np.int64).max).to_numpy(np.int64)
    is_ordered = (owner[1:] > owner[:-1]) | ((owner[1:] == owner[:-1]) & (position[1:] > position[:-1]))
    if is_ordered.all():
        return documents
    order = np.lexsort((position, owner))
    is_tie = (owner[order][1:] == owner[order][:-1]) & (position[order][1:] == position[order][:-1])
    if is_tie.any():
        tied = np.flatnonzero(np.append(is_tie, False) | np.append(False, is_tie))
        others = (str(name) for name in documents if name not in ("owner", "position"))
        order[tied] = documents.take(order[tied]).sort_values(["owner", "position", *others]).index
    return documents.take(order).reset_index(drop=True)


def first_row_per_owner(owner: Ints, where: Bools, size: int) -> Ints:
    """For each of `size` owners the position of its first row for which `where` holds; -1 for none.

    `owner` is sorted.
    """
    rows = np.flatnonzero(where)[::-1]
    result = np.full(size, -1, np.int64)
    result[owner[rows]] = rows  # of several rows of an owner the last one that is assigned, the first in order, stays
    return result


def default_row_per_owner(owner: Ints, is_default: Bools, size: int) -> Ints:
    """For each owner the first row that is marked as default; if none is, its only row; -1 for none."""
    marked = first_row_per_owner(owner, is_default, size)
    count = np.bincount(owner, minlength=size)
    only = np.where(count == 1, first_row_per_owner(owner, np.ones(len(owner), np.bool_), size), -1)
    return np.where(marked >= 0, marked, only)
