"""Pairs of a line and a customer that have a key in common: those that may be one.

In: the hashes of the keys of both sides. Out: the pairs, and what the values of each key are good for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from orderbridge.transforms.erp.compare import Pairs
from orderbridge.transforms.frames import Bools, Ints

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


def find_candidates(
    ours: Mapping[str, pd.Series[int]],
    theirs: Mapping[str, pd.Series[int]],
    sizes: tuple[int, int],
    reviewed: tuple[Ints, Ints, Bools] | None = None,
    matched_before: tuple[Ints, Ints] | None = None,
) -> Candidates:
    """The candidates among so many lines and customers, from the hashes of their keys: see `common_keys`.

    `reviewed` are pairs that a person has decided about, in the order of the decisions, and whether each is accepted.
    Of several accepted pairs of a line or of a customer only the last one counts. `matched_before` are pairs that the
    last match has had; those without a key in common any more are no candidates.
    """
    pairs, usable = common_keys(ours, theirs, sizes)
    numbers = pairs.line * sizes[1] + pairs.customer
    accepted = np.empty(0, np.int64)
    if reviewed is not None and len(reviewed[0]):
        decided = reviewed[0] * sizes[1] + reviewed[1]
        is_accepted = reviewed[2]
        accepted = decided[is_accepted]
        is_replaced = [pd.Index(side).duplicated("last") for side in np.divmod(accepted, sizes[1])]
        accepted = accepted[~np.logical_or(*is_replaced)]
        numbers = np.union1d(np.setdiff1d(numbers, decided[~is_accepted]), accepted)
        pairs = Pairs(*np.divmod(numbers, sizes[1]))
    before = np.empty(0, np.int64)
    if matched_before is not None:
        before = matched_before[0] * sizes[1] + matched_before[1]
    return Candidates(pairs, np.isin(numbers, accepted), np.isin(numbers, before), usable)


def common_keys(
    ours: Mapping[str, pd.Series[int]], theirs: Mapping[str, pd.Series[int]], sizes: tuple[int, int]
) -> tuple[Pairs, dict[str, UsableKeys]]:
    """The pairs that have a key in common, and the rows that each key may identify.

    Both are hashes of keys, by key and row number (see `hash_keys`), of customers several of a row where it has several
    documents; `sizes` is how many lines and customers there are.
    """
    pairs = [np.empty(0, np.int64)]
    usable = {}
    for key, hashes in ours.items():
        lines, customers = (side.index.to_numpy(np.int64) for side in (hashes, theirs[key]))
        codes, values = pd.factorize(np.concatenate([theirs[key], hashes]))
        known = codes[: len(customers)]
        codes = codes[len(customers) :]
        counts = [np.bincount(side, minlength=len(values)) for side in (codes, known)]
        is_frequent = np.maximum(*counts) > FREQUENT
        is_shared = counts[0][codes] > 1
        first = np.empty(len(values), np.int64)
        first[codes[::-1]] = lines[::-1]
        of_key = UsableKeys(
            np.zeros(sizes[0], np.bool_), np.ones(sizes[1], np.bool_), np.full(sizes[0], -1)
        )
        of_key.lines[lines] = ~is_frequent[codes]
        of_key.customers[customers[is_frequent[known]]] = False
        of_key.first[lines[is_shared]] = first[codes[is_shared]]
        usable[key] = of_key
        count = np.where(is_frequent, 0, counts[1])[codes]
        begin = (np.cumsum(counts[1]) - counts[1])[codes] - (np.cumsum(count) - count)
        at = np.repeat(begin, count) + np.arange(count.sum())
        pairs.append(
            np.repeat(lines, count) * sizes[1] + customers[np.argsort(known, kind="stable")[at]]
        )
    # those of each key are sorted, so these mostly are
    numbers = np.sort(np.concatenate(pairs), kind="stable")
    numbers = numbers[np.diff(numbers, prepend=-1) > 0]
    return Pairs(*np.divmod(numbers, max(sizes[1], 1))), usable


def buckets(candidates: Candidates, count: int) -> tuple[Ints, Ints]:
    """The bucket of each line and of each customer, from 0 to `count` - 1.

    Rows that share a key, directly or through other rows, are in the same one: each can be matched on its own. Values
    with the same hash only put more rows into one, which changes no result.
    """
    usable = list(candidates.usable.values())
    size = len(usable[0].lines)
    left = [candidates.pairs.line, *(np.flatnonzero(one.first >= 0) for one in usable)]
    right = [candidates.pairs.customer + size, *(one.first[one.first >= 0] for one in usable)]
    ends = np.concatenate(left), np.concatenate(right)
    root = np.arange(size + len(usable[0].customers))
    while (root[ends[0]] != root[ends[1]]).any():
        lower, higher = (
            extreme(root[ends[0]], root[ends[1]]) for extreme in (np.minimum, np.maximum)
        )
        np.minimum.at(root, higher, lower)
        while (root[root] != root).any():
            root = root[root]
    return root[:size] % count, root[size:] % count
