"""The pages of one sweep as Parquet files, decoded in batches by one thread while the next pages are fetched.

In: page bodies in order, and the spool that keeps them. Out: a file per table with a row group per batch, and the keys
of all rows. The files of a clean sweep are published unchanged. Where an id occurs twice, where another sweep has a
newer row, or where a later page widened a type, the batches concerned are decoded again from the spool, exactly, and
the others are copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sources.contract import Record
from sources.decode.documented import decode
from sources.decode.rows import Decoded, InvalidRow, Page, QuarantinedRow, quarantine, split
from sources.decode.table_schema import KEY_COLUMN
from sources.decode.undocumented import InferredSchema
from sources.errors import BridgeError, ContractBroken
from sources.extract.pages import PageBody, Paginator
from sources.extract.repeated_ids import CONFLICT, RepeatedIds
from sources.extract.spool import Spool
from sources.extract.table_files import TableFile, TableFiles

BATCH_BYTES: Final = 12 * 1024 * 1024
BATCH_PAGES: Final = 400
PENDING_MAX: Final = 2
"""Batches that wait for the decoder; fetching waits when there are more, so memory stays flat."""
CHECK_ROWS: Final = 20_000
"""Rows after which there must be new ids, and again after each doubling."""


@dataclass(slots=True)
class _Batch:
    """Consecutive pages: (number, offset in the spool) of each, their keys, and the row group that holds them.

    Attributes:
        keys: columns key, _page, _position; a row per loaded row.
        version: of the inferred types that the row group has.
    """

    pages: list[tuple[int, int]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    size: int = 0
    keys: pa.Table | None = None
    version: int = -1
    group: int = 0

    @property
    def rows(self) -> int:
        """Rows of the list's own table."""
        return self.keys.num_rows if self.keys is not None else 0

    def row(self, index: int) -> tuple[str, int, int]:
        """Key, page and position of a loaded row."""
        if self.keys is None:
            raise IndexError(index)
        row = self.keys.slice(index, 1).to_pylist()[0]
        return row["key"], row["_page"], row["_position"]


@dataclass(frozen=True, slots=True)
class SweepCounts:
    """Distinct ids and quarantined rows of a sweep, and what the interface does not show: (what, value) → count."""

    distinct: int
    quarantined: int
    observations: Counter[tuple[str, str]]


class PageFiles:
    """The files of one sweep. Until `finish` returns, its results belong to the decoding thread.

    Args:
        record: what the pages hold. One without declared fields is typed from the whole sweep (design §6).
        folder: for the files.
        spool: keeps the pages.
        paginator: parses them when they are read again.
    """

    def __init__(self, record: Record, folder: Path, spool: Spool, paginator: Paginator) -> None:
        self.spool = spool
        self.quarantined: list[QuarantinedRow] = []
        self.repeated = RepeatedIds()
        self._record, self._folder, self._paginator = record, folder, paginator
        self._observations: Counter[tuple[str, str]] = Counter()
        self._inferred = None if record.fields else InferredSchema(record)
        self._batches: list[_Batch] = []
        self._filling = _Batch()
        self._pending: list[Future[None]] = []
        self._files = TableFiles(folder, "0", 0)
        self._received, self._rows, self._distinct, self._next_check = 0, 0, 0, CHECK_ROWS
        self._pool = ThreadPoolExecutor(1, f"decode-{record.name}")
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, number: int, body: PageBody, offset: int) -> None:
        """Takes a page: its number, its rows, and its offset in the spool."""
        batch = self._filling
        batch.pages.append((number, offset))
        batch.bodies.append(body.rows)
        batch.size += len(body.rows)
        self._received += body.count
        if batch.size >= BATCH_BYTES or len(batch.pages) >= BATCH_PAGES:
            self._submit()

    def _submit(self) -> None:
        batch, self._filling = self._filling, _Batch()
        self._batches.append(batch)
        self._pending.append(self._pool.submit(self._decode_batch, batch))
        while len(self._pending) > PENDING_MAX:
            self._pending.pop(0).result()

    def _decode(self, pages: list[Page]) -> Decoded:
        return decode(self._record, pages) if self._inferred is None else self._inferred.decode(pages)

    def _decode_batch(self, batch: _Batch) -> None:
        pages = [Page(number, rows) for (number, _), rows in zip(batch.pages, batch.bodies, strict=True)]
        batch.bodies = []
        decoded = self._decode(pages)
        self.quarantined += decoded.quarantined
        self._observations.update(decoded.observations)
        rows = decoded.tables[self._record.name]
        batch.keys = rows.select([KEY_COLUMN, "_page", "_position"]).rename_columns(["key", "_page", "_position"])
        version = 0 if self._inferred is None else self._inferred.version
        if self._files.version != version:
            self._files.close()
            self._files = TableFiles(self._folder, f"{version}", version)
        batch.version, batch.group = version, self._files.add(self._without_places(decoded.tables))
        self._check_progress(batch.rows + len(decoded.quarantined))

    def _check_progress(self, rows: int) -> None:
        """Breaks a walk that reads the same rows again and again: at each doubling there must be new ids.

        Raises:
            ContractBroken: there are none.
        """
        self._rows += rows
        if self._rows < self._next_check:
            return
        keys = pa.chunked_array([batch.keys["key"].combine_chunks() for batch in self._batches if batch.keys])
        distinct = pc.count_distinct(keys).as_py() + len({row.key or row.row_hash for row in self.quarantined})
        if distinct == self._distinct:
            words = f"no new id in the last {self._next_check // 2} rows"
            raise ContractBroken(words, "The list would never end. Report it to the platform's operator.")
        self._distinct, self._next_check = distinct, max(self._rows, self._next_check) * 2

    def _without_places(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The tables without `_page` and `_position`, and the key as not null, which dlt and DuckDB require."""
        bare = {name: table.drop_columns(["_page", "_position"]) for name, table in tables.items()}
        own = bare[self._record.name]
        key = own.schema.get_field_index(KEY_COLUMN)
        bare[self._record.name] = own.cast(own.schema.set(key, own.schema.field(key).with_nullable(False)))
        return bare

    def finish(self) -> SweepCounts:
        """Waits for the decoder. Raises what the decoder raised, BridgeError where it lost or added a row."""
        if self._filling.pages or not self._batches:
            self._submit()
        for pending in self._pending:
            pending.result()
        self._pool.shutdown()
        if self._rows != self._received:
            raise BridgeError(f"{self._record.name}: {self._received} rows were read, {self._rows} decoded")
        self._written = self._files.close()
        self._keys = self._last_places()
        return SweepCounts(self._keys.num_rows, len(self.quarantined), self._observations)

    def abandon(self) -> None:
        """Stops decoding. The files stay."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _last_places(self) -> pa.Table:
        """Columns key and place (batch and row number) of the last row of each id."""
        tables = []
        for index, batch in enumerate(self._batches):
            if batch.keys is not None:
                places = pa.array(np.arange(batch.rows, dtype=np.int64) + (index << 32))
                tables.append(batch.keys.select(["key"]).append_column("place", places))
        rows = pa.concat_tables(tables)
        if pc.count_distinct(rows["key"]).as_py() == rows.num_rows:
            return rows
        last = rows.group_by("key").aggregate([("place", "max"), ("place", "count")])
        several = last.filter(pc.greater(last["place_count"], 1))["key"].combine_chunks()
        places = rows.filter(pc.is_in(rows["key"], value_set=several))["place"].to_pylist()
        for place, (key, _, data) in zip(places, self._rows_at(places), strict=True):
            self.repeated.add(key, place, data)
        return last.select(["key", "place_max"]).rename_columns(["key", "place"])

    def _rows_at(self, places: Iterable[int]) -> Iterator[tuple[str, tuple[int, int], bytes]]:
        """Key, page and position, and bytes of the rows at these places, read again from the spool."""
        current, rows = -1, list[bytes]()
        for place in places:
            batch = self._batches[place >> 32]
            key, number, position = batch.row(place & 0xFFFFFFFF)
            if number != current:
                body = self._paginator.parse(self.spool.at(dict(batch.pages)[number]))
                current, rows = number, split(Page(number, body.rows))
            yield key, (number, position), rows[position - 1]

    def conflicting_rows(self, earlier: Sequence[PageFiles]) -> list[QuarantinedRow]:
        """The rows that this sweep and the earlier ones have although a later row of this sweep has the same id."""
        places = self.repeated.conflicts([files.repeated for files in earlier])
        return [
            replace(quarantine(place, data, InvalidRow(CONFLICT), key), is_id_duplicate=True)
            for key, place, data in self._rows_at(places)
        ]

    def same_rows(self, other: PageFiles) -> bool:
        """Whether both sweeps have the same ids, each as often, and the same quarantined rows."""
        if self.repeated.counts != other.repeated.counts:
            return False
        if sorted(row.row_hash for row in self.quarantined) != sorted(row.row_hash for row in other.quarantined):
            return False
        own, others = self._keys["key"].combine_chunks(), other._keys["key"].combine_chunks()
        return len(own) == len(others) and bool(pc.all(pc.is_in(own, value_set=others), min_count=0).as_py())

    def write(self, later_keys: pa.Array | None) -> tuple[int, dict[str, TableFile], pa.Array]:
        """The files of the rows that no later sweep has.

        Args:
            later_keys: ids in later sweeps; None if this is the last one.

        Returns:
            Count of distinct rows, the file of each table, and the ids of this sweep and the later ones.
        """
        selected = self._keys
        if later_keys is not None:
            selected = selected.filter(pc.invert(pc.is_in(selected["key"], value_set=later_keys)))
        keys = selected["key"].combine_chunks()
        files = self._files_with(np.sort(selected["place"].to_numpy()))
        return len(keys), files, keys if later_keys is None else pa.concat_arrays([later_keys, keys])

    def _files_with(self, places: np.ndarray) -> dict[str, TableFile]:
        """Files of the rows at these places, in order: those already written if they hold exactly these rows."""
        bounds = np.searchsorted(places, np.arange(len(self._batches) + 1) << 32)
        selected = [places[low:high] - (index << 32) for index, (low, high) in enumerate(pairwise(bounds))]
        is_whole = [
            len(rows) == batch.rows and batch.version == self._files.version
            for rows, batch in zip(selected, self._batches, strict=True)
        ]
        if all(is_whole):
            return self._written
        files = TableFiles(self._folder, "merged", self._files.version)
        for batch, rows, whole in zip(self._batches, selected, is_whole, strict=True):
            if len(rows):
                files.add(self._files.read(batch.group) if whole else self._decode_again(batch, rows))
        return files.close()

    def _decode_again(self, batch: _Batch, rows: np.ndarray) -> dict[str, pa.Table]:
        """These rows of a batch and their child rows, decoded from the spool with the final types."""
        pages = [Page(number, self._paginator.parse(self.spool.at(offset)).rows) for number, offset in batch.pages]
        selected = _codes(batch.keys)[rows]
        return self._without_places(
            {name: table.filter(np.isin(_codes(table), selected)) for name, table in self._decode(pages).tables.items()}
        )


def _codes(table: pa.Table) -> np.ndarray:
    """Page and position of each row, or of its parent row, as one number."""
    codes: np.ndarray = (table["_page"].to_numpy().astype(np.int64) << 32) + table["_position"].to_numpy()
    return codes
