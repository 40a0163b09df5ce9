"""One list of the platform: encoded rows in order, generated or read from a file.

In: rows as JSON bytes. Out: slices for pages, and positions by rank, which cursors refer to.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from orderbridge.sandbox.config import SandboxConfigError


class _Key(msgspec.Struct):
    """The id of a record; `uuid` is that of an order under the reading `order_key=uuid`."""

    id: int | float | str = ""
    uuid: str = ""


_key: Final = msgspec.json.Decoder(_Key)
_records: Final = msgspec.json.Decoder(list[msgspec.Raw])


class Rows:
    """One list: ids and encoded rows in order, with a rank for each that a cursor refers to.

    Ranks ascend and never change; a row inserted between two gets the middle of their ranks.
    """

    def __init__(self, rows: Iterable[bytes]) -> None:
        self.rows: list[bytes] = list(rows)
        self.ids: list[str] = [_id(row) for row in self.rows]
        self.ranks: array[float] = array("d", range(len(self.rows)))

    def after(self, rank: float) -> int:
        """The position of the first row past that rank."""
        return bisect_right(self.ranks, rank)

    def put(self, position: int, row: bytes) -> str:
        """Inserts a row before that position; returns its id."""
        while True:
            below = (
                self.ranks[position - 1]
                if position
                else (self.ranks[0] - 2 if self.ranks else -1.0)
            )
            above = self.ranks[position] if position < len(self.ranks) else below + 2
            rank = (below + above) / 2
            if below < rank < above:
                break
            position += 1  # no float between the two: use the next gap
        identifier = _id(row)
        self.rows.insert(position, row)
        self.ids.insert(position, identifier)
        self.ranks.insert(position, rank)
        return identifier

    def take(self, position: int) -> str:
        """Removes the row at that position; returns its id."""
        del self.rows[position], self.ranks[position]
        return self.ids.pop(position)


def read_rows(path: Path) -> list[bytes] | None:
    """Reads the rows of a file, each as its bytes; None if there is no file.

    Raises:
        SandboxConfigError: the file is not an array of objects, or an `id` is neither text nor number.
    """
    if not path.exists():
        return None
    try:
        rows = [bytes(raw).strip() for raw in _records.decode(path.read_bytes())]
    except (msgspec.DecodeError, OSError) as error:
        raise SandboxConfigError(f"{path} cannot be read as a JSON array: {error}") from None
    for position, row in enumerate(rows, 1):
        try:
            _id(row)
        except msgspec.DecodeError as error:
            raise SandboxConfigError(
                f"{path}: record {position} is not an object with a usable `id`: {error}"
            ) from None
    return rows


def _id(row: bytes) -> str:
    key = _key.decode(row)
    value = key.id if key.id != "" else key.uuid
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
