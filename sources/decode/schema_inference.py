"""The tables and types of an undocumented record: those of the bulk of its rows, and of earlier walks.

In: parsed rows (`rows.parse`), and the kinds that earlier walks kept. Out: the tables of the record, and the kind of
each column. A place (a field, or a field of the objects in an array) has one form in all rows: a scalar, an object or a
list. A first walk takes the form and the type of the bulk of the values; a later one keeps them, except that whole
numbers become decimals where one has a fraction. A value of another kind is odd: it stays in its row (`fit`). Counts
decide, so that kinds depend on the rows and not on their order. Arrays of objects without a plain object among them are
a list, however many have one item only; where both occur, `InferredNode` says what decides. Names depend on the set of
fields and on earlier names. An object with too many fields (one keyed by ids) becomes JSON text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import IntEnum, auto
from functools import cached_property
from typing import Final, Literal, NamedTuple, cast

import msgspec
import pyarrow as pa

from orderbridge.sources.contract import INT64_MAX, Record
from orderbridge.sources.decode import rows
from orderbridge.sources.decode.rows import Number
from orderbridge.sources.decode.table_schema import (
    DECIMAL,
    KEY_COLUMN,
    PLACE,
    parent_key,
    shorten,
    snake,
)

FIELDS_MAX: Final = 200
"""Fields of an object in a record that become columns. With more it is JSON text."""
NODES_MAX: Final = 500
"""Fields of a whole record, over all its tables. With more, an object with a new field becomes JSON text, and a
new field of the record itself goes to `_extra`."""
BULK: Final = 0.75
"""Share of the values of a place from which their form is that of the place; below it the place is JSON text."""
ODD_MAX: Final = 0.05
"""Largest share of scalars of another type, from which a column is text; so is one with fewer numbers among texts."""
LIST_SHARE: Final = 0.1
"""Share of the values from which lists of several items make plain objects lists of one item, and lists scalars."""
KEPT_VALUES_MIN: Final = 20
"""Values from which a kind is kept: a new field is not judged for good by the first few orders that have it. Of fewer
values, the column and the width of its type are kept."""
_ADDED: Final = (
    "_extra",
    "_page",
    "_position",
    "_run_id",
    "_first_seen_at",
    "_last_seen_at",
    "_missing_since",
)
"""Columns that are added to the fields of a record."""
_IN_COPIES: Final = ("_orderbridge_removed", "_removed", "_stamps", "_sum", "_hash")
"""Columns of copies while they are made, and of the dlt sources."""
_OF_LIBRARIES: Final = (
    *("_dlt_id", "_dlt_load_id", "_dlt_parent_id", "_dlt_root_id", "_dlt_list_idx", "rowid"),
    *("ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"),
)
"""Columns of dlt, of DuckDB and of Postgres, which a column of that name hides, or which rule it out."""
RESERVED: Final = frozenset({*_ADDED, *_IN_COPIES, *_OF_LIBRARIES})
"""Names that no field of an undocumented record has as a column: it gets the next free one, `_run_id_2`."""
NOT_IN_RAW: Final = RESERVED - {
    "_extra",
    "_run_id",
    "_first_seen_at",
    "_last_seen_at",
    "_missing_since",
}
"""Reserved names that no column of a raw table has, except for a field in a warehouse of version 0.3.0 or earlier."""
NUMERIC_TEXT: Final = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"
"""A text that is a number, without the zeros or signs of a code."""
WHOLE_TEXT: Final = r"^-?(0|[1-9][0-9]{0,17})$"
DECIMAL_TEXT: Final = r"^-?(0|[1-9][0-9]{0,28})(\.[0-9]+)?$"
"""Numbers in texts that a column of whole numbers, and one of decimals, holds, there rounded to its nine decimals."""
_NUMERIC: Final = re.compile(NUMERIC_TEXT.replace("$", r"\Z"))
_WHOLE_TEXT: Final = re.compile(WHOLE_TEXT.replace("$", r"\Z"))
_DECIMAL_TEXT: Final = re.compile(DECIMAL_TEXT.replace("$", r"\Z"))
_LONG_DECIMALS: Final = re.compile(rf"\.[0-9]{{{DECIMAL.scale + 1}}}|[eE]-")
_INDEX: Final = re.compile(r"0|[1-9][0-9]*")


ColumnKind = Literal[
    "text", "bigint", "decimal", "boolean", "json", "list", "object", "table", "empty"
]
"""How the values of a place are held. `json` holds any value, `list` lists without objects; both are JSON text. Nothing
was seen of an `empty` place but null, `[]` and `{}`."""
ARROW: Final = {
    "key": pa.string(),
    "text": pa.string(),
    "bigint": pa.int64(),
    "decimal": DECIMAL,
    "boolean": pa.bool_(),
    "json": pa.string(),
    "list": pa.string(),
    "empty": pa.string(),
}


class KeptKind(NamedTuple):
    """What is known of a place before a walk.

    Attributes:
        kind: as earlier walks decided it, or as a person declared it.
        values: the most that decided it in a walk; None where it is declared.
        name: that a person declared for its column or table.
        objects: the most plain objects in a walk; 0 also where version 0.3.0 decided, which did not count them.
    """

    kind: ColumnKind
    values: int | None = None
    name: str | None = None
    objects: int = 0


KeptKinds = Mapping[str, KeptKind]
"""What is known of places, by their path (`path_text`)."""


class DecidedKind(NamedTuple):
    """The kind of a place after a walk, for later ones.

    Attributes:
        path: of the place (`path_text`).
        kind: of its values.
        values: how many were counted.
        objects: how many of them are plain objects with a value.
        arrays: how many of them are arrays.
    """

    path: str
    kind: ColumnKind
    values: int
    objects: int
    arrays: int


_WIDER: Final = ("bigint", "decimal", "text", "json")
"""Kinds of which each holds the values of those before it."""


@dataclass(slots=True)
class NodeBudget:
    """Fields that a record may still get."""

    left: int = NODES_MAX


class Count(IntEnum):
    """What is counted at a place. Numbers in texts are counted apart: they are numbers only among numbers.

    A number is `WHOLE` if it is written without a point or an exponent and has up to 64 bits, `DECIMAL` if a decimal
    column holds it, rounded to its nine decimals, and `LARGE` if it has too many digits before the point for one.
    """

    WHOLE = auto()
    DECIMAL = auto()
    LARGE = auto()
    WHOLE_TEXT = auto()
    DECIMAL_TEXT = auto()
    LARGE_TEXT = auto()
    TEXT = auto()
    EMPTY_TEXT = auto()
    TRUE = auto()
    FALSE = auto()
    OBJECT = auto()
    KEYED_OBJECT = auto()  # its names are whole numbers: a list, where others are lists
    NULL_OBJECT = (
        auto()
    )  # all its fields are null; in a batch an empty object cannot be told from it
    EMPTY_OBJECT = auto()
    LIST = auto()
    LIST_OF_ONE = auto()  # an array of a single object
    EMPTY_LIST = auto()
    OBJECT_ITEM = auto()
    OTHER_ITEM = auto()


_NUMBERS: Final = (Count.WHOLE, Count.DECIMAL, Count.LARGE)
_NUMERIC_TEXTS: Final = (Count.WHOLE_TEXT, Count.DECIMAL_TEXT, Count.LARGE_TEXT)
_NOT_WHOLE: Final = (Count.DECIMAL, Count.LARGE, Count.DECIMAL_TEXT, Count.LARGE_TEXT)
_DECIMALS: Final = (Count.DECIMAL, Count.DECIMAL_TEXT)
_LARGE: Final = (Count.LARGE, Count.LARGE_TEXT)
_BOOLEANS: Final = (Count.TRUE, Count.FALSE)
TEXTS: Final = frozenset({*_NUMERIC_TEXTS, Count.TEXT, Count.EMPTY_TEXT})


@dataclass(slots=True)
class InferredNode:
    """A place in the record: the values seen, and the fields of the objects there.

    Objects in a list have the same fields as a single object: converters from XML write a list of one as its item. An
    array of one object is a list, unless plain objects show that it is an object that is wrapped: at least as many, and
    fewer than a tenth of the values have several items (`LIST_SHARE`).

    Attributes:
        kept: its kind, which a person or many values of earlier walks decided.
        least: its kind by few values of earlier walks.
        is_declared: a person decided it.
        list_from: where it is kept as an object and no walk has counted a plain object there, the number of arrays from
            which it is a list after all: version 0.3.0 took arrays of one for objects. Elsewhere 0.
        name: that a person declared.
        fields: of the object, or of the objects in the list.
        is_wide: objects with too many fields were seen: more are not looked at.
        has_long_decimals: numbers with more decimals than a column holds may be among the scalars or the items.
        seen: what the scalars are. Null does not count: every column takes it.
        items: what the items of lists are; `OTHER_ITEM` for null, objects and lists.
        counts: of the values, but null.
        kind: as `settle` found it.
    """

    kept: ColumnKind | None = None
    least: ColumnKind = "empty"
    is_declared: bool = False
    list_from: int = 0
    name: str | None = None
    fields: dict[str, InferredNode] = field(default_factory=dict)
    is_wide: bool = False
    has_long_decimals: bool = False
    seen: set[Count] = field(default_factory=set)
    items: set[Count] = field(default_factory=set)
    counts: Counter[Count] = field(default_factory=Counter)
    kind: ColumnKind = "empty"

    def widen(self, value: object, budget: NodeBudget, is_root: bool = False) -> None:
        """Takes a parsed value into account."""
        if isinstance(value, dict):
            if not value:
                self.counts[Count.EMPTY_OBJECT] += 1
            elif is_keyed(value) and not is_root:
                self.counts[Count.KEYED_OBJECT] += 1
                self._widen_items(list(value.values()), budget)
            else:
                has_value = any(inner is not None for inner in value.values())
                self.counts[Count.OBJECT if has_value else Count.NULL_OBJECT] += 1
                self._widen_fields(value, budget, is_root)
        elif isinstance(value, list):
            self._widen_items(value, budget)
            self.counts[_list_count(value)] += 1
        elif value is not None:
            count = self._scalar(value)
            self.counts[count] += 1
            self.seen.add(count)

    def _scalar(self, value: object) -> Count:
        """What a scalar or an item is counted as."""
        count = scalar_count(value)
        if count in _DECIMALS and _LONG_DECIMALS.search(str(value)):
            self.has_long_decimals = True
        return count

    def _widen_items(self, value: list[object], budget: NodeBudget) -> None:
        for item in value:
            is_other = item is None or isinstance(item, (dict, list))
            self.items.add(Count.OTHER_ITEM if is_other else self._scalar(item))
            if isinstance(item, dict):
                self.counts[Count.OBJECT_ITEM] += 1
                self._widen_fields(item, budget)
            elif item is not None:
                self.counts[Count.OTHER_ITEM] += 1

    def _widen_fields(
        self, value: dict[str, object], budget: NodeBudget, is_root: bool = False
    ) -> None:
        for name, inner in value.items():
            is_new = name not in self.fields
            if is_new and (self.is_wide or not self._has_room(budget, is_root)):
                self.is_wide = True
                if is_root or self.kept is not None:
                    continue  # the field goes to `_extra`
                budget.left += sum(1 for _ in self.below())
                self.fields = {}
                return
            if is_new:
                self.fields[name] = InferredNode()
                budget.left -= 1
            self.fields[name].widen(inner, budget)

    def _has_room(self, budget: NodeBudget, is_root: bool) -> bool:
        """Whether another field may become a place. What is kept or declared may be more than the budget."""
        return budget.left > 0 and (is_root or len(self.fields) < FIELDS_MAX)

    def below(self, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], InferredNode]]:
        """The places below this one, and their paths."""
        for name, node in self.fields.items():
            yield (*above, name), node
            yield from node.below((*above, name))

    def keep(self, kept: KeptKinds, budget: NodeBudget) -> None:
        """Takes over what is known of places."""
        for path, known in kept.items():
            node = self
            for name in msgspec.json.decode(path, type=tuple[str, ...]):
                if name not in node.fields:
                    node.fields[name] = InferredNode()
                    budget.left -= 1
                node = node.fields[name]
            node.is_declared, node.name = known.values is None, known.name
            if known.values is None or known.values >= KEPT_VALUES_MIN:
                node.kept = known.kind
            else:
                node.least = known.kind
            if node.kept == "object" and known.values is not None and not known.objects:
                # It may be that the walk which decided it counted each value twice, in two sweeps.
                node.list_from = min(KEPT_VALUES_MIN, known.values // 2)

    @property
    def is_counted(self) -> bool:
        """Whether every value is counted, also in batches; elsewhere only what is read row by row is."""
        return self.kept is None or self.list_from > 0

    def forget_counts(self) -> None:
        """Counts from zero on, below this place; kinds stay until they are settled again."""
        for _, node in self.below():
            if node.is_counted or node.kind in ("object", "table"):
                node.counts.clear()  # of other kept ones only this look counts

    def settle(self) -> None:
        """Sets the kinds of this place and of all below it."""
        for node in (self, *(node for _, node in self.below())):
            node.kind = node._kind()
            if node.kept == "bigint":
                node.kept = node.kind  # wider from now on, whatever is counted later

    def lists(self, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        """The paths of the lists of objects here and below."""
        for name, node in self.fields.items():
            at = (*above, name)
            if node.kind == "table":
                yield at
            if node.kind in ("object", "table"):
                yield from node.lists(at)

    def known_kinds(self) -> Iterator[DecidedKind]:
        """The kind of each place, and what was counted there."""
        for at, node in self.below():
            is_decided = node.kept is not None or node.least != "empty" or node._values
            kind = node.kind if is_decided else "empty"
            objects = node.counts[Count.OBJECT]
            yield DecidedKind(path_text(at), kind, node._values, objects, node._arrays)

    def _kind(self) -> ColumnKind:
        """As it is kept, but that whole numbers widen; else that of most values, if it is not narrower than before."""
        if self.kept is not None:
            if self._is_list_after_all:
                return "table"
            widens = self.kept == "bigint" and not self.is_declared and self._count(*_NOT_WHOLE)
            return "decimal" if widens else self.kept
        kind = self._kind_of_most()
        if self.least == "json" or (self.least != "empty" and not self._values):
            return self.least
        if self.least == "table" and kind == "object" and self._of_several:
            return "table"  # which holds objects as well, as an item each
        if self.least in _WIDER and kind in _WIDER:
            return max(self.least, kind, key=_WIDER.index)
        return "text" if {self.least, kind} <= {"boolean", *_WIDER} and self.least != kind else kind

    @property
    def _is_list_after_all(self) -> bool:
        """Whether an object that version 0.3.0 decided is a list; see `list_from`."""
        if not self.list_from or self.counts[Count.OBJECT]:
            return False
        return self._arrays >= self.list_from and self._kind_of_most() == "table"

    def _kind_of_most(self) -> ColumnKind:
        """The kind of most values."""
        total = self._values
        if not total:
            is_scalar = self._count(Count.EMPTY_TEXT, Count.FALSE) > 0
            return self._scalar_kind if is_scalar else "empty"
        kind, held = self._form_of_most()
        if self._scalars > held:
            kind, held = self._scalar_kind, self._scalars
        is_too_wide = self.is_wide and kind in ("object", "table")
        return "json" if held < BULK * total or is_too_wide else kind

    def _form_of_most(self) -> tuple[ColumnKind, int]:
        """The kind that holds most of the objects and lists, and how many values it holds."""
        items = self._count(Count.OBJECT_ITEM, Count.OTHER_ITEM)
        if self.counts[Count.OBJECT_ITEM] >= BULK * items:
            if self._is_list:
                return "table", self._lists + self._objects
            return "object", self._objects + self.counts[Count.LIST_OF_ONE]
        lists = self._lists
        if lists >= LIST_SHARE * (lists + self._scalars):
            lists += self._scalars
        if self._objects > lists:
            return "object", self._objects + self.counts[Count.LIST_OF_ONE]
        return ("json" if self.counts[Count.OBJECT_ITEM] else "list"), lists

    @property
    def _is_list(self) -> bool:
        """Whether the objects here are items of lists: see the class."""
        lists = self._lists
        is_more = lists > self.counts[Count.OBJECT]
        is_often = self._of_several >= LIST_SHARE * (lists + self._objects)
        return is_more or (lists > 0 and is_often)

    def _count(self, *counts: Count) -> int:
        return sum(self.counts[count] for count in counts)

    @property
    def _arrays(self) -> int:
        """The arrays that are not empty."""
        return self._count(Count.LIST, Count.LIST_OF_ONE)

    @property
    def _lists(self) -> int:
        """The arrays; where there are any, also the objects with whole numbers as names."""
        return self._arrays + self.counts[Count.KEYED_OBJECT] if self._arrays else 0

    @property
    def _of_several(self) -> int:
        """The lists that are no list of one."""
        return self._lists - self.counts[Count.LIST_OF_ONE]

    @property
    def _objects(self) -> int:
        """The plain objects; where there are any, also those that are empty."""
        plain = self._count(Count.OBJECT, Count.NULL_OBJECT)
        return plain + self.counts[Count.EMPTY_OBJECT] if plain else 0

    @property
    def _values(self) -> int:
        """The values that are not empty."""
        lists = self._count(Count.LIST_OF_ONE, Count.LIST, Count.KEYED_OBJECT)
        return self._objects + lists + self._scalars

    @property
    def _scalars(self) -> int:
        """The scalars that are a value also where others are objects or lists."""
        falses = self.counts[Count.FALSE] if self.counts[Count.TRUE] else 0
        return falses + self._count(*_NUMBERS, *_NUMERIC_TEXTS, Count.TEXT, Count.TRUE)

    @property
    def _scalar_kind(self) -> ColumnKind:
        booleans = self._count(*_BOOLEANS)
        numbers = self._count(*_NUMBERS, *_NUMERIC_TEXTS)
        total = booleans + numbers + self.counts[Count.TEXT]
        if booleans and total - booleans <= ODD_MAX * total:
            return "boolean"
        if self._count(*_NUMBERS) <= ODD_MAX * total or total - numbers > ODD_MAX * total:
            return "text"  # also where a number or two are among texts of numbers
        if self._count(*_LARGE) > ODD_MAX * numbers:
            return "text"
        return "decimal" if self._count(*_NOT_WHOLE) else "bigint"

    def fit_fields(
        self, value: dict[str, object], keys: OddKeys, odd: dict[str, object]
    ) -> dict[str, object]:
        """The fields of an object as their columns and tables hold them.

        Args:
            value: the object.
            keys: that lead to the object in its row or item.
            odd: takes values that no column or table holds, by the path of their field (`keep_odd`).
        """
        fitted: dict[str, object] = {}
        for name, inner in value.items():
            node = self.fields.get(name)
            at = (*keys, name)
            if node is not None:
                fitted[name] = node.fit(inner, at, odd)
            elif inner is not None:
                keep_odd(odd, at, inner)
        return fitted

    def fit(self, value: object, keys: OddKeys, odd: dict[str, object]) -> object:
        """A value as its column or table holds it; None where it is odd, see `fit_fields`, or empty."""
        kind = self.kind
        if value is None or kind in ("json", "empty"):
            return None if kind == "empty" else value
        if kind in ("list", "table"):
            items = _items(value, are_objects=kind == "table")
            if items is None or kind == "list":
                fitted: object = items
            else:
                fitted = [_item(item, (*keys, n), odd) for n, item in enumerate(items, 1)]
        elif kind == "object":
            single: object = value[0] if isinstance(value, list) and len(value) == 1 else value
            is_object = isinstance(single, dict) and bool(single) and not is_keyed(single)
            fitted = (
                self.fit_fields(cast("dict[str, object]", single), keys, odd) if is_object else None
            )
        else:
            fitted = coerced(kind, value)
            if isinstance(fitted, Decimal) and fitted != _decimal(value):
                keep_odd(odd, keys, Number(value))  # rounded in its column, exact here
        if fitted is None and not is_nothing(value, kind):
            keep_odd(odd, keys, value)
        return fitted


OddKeys = tuple[str | int, ...]
"""The names, and the positions of items from 1, that lead to a value in its row or item."""


def keep_odd(odd: dict[str, object], keys: OddKeys, value: object) -> None:
    """Keeps an odd value by its path, such as `customer.id` or `lines[2]`.

    Two values may have one path: `a.b` is a field of that name, and `b` in `a`. The second has its keys as JSON.
    """
    path = ""
    for key in keys:
        if isinstance(key, int):
            path += f"[{key}]"
        else:
            path += f".{key}" if path else key
    names = keys
    while path in odd:
        path = path_text(names)
        names = (path,)
    odd[path] = value


def _items(value: object, *, are_objects: bool) -> list[object] | None:
    """The items of a list, of an object that is one, or of a single item; None if the value is none of them."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        if not value:
            return []
        if is_keyed(value):
            return [item for _, item in sorted(value.items(), key=lambda pair: int(pair[0]))]
        return [value] if are_objects else None
    return None if are_objects or value in ("", False) else [value]


def _item(value: object, keys: OddKeys, odd: dict[str, object]) -> dict[str, object] | None:
    """An item of a table: an object, or None for another value, which is odd if it is not empty."""
    if isinstance(value, dict):
        return value
    if not is_nothing(value, "table"):
        keep_odd(odd, keys, value)
    return None


def is_nothing(value: object, kind: ColumnKind) -> bool:
    """Whether a value that is not of its place's kind is empty: nothing is lost where it is left out."""
    if (
        value is None
        or value == {}
        or (isinstance(value, list) and _list_count(value) == Count.EMPTY_LIST)
    ):
        return True
    if value == "" and not isinstance(value, Number):
        return True
    return value is False and kind in ("object", "table", "list")


def is_keyed(value: dict[str, object]) -> bool:
    """Whether all names of an object are whole numbers, as in a list that PHP writes after it removed an item."""
    return bool(value) and all(map(_INDEX.fullmatch, value))


DIGITS: Final = 25
"""More than a number of 64 bits has."""
_CONTEXT: Final = Context(prec=DECIMAL.precision + DIGITS, rounding=ROUND_HALF_UP)
_UNIT: Final = Decimal(1).scaleb(-DECIMAL.scale)
_LIMIT: Final = Decimal(10) ** (DECIMAL.precision - DECIMAL.scale)


def _decimal(number: object) -> Decimal | None:
    """The value of a number, or of a text of one; None where it is none, or its plain form is too long."""
    if not isinstance(number, str) or not (
        isinstance(number, Number) or _NUMERIC.fullmatch(number)
    ):
        return None
    return rows.exact(Number(number))


def round_decimal(value: Decimal) -> Decimal | None:
    """A number with the decimals of a column; None if it is too large for one."""
    if abs(value) >= _LIMIT:
        return None
    rounded = value.quantize(_UNIT, context=_CONTEXT)
    return rounded if abs(rounded) < _LIMIT else None


def scalar_count(value: object) -> Count:
    """What a scalar is counted as."""
    if isinstance(value, bool):
        return Count.TRUE if value else Count.FALSE
    if isinstance(value, Number):
        return _number_count(value)
    if not isinstance(value, str) or not _NUMERIC.fullmatch(value):
        return Count.TEXT if value else Count.EMPTY_TEXT
    if _WHOLE_TEXT.fullmatch(value):
        return Count.WHOLE_TEXT
    return Count.DECIMAL_TEXT if _DECIMAL_TEXT.fullmatch(value) else Count.LARGE_TEXT


def _number_count(number: Number) -> Count:
    if (
        number.lstrip("-").isdigit()
        and -INT64_MAX - 1 <= int(number[:DIGITS]) <= INT64_MAX
        and len(number) < DIGITS
    ):
        return Count.WHOLE
    value = _decimal(number)
    return Count.LARGE if value is None or round_decimal(value) is None else Count.DECIMAL


def _list_count(value: list[object]) -> Count:
    if all(item is None for item in value):
        return Count.EMPTY_LIST
    return Count.LIST_OF_ONE if len(value) == 1 and isinstance(value[0], dict) else Count.LIST


def coerced(kind: ColumnKind, value: object) -> object:
    """A scalar as a column of this kind holds it; None if it does not. Decimals may be rounded."""
    if kind == "text":
        return plain_text(value)
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    number = _decimal(value)
    if number is None:
        return None
    if kind == "bigint":
        return (
            int(number)
            if number == number.to_integral_value() and -INT64_MAX - 1 <= number <= INT64_MAX
            else None
        )
    return round_decimal(number)


def plain_text(value: object) -> str | None:
    """A scalar as text, a number in plain form; None if it is none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return rows.canonical(value) or str(value)
    return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """A column, the names that lead to its value inside the row or item, and how the value is held."""

    name: str
    keys: tuple[str, ...]
    kind: ColumnKind | Literal["key"]
    node: InferredNode = field(compare=False, repr=False)


@dataclass(frozen=True)
class InferredTable:
    """A table: of the rows themselves, or of the objects in an array.

    Attributes:
        keys: the names that lead to the array from the row or item that holds it; empty for the rows.
        places: the columns before its own: the record's identifier, the positions of the items that hold it, its own.
        node: of the rows, or of the array.
    """

    name: str
    keys: tuple[str, ...]
    places: tuple[str, ...]
    columns: tuple[InferredColumn, ...]
    children: tuple[InferredTable, ...]
    node: InferredNode = field(compare=False, repr=False)

    @cached_property
    def schema(self) -> pa.Schema:
        """All its columns."""
        places = [(name, pa.int32() if n else pa.string()) for n, name in enumerate(self.places)]
        own = [(column.name, ARROW[column.kind]) for column in self.columns]
        return pa.schema([*places, *own, ("_extra", pa.string()), *PLACE])

    def all(self) -> Iterator[InferredTable]:
        """This table and all below it."""
        yield self
        for child in self.children:
            yield from child.all()

    def paths(self, above: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
        """The table or `table.column`, and the path of its field, of everything in this table and below it."""
        for column in self.columns:
            yield f"{self.name}.{column.name}", path_text(column.keys)
        for child in self.children:
            yield child.name, path_text((*above, *child.keys))
            yield from child.paths((*above, *child.keys))


CHILD_TABLES: Final = ""
"""The key of `FieldNames` with the names of child tables."""
FieldNames = Mapping[str, Mapping[str, str]]
"""The names that fields have had: by table, by the path of the field (`path_text`), the column."""


def path_text(keys: Sequence[str | int]) -> str:
    """The names that lead to a value as a JSON array: a name may contain any separator."""
    return msgspec.json.encode(keys).decode()


class _Names:
    """The names of one table's columns, or of all child tables: those taken, and earlier ones by path.

    A field that had a name keeps it, and no other field gets it: `total` and `Total` do not swap when one is absent.
    """

    def __init__(self, taken: set[str], earlier: Mapping[str, str]) -> None:
        self._taken, self._earlier, self._reserved = taken, earlier, frozenset(earlier.values())

    def add(self, name: str, keys: tuple[str, ...], declared: str | None = None) -> str:
        """The name of a field: declared, else its earlier one, else the first of `name`, `name_2` … that is free."""
        unique = declared or self._earlier.get(path_text(keys))
        if unique is None or unique in self._taken:
            base, n = shorten(name), 1
            unique = base
            while unique in self._taken or unique in self._reserved:
                n += 1
                unique = f"{base}_{n}"
        self._taken.add(unique)
        return unique


def inferred_table(
    record: Record, root: InferredNode, earlier: FieldNames | None = None
) -> InferredTable:
    """The tables that hold everything seen, named as before."""
    earlier = earlier or {}
    names = _Names({KEY_COLUMN} | RESERVED, earlier.get(record.name, {}))
    columns, children = _contents(root, names, frozenset({(record.key,)}))
    key = InferredColumn(KEY_COLUMN, (record.key,), "key", root.fields[record.key])
    tables = _Names({record.name}, earlier.get(CHILD_TABLES, {}))

    def child(
        at: tuple[str, ...], items: InferredNode, above: tuple[str, ...], holders: list[str]
    ) -> InferredTable:
        """The table of an array of objects; `holders` are the paths of the arrays around it, outermost first."""
        path = "__".join([*holders[-1:], _joined(at)])
        places = (
            parent_key(record),
            *(shorten(f"{holder}_position") for holder in holders),
            "position",
        )
        name = tables.add(f"{record.name}__{path}", (*above, *at), items.name)
        columns, children = _contents(
            items, _Names(set(places) | RESERVED, earlier.get(name, {})), frozenset()
        )
        below = tuple(
            child(inner, node, (*above, *at), [*holders, path]) for inner, node in children
        )
        return InferredTable(name, at, places, columns, below, items)

    below = tuple(child(at, node, (), []) for at, node in children)
    return InferredTable(record.name, (), (), (key, *columns), below, root)


_Place = tuple[tuple[str, ...], InferredNode]


def _contents(
    node: InferredNode, names: _Names, skipped: frozenset[tuple[str, ...]]
) -> tuple[tuple[InferredColumn, ...], list[_Place]]:
    """The columns of a table, and the arrays of objects in it."""
    places = [place for place in _places(node, ()) if place[0] not in skipped]
    # A name that needs no change keeps it, so that a clash renames as little as possible.
    places.sort(
        key=lambda place: (
            place[1].name is None,
            _joined(place[0]) != "__".join(place[0]),
            place[0],
        )
    )
    columns = [
        InferredColumn(names.add(_joined(at), at, inner.name), at, inner.kind, inner)
        for at, inner in places
        if inner.kind != "table"
    ]
    tables = [(at, inner) for at, inner in places if inner.kind == "table"]
    return tuple(sorted(columns, key=lambda column: column.keys)), tables


def _places(node: InferredNode, keys: tuple[str, ...]) -> Iterator[_Place]:
    """The places of an object that become columns or tables; objects in it are flattened."""
    for name, inner in node.fields.items():
        if inner.kind == "object":
            yield from _places(inner, (*keys, name))
        else:
            yield (*keys, name), inner


def _joined(keys: tuple[str, ...]) -> str:
    return "__".join(snake(name) for name in keys)
