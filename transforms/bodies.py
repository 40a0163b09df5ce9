"""Columns to bodies: JSON objects of a shape, made whole columns at a time.

In: a list of values for each path, None where nothing is given, and the shape of a body. Out: the bodies, without what
is not given. An item of an array is there where one of its own values is; what all inputs get makes no item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

Columns = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value: of a column, and where that has none, the default; without a column the same for all."""

    path: str | None
    default: Any = None


@dataclass(frozen=True, slots=True)
class Object:
    """Members in their order. `needs`: without this one there is no object."""

    members: tuple[tuple[str, Node], ...]
    needs: str | None = None


@dataclass(frozen=True, slots=True)
class Array:
    """Items in their order; `each` is an item for every line of a group."""

    items: tuple[Node, ...] = ()
    each: Node | None = None


Node = Leaf | Object | Array


@dataclass(frozen=True, slots=True)
class Given:
    """Values by path, one an input; `lines` has one a line, and `bounds` say where each input's lines begin and end."""

    columns: Columns
    size: int
    lines: Columns
    bounds: Sequence[tuple[int, int]] = ()


def bodies(shape: Object, given: Given) -> list[dict[str, Any]]:
    """A body for each input; one to which nothing is given is empty."""
    return [body or {} for body in _object(shape, given)]


def values(kind: str, array: pa.Array) -> list[Any]:
    """Python's values of a column as `csv_rows` reads it: texts, booleans, integers, decimals; None for null."""
    if kind not in ("integer", "number"):
        found: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
        return found
    coded = array.dictionary_encode()
    make = int if kind == "integer" else _decimal
    distinct = [make(text) for text in coded.dictionary.to_pylist()]
    indices = coded.indices
    if indices.null_count:
        distinct.append(None)
        indices = indices.fill_null(len(distinct) - 1)
    return list(map(distinct.__getitem__, indices.to_numpy().tolist()))


def _decimal(text: str) -> Any:  # noqa: ANN401 # one of two makers, chosen by kind
    """Without zeros at the end that say nothing, so that limits of decimals count what matters."""
    return Decimal(text.rstrip("0").rstrip(".") if "." in text else text)


def counting(node: Node) -> set[str]:
    """The columns of a node whose values make it be there."""
    if isinstance(node, Leaf):
        return set() if node.path is None else {node.path}
    if isinstance(node, Array):
        return set().union(*map(counting, node.items), counting(node.each) if node.each else set())
    if node.needs is not None:
        return counting(dict(node.members)[node.needs])
    return set().union(*(counting(member) for _, member in node.members))


def _node(node: Node, given: Given) -> Sequence[Any]:
    if isinstance(node, Leaf):
        return _leaf(node, given)
    return _array(node, given) if isinstance(node, Array) else _object(node, given)


def _leaf(leaf: Leaf, given: Given) -> Sequence[Any]:
    if leaf.path is None:
        return [leaf.default] * given.size
    column = given.columns[leaf.path]
    if leaf.default is None or None not in column:
        return column
    return [leaf.default if value is None else value for value in column]


def _object(node: Object, given: Given) -> list[dict[str, Any] | None]:
    names = [name for name, _ in node.members]
    if not names:
        return [None] * given.size
    columns = [_node(member, given) for _, member in node.members]
    rows = zip(*columns, strict=True)
    if not any(None in column for column in columns):
        return [dict(zip(names, row, strict=True)) for row in rows]
    return [{name: value for name, value in zip(names, row, strict=True) if value is not None} or None for row in rows]


def _array(node: Array, given: Given) -> list[list[Any] | None]:
    items = [_item(item, given) for item in node.items]
    rows: list[list[Any]] = [[] for _ in range(given.size)] if not items else []
    rows = rows or [[item for item in row if item is not None] for row in zip(*items, strict=True)]
    if node.each is not None:
        of_lines = _item(node.each, Given(given.lines, given.bounds[-1][1] if given.bounds else 0, given.lines))
        for row, (begin, end) in zip(rows, given.bounds, strict=True):
            row += [item for item in of_lines[begin:end] if item is not None]
    return [row or None for row in rows]


def _item(item: Node, given: Given) -> Sequence[Any]:
    """Items of one place; None where no value of its own is given. What has no column at all is always there."""
    made = _node(item, given)
    own = [given.columns[path] for path in sorted(counting(item))]
    if not own:
        return made
    return [
        made_one if any(value is not None for value in row) else None
        for made_one, row in zip(made, zip(*own, strict=True), strict=True)
    ]
