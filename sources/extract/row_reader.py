"""The ids of the rows of a page, and the objects in their lists: all that a walk reads of rows before they are decoded.

In: the rows of a page, as a JSON array. Out: the id of each row, as written, and how many objects each list has. What
else a row contains does not matter here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from orderbridge.sources.decode.json_scan import array_items
from orderbridge.sources.decode.rows import InvalidRow, Page, parse, split
from orderbridge.sources.decode.values import is_keyed

Lists = Mapping[tuple[str, ...], str]
"""The name of each list of objects, by its path: the names of the objects and lists that hold it, and its own."""
_Decoder = msgspec.json.Decoder[list[Any]]


class RowsRead(NamedTuple):
    """Ids of rows; the objects in their lists, None where a row is not in the usual form."""

    ids: list[bytes]
    items: Counter[str] | None


@dataclass(slots=True)
class _Place:
    """An object, or a list of objects, and the lists in it."""

    list_name: str = ""
    fields: dict[str, _Place] = field(default_factory=dict)


class RowReader:
    """Reads the ids and lists of rows, and nothing else of them.

    Args:
        key: the field of a row's id.
        lists: whose objects are counted.
    """

    def __init__(self, key: str, lists: Lists | None = None) -> None:
        self.key = key
        self.lists = lists or {}
        self._root = _Place()
        for path, name in self.lists.items():
            place = self._root
            for step in path:
                place = place.fields.setdefault(step, _Place())
            place.list_name = name
        self._ids: _Decoder = msgspec.json.Decoder(list[_row(key, _Place())])  # type: ignore[misc]
        self._usual: _Decoder | None = None
        # An object with numbers as names may be a list, which types do not show.
        if not any(step.isdecimal() for path in self.lists for step in path):
            with suppress(ValueError):  # a quote or a control character in a name
                self._usual = msgspec.json.Decoder(list[_row(key, self._root)])  # type: ignore[misc]

    def read(self, rows: bytes) -> RowsRead | None:
        """Reads an array of rows; None if one has no id, or the bytes are not such an array."""
        items: Counter[str] | None = None
        decoded = self._decoded(self._usual, rows)
        if decoded is not None:
            items = Counter()
            _add(decoded, self._root, items)
        else:
            decoded = self._decoded(self._ids, rows)
        if decoded is None:
            return None
        ids = [bytes(row.key) for row in decoded]
        return RowsRead(ids, items) if all(ids) else None

    def ids(self, rows: bytes) -> list[bytes]:
        """The ids of the rows of an array, in order and as written; a row without one counts as its own.

        Raises:
            ValueError: it is not JSON.
        """
        read = self.read(rows)
        if read is not None:
            return read.ids
        return [self._id(row) for row in array_items(rows)]

    def _id(self, row: bytes) -> bytes:
        decoded = self._decoded(self._ids, b"[%b]" % row)
        if not decoded:
            return row
        return bytes(decoded[0].key) or row

    def items(self, rows: bytes) -> Counter[str]:
        """The objects in each list of the rows of a JSON array."""
        read = self.read(rows)
        if read is not None and read.items is not None:
            return read.items
        return self.items_of(split(Page(0, rows)))

    def items_of(self, rows: Iterable[bytes]) -> Counter[str]:
        """The objects in each list of these rows. One that is not JSON has none."""
        counts: Counter[str] = Counter()
        if not self._root.fields:
            return counts
        for row in rows:
            decoded = self._decoded(self._usual, b"[%b]" % row)
            if decoded is not None:
                _add(decoded, self._root, counts)
                continue
            with suppress(InvalidRow):
                _add_object(parse(row), self._root, counts)
        return counts

    def _decoded(self, decoder: _Decoder | None, rows: bytes) -> list[Any] | None:
        if decoder is None:
            return None
        try:
            return decoder.decode(rows)
        except (msgspec.MsgspecError, RecursionError):
            return None


def _row(key: str, root: _Place) -> Any:  # noqa: ANN401 # a type
    """The type of a row that has its id and its lists, and nothing else."""
    return _struct(root, [("key", msgspec.Raw, msgspec.Raw(b""))], {"key": key})


def _struct(place: _Place, members: list[tuple[str, Any, Any]], names: dict[str, str]) -> Any:  # noqa: ANN401 # a type
    """The type of an object that has these members and its lists, and nothing else."""
    for n, (name, inner) in enumerate(place.fields.items()):
        struct = _struct(inner, [], {})
        names[f"f{n}"] = name
        kind = list[struct] if inner.list_name else struct  # type: ignore[valid-type]
        members.append((f"f{n}", kind | None, None))
    return msgspec.defstruct("Item", members, rename=names, gc=False)


def _add(items: Sequence[Any], place: _Place, counts: Counter[str]) -> None:
    """Adds the objects in the lists of these decoded objects, which have the usual form."""
    for n, inner in enumerate(place.fields.values()):
        values = filter(None, map(attrgetter(f"f{n}"), items))
        if not inner.fields:
            counts[inner.list_name] += sum(map(len, values))
            continue
        below = list(chain.from_iterable(values) if inner.list_name else values)
        if inner.list_name:
            counts[inner.list_name] += len(below)
        _add(below, inner, counts)


def _add_object(item: Mapping[str, object], place: _Place, counts: Counter[str]) -> None:
    """Adds the objects in the lists of this object, which may have any form."""
    for name, inner in place.fields.items():
        value = item.get(name)
        if inner.list_name:
            items = _objects_of_list(value)
            counts[inner.list_name] += len(items)
        else:
            items = _single_object(value)
        for each in items:
            _add_object(each, inner, counts)


def _objects_of_list(value: object) -> list[dict[str, object]]:
    """The objects of a list. An object in its place is a list by number, or else the only one of the list."""
    if isinstance(value, dict) and is_keyed(value):
        value = list(value.values())
    elif isinstance(value, dict) and value:
        value = [value]
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]


def _single_object(value: object) -> list[dict[str, object]]:
    """An object that is not a list, also where it is the only one of an array; otherwise nothing."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict) and not is_keyed(value):
        return [value]
    return []
