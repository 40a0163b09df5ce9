"""Pairs of a line and a customer that have a key in common: those that may be one.

In: the hashes of the keys of both sides. Out: the pairs, and what the values of each key are good for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from orderbridge.transforms.erp.compare import Pairs
from orderbridge.transforms.frames import Bools, Ints, distinct

FREQUENT: Final = 20
"""A value that more rows of one side than this have in common identifies none of them."""


class UsableKeys(NamedTuple):
    """What the values of a key are good for.

    A value that is frequent on a side identifies nobody, nor does a stand-in of a line.

    Attributes:
        lines, customers: whether the value of each line, and of each customer, may identify it.
        first: the first line that has the value of each line; -1 where no other line has it.
    """

    lines: Bools
    customers: Bools
    first: Ints


class Candidates(NamedTuple):
    """The pairs of lines and customers that may be one.

    Attributes:
        pairs: those that have a key in common, and those that a person has accepted, but none that one has rejected.
        is_accepted: whether a person has accepted each pair.
        was_matched: whether the last match has had each pair.
        usable: what the values of each key are good for.
    """

    pairs: Pairs
    is_accepted: Bools
    was_matched: Bools
    usable: dict[str, UsableKeys]

    def of(self, lines: Ints, customers: Ints) -> Candidates:
        """Those of some lines and customers (ascending row numbers) that have no key in common with others."""
        pairs = self.pairs
        is_here = np.isin(self.pairs.line, lines)
        own = Pairs(
            np.searchsorted(lines, pairs.line[is_here]),
            np.searchsorted(customers, pairs.customer[is_here]),
        )
        usable = {
            key: UsableKeys(
                one.lines[lines],
                one.customers[customers],
                np.where(one.first[lines] < 0, -1, np.searchsorted(lines, one.first[lines])),
            )
            for key, one in self.usable.items()
        }
        return Candidates(own, self.is_accepted[is_here], self.was_matched[is_here], usable)


class CommonKeys(NamedTuple):
    """What lines and customers have in common.

    Attributes:
        numbers: by key, the pairs that have a value of it in common which is not frequent: `line * customers +
            customer`.
        usable: what the values of each key are good for.
        customers: how many there are.
    """

    numbers: dict[str, Ints]
    usable: dict[str, UsableKeys]
    customers: int

    def pairs(self, without: str | None = None) -> Pairs:
        """The pairs that have a key in common; without a key: another one."""
        of_keys = [of for key, of in self.numbers.items() if key != without]
        numbers = distinct(np.concatenate([np.empty(0, np.int64), *of_keys]))
        return Pairs(*np.divmod(numbers, max(self.customers, 1)))


def find_candidates(
    common: CommonKeys,
    reviewed: tuple[Ints, Ints, Bools] | None = None,
    matched_before: tuple[Ints, Ints] | None = None,
) -> Candidates:
    """The candidates among lines and customers, from what they have in common.

    `reviewed` are pairs that a person has decided about, in the order of the decisions, and whether each is accepted.
    Of several accepted pairs of a line or of a customer only the last one counts. `matched_before` are pairs that the
    last match has had; those without a key in common any more are no candidates.
    """
    size = common.customers
    pairs = common.pairs()
    numbers = pd.Index(pairs.line * size + pairs.customer)
    accepted = np.empty(0, np.int64)
    if reviewed is not None and len(reviewed[0]):
        decided = reviewed[0] * size + reviewed[1]
        is_accepted = reviewed[2]
        accepted = decided[is_accepted]
        is_replaced = [pd.Index(side).duplicated("last") for side in np.divmod(accepted, size)]
        accepted = accepted[~np.logical_or(*is_replaced)]
        kept = numbers[~numbers.isin(decided[~is_accepted])]
        numbers = pd.Index(distinct(np.concatenate([kept, accepted])))
        pairs = Pairs(*np.divmod(numbers.to_numpy(), size))
    before = np.empty(0, np.int64)
    if matched_before is not None:
        before = matched_before[0] * size + matched_before[1]
    return Candidates(pairs, numbers.isin(accepted), numbers.isin(before), common.usable)


def common_keys(
    ours: Mapping[str, pd.Series[int]], theirs: Mapping[str, pd.Series[int]], sizes: tuple[int, int]
) -> CommonKeys:
    """The pairs that have a key in common, and the rows that each key may identify.

    Both are hashes of keys, by key and row number (see `hash_keys`), of customers several of a row where it has several
    documents; `sizes` is how many lines and customers there are.
    """
    numbers = {}
    usable = {}
    for key, hashes in ours.items():
        common = _CommonValues(hashes, theirs[key])
        usable[key] = common.usable(sizes)
        lines, customers = common.pairs()
        numbers[key] = lines * sizes[1] + customers
    return CommonKeys(numbers, usable, sizes[1])


class _CommonValues:
    """The values of one key on both sides, by their hashes.

    Attributes:
        lines, customers: the row numbers.
        of_lines, of_customers: the number of the value of each of them.
        line_counts, customer_counts: how many rows have each value.
        is_frequent: whether so many rows of a side have each value that it identifies none of them.
    """

    def __init__(self, ours: pd.Series[int], theirs: pd.Series[int]) -> None:
        self.lines = ours.index.to_numpy(np.int64)
        self.customers = theirs.index.to_numpy(np.int64)
        codes, values = pd.factorize(np.concatenate([theirs, ours]))
        self.of_customers = codes[: len(self.customers)]
        self.of_lines = codes[len(self.customers) :]
        self.line_counts = np.bincount(self.of_lines, minlength=len(values))
        self.customer_counts = np.bincount(self.of_customers, minlength=len(values))
        self.is_frequent = np.maximum(self.line_counts, self.customer_counts) > FREQUENT

    def usable(self, sizes: tuple[int, int]) -> UsableKeys:
        """What the values are good for, of so many lines and customers."""
        usable = UsableKeys(
            np.zeros(sizes[0], np.bool_), np.ones(sizes[1], np.bool_), np.full(sizes[0], -1)
        )
        usable.lines[self.lines] = ~self.is_frequent[self.of_lines]
        usable.customers[self.customers[self.is_frequent[self.of_customers]]] = False
        first = np.empty(len(self.line_counts), np.int64)
        first[self.of_lines[::-1]] = self.lines[::-1]
        is_shared = self.line_counts[self.of_lines] > 1
        usable.first[self.lines[is_shared]] = first[self.of_lines[is_shared]]
        return usable

    def pairs(self) -> tuple[Ints, Ints]:
        """The lines and the customers of the pairs that have a value in common which is not frequent."""
        by_value = self.customers[np.argsort(self.of_customers, kind="stable")]
        begin_of_value = np.cumsum(self.customer_counts) - self.customer_counts
        count = np.where(self.is_frequent, 0, self.customer_counts)[self.of_lines]
        begin = begin_of_value[self.of_lines] - (np.cumsum(count) - count)
        at = np.repeat(begin, count) + np.arange(count.sum())
        return np.repeat(self.lines, count), by_value[at]


def buckets(candidates: Candidates, count: int) -> tuple[Ints, Ints]:
    """The bucket of each line and of each customer, from 0 to `count` - 1.

    Rows that share a key, directly or through other rows, are in the same one: each can be matched on its own. Values
    with the same hash only put more rows into one, which changes no result.
    """
    usable = list(candidates.usable.values())
    size = len(usable[0].lines)
    left = [candidates.pairs.line, *(np.flatnonzero(one.first >= 0) for one in usable)]
    right = [candidates.pairs.customer + size, *(one.first[one.first >= 0] for one in usable)]
    left_ends = np.concatenate(left)
    right_ends = np.concatenate(right)
    root = np.arange(size + len(usable[0].customers))
    while (root[left_ends] != root[right_ends]).any():
        lower = np.minimum(root[left_ends], root[right_ends])
        higher = np.maximum(root[left_ends], root[right_ends])
        np.minimum.at(root, higher, lower)
        while (root[root] != root).any():
            root = root[root]
    return root[:size] % count, root[size:] % count
