"""Hashes of identifiers, eight bytes a row, on disk: the ids of lists of any length are compared in bounded memory.

In: columns of ids. Out: 64-bit hashes, salted for each process, in a file; their comparison, a range of hashes at a
time. Equal ids have equal hashes. Two different ids share one with a probability of 2^-64: within a sweep, rows with
the same hash are compared by their ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

Hashes = np.ndarray[Any, np.dtype[np.uint64]]
Rows = np.ndarray[Any, np.dtype[np.int64]]

PART_ROWS: Final = 1 << 20
"""Hashes that are read, or sorted, at once."""
_WORD: Final = 8


def hash_ids(ids: pa.ChunkedArray) -> Hashes:
    """The hash of each id: Python's own, in which each process has a secret. `ids` is a column of strings."""
    return np.fromiter(map(hash, ids.to_pylist()), np.int64, len(ids)).view(np.uint64)


def count_distinct(hashes: Hashes) -> int:
    """The number of different hashes."""
    ordered = np.sort(hashes)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + bool(len(ordered))


def rows_with_shared_hash(hashes: Hashes) -> Rows:
    """The rows whose hash another row has too, in order."""
    ordered = np.sort(hashes)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.flatnonzero(np.isin(hashes, shared)) if len(shared) else np.array([], np.int64)


class IdHashes:
    """The hashes of the ids of one sweep, by row, in a file.

    Args:
        path: of the file, which is created; its folder exists and is private.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = 0
        self._dropped = np.array([], np.int64)
        path.unlink(missing_ok=True)

    def __len__(self) -> int:
        """The rows, without those that were dropped."""
        return self._rows - len(self._dropped)

    def append(self, hashes: Hashes) -> None:
        """Adds the hashes of the next rows."""
        with self._path.open("ab") as file:
            file.write(hashes.data)
        self._rows += len(hashes)

    def drop(self, rows: Sequence[int]) -> None:
        """Excludes rows from all that follows, but keeps their numbers."""
        self._dropped = np.array(sorted(rows), np.int64)

    def count_distinct(self) -> int:
        """The number of different hashes."""
        return sum(count_distinct(hashes) for _, hashes in self._parts(self._part_count()))

    def shared(self) -> Rows:
        """The rows whose hash another row has too, in order."""
        shared = [rows[rows_with_shared_hash(hashes)] for rows, hashes in self._parts(self._part_count())]
        return np.sort(np.concatenate(shared))

    def equals(self, other: IdHashes) -> bool:
        """Whether both have the same hashes, each as often."""
        return all(np.array_equal(np.sort(own), np.sort(its)) for (_, own), (_, its) in self._pairs(other))

    def count_absent(self, other: IdHashes, also: Hashes | None = None) -> int:
        """How many hashes of the other sweep are neither in this sweep nor in `also`."""
        further = np.array([], np.uint64) if also is None else also
        return sum(
            int(np.count_nonzero(np.isin(its, np.concatenate([own, further]), invert=True)))
            for (_, own), (_, its) in self._pairs(other)
        )

    def new_rows(self, later: Sequence[IdHashes]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each row whether it was not dropped, and no later sweep has its hash."""
        is_new = np.ones(self._rows, bool)
        is_new[self._dropped] = False
        for other in later:
            for (rows, own), (_, its) in self._pairs(other):
                is_new[rows[np.isin(own, its)]] = False
        return is_new

    def _part_count(self) -> int:
        return self._rows // PART_ROWS + 1

    def _pairs(self, other: IdHashes) -> Iterator[tuple[tuple[Rows, Hashes], tuple[Rows, Hashes]]]:
        count = max(self._part_count(), other._part_count())
        return zip(self._parts(count), other._parts(count), strict=True)

    def _parts(self, count: int) -> Iterator[tuple[Rows, Hashes]]:
        """Rows and their hashes, as many parts as asked for; equal hashes are in parts of the same number."""
        for part in range(count):
            rows, hashes = [np.array([], np.int64)], [np.array([], np.uint64)]
            for start in range(0, self._rows, PART_ROWS):
                chunk = np.fromfile(self._path, np.uint64, PART_ROWS, offset=start * _WORD)
                selected = np.flatnonzero((chunk >> np.uint64(32)) * np.uint64(count) >> np.uint64(32) == part)
                selected = selected[~np.isin(selected + start, self._dropped)] if len(self._dropped) else selected
                rows.append(selected + start)
                hashes.append(chunk[selected])
            yield np.concatenate(rows), np.concatenate(hashes)
