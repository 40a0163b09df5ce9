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
from typing import Final

import duckdb

from pipelines.warehouse.accepted import Accepted
from sources.words import number
from transforms.rules import SEVERITIES, Severity

_SAME: Final = "hash(entity, rule, coalesce(entity_id, regexp_replace(detail, '(^|[^A-Za-z_])[0-9]+', '\\1#', 'g')))"
_PREPARE: Final = """
    CREATE TABLE IF NOT EXISTS reconciled.exceptions (
        entity VARCHAR, entity_id VARCHAR, rule VARCHAR, severity VARCHAR, detail VARCHAR, is_accepted BOOLEAN);
    ALTER TABLE reconciled.exceptions ADD COLUMN IF NOT EXISTS first_run_id VARCHAR;
    ALTER TABLE reconciled.exceptions ADD COLUMN IF NOT EXISTS first_seen_at TIMESTAMPTZ"""
_GONE: Final = f"""
    INSERT INTO ops.past_findings BY NAME
    SELECT entity, entity_id, rule, severity, detail, first_run_id, first_seen_at, last_run_id, $run AS gone_run_id
    FROM reconciled.exceptions, (
        SELECT arg_max(run_id, rowid) AS last_run_id FROM ops.control_totals
        WHERE entity LIKE 'reconciled.%' AND run_id <> $run)
    WHERE {_SAME} NOT IN (SELECT {_SAME} FROM {{findings}})"""
_WRITE: Final = f"""
    CREATE OR REPLACE TABLE reconciled.exceptions AS
    WITH runs AS (SELECT run_id, rowid AS n FROM ops.runs
    ), before AS (
        SELECT max(n) AS n FROM runs SEMI JOIN (FROM ops.control_totals WHERE entity LIKE 'reconciled.%') USING (run_id)
    ), lists AS (
        SELECT resource, max(r.n) FILTER (published AND r.n <= before.n) AS read_in,
            bool_or(published AND coalesce(r.n > before.n, true)) AS is_back
        FROM ops.coverage LEFT JOIN runs r USING (run_id), before GROUP BY resource
    ), outage AS (
        SELECT min(r.n) AS n FROM ops.coverage JOIN runs r USING (run_id) JOIN lists USING (resource), before
        WHERE is_back AND NOT published AND r.n > read_in AND r.n <= before.n
    ), known AS (
        SELECT {_SAME} AS same, min(first_seen_at) AS first_seen_at,
            arg_min(first_run_id, first_seen_at) AS first_run_id
        FROM (
            SELECT entity, rule, entity_id, detail, first_seen_at, first_run_id FROM reconciled.exceptions
            UNION ALL SELECT entity, rule, entity_id, detail, first_seen_at, first_run_id FROM ops.past_findings
            WHERE gone_run_id IN (SELECT run_id FROM runs, outage WHERE runs.n >= outage.n))
        GROUP BY same
    ), found AS (
        SELECT *, {{accepted}} AS is_accepted FROM {{findings}}
    )
    SELECT f.* REPLACE ({{severity}} AS severity), if(k.same IS NULL, $run, k.first_run_id) AS first_run_id,
        if(k.same IS NULL, $at, k.first_seen_at)::TIMESTAMPTZ AS first_seen_at
    FROM found f LEFT JOIN known k ON k.same = {_SAME}
    ORDER BY entity, rule, entity_id, detail"""
"""Known are the findings of the run before, and where a list is back that it could not read, those gone since then."""
_COUNT: Final = """
    INSERT INTO ops.finding_counts BY NAME
    SELECT $run AS run_id, entity, rule, severity, count_if(NOT is_gone) AS findings, count_if(is_accepted) AS accepted,
        count(*) FILTER (first_run_id = $run) AS new, count_if(is_gone) AS gone, $at AS recorded_at
    FROM (
        SELECT entity, rule, severity, is_accepted, first_run_id, false AS is_gone FROM reconciled.exceptions
        UNION ALL SELECT entity, rule, severity, false, NULL, true FROM ops.past_findings WHERE gone_run_id = $run)
    GROUP BY ALL ORDER BY ALL"""
_IS_KEPT: Final = """
    FROM duckdb_columns() SELECT 1
    WHERE schema_name = 'reconciled' AND table_name = 'exceptions' AND column_name = 'first_run_id'"""
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
        """In words, without an id of a record."""
        return f"{self.severity} {self.entity}.{self.rule}: {self.detail or self.findings}"


def record_findings(
    build: duckdb.DuckDBPyConnection, run_id: str, at: datetime, findings: str, accepted: Accepted
) -> tuple[int, int]:
    """Makes `reconciled.exceptions` of findings (SQL; the columns of `FINDINGS`), and compares with those before.

    Returns:
        The number of all findings, and of those that are accepted.
    """
    build.execute(_PREPARE)
    build.execute(_GONE.format(findings=findings), {"run": run_id})
    parts = {"severity": accepted.severity_sql(), "accepted": accepted.accepted_sql(findings), "findings": findings}
    build.execute(_WRITE.format(**parts), {"run": run_id, "at": at})
    build.execute(_COUNT, {"run": run_id, "at": at})
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


def in_words(new: Sequence[NewFindings]) -> list[str]:
    """New findings as lines: their number, then a line for each rule with errors or warnings."""
    counts = {severity: sum(one.findings for one in new if one.severity == severity) for severity in SEVERITIES}
    plural = {"info": "info"}
    shown = ", ".join(number(count, one, plural.get(one, "")) for one, count in counts.items() if count)
    lines = [f"  {one.text}" for one in new if one.severity != "info"]
    return [f"new since the last run: {shown}", *lines] if new else []
