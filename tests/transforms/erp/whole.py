"""The match of all lines and customers in one part: what the match in buckets must come to."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from transforms.erp.certain_pairs import HashTexts
from transforms.erp.findings import unmatched_code_findings
from transforms.erp.match import match_part
from transforms.findings import combine_findings


class MatchResult(NamedTuple):
    """The tables of a match, and the number of lines that are equal to an earlier one."""

    customers: pd.DataFrame
    differences: pd.DataFrame
    findings: pd.DataFrame
    repeated: int


def match(
    erp: pd.DataFrame,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    country: str | None = None,
    hash_texts: HashTexts | None = None,
) -> MatchResult:
    """See `match_part`; `customers` may be missing ones, which take no part."""
    is_missing = customers["_missing_since"].notna()
    part = match_part(erp, customers[~is_missing] if is_missing.any() else customers, documents, country, hash_texts)
    findings = [part.findings, *unmatched_code_findings(part.unmatched, customers.loc[is_missing, "erp_code"])]
    return MatchResult(part.customers, part.differences.drop(columns="line"), combine_findings(findings), part.repeated)
