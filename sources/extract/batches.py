"""Batches of consecutive pages, and how they become tables: when they arrive, and again from the spool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from orderbridge.sources.contract import Record
from orderbridge.sources.decode.documented import decode
from orderbridge.sources.decode.rows import Decoded, Page
from orderbridge.sources.decode.table_schema import lists_of
from orderbridge.sources.decode.undocumented import InferredSchema
from orderbridge.sources.extract.pages import PageBody, Paginator
from orderbridge.sources.extract.row_reader import RowReader
from orderbridge.sources.extract.spool import Spool
from orderbridge.sources.extract.table_files import TableFiles


@dataclass(slots=True)
class Batch:
    """Consecutive pages, and where their rows are written.

    Attributes:
        pages: number, and offset in the spool, of each.
        bodies: of the pages, until they are decoded; empty where they are read again from the spool.
        size: bytes of all rows.
        rows: in the list's own table.
        items: of lists in these rows, by child table, as they were counted in the pages.
        files, group: the files that hold the rows, and the row group in them.
    """

    pages: list[tuple[int, int]] = field(default_factory=list)
    bodies: list[PageBody] = field(default_factory=list)
    size: int = 0
    rows: int = 0
    items: Counter[str] = field(default_factory=Counter)
    files: TableFiles | None = None
    group: int = 0


class BatchDecoder:
    """Decodes the pages of one sweep, by the fields that the interface declares or by inferred types.

    Args:
        record: what the pages hold.
        spool: keeps the pages.
        paginator: parses them when they are read again.
        inferred: types of a record without declared fields, shared by all sweeps of a walk (docs/orders.md).
    """

    def __init__(
        self, record: Record, spool: Spool, paginator: Paginator, inferred: InferredSchema | None
    ) -> None:
        self.record = record
        self._spool = spool
        self._paginator = paginator
        self._inferred = inferred
        self.reader()

    @property
    def version(self) -> int:
        """The version of the types: each value that does not fit widens them, which makes another version."""
        return 0 if self._inferred is None else self._inferred.version

    def look_at(self, page: Page) -> None:
        """Infers types from a first page, before later ones are requested."""
        if self._inferred is not None:
            self._inferred.look_at([page])
            self.reader()

    def decode(self, pages: list[Page], *, is_known: bool = False) -> Decoded:
        """The rows of these pages as tables; `is_known` where they were decoded before."""
        if self._inferred is None:
            return decode(self.record, pages)
        return self._inferred.decode(pages, is_known=is_known)

    def reader(self) -> RowReader:
        """Reads rows with the lists that have child tables; the paginator reads later pages with it."""
        lists = lists_of(self.record) if self._inferred is None else self._inferred.lists()
        if lists != self._paginator.reader.lists:
            self._paginator.reader = RowReader(self.record.key, lists)
        return self._paginator.reader

    def bodies(self, batch: Batch) -> Iterator[PageBody]:
        """The pages of a batch, read again from the spool."""
        return (self._paginator.parse(self._spool.at(offset)) for _, offset in batch.pages)

    def pages(self, batch: Batch) -> list[Page]:
        """The rows of the pages of a batch, read again from the spool."""
        return numbered(batch, list(self.bodies(batch)))


def numbered(batch: Batch, bodies: list[PageBody]) -> list[Page]:
    """The rows of the pages of a batch, with the numbers of the pages."""
    return [Page(number, body.rows) for (number, _), body in zip(batch.pages, bodies, strict=True)]
