"""The findings of a run beside those of earlier runs: which are new, which are gone, and how many each rule has.

In: the findings of a run, and what a person has accepted. Out: `reconciled.exceptions` with the run that first had each
finding, `ops.past_findings` with those that are gone, `ops.finding_counts` with the counts of each run. A finding is
the same as before if it is about the same record, or has the same detail but for numbers. It is new if the last run
that published did not have it, unless it was gone only while a list could not be read. Failed runs do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Final

import duckdb

from orderbridge.pipelines.warehouse.answers.accepted import Accepted, is_about
from orderbridge.pipelines.warehouse.new_rules import NewRule
from orderbridge.pipelines.warehouse.sql import sql_text
from orderbridge.sources.texts import Texts, english
from orderbridge.transforms.rules import SEVERITIES, Severity

_IS_KEPT: Final = """
    FROM duckdb_columns() SELECT 1
    WHERE schema_name = 'reconciled' AND table_name = 'exceptions' AND column_name = 'first_run_id'"""
_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS reconciled.exceptions (
        entity VARCHAR, entity_id VARCHAR, rule VARCHAR, severity VARCHAR, detail VARCHAR, is_accepted BOOLEAN);
    ALTER TABLE reconciled.exceptions ADD COLUMN IF NOT EXISTS is_accepted BOOLEAN;
    ALTER TABLE reconciled.exceptions ADD COLUMN IF NOT EXISTS first_run_id VARCHAR;
    ALTER TABLE reconciled.exceptions ADD COLUMN IF NOT EXISTS first_seen_at TIMESTAMPTZ"""
_NEW: Final = """
    WITH runs AS (
        SELECT arg_min(run_id, rowid) AS first, arg_max(run_id, rowid) AS last FROM ops.control_totals
        WHERE entity LIKE 'reconciled.%')
    SELECT severity, entity, rule, count(*), coalesce(min(detail) FILTER (entity_id IS NULL), '')
    FROM reconciled.exceptions, runs WHERE first_run_id = last AND last <> first AND NOT is_accepted
    GROUP BY severity, entity, rule
    ORDER BY list_position(['error', 'warning', 'info'], severity), count(*) DESC, entity, rule"""


@dataclass(frozen=True, slots=True)
class NewFindings:
    """Findings of a rule that the last run was the first to have.

    Attributes:
        detail: of one that is about its table as a whole; empty where each is about a record.
    """

    severity: Severity
    entity: str
    rule: str
    findings: int
    detail: str

    @property
    def text(self) -> str:
        """The finding in words, without an id of a record."""
        return f"{self.severity} {self.entity}.{self.rule}: {self.detail or self.findings}"


def prepare_findings(build: duckdb.DuckDBPyConnection) -> None:
    """Makes the table of the findings as the views read it: empty where there is none, with the columns of today."""
    build.execute(_TABLE)


def record_findings(
    build: duckdb.DuckDBPyConnection,
    run_id: str,
    at: datetime,
    findings: str,
    accepted: Accepted,
    new: Sequence[NewRule] = (),
) -> tuple[int, int]:
    """Makes `reconciled.exceptions` of findings (SQL; the columns of `FINDINGS`), compared with those before.

    `prepare_findings` was called. Findings of `new` rules are info.

    Returns:
        The number of all findings, and of those that are accepted.
    """
    sql = files("orderbridge.pipelines.warehouse").joinpath("findings.sql").read_text("utf-8")
    is_new = " OR ".join(["false", *(is_about(one.name, [""]) for one in new)])
    accepts = {
        "severity": f"if({is_new}, 'info', {accepted.severity_sql()})",
        "accepted": accepted.accepted_sql(findings),
        "findings": findings,
    }
    build.execute(sql.format(run=sql_text(run_id), at=f"{sql_text(at)}::TIMESTAMPTZ", **accepts))
    sql = "SELECT count(*), count_if(is_accepted) FROM reconciled.exceptions"
    ((count, number_accepted),) = build.execute(sql).fetchall()
    return count, number_accepted


def new_findings(warehouse: duckdb.DuckDBPyConnection) -> list[NewFindings]:
    """What the run that reconciled last was the first to find, by rule, the most severe first; accepted ones are not.

    Empty after the first run, and where the warehouse was written by a version that did not record it.
    """
    if not warehouse.execute(_IS_KEPT).fetchone():
        return []
    return [NewFindings(*row) for row in warehouse.execute(_NEW).fetchall()]


def in_words(new: Sequence[NewFindings], texts: Texts | None = None) -> list[str]:
    """New findings as lines: their number, then a line for each rule with errors or warnings, by its code."""
    texts = texts or english()
    counts = {
        severity: sum(one.findings for one in new if one.severity == severity)
        for severity in SEVERITIES
    }
    shown = ", ".join(
        texts(f"found.{severity}", count=count) for severity, count in counts.items() if count
    )
    lines = [f"  {one.text}" for one in new if one.severity != "info"]
    return [texts("shown.new", counts=shown), *lines] if new else []
