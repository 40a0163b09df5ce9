"""The match of all lines and customers in one part: what the match in buckets must come to."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
import pyarrow as pa

from transforms.erp.candidates import find_candidates
from transforms.erp.findings import missing_customer_findings
from transforms.erp.match import distinct_lines, line_values, match_part, reviewed_rows
from transforms.erp.match_keys import MATCH_KEYS, Hashes, HashTexts, hash_keys, key_values
from transforms.erp.tables import PLATFORM_CUSTOMERS
from transforms.findings import combine_findings, rule_findings
from transforms.frames import array, typed


class MatchResult(NamedTuple):
    """The tables of a match, and the number of lines that are equal to an earlier one."""

    customers: pd.DataFrame
    pairs: pd.DataFrame
    differences: pd.DataFrame
    findings: pd.DataFrame
    repeated: int


def hashes(texts: pa.Array) -> Hashes:
    return pd.util.hash_array(texts.to_numpy(zero_copy_only=False), categorize=False)


def match(
    erp: pd.DataFrame,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    country: str | None = None,
    hash_texts: HashTexts = hashes,
    reviewed: pd.DataFrame | None = None,
) -> MatchResult:
    """See `match_part`; `customers` may be missing ones, which take no part. `reviewed`: the columns of `REVIEWS`."""
    is_missing = customers["_missing_since"].notna()
    present = customers[~is_missing] if is_missing.any() else customers
    present = typed(present, PLATFORM_CUSTOMERS).sort_values("customer_id", ignore_index=True)
    lines, repeated = distinct_lines(erp)
    ids, keys = pd.Index(present["customer_id"]), [key for key in MATCH_KEYS if key in lines]
    known = key_values(present, {key: key for key in keys if key in present})
    if "document_number" in keys:
        owned = documents.set_axis(ids.get_indexer(documents["customer_id"]))
        known |= key_values(owned[owned.index >= 0], {"document_number": "number"})
    hashed = hash_keys(line_values(lines), hash_texts), hash_keys(known, hash_texts, with_stand_ins=True)
    decided = None if reviewed is None else reviewed_rows(lines, array(present["customer_id"]), reviewed)
    candidates = find_candidates(*hashed, (len(lines), len(present)), decided)
    part = match_part(lines, present, documents, candidates, country)
    missing = missing_customer_findings(part.unmatched, customers.loc[is_missing, "erp_code"])
    findings = combine_findings([rule_findings("erp_customers", "line_repeated", repeated), part.findings, missing])
    return MatchResult(part.customers, part.pairs, part.differences.drop(columns="line"), findings, len(repeated))
