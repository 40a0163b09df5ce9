"""Undocumented records: pages to Arrow tables, typed over the whole walk and as earlier walks kept it.

In: pages of JSON rows. Out: the tables of `inferred_tables`, and the rows that cannot be loaded. A batch is parsed as
a whole with the types known (`pyarrow.json`, all declared, none guessed: a string like a date stays text). What does
not fit is read row by row, the types may change, and the batch is parsed again. `version` counts the changes: tables
of an earlier version are decoded again from their pages, which is exact where a cast would not be.

An array of objects is a child table with the record's identifier (`order_id`) and the item's `position`, from 1; in
nested arrays the position of each holder comes before it (`orders__lines__taxes`: `order_id`, `lines_position`,
`position`). Objects are flattened (`customer__id`). Other arrays, places without a form that most values have, and
objects with too many fields are compact JSON text, numbers in plain form (`1.5` for 1.50). `_extra` has odd values, by
the path of their field, and the remaining fields of a record with too many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from orderbridge.sources.contract import Record
from orderbridge.sources.decode.column_kinds import DecidedKind, KeptKinds, path_text
from orderbridge.sources.decode.inferred_columns import ColumnarBatch, read_columns
from orderbridge.sources.decode.inferred_tables import (
    FieldNames,
    InferredColumn,
    InferredTable,
    inferred_table,
)
from orderbridge.sources.decode.json_text import column_value, dump, parse_type
from orderbridge.sources.decode.ndjson import NdjsonBatch, attempted
from orderbridge.sources.decode.rows import Decoded, Page, check_nul, mask_secrets, read_rows
from orderbridge.sources.decode.schema_inference import InferredNode, NodeBudget
from orderbridge.sources.decode.table_schema import (
    FIELD,
    KEY_COLUMN,
    merged,
    shorten,
    tables_from_lines,
)

FOUND: Final = "field found, not shown by the interface"


class InferredSchema:
    """The types of an undocumented record (only its name and key are used), and the decoder of its pages.

    Args:
        record: its name and key.
        names: earlier names of its fields.
        kept: kinds of earlier walks.

    Attributes:
        version: how often the tables changed.
    """

    def __init__(
        self, record: Record, names: FieldNames | None = None, kept: KeptKinds | None = None
    ) -> None:
        self.record = record
        self.version = 0
        self._names = names
        self._budget = NodeBudget()
        self._root = InferredNode(kept="object")
        self._root.keep(kept or {}, self._budget)
        self._key = InferredNode(kept="json")
        self._root.fields[record.key] = self._key
        self._root.settle()
        self._table = inferred_table(record, self._root, names)

    def schema_of(self) -> dict[str, pa.Schema]:
        """The tables and columns known so far."""
        return {table.name: table.schema for table in self._table.all()}

    def lists(self) -> dict[tuple[str, ...], str]:
        """The child table of each list of objects, by the path of its field; that path where no table has it."""
        names = {path: name for name, path in self._table.paths() if "." not in name}
        return {keys: names.get(path_text(keys), path_text(keys)) for keys in self._root.lists()}

    def places(self) -> dict[str, tuple[str, ...]]:
        """The columns of each table that say which record or item a row is."""
        own = {self._table.name: (KEY_COLUMN,)}
        return own | {table.name: table.places for table in self._table.all() if table.places}

    def observations(self) -> Iterator[tuple[str, str]]:
        """Each column that was found, and the path of the field in each column and child table."""
        for name, path in self._table.paths():
            if "." in name:
                yield f"{self.record.name}: {FOUND}", shorten(name)
            yield f"{name}: {FIELD}", path

    def kinds(self) -> list[DecidedKind]:
        """The kinds that later walks are to keep."""
        key = path_text([self.record.key])
        return [known for known in self._root.known_kinds() if known.path != key]

    def decode(self, pages: Sequence[Page], *, is_known: bool = False) -> Decoded:
        """Decodes pages, with types of the bulk of them and of all pages before.

        Args:
            pages: the rows.
            is_known: they were decoded before: they change no type.

        Raises:
            ContractBroken: a page is not a JSON array.
        """
        counted: set[int] = {page.number for page in pages} if is_known else set()
        self.look_at(pages[:1])
        while True:
            before = self._state
            if (whole := self._columnar(pages)) is not None:
                self._count(whole, pages, counted)
                self._settle()
                if self._state == before:
                    return whole.decoded
                continue
            parts = [(page, self._columnar([page]) if len(pages) > 1 else None) for page in pages]
            for page, part in parts:
                if part is not None:
                    self._count(part, [page], counted)
            self._widen([page for page, part in parts if part is None], counted)
            if self._state == before:
                decoded = [part.decoded if part else self.by_rows([page]) for page, part in parts]
                return merged(decoded, self.schema_of())

    def look_at(self, pages: Sequence[Page]) -> None:
        """Lets the first page show the types to parse with; it is counted with the others when it is decoded."""
        if pages and not self._key.seen:
            self._widen(pages, set())
            self._root.forget_counts()

    @property
    def _state(self) -> tuple[object, ...]:
        return self.version, parse_type(self._root, self.record.key)

    def _widen(self, pages: Sequence[Page], counted: set[int]) -> None:
        """Takes the rows of pages into account that were not counted yet."""

        def take(row: dict[str, object], data: bytes, key: str, place: tuple[int, int]) -> None:
            if b"\\u0000" in data:
                check_nul(row)
            self._root.widen(row, self._budget, is_root=True)

        uncounted = [page for page in pages if page.number not in counted]
        read_rows(uncounted, self.record.key, take)
        counted.update(page.number for page in pages)
        self._settle()

    def _count(self, batch: ColumnarBatch, pages: Sequence[Page], counted: set[int]) -> None:
        """Takes the rows of a batch into account if its pages were not counted yet.

        Kinds are settled once all batches that were parsed with them are counted.
        """
        if counted.isdisjoint(page.number for page in pages):
            batch.count(self._root, self._key, self._budget)
        counted.update(page.number for page in pages)

    def _settle(self) -> None:
        """Settles the tables; counts a new version if they changed."""
        self._root.settle()
        table = inferred_table(self.record, self._root, self._names)
        self.version += table != self._table
        self._table = table

    def by_rows(self, pages: Sequence[Page]) -> Decoded:
        """The exact path, for pages whose types are known already."""
        lines: dict[str, list[list[object]]] = {table.name: [] for table in self._table.all()}

        def take(row: dict[str, object], data: bytes, key: str, place: tuple[int, int]) -> None:
            if b"\\u0000" in data:
                check_nul(row)
            _add_lines(self._table, row, [], key, place, lines)

        quarantined = read_rows(pages, self.record.key, take)
        return Decoded(tables_from_lines(lines, self.schema_of()), quarantined, Counter())

    def _columnar(self, pages: Sequence[Page]) -> ColumnarBatch | None:
        """The fast path, for pages that fit the types; None if a check fails."""

        def read(text: NdjsonBatch) -> ColumnarBatch:
            return read_columns(text, self._table, self._root, self.record.key)

        return attempted(pages, read)


def _add_lines(
    table: InferredTable,
    item: dict[str, object],
    places: list[object],
    key: str,
    place: tuple[int, int],
    lines: dict[str, list[list[object]]],
) -> None:
    """Adds the line of a row, or of an item, and those of the items in it. `places` are its columns before its own."""
    odd: dict[str, object] = {}
    fitted = table.node.fit_fields(item, (), odd)
    values = [_value(column, fitted) for column in table.columns]
    extra = mask_secrets(dump(dict(sorted(odd.items()))).encode()).decode() if odd else None
    lines[table.name].append([*places, *values, extra, *place])
    for child in table.children:
        below = _at(fitted, child.keys)
        for n, inner in enumerate(below if isinstance(below, list) else [], 1):
            if inner is not None:
                _add_lines(child, inner, [*(places or [key]), n], key, place, lines)


def _value(column: InferredColumn, fitted: dict[str, object]) -> object:
    """The value of a column in a row or item, without passwords."""
    value = column_value(column.kind, _at(fitted, column.keys))
    return column.masked(value) if isinstance(value, str) else value


def _at(item: dict[str, object], keys: tuple[str, ...]) -> object:
    value: object = item
    for name in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
