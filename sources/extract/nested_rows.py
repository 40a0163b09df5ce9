"""The rows of a list as Python rows that contain their items, for dlt to make nested tables of.

In: the Arrow tables of a list and its child tables. Out: a list of rows per batch; objects that were flattened into
columns (`customer__id`) are objects again. The items of the whole list are in memory meanwhile.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from sources.contract import Record
from sources.decode.table_schema import KEY_COLUMN

_SEPARATOR: Final = re.compile(r"__(?!v_text\Z)")
"""Between the names of an object and its field, but not before the mark of a variant (`stored_types`)."""
_Row = dict[str, Any]
_Items = defaultdict[tuple[str, tuple[Any, ...]], dict[str, list[_Row]]]
"""Items by their holder (its table, and the values that identify its row there) and field."""


def nested_rows(
    record: Record,
    batches: Callable[[], Iterator[tuple[str, pa.Table]]],
    holders: Callable[[], Mapping[str, str]],
) -> Iterator[list[_Row]]:
    """The rows of a list, a batch at a time.

    Args:
        record: of the list.
        batches: the tables of the list, by name, a batch at a time.
        holders: the table whose rows hold the items of a child table, by child table.
    """
    tables = [(name, batch) for name, batch in batches() if name != record.name]
    items = _items(record, tables, holders())
    arrays = {name.removeprefix(f"{record.name}__") for name, table in tables if _depth(table) == 1}
    for name, batch in batches():
        if name == record.name:
            rows = batch.to_pylist()
            yield [
                _unflattened(row | {array: [] for array in arrays} | items.pop((name, (row[KEY_COLUMN],)), {}))
                for row in rows
            ]


def _items(record: Record, tables: list[tuple[str, pa.Table]], holders: Mapping[str, str]) -> _Items:
    depths = {name: _depth(table) for name, table in tables}
    items: _Items = defaultdict(dict)
    for name, table in sorted(tables, key=lambda pair: depths[pair[0]], reverse=True):
        depth, holder = depths[name], holders[name]
        # The name of a table with a long path, or with a path that another table has, need not begin with its holder's.
        prefix = holder if name.startswith(f"{holder}__") else record.name
        for row in table.to_pylist():
            place = tuple(row.values())[: depth + 1]
            item = _unflattened(row | items.pop((name, place), {}))
            items[holder, place[:-1]].setdefault(name.removeprefix(f"{prefix}__"), []).append(item)
    return items


def _depth(table: pa.Table) -> int:
    """How many arrays hold an item: its table begins with the record's key, the positions of its holders, its own."""
    return list(table.column_names).index("position")


def _unflattened(row: _Row) -> _Row:
    result: _Row = {}
    for name, value in row.items():
        *path, last = _SEPARATOR.split(name)
        place = result
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return result
