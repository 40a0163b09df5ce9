"""Hash buckets: rows of two sides whose keys are equal fall into the same one, in any process and on any machine.

In: keys as text. Out: a number from 0 for each. Both sides of a join can be split by it and joined bucket by bucket, by
a pool of processes or by an engine that is spread over machines: it is pure, and pickled by its name.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from transforms.frames import Ints


def bucket(keys: pa.Array, count: int) -> Ints:
    """The bucket of each key, 0 to `count` - 1. Unlike Python's own, the hash is the same in every process.

    Args:
        keys: text; null is a key like another.
        count: of buckets, at least 1.
    """
    hashed = pd.util.hash_array(keys.to_numpy(zero_copy_only=False), categorize=False)
    return (hashed % np.uint64(count)).astype(np.int64)


def split(keys: pa.Array, count: int) -> list[Ints]:
    """For each bucket the positions of its keys, in ascending order."""
    of = bucket(keys, count)
    order = np.argsort(of, kind="stable")
    return np.split(order, np.searchsorted(of[order], np.arange(1, count)))
