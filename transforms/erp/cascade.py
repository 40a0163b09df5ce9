"""Rows of two sides joined by one key after another, one to one only.

In: for each key, the rows of both sides that have one, and the keys as text. Out: which row of one side is which of
the other, and which are ambiguous, as numbers. A row that one key has settled takes no part in the later ones.

A key is settled in two steps. `shared_keys` finds what both sides have, and can be mapped over hash buckets of them.
`settled` decides what is one to one, which only all buckets together tell, since a row may have several keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.erp.buckets import split
from transforms.frames import Ints

Mapper = Callable[[Callable[..., Any], Iterable[Any], Iterable[Any], Iterable[Any]], Iterable[Any]]
"""`map`, or that of a pool's or of an engine's."""

MEMBERS_MAX: Final = 20
"""So many members of an ambiguous row are told; the others are counted."""


class Keyed(NamedTuple):
    """Rows and their keys. A row may come several times, with different keys; no key is null."""

    rows: Ints
    keys: pa.Array

    def only(self, where: Ints) -> Keyed:
        """Those at these positions."""
        return Keyed(self.rows[where], self.keys.take(pa.array(where)))


class Edges(NamedTuple):
    """Rows of both sides by the group that they belong to: those with one key. A group is a number from 0."""

    left: Ints
    left_group: Ints
    right: Ints
    right_group: Ints


class Pairs(NamedTuple):
    """Rows of both sides that are one and the same, side by side."""

    left: Ints
    right: Ints


@dataclass(frozen=True, slots=True)
class Settled:
    """What a key has decided.

    Attributes:
        left, right: the rows that are one and the same, side by side.
        left_several, right_several: the rows that are ambiguous, ascending.
        left_members, right_members: for each of those, the rows of the other side that it may be, as text, in their
            order; null for none. At most `MEMBERS_MAX` of a group, then how many more.
    """

    left: Ints
    right: Ints
    left_several: Ints
    left_members: pa.Array
    right_several: Ints
    right_members: pa.Array


def shared_keys(left: Keyed, right: Keyed, left_is_unique: bool) -> Edges:
    """The groups of a key that both sides have.

    Args:
        left: rows in ascending order, each with one key.
        right: a pair of row and key comes once.
        left_is_unique: no two rows of the left side may have one key; those that do are a group even where the right
            side has none of it.

    Returns:
        The groups in the order of their first rows on the left.
    """
    count = len(left.keys)
    both = pa.concat_arrays([left.keys, right.keys])
    codes = pc.dictionary_encode(both).indices.to_numpy().astype(np.int64)
    size = int(codes.max()) + 1 if len(codes) else 0
    of_left, of_right = codes[:count], codes[count:]
    on_left, on_right = np.bincount(of_left, minlength=size), np.bincount(of_right, minlength=size)
    is_group = (on_left > 0) & (on_right > 0)
    if left_is_unique:
        is_group |= on_left > 1
    number = np.cumsum(is_group) - 1
    in_left, in_right = is_group[of_left], is_group[of_right]
    return Edges(left.rows[in_left], number[of_left[in_left]], right.rows[in_right], number[of_right[in_right]])


def shared_keys_by_bucket(left: Keyed, right: Keyed, left_is_unique: bool, buckets: int, over: Mapper) -> Edges:
    """As `shared_keys`, bucket by bucket; `over` maps it over them."""
    if buckets == 1:
        return shared_keys(left, right, left_is_unique)
    lefts = [left.only(rows) for rows in split(left.keys, buckets)]
    rights = [right.only(rows) for rows in split(right.keys, buckets)]
    parts: list[Edges] = list(over(shared_keys, lefts, rights, [left_is_unique] * buckets))
    shift, shifted = 0, []
    for part in parts:
        shifted.append(part._replace(left_group=part.left_group + shift, right_group=part.right_group + shift))
        groups = np.concatenate([part.left_group, part.right_group])
        shift += int(groups.max()) + 1 if len(groups) else 0
    left_rows, left_groups, right_rows, right_groups = (
        np.concatenate(columns) for columns in zip(*shifted, strict=True)
    )
    first = np.empty(shift, np.int64)
    descending = np.argsort(-left_rows)
    first[left_groups[descending]] = left_rows[descending]  # the last one written is the smallest
    number = np.argsort(np.argsort(first))
    return Edges(left_rows, number[left_groups], right_rows, number[right_groups])


def settled(edges: Edges, left_names: pa.Array, right_names: pa.Array) -> Settled:
    """Which rows are one and the same: those of a group of one and one, whose rows are in no other group.

    Args:
        edges: of a key.
        left_names: text of each row of the left side, by which members are told.
        right_names: likewise.
    """
    size = int(max((groups.max() + 1 for groups in (edges.left_group, edges.right_group) if len(groups)), default=0))
    on_left = np.bincount(edges.left_group, minlength=size)
    on_right = np.bincount(edges.right_group, minlength=size)
    is_pair = (on_left == 1) & (on_right == 1)
    for rows, groups, names in (
        (edges.left, edges.left_group, left_names),
        (edges.right, edges.right_group, right_names),
    ):
        of_row = np.bincount(rows, minlength=len(names))
        is_pair[groups[of_row[rows] > 1]] = False
    left_at, right_at = np.empty(size, np.int64), np.empty(size, np.int64)
    left_at[edges.left_group], right_at[edges.right_group] = edges.left, edges.right
    open_left, open_right = ~is_pair[edges.left_group], ~is_pair[edges.right_group]
    left, left_group = edges.left[open_left], edges.left_group[open_left]
    right, right_group = edges.right[open_right], edges.right_group[open_right]
    of_left = _told(left_group, left, left_names, size)
    of_right = _told(right_group, right, right_names, size)
    left_rows, left_members = _of_rows(left, left_group, of_right)
    right_rows, right_members = _of_rows(right, right_group, of_left)
    pairs = np.argsort(left_at[is_pair])
    return Settled(
        left_at[is_pair][pairs], right_at[is_pair][pairs], left_rows, left_members, right_rows, right_members
    )


def _told(groups: Ints, rows: Ints, names: pa.Array, size: int) -> pa.Array:
    """For each group the names of its rows, in the rows' order; null for a group of none."""
    order = np.lexsort((rows, groups))
    count = np.bincount(groups, minlength=size)
    begin = np.concatenate([[0], np.cumsum(count)])
    place = np.arange(len(order)) - begin[groups[order]]
    kept = rows[order[place < MEMBERS_MAX]]
    ends = np.concatenate([[0], np.cumsum(np.minimum(count, MEMBERS_MAX))])
    told = pc.binary_join(pa.ListArray.from_arrays(pa.array(ends, pa.int32()), names.take(pa.array(kept))), ", ")
    more = pc.binary_join_element_wise(told, ", ", pa.array(count - MEMBERS_MAX).cast(pa.string()), " more", "")
    told = pc.if_else(pa.array(count > MEMBERS_MAX), more, told)
    return pc.if_else(pa.array(count > 0), told, pa.scalar(None, pa.string()))


def _of_rows(rows: Ints, groups: Ints, told: pa.Array) -> tuple[Ints, pa.Array]:
    """The rows, each once, and the members of all their groups."""
    order = np.lexsort((groups, rows))
    distinct, begin = np.unique(rows[order], return_index=True)
    members = told.take(pa.array(groups[order]))
    if len(distinct) == len(rows):
        return distinct, members
    offsets = pa.array(np.append(begin, len(rows)), pa.int32())
    return distinct, pc.binary_join(pa.ListArray.from_arrays(offsets, members), ", ")
