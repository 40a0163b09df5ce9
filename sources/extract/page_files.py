"""The pages of one sweep, as Parquet files: decoded in batches by one thread beside the fetching.

In: page bodies in order, and where the spool keeps them. Out: a file per table, with a row group per batch, and the
keys of all rows. Few files, since each costs dlt a job. Those of a clean sweep are published as they are. Where rows
came twice, where another sweep has newer ones, or where a later page widened a type, the batches concerned are decoded
again from the spool, exactly, and the others copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sources.contract import Record
from sources.decode.documented import Decoded, Page, QuarantinedRow, decode
from sources.decode.undocumented import InferredSchema
from sources.extract.paginators import Body, Paginator
from sources.extract.spool import Spool

BATCH_BYTES: Final = 12 * 1024 * 1024
BATCH_PAGES: Final = 400
PENDING_MAX: Final = 2
"""Batches waiting for the decoder; fetching waits when there are more, so memory stays flat."""


@dataclass(slots=True)
class _Batch:
    """A run of pages: where they are, which keys they hold, which row group of the files of its version they became."""

    pages: list[tuple[int, int]] = field(default_factory=list)  # page number, offset in the spool
    bodies: list[bytes] = field(default_factory=list)
    size: int = 0
    keys: pa.Table | None = None  # key, _page, _position
    version: int = -1
    group: int = 0

    @property
    def rows(self) -> int:
        """Rows of the list's own table."""
        return self.keys.num_rows if self.keys is not None else 0


@dataclass(frozen=True, slots=True)
class SweepCounts:
    """Rows of a sweep: distinct keys, and rows refused."""

    distinct: int
    quarantined: int


class _Files:
    """Parquet files that are being written, one a table; every batch becomes a row group of each.

    Args:
        folder: where they go.
        stem: part of their names.
        version: of the types.
    """

    def __init__(self, folder: Path, stem: str, version: int) -> None:
        self.version = version
        self.groups = 0
        self._folder, self._stem = folder, stem
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._rows: Counter[str] = Counter()

    def add(self, tables: Mapping[str, pa.Table]) -> int:
        """Writes the tables of one batch; gives the number of their row group."""
        for name, table in tables.items():
            if name not in self._writers:
                self._writers[name] = pq.ParquetWriter(
                    self._path(name), table.schema, compression="lz4", write_statistics=False
                )
            self._writers[name].write_table(table, row_group_size=max(table.num_rows, 1))
            self._rows[name] += table.num_rows
        self.groups += 1
        return self.groups - 1

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}-{self._stem}.parquet"

    def close(self) -> dict[str, tuple[Path, int]]:
        """Ends the files; gives them, with their rows, by table."""
        for writer in self._writers.values():
            writer.close()
        return {name: (self._path(name), self._rows[name]) for name in self._writers}

    def read(self, group: int) -> dict[str, pa.Table]:
        """The tables of one batch, of files that are closed."""
        tables = {}
        for name in self._writers:
            with pq.ParquetFile(self._path(name)) as file:
                tables[name] = file.read_row_group(group)
        return tables


class PageFiles:
    """The files of one sweep.

    Args:
        record: what the pages hold. One without declared fields is typed from the walk (design §6).
        folder: where the files go.
        observed: counts of what the interface does not show, added to.
    """

    def __init__(self, record: Record, folder: Path, observed: Counter[tuple[str, str]]) -> None:
        self.record, self.folder = record, folder
        self.refused: list[QuarantinedRow] = []
        self._observed = observed
        self._shape = None if record.fields else InferredSchema(record)
        self._batches: list[_Batch] = []
        self._filling = _Batch()
        self._pending: list[Future[None]] = []
        self._files = _Files(folder, "0", 0)
        self._pool = ThreadPoolExecutor(1, f"decode-{record.name}")
        self._spool: Spool | None = None
        self._paginator: Paginator | None = None
        folder.mkdir(parents=True, exist_ok=True)

    def read_from(self, spool: Spool, paginator: Paginator) -> None:
        """Says where pages can be read again, and how they are opened."""
        self._spool, self._paginator = spool, paginator

    def add(self, number: int, body: Body, offset: int) -> None:
        """Takes a page: its number, its rows, and where the spool keeps it."""
        batch = self._filling
        batch.pages.append((number, offset))
        batch.bodies.append(body.rows)
        batch.size += len(body.rows)
        if batch.size >= BATCH_BYTES or len(batch.pages) >= BATCH_PAGES:
            self._submit()

    def _submit(self) -> None:
        batch, self._filling = self._filling, _Batch()
        self._batches.append(batch)
        self._pending.append(self._pool.submit(self._decode_batch, batch))
        while len(self._pending) > PENDING_MAX:
            self._pending.pop(0).result()

    def _decode(self, pages: list[Page]) -> Decoded:
        return decode(self.record, pages) if self._shape is None else self._shape.decode(pages)

    def _decode_batch(self, batch: _Batch) -> None:
        pages = [Page(number, rows) for (number, _), rows in zip(batch.pages, batch.bodies, strict=True)]
        batch.bodies = []
        decoded = self._decode(pages)
        self.refused += decoded.quarantined
        self._observed.update(decoded.observations)
        main = decoded.tables[self.record.name]
        batch.keys = main.select([self.record.key, "_page", "_position"]).rename_columns(["key", "_page", "_position"])
        version = 0 if self._shape is None else self._shape.version
        if self._files.version != version:
            self._files.close()
            self._files = _Files(self.folder, f"{version}", version)
        batch.version, batch.group = version, self._files.add(self._bare(decoded.tables))

    def _bare(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The tables without the place of each row, and the key's column as never null, to dlt and to DuckDB alike."""
        bare = {name: table.drop_columns(["_page", "_position"]) for name, table in tables.items()}
        main = bare[self.record.name]
        key = main.schema.get_field_index(self.record.key)
        bare[self.record.name] = main.cast(main.schema.set(key, main.schema.field(key).with_nullable(False)))
        return bare

    def finish(self) -> SweepCounts:
        """Waits for the decoder and says what came. Raises what the decoder raised."""
        if self._filling.pages or not self._batches:
            self._submit()
        for pending in self._pending:
            pending.result()
        self._pool.shutdown()
        self._written = self._files.close()
        self._keys = self._all_keys()
        return SweepCounts(self._keys.num_rows, len(self.refused))

    def abandon(self) -> None:
        """Stops decoding; the files are left to whoever owns the folder."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _all_keys(self) -> pa.Table:
        """One row per distinct key: the batch and place of its last row."""
        tables = []
        for index, batch in enumerate(self._batches):
            if batch.keys is not None:
                places = pa.array(np.arange(batch.keys.num_rows, dtype=np.int64) + (index << 32))
                tables.append(batch.keys.select(["key"]).append_column("place", places))
        everything = pa.concat_tables(tables)
        self._rows = everything.num_rows
        if pc.count_distinct(everything["key"]).as_py() == everything.num_rows:
            return everything
        last = everything.group_by("key").aggregate([("place", "max")])
        return last.rename_columns(["key" if name == "key" else "place" for name in last.column_names])

    def same(self, other: PageFiles) -> bool:
        """Whether both sweeps found the same records, and refused the same rows."""
        if sorted(row.row_hash for row in self.refused) != sorted(row.row_hash for row in other.refused):
            return False
        mine, theirs = self._keys["key"].combine_chunks(), other._keys["key"].combine_chunks()
        return len(mine) == len(theirs) and bool(pc.all(pc.is_in(mine, value_set=theirs), min_count=0).as_py())

    def write(self, seen: pa.Array | None) -> tuple[int, dict[str, tuple[Path, int]], pa.Array]:
        """The files of the rows that no later sweep has.

        Args:
            seen: keys that later sweeps hold; None where there is no later one.

        Returns:
            Count of distinct rows, the file of each table with its rows, and the keys seen so far.
        """
        wanted = self._keys
        if seen is not None:
            wanted = wanted.filter(pc.invert(pc.is_in(wanted["key"], value_set=seen)))
        places = np.sort(wanted["place"].to_numpy())
        keys = self._keys["key"].combine_chunks()
        return (
            wanted.num_rows,
            self._files_of(places),
            keys if seen is None else pa.concat_arrays([seen, wanted["key"].combine_chunks()]),
        )

    def _files_of(self, places: np.ndarray) -> dict[str, tuple[Path, int]]:
        """The files of the rows at these places, in order: those that are there, where they hold just these."""
        bounds = np.searchsorted(places, np.arange(len(self._batches) + 1) << 32)
        wanted = [places[low:high] - (index << 32) for index, (low, high) in enumerate(pairwise(bounds))]
        untouched = [
            len(rows) == batch.rows and batch.version == self._files.version
            for rows, batch in zip(wanted, self._batches, strict=True)
        ]
        if all(untouched):
            return self._written
        again = _Files(self.folder, "again", self._files.version)
        for batch, rows, whole in zip(self._batches, wanted, untouched, strict=True):
            if len(rows):
                again.add(self._files.read(batch.group) if whole else self._decoded_again(batch, rows))
        return again.close()

    def _decoded_again(self, batch: _Batch, rows: np.ndarray) -> dict[str, pa.Table]:
        """Decodes a batch again from the spool and keeps only these rows of it, and their children."""
        if self._spool is None or self._paginator is None or batch.keys is None:
            raise RuntimeError("nobody said where pages can be read again")
        pages = [Page(number, self._paginator.parse(self._spool.at(offset)).rows) for number, offset in batch.pages]
        kept = _codes(batch.keys)[rows]
        tables = self._decode(pages).tables
        return self._bare(
            {name: table.filter(pa.array(np.isin(_codes(table), kept))) for name, table in tables.items()}
        )


def batches(files: Iterable[tuple[Path, int]]) -> Iterator[pa.Table]:
    """The rows of a table's files, a batch of pages at a time: memory does not grow with the list."""
    for path, _ in files:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group)


def _codes(table: pa.Table) -> np.ndarray:
    """One number per row for the page and position that it, or its parent, came from."""
    pages = table["_page"].to_numpy().astype(np.int64)
    codes: np.ndarray = (pages << 32) + table["_position"].to_numpy().astype(np.int64)
    return codes
