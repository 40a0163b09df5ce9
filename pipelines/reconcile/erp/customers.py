"""The ERP's customers matched with the platform's when the tables are reconciled.

In: the contents of the ERP's file. Out: in a build `reconciled.erp_customers`, `.erp_pairs` and `.erp_differences`,
whose totals balance on both sides. Without a file those of the last match stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import duckdb
import pandas as pd
import pyarrow as pa

from orderbridge.pipelines.reconcile.entities import StepInputs
from orderbridge.pipelines.reconcile.erp.files import ErpCustomers
from orderbridge.pipelines.reconcile.erp.match import match_lines
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.reviews import SEPARATOR, Review
from orderbridge.pipelines.warehouse.sql import replace, table_names
from orderbridge.sources.errors import BridgeError
from orderbridge.transforms.erp.codes import code_questions
from orderbridge.transforms.erp.compare import Notation
from orderbridge.transforms.erp.match import REVIEWS
from orderbridge.transforms.erp.match_keys import MATCH_KEYS, CodeForm
from orderbridge.transforms.erp.tables import ERP_CUSTOMERS, ERP_DIFFERENCES, ERP_PAIRS
from orderbridge.transforms.findings import FINDINGS, combine_findings, rule_findings, table_finding
from orderbridge.transforms.frames import TEXT, column, frame, from_arrow


@dataclass(slots=True)
class MatchSummary:
    """Counts of a match with the ERP.

    Attributes:
        statuses: status, the deciding key (None for none) and number of rows, in the order of the keys.
        ambiguous_lines, ambiguous_customers: number of each that may be several of the other side.
        differences: field and number of customers whose values differ, most frequent first.
        repeated: number of lines that are equal to an earlier one.
        refused: numbers of the lines that do not fit the file's header or have no answer in a lookup file.
        columns: the compared fields, with the column of the file that each was read from.
        unread: columns of the file that were not used.
        doubt: why a line may belong to a customer who was not read; empty where all were read.
    """

    statuses: list[tuple[str, str | None, int]]
    ambiguous_lines: int
    ambiguous_customers: int
    differences: list[tuple[str, int]]
    repeated: int
    refused: list[int]
    columns: dict[str, str]
    unread: tuple[str, ...]
    doubt: str


def match_customers(
    inputs: StepInputs, erp: ErpCustomers | None, *, forget: bool
) -> tuple[MatchSummary | None, pd.DataFrame]:
    """Makes the tables of the match in the build of `inputs`, which has the reconciled customers.

    Returns:
        The counts, and the findings. Without a file the counts are None, and tables and findings are those of the last
        match; none where that is to be forgotten.

    Raises:
        BridgeError: a row of either side is in no row of the table, or in two.
        UsageError: see `Cluster.mapper`.
    """
    build = inputs.build
    if erp is None:
        kept = [] if forget else table_names(build, "reconciled")
        for name, columns in _TABLES.items():
            if name not in kept:
                replace(build, name, frame(columns))
        return None, from_arrow(
            build.sql(_KEPT_FINDINGS).to_arrow_table()
        ) if "exceptions" in kept else frame(FINDINGS)
    reviews = review_frame(inputs.reviews.values())
    settings = inputs.settings
    form = CodeForm(settings.erp_code_prefix, settings.erp_code_zeros)
    notation = Notation(settings.country, form)
    match_findings, repeated, forms = match_lines(inputs.parts, erp.rows, notation, reviews)
    inputs.questions.add(*code_questions(forms, form, inputs.questions.answers))
    totals = _totals(build, len(erp.rows), repeated)
    recorded = {**totals, "refused": len(erp.refused), "skipped": erp.skipped}
    ops.record_totals(build, inputs.run_id, "reconciled.erp_customers", recorded)
    numbers, reasons = (
        column(pa.array(texts, TEXT)) for texts in (map(str, erp.refused), erp.refused.values())
    )
    findings = [
        match_findings,
        rule_findings("erp_customers", "line_refused", numbers, detail=reasons),
    ]
    gap = inputs.coverage_gap("customers") if len(erp.rows) else ""
    if gap:
        detail = f"{totals['only_in_erp']} lines only in the ERP: {gap}"
        findings.append(table_finding("erp_customers", "customers_unproven", detail))
    summary = MatchSummary(
        statuses=build.execute(_STATUSES).fetchall(),
        ambiguous_lines=totals["ambiguous_in_erp"],
        ambiguous_customers=totals["ambiguous_in_platform"],
        differences=build.execute(_DIFFERENCES).fetchall(),
        repeated=repeated,
        refused=list(erp.refused),
        columns=dict(erp.columns),
        unread=erp.unread,
        doubt=gap,
    )
    return summary, combine_findings(findings)


def review_frame(reviews: Iterable[Review]) -> pd.DataFrame:
    """The columns of `transforms.erp.match.REVIEWS`."""
    rows = []
    for one in reviews:
        line_key, _, customer_id = one.pair.rpartition(SEPARATOR)
        rows.append(
            {
                "line_key": line_key,
                "customer_id": customer_id,
                "is_accepted": one.decision == "accept",
            }
        )
    return frame(REVIEWS, rows)


_TABLES: Final = {
    "erp_customers": ERP_CUSTOMERS,
    "erp_pairs": ERP_PAIRS,
    "erp_differences": ERP_DIFFERENCES,
}
_KEPT_FINDINGS: Final = f"""
    SELECT {", ".join(FINDINGS)} FROM reconciled.exceptions
    WHERE entity = 'erp_customers' OR entity = 'customers' AND rule = 'erp_ambiguous'"""
_STATUSES: Final = f"""
    SELECT status, matched_by, count(*) FROM reconciled.erp_customers GROUP BY status, matched_by
    ORDER BY CASE status WHEN 'matched' THEN 0 WHEN 'ambiguous' THEN 1 WHEN 'only_in_erp' THEN 2 ELSE 3 END,
        list_position({[*MATCH_KEYS, "reviewed"]}, matched_by)"""
_DIFFERENCES: Final = """
    SELECT field, count(*) FROM reconciled.erp_differences GROUP BY field ORDER BY count(*) DESC, field"""
_TOTALS: Final = """
    SELECT count(line) AS lines, count(DISTINCT line) AS distinct_lines,
        count(customer_id) AS customers, count(DISTINCT customer_id) AS distinct_customers,
        count(*) FILTER (status = 'matched') AS matched,
        count(*) FILTER (status = 'only_in_erp') AS only_in_erp,
        count(line) FILTER (status = 'ambiguous') AS ambiguous_in_erp,
        count(*) FILTER (status = 'only_in_platform') AS only_in_platform,
        count(customer_id) FILTER (status = 'ambiguous') AS ambiguous_in_platform,
        (SELECT count(*) FROM reconciled.customers WHERE NOT is_missing) AS platform,
        (SELECT count(*) FROM reconciled.customers c JOIN reconciled.erp_customers e USING (customer_id)
            WHERE NOT c.is_missing) AS known
    FROM reconciled.erp_customers"""


def _totals(build: duckdb.DuckDBPyConnection, read: int, repeated: int) -> dict[str, int]:
    """The totals of both sides. Raises BridgeError where they do not add up to what was read."""
    (counts,) = build.sql(_TOTALS).to_arrow_table().to_pylist()
    erp_side, platform_side = ([counts.pop(name) for name in names] for names in _COUNTED)
    erp_side.append(sum(counts[name] for name in ("matched", "only_in_erp", "ambiguous_in_erp")))
    platform_side.append(
        sum(counts[name] for name in ("matched", "only_in_platform", "ambiguous_in_platform"))
    )
    if set(erp_side) != {read - repeated} or set(platform_side) != {counts["platform"]}:
        raise BridgeError(
            f"erp_customers: {read} lines read, {repeated} repeated, in the table {erp_side}; "
            f"{counts['platform']} customers present, in the table {platform_side}: the totals do not balance"
        )
    return {"erp_read": read, "erp_repeated": repeated, **counts}


_COUNTED: Final = (("lines", "distinct_lines"), ("customers", "distinct_customers", "known"))
"""How many rows the table has of lines, and of customers: as `_TOTALS` counts them."""
