"""What the raw tables prove of what is not in them: a list that was not read whole is no evidence of absence.

In: `ops` of a build, with this run's walks if it pulled. Out: words on why a record may be listed that a table lacks,
and findings about lists that are not proven. They go to the transforms, which then say less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from pipelines.warehouse.ops import last_reads

if TYPE_CHECKING:
    import pandas as pd


def coverage_gap(build: duckdb.DuckDBPyConnection, of: str, named_by: str | None = None) -> str:
    """Why a list may hold records that its raw table lacks; empty where that is proven not to be.

    Args:
        build: has the tables of `ops`.
        of: the list.
        named_by: the list whose rows name records of it; rows read by a later run may name newer ones.
    """
    reads = last_reads(build)
    read = reads.get(of)
    if read is None:
        return f"{of}: never read"
    if read.verdict != "complete":
        return f"{of}: {read.verdict}" + (f", refused rows: {read.quarantined_rows}" if read.quarantined_rows else "")
    naming = reads.get(named_by) if named_by else None
    if naming is not None and naming.run_id != read.run_id and naming.ended_at > read.ended_at:
        return f"{of}: read before {named_by}"
    return ""


def unproven(build: duckdb.DuckDBPyConnection, entity: str) -> list[pd.DataFrame]:
    """The finding that a list is not proven whole, and how many rows are older than its last walk; none where it is."""
    from transforms.findings import table_finding

    read = last_reads(build).get(entity)
    if read is None or read.verdict == "complete":
        return []
    sql = f"SELECT count(*) FROM raw.{entity} WHERE _missing_since IS NULL AND _run_id <> $run"
    ((older,),) = build.execute(sql, {"run": read.run_id}).fetchall()
    return [table_finding(entity, "unproven", f"{coverage_gap(build, entity)}; rows of earlier walks: {older}")]
