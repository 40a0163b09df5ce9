"""The match of lines of an ERP with customers, by way of a build, in one bucket or in several."""

from __future__ import annotations

from typing import Any, NamedTuple
from unittest.mock import patch

import pandas as pd

from orderbridge.pipelines.reconcile.erp import match as matching
from orderbridge.transforms.erp import tables as of_match
from orderbridge.transforms.erp.compare import Notation
from orderbridge.transforms.erp.match_keys import CodeForm
from orderbridge.transforms.frames import BIGINT, TEXT, frame, from_arrow, typed
from tests.pipelines.reconcile.in_parts import build_of

TABLES = {
    name: getattr(of_match, name.upper())
    for name in ("erp_customers", "erp_pairs", "erp_differences")
}


class MatchResult(NamedTuple):
    """The tables of a match, and the number of lines that are equal to an earlier one."""

    customers: pd.DataFrame
    pairs: pd.DataFrame
    differences: pd.DataFrame
    findings: pd.DataFrame
    repeated: int


def erp(*rows: dict[str, Any], without: tuple[str, ...] = ()) -> pd.DataFrame:
    schema = {
        "_line": BIGINT,
        **{name: TEXT for name in of_match.ERP_FIELDS if name not in without},
    }
    return frame(schema, [{"_line": line, **row} for line, row in enumerate(rows, 2)])


def customers(*rows: dict[str, Any]) -> pd.DataFrame:
    return frame(
        of_match.PLATFORM_CUSTOMERS,
        [{"customer_id": str(n), **row} for n, row in enumerate(rows, 1)],
    )


def documents(*rows: dict[str, Any]) -> pd.DataFrame:
    return frame(
        of_match.PLATFORM_DOCUMENTS,
        [{"position": n, "is_default": False, **row} for n, row in enumerate(rows)],
    )


def erp_pairs(*keys: tuple[str, str]) -> pd.DataFrame:
    """Those of the last match, matched by e-mail: the key of the line and the customer's id."""
    return frame(
        of_match.ERP_PAIRS,
        [
            {"line_key": line, "customer_id": customer, "status": "matched", "matched_by": "email"}
            for line, customer in keys
        ],
    )


def match(
    lines: pd.DataFrame,
    known: pd.DataFrame,
    papers: pd.DataFrame | None = None,
    *,
    country: str | None = None,
    form: tuple[str | None, str | None] = (None, None),
    reviews: pd.DataFrame | None = None,
    last: pd.DataFrame | None = None,
    rows_per_bucket: int = 10**9,
) -> MatchResult:
    """See `match_lines`. Customers may be missing ones."""
    known = known.assign(is_missing=known["_missing_since"].notna())
    papers = documents() if papers is None else papers
    with (
        build_of(
            reconciled__customers=known,
            raw__customers__documents=papers,
            reconciled__erp_pairs=erp_pairs() if last is None else last,
        ) as tables,
        patch.object(matching, "ROWS_PER_BUCKET", rows_per_bucket),
    ):
        notation = Notation(country, CodeForm(*form))
        findings, repeated, _ = matching.match_lines(tables, lines, notation, reviews)
        made = {
            name: tables.build.sql(f"FROM reconciled.{name}").to_arrow_table() for name in TABLES
        }
    rows, pairs, differences = (
        typed(from_arrow(made[name]), schema) for name, schema in TABLES.items()
    )
    return MatchResult(rows, pairs, differences, findings, repeated)
