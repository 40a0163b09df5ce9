"""The pairs of the match with the ERP that nobody has decided, for a person to look at.

In: the reconciled tables of a warehouse. Out: a row for each pair, named as `reviews` names it.
"""

from __future__ import annotations

from typing import Final

import duckdb

from orderbridge.pipelines.warehouse.answers.reviews import SEPARATOR
from orderbridge.pipelines.warehouse.sql import Rows, has_tables, read_rows
from orderbridge.sources.errors import UsageError
from orderbridge.transforms.erp.decide import CERTAIN_FROM

_DOUBTFUL: Final = f"""
    SELECT p.line_key || '{SEPARATOR}' || p.customer_id AS pair, p.weight, p.status, p.matched_by, p.line,
        e.name AS erp_name, c.full_name AS platform_name, c.default_fiscal_name AS platform_fiscal_name,
        p.agreeing, p.differences
    FROM reconciled.erp_pairs p JOIN reconciled.customers c ON c.customer_id = p.customer_id
    LEFT JOIN reconciled.erp_customers e ON e.line = p.line
    WHERE p.matched_by <> 'reviewed' AND (p.status <> 'matched' OR p.weight < $below)
    ORDER BY least(
        coalesce(len(string_split(nullif(p.agreeing, ''), ',')), 0),
        coalesce(len(string_split(nullif(p.differing, ''), ',')), 0)) DESC,
        abs(p.weight - $certain), p.line, p.customer_id"""


def doubtful_pairs(warehouse: duckdb.DuckDBPyConnection, below: int) -> Rows:
    """The pairs that nobody has decided, the most doubtful first: those for which as much speaks as against them.

    Those that are possible or suggested, and those that are matched and weigh less than `below`.

    Raises:
        UsageError: the warehouse has no pairs.
    """
    if not has_tables(warehouse, "reconciled", "erp_pairs"):
        raise UsageError(
            "this warehouse has no match with the ERP",
            "Run `orderbridge run --erp-customers FILE`.",
        )
    return read_rows(warehouse, _DOUBTFUL, below=below, certain=CERTAIN_FROM)
