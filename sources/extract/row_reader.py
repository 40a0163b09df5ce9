"""The ids of the rows of a page and the number of objects in their lists, apart from the decoder.

In: the bytes of rows, and where their lists are. Out: the ids, as written, and a count for each list, to be compared
with the rows of its child table: a decoder that loses items is noticed. Rows in the usual form need one pass over their
bytes; another one is read by itself, with what counts as a list there: an object whose names are whole numbers, and a
single object.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from sources.decode.rows import Page, split
from sources.decode.structure import array_items

Lists = Mapping[tuple[str, ...], str]
"""The name of each list of objects, by its path: the names of the objects and lists that hold it, and its own."""
_Decoder = msgspec.json.Decoder[list[Any]]
_INDEX: Final = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_array: Final = msgspec.json.Decoder(list[msgspec.Raw])
_UNREADABLE: Final = (msgspec.MsgspecError, RecursionError)


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
        self.key, self.lists, self._root = key, lists or {}, _Place()
        for path, name in self.lists.items():
            place = self._root
            for step in path:
                place = place.fields.setdefault(step, _Place())
            place.list_name = name
        self._ids: _Decoder = msgspec.json.Decoder(list[_row(key, _Place())])  # type: ignore[misc]
        self._usual: _Decoder | None = None
        # An object with numbers as names may be a list, which types do not show.
        if not any(_INDEX.fullmatch(step) for path in self.lists for step in path):
            with suppress(ValueError):  # a quote or a control character in a name
                self._usual = msgspec.json.Decoder(list[_row(key, self._root)])  # type: ignore[misc]

    def read(self, rows: bytes) -> RowsRead | None:
        """Reads an array of rows; None if one has no id, or the bytes are not such an array."""
        items: Counter[str] | None = None
        if (decoded := self._decoded(self._usual, rows)) is not None:
            _add(decoded, self._root, items := Counter())
        elif (decoded := self._decoded(self._ids, rows)) is None:
            return None
        ids = [bytes(row.key) for row in decoded]
        return RowsRead(ids, items) if all(ids) else None

    def ids(self, rows: bytes) -> list[bytes]:
        """The ids of the rows of an array, in order and as written; a row without one counts as its own.

        Raises:
            ValueError: it is not JSON.
        """
        return read.ids if (read := self.read(rows)) is not None else list(map(self._id, array_items(rows)))

    def _id(self, row: bytes) -> bytes:
        decoded = self._decoded(self._ids, b"[%b]" % row)
        return (bytes(decoded[0].key) if decoded else b"") or row

    def items(self, rows: bytes) -> Counter[str]:
        """The objects in each list of the rows of a JSON array."""
        counts: Counter[str] = Counter()
        if (decoded := self._decoded(self._usual, rows)) is not None:
            _add(decoded, self._root, counts)
            return counts
        return self.items_of(split(Page(0, rows)))

    def items_of(self, rows: Iterable[bytes]) -> Counter[str]:
        """The objects in each list of these rows. One that is not JSON has none."""
        counts: Counter[str] = Counter()
        for row in rows if self._root.fields else ():
            if (decoded := self._decoded(self._usual, b"[%b]" % row)) is not None:
                _add(decoded, self._root, counts)
                continue
            with suppress(*_UNREADABLE):
                own: Counter[str] = Counter()
                _add_object(row, self._root, own)
                counts.update(own)
        return counts

    def _decoded(self, decoder: _Decoder | None, rows: bytes) -> list[Any] | None:
        try:
            return None if decoder is None else decoder.decode(rows)
        except _UNREADABLE:
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
    """Counts in objects of the usual form."""
    for n, inner in enumerate(place.fields.values()):
        values = filter(None, map(attrgetter(f"f{n}"), items))
        if not inner.fields:
            counts[inner.list_name] += sum(map(len, values))
            continue
        below = list(chain.from_iterable(values) if inner.list_name else values)
        if inner.list_name:
            counts[inner.list_name] += len(below)
        _add(below, inner, counts)


def _add_object(data: bytes, place: _Place, counts: Counter[str]) -> None:
    """Counts in an object of any form. Raises MsgspecError where it is none."""
    for name, value in _members.decode(data).items():
        if (inner := place.fields.get(name)) is None:
            continue
        items = _items(bytes(value)) if inner.list_name else _single(bytes(value))
        if inner.list_name:
            counts[inner.list_name] += len(items)
        for item in items if inner.fields else ():
            _add_object(item, inner, counts)


def _items(data: bytes) -> list[bytes]:
    """The objects of a list, of an object that is one, or a single object."""
    if data.startswith(b"{"):
        members = _members.decode(data)
        if not members or not _is_keyed(members):
            return [data] if members else []
        items = map(bytes, members.values())
    else:
        items = map(bytes, _array.decode(data) if data.startswith(b"[") else [])
    return [item for item in items if item.startswith(b"{")]


def _single(data: bytes) -> list[bytes]:
    """An object, also as a list of one; none where others have an object and this is none."""
    if data.startswith(b"["):
        items = _array.decode(data)
        data = bytes(items[0]) if len(items) == 1 else b""
    return [data] if data.startswith(b"{") and not _is_keyed(_members.decode(data)) else []


def _is_keyed(members: Mapping[str, object]) -> bool:
    """Whether all names are whole numbers: so PHP writes a list after it removed an item."""
    return bool(members) and all(map(_INDEX.fullmatch, members))
