"""The pages of one sweep as Parquet files, decoded in batches by one thread while the next pages are fetched.

In: page bodies in order, and the spool that keeps them. Out: the rows of the sweep (`SweepRows`), in a file per table
with a row group per batch. A sweep that reads the same bytes as the one before it is not decoded and writes no files.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from orderbridge.sources.contract import Record
from orderbridge.sources.decode.rows import Page, QuarantinedRow
from orderbridge.sources.decode.undocumented import InferredSchema
from orderbridge.sources.errors import BridgeError, ContractBroken
from orderbridge.sources.extract.batches import Batch, BatchDecoder, numbered
from orderbridge.sources.extract.ids import IdHashes, RowDigest
from orderbridge.sources.extract.pages import PageBody, Paginator
from orderbridge.sources.extract.spool import Spool
from orderbridge.sources.extract.sweep_rows import SweepRows

BATCH_BYTES: Final = 12 * 1024 * 1024
BATCH_PAGES: Final = 400
PENDING_MAX: Final = 2
"""Batches that wait for the decoder; fetching waits when there are more, so memory stays flat."""
CHECK_ROWS: Final = 20_000
"""Rows of which a tenth must have new ids, and again after each doubling."""


class PageFiles:
    """Takes the pages of one sweep and writes their rows to files.

    Args:
        record: what the pages hold.
        folder: for the files.
        spool: keeps the pages.
        paginator: parses them when they are read again.
        inferred: types of a record without declared fields, shared by all sweeps of a walk (docs/orders.md).
        earlier: the sweep before it. Nothing is decoded before there are more rows than it had, or all have come.
        is_compared: a later sweep may be compared with this one.
    """

    def __init__(
        self,
        record: Record,
        folder: Path,
        spool: Spool,
        paginator: Paginator,
        inferred: InferredSchema | None,
        earlier: SweepRows | None = None,
        *,
        is_compared: bool = False,
    ) -> None:
        self._record = record
        self._decoder = BatchDecoder(record, spool, paginator, inferred)
        self._rows = SweepRows(folder, self._decoder)
        self._earlier: SweepRows | None = None
        if is_compared:
            self._rows.digest = RowDigest()
            # Places of quarantined rows and of repeated ids are those of their own sweep.
            if earlier is not None and not earlier.quarantined and not earlier.repeated.counts:
                self._earlier = earlier
        self._filling = Batch()
        self._submitted = 0
        self._pending: list[Future[None]] = []
        self._decoded = 0
        self._new_ids = _NewIds()
        self._pool = ThreadPoolExecutor(1, f"decode-{record.name}")

    def add(self, number: int, body: PageBody, offset: int) -> None:
        """Takes a page: its number, its rows, and its offset in the spool."""
        rows, batch = self._rows, self._filling
        if not rows.received:
            self._decoder.look_at(Page(number, body.rows))
        batch.pages.append((number, offset))
        batch.bodies.append(body)
        batch.size += len(body.rows)
        rows.received += body.count
        if body.count and rows.digest is not None:
            rows.digest.add(body.rows)
        if batch.size >= BATCH_BYTES or len(batch.pages) >= BATCH_PAGES:
            self._submit()

    def finish(self) -> SweepRows:
        """Waits for the decoder.

        Returns:
            The rows of this sweep; those of the earlier sweep where all were the same, byte for byte.

        Raises:
            BridgeError: the decoder lost or added a row. Further, what the decoder raised.
        """
        rows = self._rows
        if self._filling.pages or not rows.batches:
            self._submit()
        if self._earlier is not None and rows.digest == self._earlier.digest:
            return self._earlier
        self._decode_waiting()
        for pending in self._pending:
            pending.result()
        self._pool.shutdown()
        if self._decoded != rows.received:
            raise BridgeError(
                f"{self._record.name}: {rows.received} rows were read, {self._decoded} decoded"
            )
        rows.close()
        return rows

    def abandon(self) -> None:
        """Stops decoding after the batch that is being decoded. The files stay."""
        self._pool.shutdown(cancel_futures=True)

    def _submit(self) -> None:
        """Ends the batch that is being filled, and lets the decoder have it, unless all its rows may be known."""
        batch = self._filling
        self._filling = Batch()
        self._rows.batches.append(batch)
        if self._earlier is not None and self._rows.received <= self._earlier.received:
            batch.bodies = []  # read again from the spool unless all rows are equal
        else:
            self._decode_waiting()

    def _decode_waiting(self) -> None:
        """Lets the decoder have the batches that it does not have yet."""
        for batch in self._rows.batches[self._submitted :]:
            self._submitted += 1
            self._pending.append(self._pool.submit(self._decode_batch, batch))
            while len(self._pending) > PENDING_MAX:
                self._pending.pop(0).result()

    def _decode_batch(self, batch: Batch) -> None:
        """Decodes and writes a batch, in the decoding thread. Raises ContractBroken where too few ids are new."""
        bodies = batch.bodies or list(self._decoder.bodies(batch))
        batch.bodies = []
        decoded = self._decoder.decode(numbered(batch, bodies))
        batch.items = self._count_items(bodies, decoded.quarantined)
        self._rows.add(batch, decoded)
        self._decoded += batch.rows + len(decoded.quarantined)
        self._new_ids.check(self._decoded, self._rows.ids, self._rows.quarantined)

    def _count_items(
        self, bodies: list[PageBody], quarantined: list[QuarantinedRow]
    ) -> Counter[str]:
        """The items of the lists that have child tables, without those of quarantined rows."""
        reader = self._decoder.reader()
        items: Counter[str] = Counter()
        for body in bodies:
            if body.items is not None and body.reader is reader:
                items.update(body.items)
            else:
                items.update(reader.items(body.rows))
        items.subtract(reader.items_of(row.row for row in quarantined))
        return items


class _NewIds:
    """Ends a walk that reads the same rows again and again: at each doubling there must be enough new ids."""

    def __init__(self) -> None:
        self._distinct = 0
        self._next_check = CHECK_ROWS

    def check(self, rows: int, ids: IdHashes, quarantined: list[QuarantinedRow]) -> None:
        """Counts the ids, where the rows decoded so far have doubled.

        Raises:
            ContractBroken: new ids are fewer than a tenth of the rows; some come from a list that grows meanwhile.
        """
        if rows < self._next_check:
            return
        distinct = ids.count_distinct()
        distinct += len({row.key or row.row_hash for row in quarantined})
        new = distinct - self._distinct
        last = self._next_check // 2
        if new * 10 < last:
            raise ContractBroken(
                f"{new} new ids in the last {last} rows",
                "The list would never end. Report it to the platform's operator.",
            )
        self._distinct = distinct
        self._next_check = rows * 2
