"""Ids that occur more than once in a sweep: the same row again, or different rows with the same id.

In: the rows of each such id, in the order of the pages. Out: how often each row occurs, by which two sweeps are
compared, and the rows that every sweep has although a different row has their id. A row that only some sweeps have is
an earlier version: the list changed while it was read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

from sources.decode.rows import QuarantinedRow

ID_CONFLICT: Final = "id: a different row of the list has the same id"

RepeatedRow = tuple[str, bytes]
"""An id and the digest of one of its rows."""


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
        return sorted(self._places[key, digest] for key, digest in stable if self._last[key] != digest)


def distinct_rows(sweeps: Iterable[Sequence[QuarantinedRow]]) -> list[QuarantinedRow]:
    """The rows that the sweeps quarantined, each as often as the sweep that has it most often."""
    rows, counts = list[QuarantinedRow](), Counter[str]()
    for sweep in sweeps:
        own = Counter[str]()
        for row in sweep:
            own[row.row_hash] += 1
            if own[row.row_hash] > counts[row.row_hash]:
                rows.append(row)
        counts |= own
    return rows
