"""The ERP's customers against the platform's: who is who, who is on one side only, and in what they differ.

In: rows of an ERP's file as text, the reconciled customers and the raw documents. Out: a row for each line and for each
customer that no line is, the pairs with a key in common and what speaks for each, the fields that differ, and findings.
A match is one to one, and weighs more than every other pair of its two rows (`candidates`, `decide`). Customers that
went missing take no part.

Lines that are equal in all fields count once, the first of them. Different lines with one code of the ERP contradict
each other: those that are not matched are ambiguous, whether a customer has that code or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from transforms.documents import sort_documents
from transforms.erp.candidates import common_keys, weigh
from transforms.erp.compare import Pairs, compare
from transforms.erp.decide import decide
from transforms.erp.findings import decision_findings, line_findings, pair_findings
from transforms.erp.match_keys import MATCH_KEYS, HashTexts, document_number, hash_keys, key_values
from transforms.erp.tables import (
    ERP_FIELDS,
    PLATFORM_CUSTOMERS,
    PLATFORM_DOCUMENTS,
    customers_table,
    differences_table,
    line_keys,
    line_names,
    pairs_table,
)
from transforms.findings import combine_findings
from transforms.frames import BIGINT, BOOLEAN, TEXT, Bools, frame, is_repeated, is_strictly_increasing, typed
from transforms.texts import tidied

REVIEWS: Final = {"line_key": TEXT, "customer_id": TEXT, "is_accepted": BOOLEAN}
"""What a person has decided about pairs, in the order of the decisions.

For `line_key` see `transforms.erp.tables.line_keys`."""
REVIEWED: Final = {"_line": BIGINT, "customer_id": TEXT, "is_accepted": BOOLEAN}
"""The same about the lines of a file."""


@dataclass(frozen=True, slots=True)
class PartialMatch:
    """The match of lines and customers that share no key with any others; together with the others' it is the whole.

    Attributes:
        customers: the columns of `ERP_CUSTOMERS`: the lines of the ERP in their order, then the customers that no line
            is, by id.
        pairs: the columns of `ERP_PAIRS`: those that are matched, and those that make a row ambiguous.
        differences: the columns of `ERP_DIFFERENCES`, of matched rows, in their order, and the number of the `line`.
        findings: about lines and customers.
        repeated: number of lines that are equal to an earlier one, and so are in no row.
        unmatched: the ERP codes of lines that have no match, by number of the line as text.
    """

    customers: pd.DataFrame
    pairs: pd.DataFrame
    differences: pd.DataFrame
    findings: pd.DataFrame
    repeated: int
    unmatched: pd.Series[str]


def match_part(
    erp: pd.DataFrame,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    hash_texts: HashTexts,
    country: str | None = None,
    reviewed: pd.DataFrame | None = None,
) -> PartialMatch:
    """Matches lines and customers that share no key with any others, and compares those that match.

    Args:
        erp: `_line` and any of `ERP_FIELDS`; blank is like null.
        customers: the columns of `PLATFORM_CUSTOMERS`, without those that went missing.
        documents: the columns of `PLATFORM_DOCUMENTS`, of these customers and any others.
        hash_texts: hashes keys.
        country: of phone numbers without a country code (ISO 3166-1 alpha-2); None: they are compared as written.
        reviewed: the columns of `REVIEWED`, of these rows and any others.
    """
    columns = {"_line": BIGINT, **{field: TEXT for field in ERP_FIELDS if field in erp}}
    lines = _sorted(typed(erp, columns), "_line")
    present = _sorted(typed(customers, PLATFORM_CUSTOMERS), "customer_id")
    owned = _owned(documents, present)
    repeated = repeated_lines(lines)
    numbers = lines["_line"].astype(pd.ArrowDtype(TEXT))
    keys = {name: name for name in MATCH_KEYS if name in lines}
    values = {key: of_key[~repeated[of_key.index]] for key, of_key in key_values(lines, keys).items()}
    known = key_values(present, {key: key for key in keys if key in present})
    if "document_number" in keys:
        known["document_number"] = owned.set_index("customer")["key"].dropna()
    hashes = hash_keys(values, hash_texts)
    known_hashes = hash_keys(known, hash_texts, with_stand_ins=True)
    pairs, usable = common_keys(hashes, known_hashes, (len(lines), len(present)))
    pairs, is_accepted = _reviewed(pairs, lines, present, reviewed)
    compared = compare(lines, present, owned, pairs, country)
    evidence = weigh(lines, present, owned, pairs, compared, usable)
    codes = values.get("erp_code", numbers[:0])
    several = codes[:0]
    if len(codes):
        several = codes.reindex(usable["erp_code"].shared)
        several = several[is_repeated(several) & usable["erp_code"].lines[several.index]]
    contradicting = several.index.to_numpy(np.int64)
    decisions = decide(pairs, evidence, is_accepted, contradicting, (numbers, present["customer_id"]))

    matched = pairs.where(decisions.is_match)
    customer = np.full(len(lines), -1)
    customer[matched.line] = matched.customer
    differences = compared.differences[decisions.is_match[compared.differences["row"]]]
    differences = differences.assign(row=pairs.line[differences["row"]])
    table = customers_table(lines[~repeated], line_names(lines), present, customer, decisions, pairs, differences)
    is_decided = repeated | (customer >= 0)
    is_decided[decisions.ambiguous_lines["row"]] = True
    codes = codes[~is_decided[codes.index]]
    return PartialMatch(
        table,
        pairs_table(lines, present, pairs, evidence, compared, decisions, values),
        differences_table(lines, present, customer, differences),
        combine_findings(
            [
                *line_findings(numbers, values, usable, repeated, customer >= 0, is_decided),
                *decision_findings(decisions, numbers, present["customer_id"]),
                *pair_findings(numbers, pairs, evidence, decisions),
            ]
        ),
        int(repeated.sum()),
        codes.set_axis(numbers.iloc[codes.index]),
    )


def reviewed_lines(lines: pd.DataFrame, reviews: pd.DataFrame | None) -> pd.DataFrame:
    """The columns of `REVIEWED`: the reviews (columns of `REVIEWS`) of lines that a file has."""
    if reviews is None or reviews.empty:
        return frame(REVIEWED)
    lines = lines.reset_index(drop=True)
    repeated = repeated_lines(lines)
    values = key_values(lines, {key: key for key in MATCH_KEYS if key in lines})
    values = {key: of_key[~repeated[of_key.index]] for key, of_key in values.items()}
    keys = line_keys(values, np.flatnonzero(~repeated))
    numbers = pd.DataFrame({"line_key": keys, "_line": lines["_line"][~repeated]}).drop_duplicates("line_key")
    return typed(reviews.merge(numbers, on="line_key", validate="m:1"), REVIEWED)


def _reviewed(
    pairs: Pairs, lines: pd.DataFrame, customers: pd.DataFrame, reviewed: pd.DataFrame | None
) -> tuple[Pairs, Bools]:
    """The pairs without rejected ones and with accepted ones, and which are accepted.

    Of several accepted pairs of a line or of a customer only the last one counts.
    """
    if reviewed is None or reviewed.empty:
        return pairs, np.zeros(len(pairs.line), np.bool_)
    rows = [
        pd.Index(side).get_indexer(reviewed[name])
        for side, name in ((lines["_line"], "_line"), (customers["customer_id"], "customer_id"))
    ]
    size, is_here = len(customers), (rows[0] >= 0) & (rows[1] >= 0)
    numbers = (rows[0] * size + rows[1])[is_here]
    is_accepted = reviewed["is_accepted"].to_numpy(np.bool_)[is_here]
    all_pairs = np.setdiff1d(pairs.line * size + pairs.customer, numbers[~is_accepted])
    accepted = numbers[is_accepted]
    is_replaced = [pd.Index(side).duplicated("last") for side in np.divmod(accepted, max(size, 1))]
    accepted = accepted[~np.logical_or(*is_replaced)]
    all_pairs = np.union1d(all_pairs, accepted)
    return Pairs(*np.divmod(all_pairs, max(size, 1))), np.isin(all_pairs, accepted)


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


def repeated_lines(lines: pd.DataFrame) -> Bools:
    """Whether each line is equal to an earlier one."""
    suspects = lines.drop(columns="_line")
    for field in suspects:  # equal lines share each field, so few are left after the first
        suspects = suspects[tidied(suspects[field]).duplicated(keep=False)]
    repeated = np.zeros(len(lines), np.bool_)
    if suspects.size:
        repeated[suspects.index[suspects.apply(tidied).duplicated()]] = True
    return repeated
