"""The places of an undocumented record and their kinds: those of the bulk of its rows, and of earlier walks.

In: parsed rows (`rows.parse`), and the kinds that earlier walks kept. Out: the kind of each place, from which its
columns and tables follow (`inferred_tables`).

A place (a field, or a field of the objects in an array) has one form in all rows: a scalar, an object or a list. A
first walk takes the form and the type of the bulk of the values; a later one keeps them, except that whole numbers
become decimals where one has a fraction. A value of another kind is odd: it stays in its row (`fit`). Counts decide, so
that kinds depend on the rows and not on their order. Arrays of objects without a plain object among them are a list,
however many have one item only; where both occur, `InferredNode` says what decides. An object with too many fields (one
keyed by ids) becomes JSON text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

import msgspec

from orderbridge.sources.decode.column_kinds import ColumnKind, DecidedKind, KeptKinds, path_text
from orderbridge.sources.decode.json_numbers import Number
from orderbridge.sources.decode.odd_values import OddKeys, keep_odd
from orderbridge.sources.decode.table_schema import DECIMAL
from orderbridge.sources.decode.values import (
    Count,
    coerced,
    exact_decimal,
    is_keyed,
    is_nothing,
    list_count,
    scalar_count,
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
_LONG_DECIMALS: Final = re.compile(rf"\.[0-9]{{{DECIMAL.scale + 1}}}|[eE]-")
_WIDER: Final = ("bigint", "decimal", "text", "json")
"""Kinds of which each holds the values of those before it."""
_NUMBERS: Final = (Count.WHOLE, Count.DECIMAL, Count.LARGE)
_NUMERIC_TEXTS: Final = (Count.WHOLE_TEXT, Count.DECIMAL_TEXT, Count.LARGE_TEXT)
_NOT_WHOLE: Final = (Count.DECIMAL, Count.LARGE, Count.DECIMAL_TEXT, Count.LARGE_TEXT)
_DECIMALS: Final = (Count.DECIMAL, Count.DECIMAL_TEXT)
_LARGE: Final = (Count.LARGE, Count.LARGE_TEXT)
_BOOLEANS: Final = (Count.TRUE, Count.FALSE)
TEXTS: Final = frozenset({*_NUMERIC_TEXTS, Count.TEXT, Count.EMPTY_TEXT})


@dataclass(slots=True)
class NodeBudget:
    """Fields that a record may still get."""

    left: int = NODES_MAX


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
            self.counts[list_count(value)] += 1
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
            node.is_declared = known.values is None
            node.name = known.name
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
            return self._kept_kind(self.kept)
        kind = self._kind_of_most()
        if self.least == "json" or (self.least != "empty" and not self._values):
            return self.least
        if self.least == "table" and kind == "object" and self._of_several:
            return "table"  # which holds objects as well, as an item each
        if self.least in _WIDER and kind in _WIDER:
            return max(self.least, kind, key=_WIDER.index)
        are_scalars = {self.least, kind} <= {"boolean", *_WIDER}
        return "text" if are_scalars and self.least != kind else kind

    def _kept_kind(self, kept: ColumnKind) -> ColumnKind:
        """A kept kind, or the wider one that it becomes."""
        if self._is_list_after_all:
            return "table"
        widens = kept == "bigint" and not self.is_declared and self._count(*_NOT_WHOLE) > 0
        return "decimal" if widens else kept

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
        fitted: object
        if kind in ("list", "table"):
            fitted = _fitted_list(kind, value, keys, odd)
        elif kind == "object":
            fitted = self._fitted_object(value, keys, odd)
        else:
            fitted = coerced(kind, value)
            if isinstance(fitted, Decimal) and fitted != exact_decimal(value):
                keep_odd(odd, keys, Number(value))  # rounded in its column, exact here
        if fitted is None and not is_nothing(value, kind):
            keep_odd(odd, keys, value)
        return fitted

    def _fitted_object(
        self, value: object, keys: OddKeys, odd: dict[str, object]
    ) -> dict[str, object] | None:
        """The fields of an object, also of one in an array of its own; None for another value."""
        single: object = value[0] if isinstance(value, list) and len(value) == 1 else value
        if not isinstance(single, dict) or not single or is_keyed(single):
            return None
        return self.fit_fields(single, keys, odd)


def _fitted_list(
    kind: ColumnKind, value: object, keys: OddKeys, odd: dict[str, object]
) -> list[object] | None:
    """The items of a list, or the objects of a table; None for a value that is neither."""
    items = _items(value, are_objects=kind == "table")
    if items is None or kind == "list":
        return items
    return [_item(item, (*keys, n), odd) for n, item in enumerate(items, 1)]


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
