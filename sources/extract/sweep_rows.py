"""The rows of one sweep: in Parquet files, by the hashes of their ids, and again from the spool.

In: decoded batches. Out: whether another sweep has the same rows, and the files of the rows that no later sweep has.
The files of a clean sweep are published unchanged. Where an id occurs twice, where another sweep has a newer row, or
where a later page widened a type, the batches concerned are decoded again from the spool, exactly, and the others are
copied. Items of lists are counted in the pages, too, and must be in the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from orderbridge.sources.decode.rows import (
    Decoded,
    InvalidRow,
    Page,
    QuarantinedRow,
    quarantine,
    split,
)
from orderbridge.sources.decode.table_schema import KEY_COLUMN
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.extract.batches import Batch, BatchDecoder
from orderbridge.sources.extract.ids import (
    ID_CONFLICT,
    IdHashes,
    RepeatedIds,
    RowDigest,
    Rows,
    hash_ids,
)
from orderbridge.sources.extract.table_files import TableFile, TableFiles


class SweepRows:
    """The rows of one sweep. `PageFiles` fills it; until its `finish` returns, it belongs to the decoding thread.

    Args:
        folder: for the files.
        decoder: of the pages.

    Attributes:
        batches: in order.
        received: rows on the pages.
        digest: of these rows; None where no later sweep is compared with this one.
        ids: hashes of the ids of all rows.
        quarantined: the rows that no table can hold.
        repeated: the rows of ids that occur more than once.
        observations: what the interface does not show: (what, value) → count.
        items: of lists in the rows that `write` selected, by child table, as they were counted in the pages.
    """

    def __init__(self, folder: Path, decoder: BatchDecoder) -> None:
        self.batches: list[Batch] = []
        self.received = 0
        self.digest: RowDigest | None = None
        self.ids = IdHashes(folder.with_name(f"{folder.name}.ids"))
        self.quarantined: list[QuarantinedRow] = []
        self.repeated = RepeatedIds()
        self.observations: Counter[tuple[str, str]] = Counter()
        self.items: Counter[str] = Counter()
        self._folder = folder
        self._decoder = decoder
        self._table = decoder.record.name
        self._files = TableFiles(folder, "0", 0)
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, batch: Batch, decoded: Decoded) -> None:
        """Writes the tables of a batch, and keeps what else was decoded."""
        keys = decoded.tables[self._table][KEY_COLUMN]
        self.ids.append(hash_ids(keys))
        self.quarantined += decoded.quarantined
        self.observations.update(decoded.observations)
        version = self._decoder.version
        if self._files.version != version:
            self._files.close()
            self._files = TableFiles(self._folder, f"{version}", version)
        batch.rows = len(keys)
        batch.files = self._files
        batch.group = self._files.add(self._without_places(decoded.tables))

    def close(self) -> None:
        """Closes the files, once all batches are there, and finds the ids that occur more than once."""
        self._written = self._files.close()
        self._starts = np.cumsum([0, *(batch.rows for batch in self.batches)])
        self.ids.drop(self._find_repeated(self.ids.shared()))

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

    def _rows_at(self, rows: Rows) -> Iterator[tuple[str, tuple[int, int], bytes]]:
        """Key, page and position, and bytes of these rows, read again from the spool."""
        for batch, part in self._by_batch(rows):
            if not len(part):
                continue
            pages = self._decoder.pages(batch)
            tables = self._decoder.decode(pages, is_known=True).tables
            own = tables[self._table].take(part)
            places = list(_places(own))
            data = _row_bytes(pages, places)
            yield from zip(own[KEY_COLUMN].to_pylist(), places, data, strict=True)

    def _by_batch(self, rows: Rows) -> list[tuple[Batch, Rows]]:
        """Rows, numbered over the whole sweep and in order, as row numbers in each batch."""
        parts = np.split(rows, np.searchsorted(rows, self._starts[1:-1]))
        return [
            (batch, part - start)
            for batch, part, start in zip(self.batches, parts, self._starts, strict=False)
        ]

    def conflicting_rows(self, earlier: Sequence[SweepRows]) -> list[QuarantinedRow]:
        """The rows that this sweep and the earlier ones have although a later row of this sweep has the same id."""
        places = self.repeated.conflicts([rows.repeated for rows in earlier])
        return [
            replace(quarantine(place, data, InvalidRow(ID_CONFLICT), key), is_id_duplicate=True)
            for key, place, data in self._rows_at(np.array(places, np.int64))
        ]

    def count_absent(self, known: IdHashes) -> int:
        """How many of these ids no row of this sweep has, quarantined ones included."""
        keys = [row.key for row in self.quarantined if row.key is not None]
        return self.ids.count_absent(known, hash_ids(pa.chunked_array([keys], pa.string())))

    def same_rows(self, other: SweepRows) -> bool:
        """Whether both sweeps have the same ids, each as often, and the same quarantined rows."""
        if self is other:
            return True
        if self.repeated.counts != other.repeated.counts:
            return False
        own_hashes = sorted(row.row_hash for row in self.quarantined)
        if own_hashes != sorted(row.row_hash for row in other.quarantined):
            return False
        return self.ids.equals(other.ids)

    def write(self, later: Sequence[SweepRows]) -> tuple[int, dict[str, TableFile]]:
        """The files of the rows that no later sweep has: those already written if they hold exactly these.

        Returns:
            Count of distinct rows, and the file of each table.

        Raises:
            BridgeError: a child table does not have the items that the rows have in the pages.
        """
        is_new = self.ids.new_rows([rows.ids for rows in later])
        self.items = Counter()
        if is_new.all() and all(map(self._has_final_types, self.batches)):
            for batch in self.batches:
                self.items.update(batch.items)
            files = self._written
        else:
            files = self._write_again(is_new)
        self._check_items(files)
        return int(np.count_nonzero(is_new)), files

    def _has_final_types(self, batch: Batch) -> bool:
        return batch.files is not None and batch.files.version == self._decoder.version

    def _write_again(self, selected: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, TableFile]:
        """Writes files of these rows; a batch of which all are selected is copied if it has the final types."""
        files = TableFiles(self._folder, "merged", self._decoder.version)
        for batch, start in zip(self.batches, self._starts, strict=False):
            rows = np.flatnonzero(selected[start : start + batch.rows])
            if not len(rows):
                continue
            if len(rows) == batch.rows and batch.files is not None and self._has_final_types(batch):
                self.items.update(batch.items)
                files.add(batch.files.read(batch.group))
            else:
                files.add(self._decode_again(batch, rows))
        return files.close()

    def _decode_again(self, batch: Batch, rows: Rows) -> dict[str, pa.Table]:
        """These rows of a batch and their child rows, decoded with the final types; counts their items, too."""
        pages = self._decoder.pages(batch)
        tables = self._decoder.decode(pages, is_known=True).tables
        own = tables[self._table].take(rows)
        self.items.update(self._decoder.reader().items_of(_row_bytes(pages, _places(own))))
        selected = _codes(own)
        return self._without_places(
            {name: table.filter(np.isin(_codes(table), selected)) for name, table in tables.items()}
        )

    def _check_items(self, files: Mapping[str, TableFile]) -> None:
        for table in self.items.keys() | files.keys() - {self._table}:
            decoded = files[table][1] if table in files else 0
            if self.items[table] != decoded:
                words = (
                    f"{table}: {self.items[table]} items are in the pages, {decoded} were decoded"
                )
                raise BridgeError(words, "Nothing of this list is published. Please report it.")

    def _without_places(self, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
        """The tables without `_page` and `_position`, and the key as not null, which dlt and DuckDB require."""
        bare = {name: table.drop_columns(["_page", "_position"]) for name, table in tables.items()}
        own = bare[self._table]
        key = own.schema.get_field_index(KEY_COLUMN)
        key_not_null = own.schema.field(key).with_nullable(False)
        bare[self._table] = own.cast(own.schema.set(key, key_not_null))
        return bare


def _places(table: pa.Table) -> Iterator[tuple[int, int]]:
    """Page and position of each row."""
    return zip(table["_page"].to_pylist(), table["_position"].to_pylist(), strict=True)


def _row_bytes(pages: Sequence[Page], places: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """The bytes of the rows at these places, which are in order."""
    numbered = {page.number: page for page in pages}
    number = -1
    data: list[bytes] = []
    for page, position in places:
        if page != number:
            number = page
            data = split(numbered[page])
        yield data[position - 1]


def _codes(table: pa.Table) -> Rows:
    """Page and position of each row, or of its parent row, as one number."""
    codes: Rows = (table["_page"].to_numpy().astype(np.int64) << 32) + table["_position"].to_numpy()
    return codes
