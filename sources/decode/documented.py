"""Documented records: pages to Arrow tables.

In: pages of JSON rows. Out: one table per record and per array of objects in it, with the columns of the contract,
the rows that cannot be loaded, and what the interface does not show. A batch of pages is parsed at once by
`pyarrow.json`, outside the interpreter's lock, and checked by column. A batch that fails a check is tried page by page,
and a page that fails is read row by row (`by_rows`), as are all pages of a record with an object. All three give the
same columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from itertools import compress
from operator import attrgetter
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, UnsetType

from orderbridge.sources.contract import Field, Record
from orderbridge.sources.decode import rows
from orderbridge.sources.decode.json_text import dump, has_odd_decimals, json_texts
from orderbridge.sources.decode.ndjson import (
    ColumnarFallback,
    NdjsonBatch,
    attempted,
    has_blank,
    items_of,
    parse,
    positions,
    text_array,
)
from orderbridge.sources.decode.rows import DEPTH_MAX, Decoded, InvalidRow, Number, Page
from orderbridge.sources.decode.table_schema import (
    ABSENT,
    DECIMAL,
    MISTYPED,
    TYPES,
    UNKNOWN,
    TableSchema,
    merged,
    schema_of,
    table_schema,
    tables_from_lines,
)
from orderbridge.sources.decode.values import round_decimal

_BRACKETS: Final = r"[\[{]"
_Items = list[dict[str, msgspec.Raw]]
_rows_decoder: Final = msgspec.json.Decoder(_Items)
_encoder: Final = msgspec.json.Encoder()
_ALL: Final[Mapping[str, pa.Array]] = {}


def read_extra_fields(
    pages: Sequence[Page],
    names: frozenset[str],
    array: str = "",
    selected: Mapping[str, pa.Array] = _ALL,
) -> tuple[pa.Array, Counter[str]]:
    """Reads the fields with these names in the rows, or in the objects of one of their arrays.

    Args:
        pages: the rows.
        names: of the fields.
        array: the field with the objects; empty for the rows.
        selected: of fields that not all objects are to have in `_extra`: which ones are.

    Returns:
        `_extra` of each object, null if it has no such field; and how many objects have each field.

    Raises:
        ColumnarFallback: a name that only the row-by-row path handles, or it may be nested too deeply.
        msgspec.MsgspecError: a row, or an item of the array, is not an object.
        RecursionError: too many levels.
    """
    attributes = {name: f"f{n}" for n, name in enumerate(sorted(names))}
    decoder = _decoder(tuple(attributes), array)
    masks = [(attributes[name], pc.invert(mask).to_pylist()) for name, mask in selected.items()]
    counts: Counter[str] = Counter()
    texts: list[bytes] = []
    for (
        page
    ) in pages:  # the objects of one page at a time: they need far more memory than their texts
        items = decoder.decode(page.rows)
        if array:
            items = [item for row in items for item in row.items or ()]
        for attribute, is_left in masks:
            for item in compress(items, is_left[len(texts) :]):
                setattr(item, attribute, UNSET)
        for name, attribute in attributes.items():
            counts[name] += len(items) - list(map(attrgetter(attribute), items)).count(UNSET)
        texts += map(_encoder.encode, items)
    extra = text_array(texts)
    if pc.any(pc.greater(pc.count_substring_regex(extra, _BRACKETS), DEPTH_MAX)).as_py():
        raise ColumnarFallback
    return pc.if_else(pc.equal(extra, "{}"), pa.scalar(None, pa.string()), extra), +counts


@lru_cache(maxsize=64)
def _decoder(names: tuple[str, ...], array: str) -> msgspec.json.Decoder[Any]:
    """Reads these fields alone, as f0, f1 …, each as it is written: a third faster than all fields of a row."""
    members = [(f"f{n}", msgspec.Raw | UnsetType, UNSET) for n in range(len(names))]
    try:
        item = msgspec.defstruct(
            "Item", members, rename={f"f{n}": name for n, name in enumerate(names)}, gc=False
        )
    except ValueError:  # a quote or a control character in a name
        raise ColumnarFallback from None
    rows: Any = list[item] | None  # type: ignore[valid-type]
    row = (
        msgspec.defstruct("Row", [("items", rows, None)], rename={"items": array})
        if array
        else item
    )
    return msgspec.json.Decoder(list[row])  # type: ignore[valid-type]


_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DECIMAL: Final = re.compile(r"-?[0-9]{1,29}(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_DECIMALS: Final = ("decimal_text", "number")
_EXPECTED: Final = {"text": "string", "date": "date YYYY-MM-DD", "decimal_text": "decimal"}
"""Types in the words of a reason, where these are not the contract's own."""

_Object = dict[str, object]


def by_rows(table: TableSchema, page: Page) -> Decoded:
    """Decodes any page. Raises ContractBroken if it is not a JSON array."""
    observations: Counter[tuple[str, str]] = Counter()
    schemas = {each.name: each.schema for each in (table, *table.children)}
    lines: dict[str, list[list[object]]] = {name: [] for name in schemas}

    def take(row: _Object, data: bytes, key: str, place: tuple[int, int]) -> None:
        shown: Counter[tuple[str, str]] = Counter()
        for name, line in list(
            _lines_of(table, row, data, [], (key, place), shown)
        ):  # all of the row, or none
            lines[name].append(line)
        observations.update(shown)

    quarantined = rows.read_rows([page], table.key, take)
    return Decoded(tables_from_lines(lines, schemas), quarantined, observations)


def _lines_of(
    table: TableSchema,
    item: _Object,
    data: bytes,
    places: list[object],
    row: tuple[str, tuple[int, int]],
    shown: Counter[tuple[str, str]],
    path: str = "",
) -> Iterator[tuple[str, list[object]]]:
    """The lines of an object and of those in its arrays, each with the name of its table. Raises InvalidRow.

    Args:
        table: of the object.
        item: its values.
        data: its bytes.
        places: the values before those of its fields.
        row: identifier and place of the row.
        shown: takes the observations.
        path: of the object in its row, to be followed by the name of a field.
    """
    key, place = row
    values, inexact = _values_of(table, item, path, shown)
    unknown = item.keys() - table.known
    is_plain = not (table.children or inexact or unknown)
    raw = {} if is_plain else rows.fields(data)
    extra = rows.text_of_fields(raw, (raw.keys() - table.known) | inexact).decode()
    shown.update((f"{table.name}: {UNKNOWN}", name) for name in item if name in unknown)
    yield table.name, [*places, *values, None if extra == "{}" else extra, *place]
    for child in table.children:
        name = child.array
        if item.get(name) is None:
            continue
        objects = _objects_of(name, item[name], bytes(raw[name]), place[0])
        for n, (inner, part) in enumerate(objects, 1):
            yield from _lines_of(child, inner, part, [key, n], row, shown, f"{name}[].")


def _values_of(
    table: TableSchema, item: _Object, path: str, shown: Counter[tuple[str, str]]
) -> tuple[list[object], set[str]]:
    """The values of an object's fields for their columns, and the fields that these do not hold exactly."""
    values: list[object] = []
    inexact: set[str] = set()
    for field in table.fields:
        value = item.get(field.name)
        if value is None:
            values.append(None)
            if field.required:
                shown[f"{table.name}.{field.name}: {ABSENT}", ""] += 1
            continue
        read, is_exact = read_value(field, value, path + field.name)
        values.append(read)
        if is_exact:
            continue
        inexact.add(field.name)
        if field.type not in _DECIMALS:
            shown[f"{table.name}.{field.name}: {MISTYPED}", rows.kind(value)] += 1
    return values, inexact


def _objects_of(
    name: str, items: object, data: bytes, number: int
) -> Iterator[tuple[_Object, bytes]]:
    """The objects of an array, each with its bytes. Raises InvalidRow if it is another thing, or has one."""
    if not isinstance(items, list):
        raise InvalidRow(f"{name}: expected array, found {rows.kind(items)}")
    for inner, part in zip(items, rows.split(Page(number, data)), strict=True):
        if not isinstance(inner, dict):
            raise InvalidRow(f"{name}[]: expected object, found {rows.kind(inner)}")
        yield inner, part


def read_value(field: Field, value: object, path: str) -> tuple[object, bool]:
    """A value that is not null as its column holds it, and whether the column holds it as it is.

    It does not where a decimal is rounded, or where a text is a number or a date is another string.

    Raises:
        InvalidRow: it is of another type than the interface's, or too large for the column.
    """
    if isinstance(value, str) or field.type == "object":
        rows.check_nul(value, path)
    if isinstance(value, str) and field.type in _DECIMALS:
        return _decimal(value, path)
    if isinstance(value, Number):
        match field.type:
            case "text":
                return rows.canonical(value) or str(value), False
            case "identifier":
                if (canonical := rows.canonical(value)) is None:
                    raise InvalidRow(f"{path}: a number too long for an identifier")
                return canonical, True
            case "integer":
                if (whole := rows.integer(value)) is None:
                    raise InvalidRow(
                        f"{path}: expected integer, found a number with a fraction or beyond 64 bits"
                    )
                return whole, True
    elif isinstance(value, str):
        match field.type:
            case "text" | "identifier":
                return value, True
            case "date":
                day = _date(value)
                return day, day is not None
    elif isinstance(value, bool) and field.type == "boolean":
        return value, True
    elif isinstance(value, list) and field.items is not None:
        for item in value:
            read_value(Field(field.name, field.items), item, f"{path}[]")
        return dump(value), True
    elif isinstance(value, dict) and field.type == "object":
        return dump(value), True
    raise InvalidRow(
        f"{path}: expected {_EXPECTED.get(field.type, field.type)}, found {rows.kind(value)}"
    )


def _date(value: str) -> date | None:
    if not _DAY.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _decimal(value: str, path: str) -> tuple[object, bool]:
    is_number = isinstance(value, Number) or _DECIMAL.fullmatch(value)
    if not is_number or (number := rows.exact(Number(value))) is None:
        raise InvalidRow(f"{path}: expected decimal, found another {rows.kind(value)}")
    rounded = round_decimal(number)
    if rounded is None:
        raise InvalidRow(f"{path}: expected decimal, found more than 29 digits before the point")
    return rounded, rounded == number


_PLAIN_DECIMAL: Final = r"^-?[0-9]{1,29}(\.[0-9]{1,9})?$"
_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


def decode(record: Record, pages: Sequence[Page]) -> Decoded:
    """Decodes pages: each row is in the tables of `schema_of` or quarantined.

    Raises:
        ContractBroken: a page is not a JSON array.
    """
    table = table_schema(record)
    whole = columnar(table, pages)
    parts = (
        [whole] if whole else [columnar(table, [page]) or by_rows(table, page) for page in pages]
    )
    return merged(parts, schema_of(record))


def columnar(table: TableSchema, pages: Sequence[Page]) -> Decoded | None:
    """The fast path, for clean pages; None if a check fails."""
    return attempted(pages, lambda text: _Columnar(table, text).decoded())


class _Columnar:
    """One batch, by column. Raises ColumnarFallback, or Arrow's or msgspec's own error, where a check fails."""

    def __init__(self, table: TableSchema, text: NdjsonBatch) -> None:
        self._table = table
        self._observations: Counter[tuple[str, str]] = Counter()
        self._pages = text.pages
        fields = [f for each in (table, *table.children) for f in each.fields]
        numbers = frozenset(f.name for f in fields if "number" in (f.type, f.items))
        if any(f.type == "object" for f in fields) or has_odd_decimals(text, numbers):
            raise ColumnarFallback
        first = _rows_decoder.decode(text.pages[0].rows)
        declared = _declared_type(table, first)
        parsed = None
        self._names = frozenset().union(*first) - table.known
        if not self._names:  # else the strict attempt would fail
            try:
                parsed = parse(text, declared, "error")
            except pa.ArrowInvalid as error:
                if "unexpected field" not in str(error):
                    raise
        if parsed is None:
            # msgspec first: it limits the depth, which the inferring parser does not. That one in turn finds repeated
            # names, and every name.
            self._extra = read_extra_fields(text.pages, self._names)
            parsed = parse(text, declared, "infer")
        self._rows, self._place = parsed.rows, parsed.place

    def decoded(self) -> Decoded:
        """The tables of the batch."""
        table = self._table
        columns = self._columns(table, self._rows)
        key = columns[[f.name for f in table.fields].index(table.key)]
        if key.null_count or has_blank(key):
            raise ColumnarFallback
        result = {table.name: pa.Table.from_arrays([*columns, *self._place], schema=table.schema)}
        for child in table.children:
            items, parents = items_of(self._rows.field(child.array))
            places = [key.take(parents), positions(parents)]
            place = [column.take(parents) for column in self._place]
            columns = self._columns(child, items)
            result[child.name] = pa.Table.from_arrays(
                [*places, *columns, *place], schema=child.schema
            )
        return Decoded(result, [], self._observations)

    def _columns(self, table: TableSchema, items: pa.StructArray) -> list[pa.Array]:
        """The columns of the fields, and `_extra`: fields without a column, and originals of mistyped ones."""
        columns: list[pa.Array] = []
        mistyped: dict[str, pa.Array] = {}
        for f in table.fields:
            column, is_mistyped = _column(f, items.field(f.name))
            columns.append(column)
            if f.required and (absent := column.null_count):
                self._observations[f"{table.name}.{f.name}: {ABSENT}", ""] = absent
            if is_mistyped is not None and (count := pc.sum(is_mistyped).as_py()):
                mistyped[f.name] = is_mistyped
                kind = "number" if f.type == "text" else "string"
                self._observations[f"{table.name}.{f.name}: {MISTYPED}", kind] = count
        names = frozenset(items.type.names) - table.known
        if not (names or mistyped):
            return [*columns, pa.nulls(len(items), pa.string())]
        if table is self._table and names == self._names and not mistyped:
            texts, counts = self._extra
        else:
            texts, counts = read_extra_fields(
                self._pages, names.union(mistyped), table.array, mistyped
            )
        self._observations.update(
            {(f"{table.name}: {UNKNOWN}", name): counts[name] for name in names & counts.keys()}
        )
        if len(texts) != len(items):
            raise ColumnarFallback
        return [*columns, texts]


def _declared_type(table: TableSchema, first: _Items) -> pa.StructType:
    """The type to parse with: strings or numbers as on the first page; dates and decimals as strings."""
    children = [(child.array, pa.list_(_declared_type(child, []))) for child in table.children]
    return pa.struct([*((f.name, _parse_type(f, first)) for f in table.fields), *children])


def _parse_type(field: Field, first: _Items) -> pa.DataType:
    if field.items is not None:
        return pa.list_(_parse_type(Field(field.name, field.items), first))
    if field.type == "integer":
        return pa.int64()
    if field.type in ("boolean", "number"):
        return TYPES[field.type]
    is_number = field.type == "identifier" and field.json != "string"
    if field.type in ("identifier", "text"):
        values = (bytes(row[field.name]).lstrip(b"[ ")[:1] for row in first if field.name in row)
        is_number = next(
            (value != b'"' for value in values if value not in (b"n", b"]")), is_number
        )
    return pa.int64() if is_number else pa.string()


def _column(field: Field, parsed: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    """A column of the table, and where the value is not of the interface's type; None if it always is.

    Raises:
        ColumnarFallback, pyarrow.ArrowInvalid: a value that only the row-by-row path reads.
    """
    if field.type == "array":
        return json_texts(parsed), None
    if field.type == "identifier":
        return pc.cast(parsed, pa.string()), None
    if field.type == "text" and pa.types.is_integer(parsed.type):
        return pc.cast(parsed, pa.string()), pc.is_valid(parsed)
    if field.type == "date":
        return _dates(parsed)
    if field.type == "decimal_text":
        if pc.any(pc.invert(pc.match_substring_regex(parsed, _PLAIN_DECIMAL))).as_py():
            raise ColumnarFallback
        return pc.cast(parsed, DECIMAL), None
    return parsed, None


def _dates(parsed: pa.Array) -> tuple[pa.Array, pa.Array | None]:
    has_form = pc.and_(
        pc.match_substring_regex(parsed, _DATE), pc.invert(pc.starts_with(parsed, "0000"))
    )
    if pc.all(has_form, min_count=0).as_py():
        return pc.cast(parsed, pa.date32()), None  # raises for a day that does not exist
    other = pc.fill_null(pc.invert(has_form), False)
    return pc.cast(pc.if_else(other, pa.scalar(None, pa.string()), parsed), pa.date32()), other
