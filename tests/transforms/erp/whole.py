"""The match of all lines and customers in one part: what the match in buckets must come to."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
import pyarrow as pa

from transforms.erp.findings import missing_customer_findings
from transforms.erp.match import match_part
from transforms.erp.match_keys import Hashes, HashTexts
from transforms.findings import combine_findings


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
    """See `match_part`; `customers` may be missing ones, which take no part."""
    is_missing = customers["_missing_since"].notna()
    present = customers[~is_missing] if is_missing.any() else customers
    part = match_part(erp, present, documents, hash_texts, country, reviewed)
    missing = missing_customer_findings(part.unmatched, customers.loc[is_missing, "erp_code"])
    findings = combine_findings([part.findings, missing])
    return MatchResult(part.customers, part.pairs, part.differences.drop(columns="line"), findings, part.repeated)
