"""What the raw tables prove of what is not in them: a list that was not read whole is no evidence of absence.

In: `ops` of a build, with this run's walks if it pulled. Out: words on why a record may be listed that a table lacks,
and findings about lists that are not proven. They go to the transforms, which then say less.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import duckdb

from pipelines.warehouse.ops import TAKEN

if TYPE_CHECKING:
    import pandas as pd

_WALK: Final = f"""
    SELECT run_id, verdict, ended_at FROM ops.coverage WHERE resource = $resource AND {TAKEN}
    ORDER BY ended_at DESC LIMIT 1"""
_REFUSED: Final = "SELECT count(DISTINCT row_hash) FROM ops.quarantine WHERE resource = $resource AND run_id = $run"
"""A row that several sweeps refused counts once."""


def coverage_gap(build: duckdb.DuckDBPyConnection, of: str, named_by: str | None = None) -> str:
    """Why a list may hold records that its raw table lacks; empty where that is proven not to be.

    Args:
        build: has the tables of `ops`.
        of: the list.
        named_by: the list whose rows name records of it; rows read by a later run may name newer ones.
    """
    walk = _walk(build, of)
    if walk is None:
        return f"{of}: never read"
    run_id, verdict, ended_at = walk
    if verdict != "complete":
        ((refused,),) = build.execute(_REFUSED, {"resource": of, "run": run_id}).fetchall()
        return f"{of}: {verdict}" + (f", refused rows: {refused}" if refused else "")
    other = _walk(build, named_by) if named_by else None
    if other is not None and other[0] != run_id and other[2] > ended_at:
        return f"{of}: read before {named_by}"
    return ""


def unproven(build: duckdb.DuckDBPyConnection, entity: str) -> list[pd.DataFrame]:
    """The finding that a list is not proven whole, and how many rows are older than its last walk; none where it is."""
    from transforms.rules import table_finding

    walk = _walk(build, entity)
    if walk is None or walk[1] == "complete":
        return []
    sql = f"SELECT count(*) FROM raw.{entity} WHERE _missing_since IS NULL AND _run_id <> $run"
    ((older,),) = build.execute(sql, {"run": walk[0]}).fetchall()
    return [table_finding(entity, "unproven", f"{coverage_gap(build, entity)}; rows of earlier walks: {older}")]


def _walk(build: duckdb.DuckDBPyConnection, resource: str) -> tuple[str, str, datetime] | None:
    """Run, verdict and end of the last walk that the raw table took over."""
    return next(iter(build.execute(_WALK, {"resource": resource}).fetchall()), None)
