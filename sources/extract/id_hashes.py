"""Hashes of identifiers: eight bytes a row, so that the ids of a list of any length can be compared in memory.

In: columns of ids. Out: 64-bit hashes, salted for each process. Equal ids have equal hashes. Two different ids share
one with a probability of 2^-64: within a sweep, rows with the same hash are compared by their ids.
"""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np
import pyarrow as pa

Hashes = np.ndarray[Any, np.dtype[np.uint64]]
Rows = np.ndarray[Any, np.dtype[np.int64]]

_WORD: Final = 8
_SALT: Final = np.frombuffer(os.urandom(_WORD), np.uint64)[0]
_FACTORS: Final = np.array([0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53], np.uint64)  # those of MurmurHash3
_MASKS: Final = np.array([(1 << 8 * n) - 1 for n in range(_WORD + 1)], np.uint64)
"""By the number of bytes of a word that belong to the text."""


def hash_ids(ids: pa.ChunkedArray) -> Hashes:
    """The hash of each id; `ids` is a column of strings without nulls."""
    if not len(ids):
        return np.array([], np.uint64)
    array = pa.concat_arrays(ids.chunks)
    _, offset_buffer, data_buffer = array.buffers()
    starts = np.frombuffer(offset_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    lengths = np.diff(starts)
    hashes: Hashes = lengths.astype(np.uint64) * _FACTORS[0] + _SALT
    data = np.zeros((data_buffer.size if data_buffer else 0) + _WORD, np.uint8)
    data[:-_WORD] = np.frombuffer(data_buffer or b"", np.uint8)
    words = np.ndarray(len(data) - _WORD + 1, "<u8", data, strides=(1,))  # the eight bytes from each position on
    rows = np.arange(len(array))
    for position in range(0, int(lengths.max()), _WORD):
        rows = rows[lengths[rows] > position]
        word = words[starts[rows] + position] & _MASKS[np.minimum(lengths[rows] - position, _WORD)]
        mixed = hashes[rows] ^ word
        for factor in _FACTORS:
            mixed = (mixed ^ (mixed >> np.uint64(33))) * factor
        hashes[rows] = mixed ^ (mixed >> np.uint64(33))
    return hashes


def count_distinct(hashes: Hashes) -> int:
    """The number of different hashes."""
    ordered = np.sort(hashes)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + bool(len(ordered))


def rows_with_shared_hash(hashes: Hashes) -> Rows:
    """The rows whose hash another row has too, in order."""
    ordered = np.sort(hashes)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.flatnonzero(np.isin(hashes, shared)) if len(shared) else np.array([], np.int64)
