"""Rows that share a key, directly or through other rows: each such component can be matched on its own.

In: the keys of lines, customers and documents. Out: a bucket for each row, the same for all rows of a component, on any
machine. `match_part` of each bucket, and `unmatched_code_findings` of all, is the match of the whole.

Each row has a home: the hash of its first key. Rows of one customer mostly share that key, so they are together from
the start; only homes that another key connects have to be compared across the whole match. Values that identify nobody
connect nothing. Values with the same hash only put two components into one, which changes no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pandas as pd

from transforms.erp.match_keys import Hashes, HashTexts
from transforms.frames import Ints, array, joined_text
from transforms.texts import tidied

LINKS: Final = ("value", "home")


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


def links(hashes: Iterable[pd.Series[int]], homes: Hashes) -> pd.DataFrame:
    """`value` (a hash) and `home` of each row that has the value."""
    parts = [pd.DataFrame({"value": of_key, "home": homes[of_key.index]}) for of_key in hashes]
    return pd.concat([pd.DataFrame(columns=list(LINKS), dtype=np.uint64), *parts])


def connected_homes(links: pd.DataFrame) -> pd.DataFrame:
    """`home` and `other`: pairs of homes that have a value in common, which connect all homes that have it."""
    other = links.groupby("value")["home"].transform("min")
    is_pair = links["home"] != other
    return pd.DataFrame({"home": links["home"], "other": other})[is_pair].drop_duplicates()


def components(pairs: pd.DataFrame) -> pd.DataFrame:
    """`home` and `root`: the smallest home that each one is connected to, by home; from the pairs of all values."""
    homes, numbers = np.unique(pairs[["home", "other"]].to_numpy(np.uint64), return_inverse=True)
    left, right = numbers.reshape(-1, 2).T
    root = np.arange(len(homes))
    while (root[left] != root[right]).any():
        lower, higher = np.minimum(root[left], root[right]), np.maximum(root[left], root[right])
        np.minimum.at(root, higher, lower)
        while (root[root] != root).any():
            root = root[root]
    return pd.DataFrame({"home": homes, "root": homes[root]})


def buckets(homes: Hashes, roots: pd.DataFrame, count: int) -> Ints:
    """The bucket of each row, from 0 to `count` - 1, by its home and the `components` of all homes."""
    at = pd.Index(roots["home"]).get_indexer(pd.Index(homes))
    root = np.where(at >= 0, roots["root"].to_numpy(np.uint64).take(at, mode="clip"), homes) if len(roots) else homes
    return (root % np.uint64(count)).astype(np.int64)
