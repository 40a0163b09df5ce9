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
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.sources.contract import Record
from orderbridge.sources.decode import rows
from orderbridge.sources.decode.column_kinds import (
    ARROW,
    ColumnKind,
    DecidedKind,
    KeptKinds,
    path_text,
)
from orderbridge.sources.decode.inferred_tables import (
    FieldNames,
    InferredColumn,
    InferredTable,
    inferred_table,
)
from orderbridge.sources.decode.json_text import (
    RawReader,
    column_value,
    dump,
    extra_texts,
    has_odd_decimals,
    json_texts,
    parse_type,
    rounded,
)
from orderbridge.sources.decode.ndjson import (
    ColumnarFallback,
    NdjsonBatch,
    attempted,
    has_blank,
    items_of,
    parse,
    positions,
    text_scalar,
)
from orderbridge.sources.decode.rows import Decoded, Page
from orderbridge.sources.decode.schema_inference import InferredNode, NodeBudget
from orderbridge.sources.decode.table_schema import (
    FIELD,
    KEY_COLUMN,
    merged,
    shorten,
    tables_from_lines,
)
from orderbridge.sources.decode.values import DECIMAL_TEXT, NUMERIC_TEXT, WHOLE_TEXT, Count

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
        self.record, self._names = record, names
        self.version = 0
        self._root, self._budget = InferredNode(kept="object"), NodeBudget()
        self._root.keep(kept or {}, self._budget)
        self._root.fields[record.key] = self._key = InferredNode(kept="json")
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
                exact = [
                    self.by_rows([page]) if part is None else part.decoded for page, part in parts
                ]
                return merged(exact, self.schema_of())

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
                rows.check_nul(row)
            self._root.widen(row, self._budget, is_root=True)

        rows.read_rows(
            [page for page in pages if page.number not in counted], self.record.key, take
        )
        counted.update(page.number for page in pages)
        self._settle()

    def _count(self, batch: _ColumnarBatch, pages: Sequence[Page], counted: set[int]) -> None:
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
                rows.check_nul(row)
            _add_lines(self._table, row, [], key, place, lines)

        quarantined = rows.read_rows(pages, self.record.key, take)
        return Decoded(tables_from_lines(lines, self.schema_of()), quarantined, Counter())

    def _columnar(self, pages: Sequence[Page]) -> _ColumnarBatch | None:
        """The fast path, for pages that fit the types; None if a check fails."""
        return attempted(pages, self._read_columns)

    def _read_columns(self, text: NdjsonBatch) -> _ColumnarBatch:
        declared = parse_type(self._root, self.record.key)
        if has_odd_decimals(text, declared.decimals):
            raise ColumnarFallback
        reader = RawReader(self._root) if declared.has_raw else None
        items = reader.read(text.pages) if reader is not None else []
        parsed = parse(text, declared.type, "error" if reader is None else "ignore")
        return _ColumnarBatch(self._table, _Items(parsed.rows, items, [], parsed.place), reader)


@dataclass(frozen=True, slots=True)
class _Items:
    """The rows, or the objects of an array, of one batch.

    Attributes:
        values: as Arrow parsed them.
        raw: the same objects as a `RawReader` read them; empty if there is none.
        places: the columns before the table's own.
        place: `_page` and `_position`.
    """

    values: pa.StructArray
    raw: list[msgspec.Struct]
    places: list[pa.Array]
    place: list[pa.Array]


class _ColumnarBatch:
    """The tables of one batch. Raises ColumnarFallback or Arrow's own errors."""

    def __init__(self, table: InferredTable, items: _Items, reader: RawReader | None) -> None:
        self.decoded = Decoded({}, [], Counter())
        self._items, self._reader = items, reader
        self._add(table, items)

    def _add(self, table: InferredTable, items: _Items) -> None:
        """Fills a table, and its child tables."""
        exact: dict[str, pa.Array] = {}
        columns = [self._column(column, items, exact) for column in table.columns]
        if not items.places and (columns[0].null_count or has_blank(columns[0])):
            raise ColumnarFallback
        extra = extra_texts(dict(sorted(exact.items())), len(items.values))
        self.decoded.tables[table.name] = pa.Table.from_arrays(
            [*items.places, *columns, extra, *items.place], schema=table.schema
        )
        for child in table.children:
            values, parents = items_of(pc.struct_field(items.values, list(child.keys)))
            places = [column.take(parents) for column in items.places or columns[:1]]
            raw = self._reader.inner(child, items.raw) if self._reader is not None else []
            place = [column.take(parents) for column in items.place]
            self._add(child, _Items(values, raw, [*places, positions(parents)], place))

    def _column(
        self, column: InferredColumn, items: _Items, exact: dict[str, pa.Array]
    ) -> pa.Array:
        """A column as its table holds it; `exact` takes the numbers that it holds rounded, by their path."""
        try:
            parsed = pc.struct_field(items.values, list(column.keys))
        except pa.ArrowInvalid:  # the parser was given no type for this place
            if self._reader is None:
                raise
            return self._reader.column(column, items.raw)
        if column.kind != "decimal":
            return _converted(column, parsed)
        numbers, unrounded = rounded(parsed)
        if unrounded is not None:
            exact[".".join(column.keys)] = unrounded
        return numbers

    def count(self, root: InferredNode, key: InferredNode, budget: NodeBudget) -> None:
        """Counts the values at places that are counted (`InferredNode.is_counted`)."""
        self._count(root, self._items.values, self._items.raw, key, budget)

    def _count(
        self,
        node: InferredNode,
        values: pa.StructArray,
        raw: list[Any],
        key: InferredNode | None,
        budget: NodeBudget,
    ) -> None:
        for name, inner in list(node.fields.items()):
            index = values.type.get_field_index(name)
            held = self._reader.fields(name, raw) if self._reader is not None else []
            if inner is key:
                continue
            if index < 0:
                if inner.kept is None and self._reader is not None:
                    for value in held:
                        inner.widen(self._reader.parsed(value), budget)
                continue
            parsed = values.field(index)
            if inner.is_counted:
                inner.counts.update(self._counts(inner.kind, parsed, held))
            if inner.kind == "object":
                self._count(inner, parsed, held, None, budget)
            elif inner.kind == "table":
                self._count(
                    inner,
                    parsed.flatten(),
                    [item for items in held for item in items],
                    None,
                    budget,
                )

    def _counts(self, kind: ColumnKind, parsed: pa.Array, held: list[Any]) -> dict[Count, int]:
        """What a parsed column counts as; `held` are its values, where a reader has them."""
        if kind != "object":
            return _counts(kind, parsed)
        filled = _filled(parsed) if self._reader is None else self._reader.filled(held)
        others = len(parsed) - parsed.null_count - filled
        return {Count.OBJECT: filled, Count.NULL_OBJECT: others}


def _counts(kind: ColumnKind, parsed: pa.Array) -> dict[Count, int]:
    """What a parsed column counts as, the same as its values one by one."""
    valid = len(parsed) - parsed.null_count
    if kind == "bigint":
        return {Count.WHOLE: valid}
    if kind == "decimal":
        return {Count.DECIMAL: valid}
    if kind == "boolean":
        true = pc.sum(parsed).as_py() or 0
        return {Count.TRUE: true, Count.FALSE: valid - true}
    if kind == "text":
        return _text_counts(parsed, valid)
    if kind in ("list", "table"):
        lengths = np.diff(np.from_dlpack(parsed.offsets))  # a list that is null has none
        empty = int(np.count_nonzero(lengths == 0)) - parsed.null_count
        single = int(np.count_nonzero(lengths == 1)) if kind == "table" else 0
        items = Count.OBJECT_ITEM if kind == "table" else Count.OTHER_ITEM
        return {
            Count.EMPTY_LIST: empty,
            Count.LIST_OF_ONE: single,
            Count.LIST: valid - empty - single,
            items: len(parsed.flatten()),
        }
    return {}


def _filled(objects: pa.StructArray) -> int:
    """How many parsed objects have a value."""
    fields = [pc.is_valid(field) for field in objects.flatten()]
    return (pc.sum(reduce(pc.or_, fields)).as_py() or 0) if fields else 0


def _text_counts(parsed: pa.Array, valid: int) -> dict[Count, int]:
    before_letters = parsed.filter(
        pc.less(parsed, text_scalar(":"))
    )  # a tenth of the time of a pattern

    def matching(pattern: str) -> int:
        return pc.sum(pc.match_substring_regex(before_letters, pattern)).as_py() or 0

    empty = valid - (pc.sum(pc.cast(pc.binary_length(parsed), pa.bool_())).as_py() or 0)
    numeric = matching(NUMERIC_TEXT)
    whole = matching(WHOLE_TEXT) if numeric else 0
    decimal = matching(DECIMAL_TEXT) if numeric else 0
    return {
        Count.EMPTY_TEXT: empty,
        Count.TEXT: valid - empty - numeric,
        Count.WHOLE_TEXT: whole,
        Count.DECIMAL_TEXT: decimal - whole,
        Count.LARGE_TEXT: numeric - decimal,
    }


def _converted(column: InferredColumn, parsed: pa.Array) -> pa.Array:
    """A parsed column as its table holds it. Raises ColumnarFallback or ArrowInvalid if a value is of another kind."""
    if column.kind == "list":
        return json_texts(parsed)
    if column.kind == "empty":
        if pa.types.is_list(parsed.type) and len(parsed.flatten()):
            raise ColumnarFallback
        return pa.nulls(len(parsed), pa.string())
    return pc.cast(parsed, ARROW[column.kind])


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
    values = [column_value(column.kind, _at(fitted, column.keys)) for column in table.columns]
    extra = dump(dict(sorted(odd.items()))) if odd else None
    lines[table.name].append([*places, *values, extra, *place])
    for child in table.children:
        below = _at(fitted, child.keys)
        for n, inner in enumerate(below if isinstance(below, list) else [], 1):
            if inner is not None:
                _add_lines(child, inner, [*(places or [key]), n], key, place, lines)


def _at(item: dict[str, object], keys: tuple[str, ...]) -> object:
    value: object = item
    for name in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
