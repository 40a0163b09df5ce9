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

from orderbridge.transforms.erp.candidates import Candidates
from orderbridge.transforms.erp.evidence import DIFFERENT, EQUAL, NAMES, NEAR, SHARED, Evidence
from orderbridge.transforms.erp.match_keys import MATCH_KEYS
from orderbridge.transforms.frames import BIGINT, TEXT, Bools, Ints, array, column, frame, typed

CERTAIN_FROM: Final = 6
"""The least weight of a match."""
MARGIN: Final = 3
"""By so much a match weighs more than the next pair of its line or customer."""
MEMBERS_MAX: Final = 20
"""So many members of a group are listed, then the number of the others."""
_LOOSE_KEYS: Final = tuple(key for key in MATCH_KEYS if key != "email")
"""The keys that may be nearly equal; addresses that only look alike are never one."""
_SEVERAL: Final = {
    "both": "several lines and customers",
    "lines": "several lines",
    "customers": "several customers",
}
_AMBIGUOUS: Final = {"row": BIGINT, **dict.fromkeys(("matched_by", "members", "reason"), TEXT)}


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
    candidates: Candidates,
    evidence: Evidence,
    contradicting: Ints,
    names: tuple[pd.Series[str], pd.Series[str]],
) -> Decisions:
    """The decisions about pairs, without those that a person has rejected.

    Args:
        candidates: the pairs.
        evidence: about each: see `weigh`.
        contradicting: the rows of lines whose ERP code other lines have too: ambiguous where they are not matched.
        names: of the rows of each side, for lists of members.
    """
    pairs, is_accepted = candidates.pairs, candidates.is_accepted
    table = pd.DataFrame(
        {"line": pairs.line, "customer": pairs.customer, "weight": evidence.weight}
    )
    has_key = evidence.any_has(MATCH_KEYS, EQUAL, SHARED)
    has_near_key = evidence.any_has(_LOOSE_KEYS, NEAR)
    may_match = (has_key | has_near_key) & ~evidence.is_contradicted
    was_matched = candidates.was_matched & may_match & (evidence.weight > 0)
    is_match = is_accepted | _matches(table, may_match, is_accepted, was_matched)

    is_lookalike = evidence.has("email", NEAR) & ~has_key
    is_suspect = has_key | is_lookalike | (has_near_key & (evidence.weight > 0))
    is_line_decided, is_customer_decided = (np.isin(side, side[is_match]) for side in pairs)
    has_code = evidence.has("erp_code", EQUAL, SHARED)
    is_open = is_suspect & ~is_line_decided & (~is_customer_decided | has_code)

    matched_by = _deciding_keys(evidence, is_accepted)
    left = table.assign(
        matched_by=matched_by,
        differing=_differing(evidence),
        is_lookalike=is_lookalike,
        is_contradicted=evidence.is_contradicted,
        is_decided=is_customer_decided,
    )[is_open].pipe(_with_reasons)
    of_lines = _ambiguous(left, "line", "customer", names[1])
    of_lines = _with_lines(of_lines, contradicting, pairs.line[is_match])
    of_customers = _ambiguous(left[~left["is_decided"]], "customer", "line", names[0])
    return Decisions(is_match, is_open, matched_by, of_lines, of_customers)


def _with_lines(ambiguous: pd.DataFrame, contradicting: Ints, matched: Ints) -> pd.DataFrame:
    """The ambiguous lines, and those that contradict each other and are neither ambiguous nor matched."""
    is_settled = np.isin(contradicting, matched) | np.isin(contradicting, ambiguous["row"])
    more = pd.DataFrame({"row": contradicting[~is_settled]}).assign(
        matched_by="erp_code", members=None, reason=_SEVERAL["lines"]
    )
    return typed(pd.concat([ambiguous, more]), _AMBIGUOUS).sort_values("row", ignore_index=True)


def _matches(
    pairs: pd.DataFrame, may_match: Bools, is_accepted: Bools, was_matched: Bools
) -> Bools:
    """Whether each pair is one customer. Those of rows that a person has decided about take no part.

    What the last match had stays where nothing speaks against it: a match does not vanish by itself at night.
    """
    is_match = np.zeros(len(pairs), np.bool_)
    left = pairs.assign(
        is_possible=may_match & (pairs["weight"] >= CERTAIN_FROM), was_matched=was_matched
    )
    left = _without_rows_of(left, left[is_accepted])
    while len(left):
        is_best = left["is_possible"] & _leads(left, "line") & _leads(left, "customer")
        if not is_best.any():
            break
        is_match[left.index[is_best]] = True
        left = _without_rows_of(left, left[is_best])
    is_match[left.index[left["was_matched"]]] = True
    return is_match


def _without_rows_of(pairs: pd.DataFrame, decided: pd.DataFrame) -> pd.DataFrame:
    """The pairs that share neither line nor customer with those that are decided."""
    is_decided = pairs["line"].isin(decided["line"]) | pairs["customer"].isin(decided["customer"])
    return pairs[~is_decided]


def _leads(pairs: pd.DataFrame, side: str) -> pd.Series[bool]:
    """Whether each pair weighs more than all others of its line, or customer, by `MARGIN`."""
    best = pairs.groupby(side)["weight"].transform("max")
    is_near = pairs["weight"] > best - MARGIN
    return is_near & (is_near.groupby(pairs[side]).transform("sum") == 1)


def _deciding_keys(evidence: Evidence, is_accepted: Bools) -> pd.Series[str]:
    """Of each pair the first key that is equal, else the first one that is nearly so; or `reviewed`."""
    conditions = [
        is_accepted,
        *(evidence.has(key, EQUAL, SHARED) for key in MATCH_KEYS),
        *(evidence.has(key, NEAR) for key in MATCH_KEYS),
    ]
    names = pa.array(["reviewed", *MATCH_KEYS, *MATCH_KEYS], TEXT)
    return column(names.take(pa.array(np.select(conditions, list(range(len(conditions)))))))


def _differing(evidence: Evidence) -> pd.Series[str]:
    """The keys that differ, and whether names do."""
    marks = {key: evidence.has(key, DIFFERENT) for key in MATCH_KEYS}
    names = evidence.is_unlike | (evidence.is_contradicted & evidence.any_has(NAMES, DIFFERENT))
    return texts_of({**marks, "names": names}, np.arange(len(names)))


def _with_reasons(pairs: pd.DataFrame) -> pd.DataFrame:
    """Open pairs with the `reason` why each is not a match."""
    lines = pairs.groupby("customer")["line"].transform("size") + pairs["is_decided"]
    customers = pairs.groupby("line")["customer"].transform("size")
    is_differing = (pairs["differing"] != "") & (
        (pairs["weight"] < CERTAIN_FROM) | pairs["is_contradicted"]
    )
    reasons = np.select(
        [
            pairs["is_lookalike"],
            is_differing,
            (lines > 1) & (customers > 1),
            lines > 1,
            customers > 1,
        ],
        ["the addresses only look alike", pairs["differing"] + " differ", *_SEVERAL.values()],
        "the keys are only nearly equal",
    )
    return pairs.assign(reason=pd.Series(reasons.tolist(), pairs.index, pd.ArrowDtype(TEXT)))


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
