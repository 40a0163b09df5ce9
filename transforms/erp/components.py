"""Rows that share a key, directly or through other rows: each such component can be matched on its own.

In: the keys of lines, customers and documents. Out: a bucket for each row, the same for all rows of a component, on any
machine. `match_part` of each bucket, and `unmatched_code_findings` of all, is the match of the whole.

Each row has a home: the hash of its first key. Rows of one customer mostly share that key, so they are together from
the start; only homes that another key connects have to be compared across the whole match. Values that identify nobody
connect nothing. Values with the same hash only put two components into one, which changes no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from transforms.erp.match_keys import Hashes, HashTexts
from transforms.frames import Ints, array, joined_text
from transforms.texts import tidied


def row_homes(
    rows: pd.DataFrame, hashes: Iterable[pd.Series[int]], identity: Sequence[str], hash_texts: HashTexts
) -> Hashes:
    """The home of each row: the first of its hashes, else a hash of the columns that are its identity."""
    homes, is_open = np.zeros(len(rows), np.uint64), np.ones(len(rows), np.bool_)
    for of_key in hashes:
        of_open = of_key[is_open[of_key.index]]
        homes[of_open.index], is_open[of_open.index] = of_open, False
    others = [tidied(rows.loc[is_open, name]).fillna("") for name in identity]
    homes[is_open] = hash_texts(array(joined_text(others, "\0")))
    return homes


def components(hashes: Hashes, homes: Hashes) -> pd.DataFrame:
    """`home` and `root`: the smallest home that each one is connected to; without homes that are connected to none.

    `hashes` are those of the keys of all rows, and `homes` those of the rows that have them.
    """
    order = np.argsort(hashes)
    values, of_values = hashes[order], homes[order]
    is_pair = (values[1:] == values[:-1]) & (of_values[1:] != of_values[:-1])
    pairs = np.stack([of_values[:-1][is_pair], of_values[1:][is_pair]], axis=1)
    connected, numbers = np.unique(pairs, return_inverse=True)
    left, right = numbers.reshape(-1, 2).T
    root = np.arange(len(connected))
    while (root[left] != root[right]).any():
        lower, higher = np.minimum(root[left], root[right]), np.maximum(root[left], root[right])
        np.minimum.at(root, higher, lower)
        while (root[root] != root).any():
            root = root[root]
    return pd.DataFrame({"home": connected, "root": connected[root]})


def buckets(homes: Hashes, roots: pd.DataFrame, count: int) -> Ints:
    """The bucket of each row, from 0 to `count` - 1, by its home and the `components` of all homes."""
    at = pd.Index(roots["home"]).get_indexer(pd.Index(homes))
    root = np.where(at >= 0, roots["root"].to_numpy(np.uint64).take(at, mode="clip"), homes) if len(roots) else homes
    return (root % np.uint64(count)).astype(np.int64)
