"""Columns to bodies: JSON objects of a given shape, built whole columns at a time.

In: a list of values for each path, None where no value is given, and the shape of a body. Out: the bodies, without
absent values. An array has an item where one of the item's own values is given; constants alone add no item.
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
    """A value of a column, or the default where that has none; without a column a constant."""

    path: str | None
    default: Any = None


@dataclass(frozen=True, slots=True)
class Object:
    """Members in their order. `needs`: the member without which there is no object."""

    members: tuple[tuple[str, Node], ...]
    needs: str | None = None


@dataclass(frozen=True, slots=True)
class Array:
    """Items in their order; `each` adds an item for every line of a group."""

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
    """A body for each input; empty for an input without values."""
    return [body or {} for body in _values_of(shape, given)]


def values(kind: str, array: pa.Array) -> tuple[list[Any], list[Any]]:
    """Python's values of a column as an import types it: texts, booleans, integers, decimals; None for null.

    Returns:
        A value for each row; and those that are there: of numbers, each once.
    """
    if kind not in ("integer", "number"):
        cells: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
        return cells, [value for value in cells if value is not None] if array.null_count else cells
    coded = array.dictionary_encode()
    make = int if kind == "integer" else _decimal
    distinct = list(map(make, coded.dictionary.to_numpy(zero_copy_only=False).tolist()))
    indices, known = coded.indices, distinct
    if indices.null_count:
        known = [*distinct, None]
        indices = indices.fill_null(len(distinct))
    return list(map(known.__getitem__, indices.to_numpy().tolist())), distinct


def _decimal(text: str) -> Any:  # noqa: ANN401 # one of two makers, chosen by kind
    """Without trailing zeros, which do not count for limits of decimals; zero has no sign."""
    return Decimal(text.rstrip("0").rstrip(".") if "." in text else text) or Decimal()


def counting(node: Node) -> set[str]:
    """The columns whose values make the node present."""
    if isinstance(node, Leaf):
        return set() if node.path is None else {node.path}
    if isinstance(node, Array):
        return set().union(*map(counting, node.items), counting(node.each) if node.each else set())
    if node.needs is not None:
        return counting(dict(node.members)[node.needs])
    return set().union(*(counting(member) for _, member in node.members))


def _values_of(node: Node, given: Given) -> list[Any]:
    """The value of a node in each input, None where it is absent."""
    if isinstance(node, Leaf):
        column = [None] * given.size if node.path is None else given.columns[node.path]
        return [node.default if value is None else value for value in column]
    if isinstance(node, Array):
        return _array(node, given)
    names = [name for name, _ in node.members]
    members = [_values_of(member, given) for _, member in node.members]
    rows = zip(*members, strict=True) if members else [()] * given.size
    return [{name: value for name, value in zip(names, row, strict=True) if value is not None} or None for row in rows]


def _array(node: Array, given: Given) -> list[Any]:
    columns = [_item(item, given) for item in node.items]
    rows = [[item for item in row if item is not None] for row in zip(*columns, strict=True)]
    rows = rows or [[] for _ in range(given.size)]
    if node.each is not None:
        size = given.bounds[-1][1] if given.bounds else 0
        of_lines = _item(node.each, Given(given.lines, size, given.lines))
        for row, (begin, end) in zip(rows, given.bounds, strict=True):
            row += [item for item in of_lines[begin:end] if item is not None]
    return [row or None for row in rows]


def _item(item: Node, given: Given) -> list[Any]:
    """The items of one place; None where no value of its own is given. An item without columns is always present."""
    nodes, own = _values_of(item, given), [given.columns[path] for path in sorted(counting(item))]
    if not own:
        return nodes
    is_there = (any(value is not None for value in row) for row in zip(*own, strict=True))
    return [node if is_given else None for node, is_given in zip(nodes, is_there, strict=True)]
