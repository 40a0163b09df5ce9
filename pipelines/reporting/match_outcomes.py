"""Outcomes of the comparison with the ERP's customers, in the order in which matches are tried.

In: counts of `reconciled.erp_customers` by status and step (the key that matched, else the side of the row). Out: the
same counts with labels, as a table for the report and the notebooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pipelines.reporting.tables import Table, bar_column, build_table

LABELS: Final = {
    ("matched", "erp_code"): "matched by ERP code",
    ("matched", "login_code"): "matched by login code",
    ("matched", "email"): "matched by e-mail",
    ("matched", "document_number"): "matched by document",
    ("ambiguous", "erp"): "ambiguous in the ERP",
    ("ambiguous", "platform"): "ambiguous on the platform",
    ("only_in_erp", "erp"): "only in the ERP",
    ("only_in_platform", "platform"): "only on the platform",
}
_CSS: Final = {"matched": "good", "ambiguous": "warning", "only_in_erp": "error", "only_in_platform": ""}


def count_outcomes(rows: Iterable[Mapping[Any, Any]]) -> dict[tuple[str, str], int]:
    """Customers by status and step; outcomes without a row are 0.

    Args:
        rows: `status`, `step`, `customers`.
    """
    counts = dict.fromkeys(LABELS, 0)
    for row in rows:
        outcome = (row["status"], row["step"])
        if outcome in counts:
            counts[outcome] += int(row["customers"])
    return counts


def outcomes_table(rows: Iterable[Mapping[Any, Any]]) -> Table:
    """Customers by outcome, from the rows of `count_outcomes`."""
    outcomes = [
        {"status": status, "label": LABELS[status, step], "count": count}
        for (status, step), count in count_outcomes(rows).items()
    ]
    bars = bar_column(outcomes, "count", lambda row: _CSS[row["status"]])
    return build_table(outcomes, {"outcome": "label", "customers": "count", "": bars})
