"""A sandbox whose customers and orders are made when they are requested: lists of any length in little memory.

In: how many of each, and the latency. Out: on stdout, what `orderbridge sandbox` prints. Its lists cannot be changed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final, overload

from sandbox import state
from sandbox.config import SandboxConfig
from sandbox.records import FIRST_CUSTOMER, FIRST_ORDER, generators
from sandbox.server import run

DIFFERENT: Final = 100_000
"""Rows that differ in more than their id: several times as many as a pull decodes at once."""
_IDS: Final = {"customers": (b'{"id":%d,', FIRST_CUSTOMER), "orders": (b'{"id":"ord_%09d",', FIRST_ORDER)}


class GeneratedRows(Sequence[bytes]):
    """Rows of a list, by position."""

    def __init__(self, name: str, amount: int, config: SandboxConfig) -> None:
        self._amount, (self._id, self._first) = amount, _IDS[name]
        made = map(generators(config)[name], range(min(amount, DIFFERENT)))
        self._fields = [row.partition(b",")[2] for row in made]

    def __len__(self) -> int:
        return self._amount

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        places = range(self._amount)[index]
        return self._row(places) if isinstance(places, int) else list(map(self._row, places))

    def _row(self, place: int) -> bytes:
        return self._id % (self._first + place) + self._fields[place % len(self._fields)]


class GeneratedList:
    """Stands in for `sandbox.rows.Rows`; the rank of a row is its position."""

    def __init__(self, rows: GeneratedRows) -> None:
        self.rows, self.ranks, self.version = rows, range(len(rows)), 0

    def after(self, rank: float) -> int:
        """The position of the first row past that rank."""
        return int(rank) + 1


def main(customers: int, orders: int, latency_ms: float) -> None:
    """Serves until it is stopped."""
    config = SandboxConfig(customers=customers, orders=orders)
    amounts = {"customers": customers, "orders": orders}
    lists = {name: GeneratedList(GeneratedRows(name, amount, config)) for name, amount in amounts.items()}
    initialize: Any = state.State.__init__

    def with_generated(self: state.State, config: SandboxConfig) -> None:
        initialize(self, config)
        self.lists.update(lists)  # type: ignore[arg-type] # stand in

    state.State.__init__ = with_generated  # type: ignore[method-assign] # for this process alone
    run(SandboxConfig(customers=0, orders=0, latency_ms=latency_ms))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
