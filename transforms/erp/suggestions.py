"""Pairs that no key finds, and that may be one customer all the same: by phone numbers, or by names.

In: the lines and customers that the match has left over. Out: the pairs whose phone numbers end alike, or whose names
have the same words, and that weigh enough to ask a person about them. They are never matched: of ten, about one is of
two customers.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa

from orderbridge.transforms.documents import default_row_per_owner
from orderbridge.transforms.erp.candidates import Candidates, UsableKeys, common_keys
from orderbridge.transforms.erp.compare import AS_GIVEN, Notation, Pairs, compare
from orderbridge.transforms.erp.decide import Decisions, texts_of
from orderbridge.transforms.erp.evidence import EQUAL, NEAR, Evidence, weigh
from orderbridge.transforms.erp.match import line_values, owned_documents, reviewed_rows
from orderbridge.transforms.erp.match_keys import MATCH_KEYS
from orderbridge.transforms.erp.names import split_names
from orderbridge.transforms.erp.tables import ERP_PAIRS, pairs_table
from orderbridge.transforms.frames import (
    TEXT,
    Bools,
    array,
    column,
    frame,
    joined_text,
    positions,
)

SUGGESTED_FROM: Final = 3
"""The least weight of a pair that becomes a question."""
_DIGITS: Final = 8
"""Phone numbers are compared by so many of their last digits: those in front are written in many ways."""
_SAME_MAX: Final = 3
"""A number or a name that more rows of one side have suggests none of them."""
_WORDS_MIN: Final = 2
"""A name of one word is that of too many."""


def suggested_pairs(
    lines: pd.DataFrame,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    notation: Notation = AS_GIVEN,
    reviews: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Pairs in the columns of `ERP_PAIRS`, whose status is `suggested`; `matched_by` is what is the same.

    Args:
        lines: of the ERP's file that are not matched, and have no key in common with a customer.
        customers: those that no line is, likewise; the columns of `PLATFORM_CUSTOMERS`, by id.
        documents: the columns of `PLATFORM_DOCUMENTS`, of these customers.
        notation: how values are written.
        reviews: the columns of `REVIEWS`; pairs that a person has decided about are left out.
    """
    owned = owned_documents(documents, customers)
    ours, theirs = _loose_keys(lines, customers, owned)
    pairs = common_keys(ours, theirs, (len(lines), len(customers))).pairs()
    pairs = pairs.where(~_is_reviewed(pairs, lines, customers, reviews))
    if not len(pairs.line):
        return frame(ERP_PAIRS)
    none = np.zeros(len(pairs.line), np.bool_)
    candidates = Candidates(pairs, none, none, _all_usable(len(lines), len(customers)))
    compared = compare(lines, customers, owned, pairs, notation)
    evidence = weigh(lines, customers, owned, candidates, compared, notation)
    table = pd.DataFrame({**pairs._asdict(), "weight": evidence.weight})
    is_best = np.logical_and.reduce(
        [
            table["weight"] == table.groupby(side)["weight"].transform("max")
            for side in pairs._fields
        ]
    )
    is_suggested = is_best & (evidence.weight >= SUGGESTED_FROM) & ~evidence.is_contradicted
    nobody = pd.DataFrame()
    decisions = Decisions(none, is_suggested, _reasons(evidence), nobody, nobody)
    values = line_values(lines)
    made = pairs_table(lines, customers, pairs, evidence, compared, decisions, values)
    return made.assign(status=column(pa.array(["suggested"] * len(made), TEXT)))


def _loose_keys(
    lines: pd.DataFrame, customers: pd.DataFrame, documents: pd.DataFrame
) -> tuple[dict[str, pd.Series[int]], dict[str, pd.Series[int]]]:
    """What the rows of both sides may be found by, as numbers: by kind and row number."""
    owner = documents["customer"].to_numpy(np.int64)
    is_default = documents["is_default"].fillna(False).to_numpy(np.bool_)
    chosen = default_row_per_owner(owner, is_default, len(customers))
    firm = column(array(documents["fiscal_name"]).take(positions(chosen)))
    found = {
        "phone": _numbers_of_phones(_ends_of_phones(lines), _ends_of_phones(customers)),
        "person": _numbers_of_names(
            _texts(lines, "first_name", "last_name"), _texts(customers, "first_name", "last_name")
        ),
        "firm": _numbers_of_names(_texts(lines, "fiscal_name"), firm.fillna("")),
    }
    of_lines = {kind: _rare(ours) for kind, (ours, _) in found.items()}
    of_customers = {kind: _rare(theirs) for kind, (_, theirs) in found.items()}
    return of_lines, of_customers


def _rare(values: pd.Series[int]) -> pd.Series[int]:
    """Those that few rows have: what many have in common says nothing, and would make too many pairs."""
    return values[values.map(values.value_counts()) <= _SAME_MAX]


def _texts(rows: pd.DataFrame, *names: str) -> pd.Series[str]:
    texts = [rows[name].fillna("") if name in rows else "" for name in names]
    return joined_text([column(pa.array([""] * len(rows), TEXT)), *texts], " ")


def _ends_of_phones(rows: pd.DataFrame) -> pd.Series[str]:
    digits = _texts(rows, "phone").str.replace("[^0-9]+", "", regex=True).str[-_DIGITS:]
    return digits[digits.str.len() == _DIGITS]


def _numbers_of_phones(
    ours: pd.Series[str], theirs: pd.Series[str]
) -> tuple[pd.Series[int], pd.Series[int]]:
    """A number for each end of a phone number, by row number."""
    numbers, _ = pd.factorize(pd.concat([ours, theirs]))
    count = len(ours)
    return pd.Series(numbers[:count], ours.index), pd.Series(numbers[count:], theirs.index)


def _numbers_of_names(
    ours: pd.Series[str], theirs: pd.Series[str]
) -> tuple[pd.Series[int], pd.Series[int]]:
    """A number for each set of words, by row number; none for names with fewer words than `_WORDS_MIN`."""
    (words,) = split_names(pd.concat([ours, theirs], ignore_index=True))
    numbers = words.numbers_of_sets()
    numbers = numbers[words.sizes >= _WORDS_MIN]
    is_ours = numbers.index < len(ours)
    return numbers[is_ours], numbers[~is_ours].set_axis(numbers.index[~is_ours] - len(ours))


def _reasons(evidence: Evidence) -> pd.Series[str]:
    """What is the same in each pair: `name`, `phone`, `fiscal_address`, with commas between; else `other`."""
    same = {
        "name": evidence.any_has(("person", "firm"), EQUAL, NEAR) & ~evidence.is_unlike,
        "phone": evidence.has("phone", EQUAL),
        "fiscal_address": evidence.has("fiscal_address", EQUAL, NEAR),
    }
    reasons = texts_of(same, np.arange(len(evidence.weight)))
    return reasons.where(reasons != "", "other")


def _is_reviewed(
    pairs: Pairs, lines: pd.DataFrame, customers: pd.DataFrame, reviews: pd.DataFrame | None
) -> Bools:
    if reviews is None or reviews.empty:
        return np.zeros(len(pairs.line), np.bool_)
    line, customer, _ = reviewed_rows(lines, array(customers["customer_id"]), reviews)
    return np.isin(pairs.line * len(customers) + pairs.customer, line * len(customers) + customer)


def _all_usable(lines: int, customers: int) -> dict[str, UsableKeys]:
    """No pair has a key in common, so it makes no difference what other rows have."""
    usable = UsableKeys(np.ones(lines, np.bool_), np.ones(customers, np.bool_), np.full(lines, -1))
    return dict.fromkeys(MATCH_KEYS, usable)
