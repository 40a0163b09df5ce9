"""Which pairs are one customer, and which rows are ambiguous.

In: pairs that have a key in common, with their weights. Out: a pair is one customer if it weighs enough, and more than
every other pair of its line and of its customer. Rows that are decided take no part any more, and what is left is
decided again: of two that share an address, one may have been found by its document. Other rows that have a key in
common with a row that is not decided are ambiguous.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.erp.candidates import Evidence
from orderbridge.transforms.erp.compare import Pairs
from orderbridge.transforms.erp.match_keys import MATCH_KEYS
from orderbridge.transforms.frames import BIGINT, TEXT, Bools, Ints, array, column, frame, typed

CERTAIN_FROM: Final = 5
"""The least weight of a match."""
MARGIN: Final = 3
"""By so much a match weighs more than the next pair of its line or customer."""
MEMBERS_MAX: Final = 20
"""So many members of a group are listed, then the number of the others."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided.

    Attributes:
        is_match: whether each pair is one customer.
        is_open: whether each pair is not, and yet makes a row of it ambiguous.
        matched_by: of each pair the first key that its rows have in common, or `reviewed`.
        ambiguous_lines, ambiguous_customers: `row`, `matched_by`, `members` (names of the rows of the other side that
            it may be; null for none), `reason`.
    """

    is_match: Bools
    is_open: Bools
    matched_by: pd.Series[str]
    ambiguous_lines: pd.DataFrame
    ambiguous_customers: pd.DataFrame


def decide(
    pairs: Pairs,
    evidence: Evidence,
    is_accepted: Bools,
    contradicting: Ints,
    names: tuple[pd.Series[str], pd.Series[str]],
) -> Decisions:
    """The decisions about pairs, without those that a person has rejected.

    Args:
        pairs: all of them.
        evidence: about each: see `weigh`.
        is_accepted: whether a person has accepted each pair.
        contradicting: the rows of lines whose ERP code other lines have too: ambiguous where they are not matched.
        names: of the rows of each side, for lists of members.
    """
    equal = np.logical_or.reduce([evidence.equal[key] for key in MATCH_KEYS])
    near = np.logical_or.reduce([evidence.near[key] for key in MATCH_KEYS if key != "email"])
    is_match = is_accepted | _matches(
        pairs, evidence.weight, equal | near, ~_shares_a_row(pairs, is_accepted)
    )
    is_lookalike = evidence.near["email"] & ~equal
    is_decided = [np.isin(side, side[is_match]) for side in pairs]
    is_open = (equal | is_lookalike | (near & (evidence.weight > 0))) & ~is_decided[0]
    is_open &= ~is_decided[1] | evidence.equal["erp_code"]

    firsts = [
        is_accepted,
        *(marks[key] for marks in (evidence.equal, evidence.near) for key in MATCH_KEYS),
    ]
    names_of = pa.array(["reviewed", *MATCH_KEYS, *MATCH_KEYS], TEXT)
    matched_by = column(names_of.take(pa.array(np.select(firsts, list(range(len(firsts)))))))
    rows = np.flatnonzero(is_open)
    left = pairs.where(rows)
    open_pairs = pd.DataFrame(
        {"line": left.line, "customer": left.customer, "matched_by": matched_by.iloc[rows].array}
    )
    differing = texts_of(
        {**{key: evidence.different[key] for key in MATCH_KEYS}, "names": evidence.is_unlike}, rows
    )
    lines = open_pairs.groupby("customer")["line"].transform("size") + is_decided[1][rows]
    customers = open_pairs.groupby("line")["customer"].transform("size")
    reasons = np.select(
        [
            is_lookalike[rows],
            (evidence.weight[rows] < CERTAIN_FROM) & (differing != ""),
            (lines > 1) & (customers > 1),
            lines > 1,
            customers > 1,
        ],
        ["the addresses only look alike", differing + " differ", *_SEVERAL],
        "the keys are only nearly equal",
    )
    open_pairs = open_pairs.assign(
        weight=evidence.weight[rows], reason=column(pa.array(reasons.tolist(), TEXT))
    )
    of_lines = _ambiguous(open_pairs, "line", "customer", names[1])
    codes = contradicting[
        ~np.isin(contradicting, pairs.line[is_match]) & ~np.isin(contradicting, of_lines["row"])
    ]
    more = pd.DataFrame({"row": codes}).assign(
        matched_by="erp_code", members=None, reason=_SEVERAL[1]
    )
    of_lines = typed(pd.concat([of_lines, more]), _AMBIGUOUS).sort_values("row", ignore_index=True)
    of_customers = _ambiguous(open_pairs[~is_decided[1][rows]], "customer", "line", names[0])
    return Decisions(is_match, is_open, matched_by, of_lines, of_customers)


_SEVERAL: Final = ("several lines and customers", "several lines", "several customers")
_AMBIGUOUS: Final = {"row": BIGINT, **dict.fromkeys(("matched_by", "members", "reason"), TEXT)}


def _shares_a_row(pairs: Pairs, where: Bools) -> Bools:
    """Whether the line or the customer of each pair is in one of some pairs."""
    return np.isin(pairs.line, pairs.line[where]) | np.isin(pairs.customer, pairs.customer[where])


def _matches(pairs: Pairs, weight: Ints, is_possible: Bools, is_open: Bools) -> Bools:
    """Whether each pair is one customer; `is_possible`: whether its keys may prove it, `is_open`: it is not decided."""
    is_possible = is_possible & (weight >= CERTAIN_FROM)
    is_single = np.logical_and(
        *((np.bincount(side) == 1)[side] for side in pairs)
    )  # most pairs: no other row is near
    is_match: Bools = is_possible & is_open & is_single
    rows = np.flatnonzero(is_open & ~is_single)
    while len(rows):
        left = pairs.where(rows)
        is_best = is_possible[rows]
        for side in left:
            is_best &= _leads(side, weight[rows])
        if not is_best.any():
            break
        is_match[rows[is_best]] = True
        rows = rows[~_shares_a_row(left, is_best)]
    return is_match


def _leads(side: Ints, weight: Ints) -> Bools:
    """Whether each pair weighs more than the others of its row of a side, by `MARGIN`."""
    order = np.lexsort((-weight, side))
    rows, weights = side[order], weight[order]
    is_first = np.diff(rows, prepend=-1) > 0
    is_alone = np.append(is_first[1:], True)
    lead = weights - np.append(weights[1:], 0)
    leads = np.zeros(len(side), np.bool_)
    leads[order] = is_first & (is_alone | (lead >= MARGIN))
    return leads


def _ambiguous(pairs: pd.DataFrame, side: str, other: str, names: pd.Series[str]) -> pd.DataFrame:
    """A row for each row of a side, by the pair that weighs most, with the names of all rows of the other side."""
    if pairs.empty:
        return frame(_AMBIGUOUS)
    pairs = pairs.sort_values([side, other])
    best = pairs.sort_values(
        [side, "weight"], ascending=[True, False], kind="stable"
    ).drop_duplicates(side)
    listed = pairs[pairs.groupby(side).cumcount() < MEMBERS_MAX]
    texts = joined_texts(names.iloc[listed[other]], listed[side])
    more = pairs[side].value_counts().reindex(texts.index) - MEMBERS_MAX
    texts = texts.mask(more > 0, texts + ", " + more.astype(texts.dtype) + " more")
    return typed(best.rename(columns={side: "row"}).assign(members=texts.array), _AMBIGUOUS)


def joined_texts(texts: pd.Series[str], groups: pd.Series[int]) -> pd.Series[str]:
    """The texts of each group (ascending) in one, with commas between; indexed by group. Null where a text is null.

    An Arrow kernel: `groupby(...).agg(", ".join)` calls Python for each group, and there may be a million.
    """
    numbers, begin = np.unique(groups.to_numpy(), return_index=True)
    lists = pa.ListArray.from_arrays(
        pa.array(np.append(begin, len(groups)), pa.int32()), array(texts)
    )
    return column(pc.binary_join(lists, ", "), pd.Index(numbers))


def texts_of(marks: Mapping[str, Bools], rows: Ints) -> pd.Series[str]:
    """For each of some rows the names whose mark is set there, with commas between."""
    codes = np.zeros(len(rows), np.int64)
    for n, mark in enumerate(marks.values()):
        codes |= mark[rows].astype(np.int64) << n
    values = range(int(codes.max(initial=0)) + 1)
    texts = [", ".join(name for n, name in enumerate(marks) if value >> n & 1) for value in values]
    return column(pa.array(texts, TEXT).take(pa.array(codes)))
