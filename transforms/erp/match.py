"""The ERP's customers against the platform's: who is who, who is on one side only, and in what they differ.

In: rows of an ERP's file as text, the reconciled customers and the raw documents. Out: a row for each line and for each
customer that no line is, the pairs with a key in common and what speaks for each, the fields that differ, and findings.
A match is one to one, and weighs more than every other pair of its two rows (`candidates`, `decide`). Customers that
went missing take no part.

Lines that are equal in all fields count once, the first of them. Different lines with one code of the ERP contradict
each other: those that are not matched are ambiguous, whether a customer has that code or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.documents import sort_documents
from orderbridge.transforms.erp.candidates import Candidates, UsableKeys
from orderbridge.transforms.erp.compare import AS_GIVEN, Notation, compare
from orderbridge.transforms.erp.decide import decide
from orderbridge.transforms.erp.evidence import weigh
from orderbridge.transforms.erp.findings import decision_findings, line_findings, pair_findings
from orderbridge.transforms.erp.match_keys import MATCH_KEYS, document_number, key_values
from orderbridge.transforms.erp.tables import (
    ERP_FIELDS,
    PLATFORM_DOCUMENTS,
    customers_table,
    differences_table,
    line_keys,
    line_names,
    pairs_table,
)
from orderbridge.transforms.findings import combine_findings
from orderbridge.transforms.frames import (
    BIGINT,
    BOOLEAN,
    TEXT,
    Bools,
    Ints,
    array,
    is_repeated,
    is_strictly_increasing,
    typed,
)
from orderbridge.transforms.values.texts import tidied

REVIEWS: Final = {"line_key": TEXT, "customer_id": TEXT, "is_accepted": BOOLEAN}
"""What a person has decided about pairs, in the order of the decisions.

For `line_key` see `transforms.erp.tables.line_keys`."""


@dataclass(frozen=True, slots=True)
class PartialMatch:
    """The match of lines and customers that share no key with any others; together with the others' it is the whole.

    Attributes:
        customers: the columns of `ERP_CUSTOMERS`: the lines of the ERP in their order, then the customers that no line
            is, by id.
        pairs: the columns of `ERP_PAIRS`: those that are matched, and those that make a row ambiguous.
        differences: the columns of `ERP_DIFFERENCES`, of matched rows, in their order, and the number of the `line`.
        findings: about lines and customers.
        unmatched: the ERP codes of lines that have no match, by number of the line as text.
    """

    customers: pd.DataFrame
    pairs: pd.DataFrame
    differences: pd.DataFrame
    findings: pd.DataFrame
    unmatched: pd.Series[str]


def distinct_lines(erp: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series[str]]:
    """The lines by number, without those that are equal to an earlier one; and the numbers of these, as text.

    `erp` has `_line` and any of `ERP_FIELDS`; blank is like null.
    """
    columns = {"_line": BIGINT, **{field: TEXT for field in ERP_FIELDS if field in erp}}
    lines = _sorted(typed(erp, columns), "_line")
    suspects = lines.drop(columns="_line")
    for field in suspects:  # equal lines share each field, so few are left after the first
        suspects = suspects[tidied(suspects[field]).duplicated(keep=False)]
    if suspects.size:
        suspects = suspects[suspects.apply(tidied).duplicated()]
    repeated = lines["_line"][suspects.index if suspects.size else []].astype(pd.ArrowDtype(TEXT))
    return lines.drop(repeated.index).reset_index(drop=True) if len(repeated) else lines, repeated


def match_part(
    lines: pd.DataFrame,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    candidates: Candidates,
    notation: Notation = AS_GIVEN,
) -> PartialMatch:
    """Matches lines and customers that share no key with any others, and compares those that match.

    Args:
        lines: see `distinct_lines`.
        customers: the columns of `PLATFORM_CUSTOMERS`, by id, without those that went missing.
        documents: the columns of `PLATFORM_DOCUMENTS`, of these customers.
        candidates: the pairs, by row numbers.
        notation: how values are written.
    """
    pairs, usable = candidates.pairs, candidates.usable
    owned = owned_documents(documents, customers)
    numbers = lines["_line"].astype(pd.ArrowDtype(TEXT))
    values = line_values(lines)
    codes = values.get("erp_code", numbers[:0])
    compared = compare(lines, customers, owned, pairs, notation)
    evidence = weigh(lines, customers, owned, candidates, compared, notation)
    names = numbers, customers["customer_id"]
    decisions = decide(candidates, evidence, _contradicting(codes, usable), names)

    matched = pairs.where(decisions.is_match)
    customer = np.full(len(lines), -1)
    customer[matched.line] = matched.customer
    is_matched = customer >= 0
    is_decided = is_matched.copy()
    is_decided[decisions.ambiguous_lines["row"]] = True
    differences = compared.differences[decisions.is_match[compared.differences["row"]]]
    differences = differences.assign(row=pairs.line[differences["row"]])
    findings = [
        *line_findings(numbers, values, usable, is_matched, is_decided),
        *decision_findings(decisions, numbers, customers["customer_id"]),
        *pair_findings(numbers, pairs, evidence, decisions),
    ]
    unmatched = codes[~is_decided[codes.index]]
    return PartialMatch(
        customers_table(
            lines, line_names(lines), customers, customer, decisions, pairs, differences
        ),
        pairs_table(lines, customers, pairs, evidence, compared, decisions, values),
        differences_table(lines, customers, customer, differences),
        combine_findings(findings),
        unmatched.set_axis(numbers.iloc[unmatched.index]),
    )


def _contradicting(codes: pd.Series[str], usable: Mapping[str, UsableKeys]) -> Ints:
    """The lines, by row number, that share their code with different lines."""
    if not len(codes):
        return np.empty(0, np.int64)
    of_code = usable["erp_code"]
    several = codes[of_code.first[codes.index] >= 0]
    several = several[is_repeated(several) & of_code.lines[several.index]]
    return several.index.to_numpy(np.int64)


def line_values(lines: pd.DataFrame) -> dict[str, pd.Series[str]]:
    """See `key_values`."""
    return key_values(lines, {key: key for key in MATCH_KEYS if key in lines})


def reviewed_rows(
    lines: pd.DataFrame, customer_ids: pa.Array, reviews: pd.DataFrame
) -> tuple[Ints, Ints, Bools]:
    """The row numbers of lines and customers that reviews (columns of `REVIEWS`) are about; and if they are accepted.

    Reviews of rows that are not here are left out.
    """
    keys = line_keys(line_values(lines), np.arange(len(lines)))
    line = _index_in(array(keys), reviews["line_key"])
    customer = _index_in(customer_ids, reviews["customer_id"])
    is_here = (line >= 0) & (customer >= 0)
    return line[is_here], customer[is_here], reviews["is_accepted"].to_numpy(np.bool_)[is_here]


def _index_in(values: pa.Array, wanted: pd.Series[str]) -> Ints:
    """The row of each text in an array; -1 where it has none."""
    rows = pc.fill_null(pc.index_in(array(wanted), value_set=values), -1)
    numbers: Ints = rows.to_numpy().astype(np.int64)
    return numbers


def _sorted(rows: pd.DataFrame, by: str) -> pd.DataFrame:
    if is_strictly_increasing(rows[by]):
        return rows
    return rows.sort_values(by, kind="stable", ignore_index=True)


def owned_documents(documents: pd.DataFrame, customers: pd.DataFrame) -> pd.DataFrame:
    """The documents of these customers by `customer` (row number) and position; `key` is the number, normalized."""
    owner = pd.Index(customers["customer_id"]).get_indexer(documents["customer_id"])
    known = typed(documents, PLATFORM_DOCUMENTS).drop(columns="customer_id").assign(owner=owner)
    ordered = sort_documents(known).rename(columns={"owner": "customer"})
    return ordered.assign(key=document_number(ordered["number"]))
