"""The ERP's customers against the platform's: who is who, who is on one side only, and in what they differ.

In: rows of an ERP's file as text, the reconciled customers and the raw documents. Out: a row for each line and for each
customer that no line is, the fields that differ, and findings. A match is one to one: by the ERP's code, else by the
login code, the e-mail address, the number of any document. A key that fits several rows of either side makes all of
them ambiguous, and so do two other keys that differ. A row that a key has decided takes no part in the later ones.
Customers that went missing take no part.

Lines that are equal in all fields count once, the first of them. Different lines with one code of the ERP contradict
each other: they are ambiguous, whether a customer has that code or not.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from transforms.documents import sort_documents
from transforms.erp.cascade import Decisions, Side, by_row, cascade
from transforms.erp.certain_pairs import HashTexts, certain_pairs
from transforms.erp.compare import compare
from transforms.erp.contradictions import contradicted
from transforms.erp.findings import (
    UnmatchedCodes,
    contradicting_codes,
    decision_findings,
    line_findings,
    unmatched_codes,
)
from transforms.erp.match_keys import MATCH_KEYS, document_number
from transforms.erp.tables import (
    ERP_FIELDS,
    PLATFORM_CUSTOMERS,
    PLATFORM_DOCUMENTS,
    customers_table,
    differences_table,
    line_names,
)
from transforms.findings import combine_findings
from transforms.frames import BIGINT, TEXT, THREADS, Bools, is_strictly_increasing, typed
from transforms.texts import tidied


@dataclass(frozen=True, slots=True)
class PartialMatch:
    """The match of lines and customers that share no key with any others; together with the others' it is the whole.

    Attributes:
        customers: the columns of `ERP_CUSTOMERS`: the lines of the ERP in their order, then the customers that no line
            is, by id.
        differences: the columns of `ERP_DIFFERENCES`, of matched rows, in their order, and the number of the `line`.
        findings: about lines and customers.
        repeated: number of lines that are equal to an earlier one, and so are in no row.
        unmatched: of these, findings about all parts together are made.
    """

    customers: pd.DataFrame
    differences: pd.DataFrame
    findings: pd.DataFrame
    repeated: int
    unmatched: UnmatchedCodes


def match_part(
    erp: pd.DataFrame,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    country: str | None = None,
    hash_texts: HashTexts | None = None,
) -> PartialMatch:
    """Matches lines and customers that share no key with any others, and compares those that match.

    Args:
        erp: `_line` and any of `ERP_FIELDS`; blank is like null.
        customers: the columns of `PLATFORM_CUSTOMERS`, without those that went missing.
        documents: the columns of `PLATFORM_DOCUMENTS`, of these customers and any others.
        country: of phone numbers without a country code (ISO 3166-1 alpha-2); None: they are compared as written.
        hash_texts: settles the pairs that no other row can change first, with the same result and less work: see
            `certain_pairs`.
    """
    columns = {"_line": BIGINT, **{field: TEXT for field in ERP_FIELDS if field in erp}}
    with ThreadPoolExecutor(THREADS) as pool:
        names_of_lines = pool.submit(line_names, lines := _sorted(typed(erp, columns), "_line"))
        owned = _owned(documents, present := _sorted(typed(customers, PLATFORM_CUSTOMERS), "customer_id"))
    customer = np.full(len(lines), -1)
    if hash_texts is not None:
        customer = certain_pairs(lines, present, owned, hash_texts)
    is_certain = customer >= 0
    is_open_there = np.ones(len(present), np.bool_)
    is_open_there[customer[is_certain]] = False
    others = lines[~is_certain]
    is_repeated = _is_repeated(others, len(lines))
    others = others[~is_repeated[others.index]]
    keys = {name: key.normalize(others[name]).dropna() for name, key in MATCH_KEYS.items() if name in others}
    left = Side(lines["_line"].astype(pd.ArrowDtype(TEXT)), ~is_certain & ~is_repeated, keys)
    papers = owned.set_index("customer")["number"]
    right = Side(
        present["customer_id"],
        is_open_there,
        {name: present[name] for name in MATCH_KEYS if name in present} | {"document_number": papers},
    )
    decisions = cascade(left, right)
    customer[decisions.pairs["line"]] = decisions.pairs["customer"]
    numbers = left.keys.get("document_number")
    differences = compare(lines, present, owned, customer, numbers, country, equal_keys=is_certain)
    vetoed = contradicted(decisions.pairs, differences, {name: lines[name] for name in left.keys}, right.keys)
    decisions = _veto(decisions, vetoed, left, right)
    customer[vetoed["line"]] = -1
    differences = differences[~differences["row"].isin(vetoed["line"])]

    findings = [
        *line_findings(left, left.names[is_repeated], decisions),
        *decision_findings(decisions, left, right),
        contradicting_codes(decisions, left, right),
    ]
    distinct = lines[~is_repeated] if is_repeated.any() else lines
    table = customers_table(distinct, names_of_lines.result(), present, customer, decisions, differences)
    return PartialMatch(
        table,
        differences_table(lines, present, customer, differences),
        combine_findings(findings),
        int(is_repeated.sum()),
        unmatched_codes(decisions, left, right),
    )


def _sorted(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    return rows if is_strictly_increasing(rows[by]) else rows.sort_values(by, kind="stable", ignore_index=True)


def _owned(documents: pd.DataFrame, customers: pd.DataFrame) -> pd.DataFrame:
    """The documents of these customers by `customer` (row number) and position; `key` is the number, normalized."""
    owner = pd.Index(customers["customer_id"]).get_indexer(documents["customer_id"])
    known = typed(documents, PLATFORM_DOCUMENTS).drop(columns="customer_id").assign(owner=owner)
    if (owner < 0).any():
        known = known[owner >= 0]
    ordered = sort_documents(known).rename(columns={"owner": "customer"})
    return ordered.assign(key=document_number(ordered["number"]))


def _is_repeated(lines: pd.DataFrame, size: int) -> Bools:
    """Whether each of all `size` row numbers is that of a line which is equal to an earlier one."""
    suspects = lines.drop(columns="_line")
    for field in suspects:  # equal lines share each field, so few are left after the first
        suspects = suspects[tidied(suspects[field]).duplicated(keep=False)]
    is_repeated = np.zeros(size, np.bool_)
    if suspects.size:
        is_repeated[suspects.index[suspects.apply(tidied).duplicated()]] = True
    return is_repeated


def _veto(decisions: Decisions, vetoed: pd.DataFrame, lines: Side, customers: Side) -> Decisions:
    """The decisions with the pairs of these lines as ambiguous rows on both sides."""
    if vetoed.empty:
        return decisions
    pairs = decisions.pairs.merge(vetoed, on="line", validate="1:1")
    columns = ["row", "matched_by", "members", "reason"]
    ours = pairs.assign(row=pairs["line"], members=customers.names.iloc[pairs["customer"]].array)[columns]
    theirs = pairs.assign(row=pairs["customer"], members=lines.names.iloc[pairs["line"]].array)[columns]
    return replace(
        decisions,
        pairs=decisions.pairs[~decisions.pairs["line"].isin(vetoed["line"])],
        ambiguous_lines=by_row(decisions.ambiguous_lines, ours),
        ambiguous_customers=by_row(decisions.ambiguous_customers, theirs),
    )
