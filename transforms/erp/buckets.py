"""Hash buckets: equal keys of two sides fall into the same bucket, in any process and on any machine.

In: keys as text. Out: a bucket number from 0 for each. Both sides of a join can be split into buckets and joined bucket
by bucket, by a pool of processes or a cluster: the functions are pure and can be pickled by name.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from transforms.frames import Ints


def bucket(keys: pa.Array, count: int) -> Ints:
    """The bucket of each key, 0 to `count` - 1. Unlike Python's own, the hash is the same in every process.

    Args:
        keys: text; null is a key too.
        count: number of buckets, at least 1.
    """
    hashed = pd.util.hash_array(keys.to_numpy(zero_copy_only=False), categorize=False)
    return (hashed % np.uint64(count)).astype(np.int64)


def split(keys: pa.Array, count: int) -> list[Ints]:
    """For each bucket the positions of its keys, in ascending order."""
    buckets = bucket(keys, count)
    order = np.argsort(buckets, kind="stable")
    return np.split(order, np.searchsorted(buckets[order], np.arange(1, count)))
