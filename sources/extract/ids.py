"""The ids of the rows of a sweep: their hashes on disk, and those that occur more than once.

In: columns of ids, eight bytes a row in a file, and the rows of each id that occurs again. Out: which rows are new,
absent or equal in another sweep, in bounded memory: a range of hashes at a time, salted for each process. Equal ids
have equal hashes; two different ids share one with a probability of 2^-64: within a sweep, rows with the same hash are
compared by their ids. A row that only some sweeps have, of an id that has several, is an earlier version: the list
changed while it was read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from orderbridge.sources.decode.rows import QuarantinedRow

Hashes = np.ndarray[Any, np.dtype[np.uint64]]
Rows = np.ndarray[Any, np.dtype[np.int64]]
RepeatedRow = tuple[str, bytes]
"""An id and the digest of one of its rows."""

PART_ROWS: Final = 1 << 20
"""Hashes that are read, or sorted, at once."""
_WORD: Final = 8
ID_CONFLICT: Final = "id: a different row of the list has the same id"
_SEPARATOR: Final = re.compile(rb"}(\s*,\s*){")


def hash_ids(ids: pa.ChunkedArray) -> Hashes:
    """The hash of each id: Python's own, in which each process has a secret. `ids` is a column of strings."""
    return np.fromiter(map(hash, ids.to_pylist()), np.int64, len(ids)).view(np.uint64)


def rows_with_shared_hash(hashes: Hashes) -> Rows:
    """The rows whose hash another row has too, in order."""
    ordered = np.sort(hashes)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.flatnonzero(np.isin(hashes, shared)) if len(shared) else np.array([], np.int64)


def _count_distinct(hashes: Hashes) -> int:
    """How many different hashes there are. `np.unique` takes a hundred times as long."""
    ordered = np.sort(hashes)
    return len(ordered) - int(np.count_nonzero(ordered[1:] == ordered[:-1]))


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
        return sum(_count_distinct(hashes) for _, hashes in self._parts(self._part_count()))

    def shared(self) -> Rows:
        """The rows whose hash another row has too, in order."""
        shared = [
            rows[rows_with_shared_hash(hashes)] for rows, hashes in self._parts(self._part_count())
        ]
        return np.sort(np.concatenate(shared))

    def equals(self, other: IdHashes) -> bool:
        """Whether both have the same hashes, each as often."""
        return all(
            np.array_equal(np.sort(own), np.sort(its)) for (_, own), (_, its) in self._pairs(other)
        )

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
            rows = [np.array([], np.int64)]
            hashes = [np.array([], np.uint64)]
            for start in range(0, self._rows, PART_ROWS):
                chunk = np.fromfile(self._path, np.uint64, PART_ROWS, offset=start * _WORD)
                # The upper half of a hash, scaled to the number of parts.
                parts = (chunk >> np.uint64(32)) * np.uint64(count) >> np.uint64(32)
                selected = np.flatnonzero(parts == part)
                if len(self._dropped):
                    selected = selected[~np.isin(selected + start, self._dropped)]
                rows.append(selected + start)
                hashes.append(chunk[selected])
            yield np.concatenate(rows), np.concatenate(hashes)


class RepeatedIds:
    """The rows of the ids that occur more than once in a sweep.

    Attributes:
        counts: how often each row occurs.
    """

    def __init__(self) -> None:
        self.counts: Counter[RepeatedRow] = Counter()
        self._places: dict[RepeatedRow, int] = {}
        self._last: dict[str, bytes] = {}

    def add(self, key: str, place: int, row: bytes) -> None:
        """Takes a row: its id, its place in the sweep, and its bytes; in the order of the places."""
        digest = sha256(row).digest()
        self.counts[key, digest] += 1
        self._places[key, digest] = place
        self._last[key] = digest

    @property
    def equal_rows(self) -> int:
        """How many rows are equal to an earlier one."""
        return self.counts.total() - len(self.counts)

    def conflicts(self, earlier: Sequence[RepeatedIds]) -> list[int]:
        """Places of the rows, other than the last one of their id, that the earlier sweeps have too, in order."""
        stable = set(self.counts).intersection(*(sweep.counts for sweep in earlier))
        return sorted(
            self._places[key, digest] for key, digest in stable if self._last[key] != digest
        )


class RowDigest:
    """A digest of the rows of one sweep, on whatever pages they were."""

    def __init__(self) -> None:
        self._digest = sha256()
        self._separator = b""
        self._is_first = True

    def add(self, rows: bytes) -> None:
        """Takes the rows of the next page: a JSON array that is not empty."""
        if not self._separator:  # as the platform writes it: pages end elsewhere in the other sweep
            match = _SEPARATOR.search(rows)
            self._separator = match[1] if match else b","
        if not self._is_first:
            self._digest.update(self._separator)
        self._digest.update(rows[1:-1])
        self._is_first = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowDigest) and self._digest.digest() == other._digest.digest()

    __hash__ = None  # type: ignore[assignment] # it grows


def distinct_rows(sweeps: Iterable[Sequence[QuarantinedRow]]) -> list[QuarantinedRow]:
    """The rows that the sweeps quarantined, each as often as the sweep that has it most often."""
    rows: list[QuarantinedRow] = []
    counts: Counter[str] = Counter()
    for sweep in sweeps:
        own: Counter[str] = Counter()
        for row in sweep:
            own[row.row_hash] += 1
            if own[row.row_hash] > counts[row.row_hash]:
                rows.append(row)
        counts |= own
    return rows
