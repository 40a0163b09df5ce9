"""The pages of one sweep as Parquet files, decoded in batches by one thread while the next pages are fetched.

In: page bodies in order, and the spool that keeps them. Out: a file per table with a row group per batch, and the
hashes of all ids. The files of a clean sweep are published unchanged. Where an id occurs twice, where another sweep has
a newer row, or where a later page widened a type, the batches concerned are decoded again from the spool, exactly, and
the others are copied. A sweep that reads the same bytes as the one before it is not decoded and writes no files.
Items of lists are counted in the pages, too, and must be in the files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from orderbridge.sources.contract import Record
from orderbridge.sources.decode.documented import decode
from orderbridge.sources.decode.rows import (
    Decoded,
    InvalidRow,
    Page,
    QuarantinedRow,
    quarantine,
    split,
)
from orderbridge.sources.decode.table_schema import KEY_COLUMN, lists_of
from orderbridge.sources.decode.undocumented import InferredSchema
from orderbridge.sources.errors import BridgeError, ContractBroken
from orderbridge.sources.extract.ids import ID_CONFLICT, IdHashes, RepeatedIds, Rows, hash_ids
from orderbridge.sources.extract.pages import PageBody, Paginator, RowReader
from orderbridge.sources.extract.spool import Spool

TableFile = tuple[Path, int]
"""A Parquet file and its rows."""


class TableFiles:
    """Parquet files that are being written.

    Args:
        folder: for the files.
        label: part of their names.
        version: of the inferred types that the tables have.
    """

    def __init__(self, folder: Path, label: str, version: int) -> None:
        self.version = version
        self._folder, self._label = folder, label
        self._groups = 0
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._paths: dict[str, Path] = {}

    def add(self, tables: Mapping[str, pa.Table]) -> int:
        """Writes the tables of one batch; returns the number of their row group."""
        for name, table in tables.items():
            if name not in self._writers:
                # By number: the name of a table may be longer than that of a file.
                self._paths[name] = self._folder / f"{len(self._paths)}-{self._label}.parquet"
                # A dictionary of the first column, whose values are nearly unique, would be larger than they are.
                self._writers[name] = pq.ParquetWriter(
                    self._paths[name],
                    table.schema,
                    compression="lz4",
                    write_statistics=False,
                    use_dictionary=table.column_names[1:],
                )
            self._writers[name].write_table(table, row_group_size=max(table.num_rows, 1))
        self._groups += 1
        return self._groups - 1

    def close(self) -> dict[str, TableFile]:
        """Closes the files and returns them by table."""
        for writer in self._writers.values():
            writer.close()
        return {name: (path, pq.read_metadata(path).num_rows) for name, path in self._paths.items()}

    def read(self, group: int) -> dict[str, pa.Table]:
        """The tables of one batch, once the files are closed."""
        tables = {}
        for name, path in self._paths.items():
            with pq.ParquetFile(path) as file:
                tables[name] = file.read_row_group(group)
        return tables


def read_batches(files: Iterable[TableFile]) -> Iterator[pa.Table]:
    """The rows of a table, one batch of pages at a time: memory does not grow with the list."""
    for path, _ in files:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield file.read_row_group(group)


_SEPARATOR: Final = re.compile(rb"}(\s*,\s*){")


class RowDigest:
    """A digest of the rows of one sweep, on whatever pages they were."""

    def __init__(self) -> None:
        self._digest, self._separator, self._is_first = sha256(), b"", True

    def add(self, rows: bytes) -> None:
        """Takes the rows of the next page: a JSON array that is not empty."""
        if not self._separator:  # as the platform writes it: pages end elsewhere in the other sweep
            self._separator = match[1] if (match := _SEPARATOR.search(rows)) else b","
        self._digest.update((b"" if self._is_first else self._separator) + rows[1:-1])
        self._is_first = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowDigest) and self._digest.digest() == other._digest.digest()

    __hash__ = None  # type: ignore[assignment] # it grows


BATCH_BYTES: Final = 12 * 1024 * 1024
BATCH_PAGES: Final = 400
PENDING_MAX: Final = 2
"""Batches that wait for the decoder; fetching waits when there are more, so memory stays flat."""
CHECK_ROWS: Final = 20_000
"""Rows of which a tenth must have new ids, and again after each doubling."""


@dataclass(slots=True)
class _Batch:
    """Consecutive pages: (number, offset in the spool) of each, and the row group of `files` that holds their rows.

    Attributes:
        rows: in the list's own table.
        items: of lists in these rows, by child table, as they were counted in the pages.
    """

    pages: list[tuple[int, int]] = field(default_factory=list)
    bodies: list[PageBody] = field(default_factory=list)
    size: int = 0
    rows: int = 0
    items: Counter[str] = field(default_factory=Counter)
    files: TableFiles | None = None
    group: int = 0


class PageFiles:
    """The files of one sweep. Until `finish` returns, its results belong to the decoding thread.

    Args:
        record: what the pages hold.
        folder: for the files.
        spool: keeps the pages.
        paginator: parses them when they are read again.
        inferred: types of a record without declared fields, shared by all sweeps of a walk (docs/orders.md).
        earlier: the sweep before it. Nothing is decoded before there are more rows than it had, or all have come.
        is_compared: a later sweep may be compared with this one.

    Attributes:
        ids: hashes of the ids of all rows.
        quarantined: the rows that no table can hold.
        repeated: the rows of ids that occur more than once.
        observations: what the interface does not show: (what, value) → count.
        items: of lists in the rows that `write` selected, by child table, as they were counted in the pages.
    """

    def __init__(
        self,
        record: Record,
        folder: Path,
        spool: Spool,
        paginator: Paginator,
        inferred: InferredSchema | None,
        earlier: PageFiles | None = None,
        *,
        is_compared: bool = False,
    ) -> None:
        self.spool = spool
        self.quarantined: list[QuarantinedRow] = []
        self.repeated = RepeatedIds()
        # Places of quarantined rows and of repeated ids are those of their own sweep.
        is_exact = (
            is_compared and earlier and not earlier.quarantined and not earlier.repeated.counts
        )
        self._earlier, self._digest = (
            earlier if is_exact else None,
            RowDigest() if is_compared else None,
        )
        self._record, self._folder, self._paginator = record, folder, paginator
        self.observations: Counter[tuple[str, str]] = Counter()
        self.items: Counter[str] = Counter()
        self._inferred = inferred
        self._known_lists()
        self._batches: list[_Batch] = []
        self._filling = _Batch()
        self._pending: list[Future[None]] = []
        self._files = TableFiles(folder, "0", 0)
        self.ids = IdHashes(folder.with_name(f"{folder.name}.ids"))
        self._submitted, self._received, self._rows, self._distinct, self._next_check = (
            0,
            0,
            0,
            0,
            CHECK_ROWS,
        )
        self._pool = ThreadPoolExecutor(1, f"decode-{record.name}")
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, number: int, body: PageBody, offset: int) -> None:
        """Takes a page: its number, its rows, and its offset in the spool."""
        batch = self._filling
        if self._inferred is not None and not self._received:
            self._inferred.look_at([Page(number, body.rows)])
            self._known_lists()
        batch.pages.append((number, offset))
        batch.bodies.append(body)
        batch.size += len(body.rows)
        self._received += body.count
        if body.count and self._digest is not None:
            self._digest.add(body.rows)
        if batch.size >= BATCH_BYTES or len(batch.pages) >= BATCH_PAGES:
            self._submit()

    def _submit(self) -> None:
        batch, self._filling = self._filling, _Batch()
        self._batches.append(batch)
        if self._earlier is not None and self._received <= self._earlier._received:
            batch.bodies = []  # read again from the spool unless all rows are equal
        else:
            self._decode_waiting()

    def _decode_waiting(self) -> None:
        """Lets the decoder have the batches that it does not have yet."""
        for batch in self._batches[self._submitted :]:
            self._submitted += 1
            self._pending.append(self._pool.submit(self._decode_batch, batch))
            while len(self._pending) > PENDING_MAX:
                self._pending.pop(0).result()

    @property
    def _version(self) -> int:
        """Of the types, which every value that does not fit widens."""
        return 0 if self._inferred is None else self._inferred.version

    def _decode(self, pages: list[Page], *, is_known: bool = False) -> Decoded:
        if self._inferred is None:
            return decode(self._record, pages)
        return self._inferred.decode(pages, is_known=is_known)

    def _decode_batch(self, batch: _Batch) -> None:
        bodies, batch.bodies = batch.bodies, []
        numbers = [number for number, _ in batch.pages]
        if not bodies:
            bodies = list(self._bodies_of(batch))
        decoded = self._decode(list(map(Page, numbers, (body.rows for body in bodies))))
        reader = self._known_lists()
        batch.items = Counter()
        for body in bodies:
            is_counted = body.items is not None and body.reader is reader
            batch.items.update(body.items if is_counted else reader.items(body.rows))
        batch.items.subtract(reader.items_of(row.row for row in decoded.quarantined))
        self.quarantined += decoded.quarantined
        self.observations.update(decoded.observations)
        keys = decoded.tables[self._record.name][KEY_COLUMN]
        self.ids.append(hash_ids(keys))
        if self._files.version != self._version:
            self._files.close()
            self._files = TableFiles(self._folder, f"{self._version}", self._version)
        batch.rows, batch.files = len(keys), self._files
        batch.group = self._files.add(self._without_places(decoded.tables))
        self._check_progress(batch.rows + len(decoded.quarantined))

    def _known_lists(self) -> RowReader:
        """Reads rows with the lists that have child tables; the paginator reads later pages with it."""
        lists = lists_of(self._record) if self._inferred is None else self._inferred.lists()
        if lists != self._paginator.reader.lists:
            self._paginator.reader = RowReader(self._record.key, lists)
        return self._paginator.reader

    def _check_progress(self, rows: int) -> None:
        """Breaks a walk that reads the same rows again and again: at each doubling there must be enough new ids.

        Raises:
            ContractBroken: there are fewer than a tenth of the rows; some come from a list that grows meanwhile.
        """
        self._rows += rows
        if self._rows < self._next_check:
            return
        distinct = self.ids.count_distinct()
        distinct += len({row.key or row.row_hash for row in self.quarantined})
        if (distinct - self._distinct) * 10 < self._next_check // 2:
            words = f"{distinct - self._distinct} new ids in the last {self._next_check // 2} rows"
            raise ContractBroken(
                words, "The list would never end. Report it to the platform's operator."
            )
        self._distinct, self._next_check = distinct, max(self._rows, self._next_check) * 2

    def _without_places(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The tables without `_page` and `_position`, and the key as not null, which dlt and DuckDB require."""
        bare = {name: table.drop_columns(["_page", "_position"]) for name, table in tables.items()}
        own = bare[self._record.name]
        key = own.schema.get_field_index(KEY_COLUMN)
        bare[self._record.name] = own.cast(
            own.schema.set(key, own.schema.field(key).with_nullable(False))
        )
        return bare

    def finish(self) -> PageFiles:
        """Waits for the decoder.

        Returns:
            These files; those of the earlier sweep where all rows were the same, byte for byte.

        Raises:
            BridgeError: the decoder lost or added a row. Further, what the decoder raised.
        """
        if self._filling.pages or not self._batches:
            self._submit()
        if self._earlier is not None and self._digest == self._earlier._digest:
            return self._earlier
        self._decode_waiting()
        for pending in self._pending:
            pending.result()
        self._pool.shutdown()
        if self._rows != self._received:
            raise BridgeError(
                f"{self._record.name}: {self._received} rows were read, {self._rows} decoded"
            )
        self._written = self._files.close()
        self._starts = np.cumsum([0, *(batch.rows for batch in self._batches)])
        self.ids.drop(self._find_repeated(self.ids.shared()))
        return self

    def abandon(self) -> None:
        """Stops decoding after the batch that is being decoded. The files stay."""
        self._pool.shutdown(cancel_futures=True)

    def _find_repeated(self, rows: Rows) -> list[int]:
        """Compares the ids of these rows; returns the rows whose id occurs again later."""
        last: dict[str, int] = {}
        earlier = []
        for row, (key, _, data) in zip(rows.tolist(), self._rows_at(rows), strict=True):
            self.repeated.add(key, row, data)
            if key in last:
                earlier.append(last[key])
            last[key] = row
        return earlier

    def _by_batch(self, rows: Rows) -> list[tuple[_Batch, Rows]]:
        """Rows, numbered over the whole sweep and in order, as row numbers in each batch."""
        parts = np.split(rows, np.searchsorted(rows, self._starts[1:-1]))
        return [
            (batch, part - start)
            for batch, part, start in zip(self._batches, parts, self._starts, strict=False)
        ]

    def _bodies_of(self, batch: _Batch) -> Iterator[PageBody]:
        """The pages of a batch, read again from the spool."""
        return (self._paginator.parse(self.spool.at(offset)) for _, offset in batch.pages)

    def _pages_of(self, batch: _Batch) -> list[Page]:
        numbers = (number for number, _ in batch.pages)
        return [
            Page(number, body.rows)
            for number, body in zip(numbers, self._bodies_of(batch), strict=True)
        ]

    def _rows_at(self, rows: Rows) -> Iterator[tuple[str, tuple[int, int], bytes]]:
        """Key, page and position, and bytes of these rows, read again from the spool."""
        for batch, part in self._by_batch(rows):
            if len(part):
                pages = self._pages_of(batch)
                table = self._decode(pages, is_known=True).tables[self._record.name].take(part)
                places = list(_places(table))
                yield from zip(
                    table[KEY_COLUMN].to_pylist(), places, _row_bytes(pages, places), strict=True
                )

    def conflicting_rows(self, earlier: Sequence[PageFiles]) -> list[QuarantinedRow]:
        """The rows that this sweep and the earlier ones have although a later row of this sweep has the same id."""
        places = self.repeated.conflicts([files.repeated for files in earlier])
        return [
            replace(quarantine(place, data, InvalidRow(ID_CONFLICT), key), is_id_duplicate=True)
            for key, place, data in self._rows_at(np.array(places, np.int64))
        ]

    def count_absent(self, known: IdHashes) -> int:
        """How many of these ids no row of this sweep has, quarantined ones included."""
        keys = [row.key for row in self.quarantined if row.key is not None]
        return self.ids.count_absent(known, hash_ids(pa.chunked_array([keys], pa.string())))

    def same_rows(self, other: PageFiles) -> bool:
        """Whether both sweeps have the same ids, each as often, and the same quarantined rows."""
        if self is other:
            return True
        if self.repeated.counts != other.repeated.counts:
            return False
        if sorted(row.row_hash for row in self.quarantined) != sorted(
            row.row_hash for row in other.quarantined
        ):
            return False
        return self.ids.equals(other.ids)

    def write(self, later: Sequence[PageFiles]) -> tuple[int, dict[str, TableFile]]:
        """The files of the rows that no later sweep has.

        Returns:
            Count of distinct rows, and the file of each table.
        """
        is_new = self.ids.new_rows([files.ids for files in later])
        return int(np.count_nonzero(is_new)), self._files_with(is_new)

    def _files_with(self, selected: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, TableFile]:
        """Files of these rows: those already written if they hold exactly these.

        Raises:
            BridgeError: a child table does not have the items that the rows have in the pages.
        """
        current, written = (
            self._files if self._files.version == self._version else None,
            self._written,
        )
        self.items = Counter()
        if selected.all() and all(batch.files is current for batch in self._batches):
            for batch in self._batches:
                self.items.update(batch.items)
        else:
            files = TableFiles(self._folder, "merged", self._version)
            for batch, start in zip(self._batches, self._starts, strict=False):
                rows = np.flatnonzero(selected[start : start + batch.rows])
                if not len(rows):
                    continue
                if batch.files is current and current is not None and len(rows) == batch.rows:
                    self.items.update(batch.items)
                    files.add(current.read(batch.group))
                else:
                    files.add(self._decode_again(batch, rows))
            written = files.close()
        for table in self.items.keys() | written.keys() - {self._record.name}:
            if self.items[table] != (rows_written := written[table][1] if table in written else 0):
                words = f"{table}: {self.items[table]} items are in the pages, {rows_written} were decoded"
                raise BridgeError(words, "Nothing of this list is published. Please report it.")
        return written

    def _decode_again(self, batch: _Batch, rows: Rows) -> dict[str, pa.Table]:
        """These rows of a batch and their child rows, decoded with the final types; counts their items, too."""
        pages = self._pages_of(batch)
        tables = self._decode(pages, is_known=True).tables
        own = tables[self._record.name].take(rows)
        self.items.update(self._known_lists().items_of(_row_bytes(pages, _places(own))))
        selected = _codes(own)
        return self._without_places(
            {name: table.filter(np.isin(_codes(table), selected)) for name, table in tables.items()}
        )


def _places(table: pa.Table) -> Iterator[tuple[int, int]]:
    """Page and position of each row."""
    return zip(table["_page"].to_pylist(), table["_position"].to_pylist(), strict=True)


def _row_bytes(pages: Sequence[Page], places: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """The bytes of the rows at these places, which are in order."""
    numbered = {page.number: page for page in pages}
    number, data = -1, list[bytes]()
    for page, position in places:
        if page != number:
            number, data = page, split(numbered[page])
        yield data[position - 1]


def _codes(table: pa.Table) -> Rows:
    """Page and position of each row, or of its parent row, as one number."""
    codes: Rows = (table["_page"].to_numpy().astype(np.int64) << 32) + table["_position"].to_numpy()
    return codes
