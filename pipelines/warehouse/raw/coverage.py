"""What the raw tables prove about absent records: a list that was not read completely is no evidence of absence.

In: `ops` of a build, with this run's walks if it pulled. Out: the reason why a record may be listed although its table
lacks it, and findings about lists that are not proven complete. Transforms then report less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import duckdb

from orderbridge.pipelines.warehouse.ops import LastRead
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.extract.spool import RESUME_WITHIN_S

if TYPE_CHECKING:
    import pandas as pd


Reads = Mapping[str, LastRead]
PROOF_AGE: Final = timedelta(seconds=RESUME_WITHIN_S)
"""How long a complete list proves the absence of records that a later read of another list names: as long as a stopped
walk may be resumed. The findings are reported with the time of the proof."""


def _age(build: duckdb.DuckDBPyConnection, read: LastRead, later: LastRead) -> timedelta:
    """How much later the newest rows of another list were read; zero in the same run unless it took long.

    Where they were recorded later but with an earlier time, a clock was set back: the age is unknown, and taken as the
    maximum.
    """
    run_id, ended_at = later.newest
    age = max(ended_at - read.ended_at, timedelta())
    if read.run_id == run_id and age <= PROOF_AGE:
        return timedelta()
    is_set_back = ended_at < read.ended_at and _was_walked_after(
        build, read, later.resource, run_id
    )
    return timedelta.max if is_set_back else age


def coverage_gap(
    build: duckdb.DuckDBPyConnection, reads: Reads, resource: str, named_by: str | None = None
) -> str:
    """Why a list may hold records that its raw table lacks; empty where that is proven not to be.

    Args:
        build: has the tables of `ops`.
        reads: the last published ones.
        resource: the list.
        named_by: the list whose rows name records of it; rows read by a later run may name newer ones.
    """
    read = reads.get(resource)
    if read is None:
        return f"{resource}: never read"
    if read.verdict != "complete":
        quarantined = (
            f", quarantined rows: {read.quarantined_rows}" if read.quarantined_rows else ""
        )
        return f"{resource}: {read.verdict}{quarantined}"
    naming = reads.get(named_by) if named_by else None
    age = _age(build, read, naming) if naming is not None else timedelta()
    tried = (
        "the last read failed or was held back, and "
        if age and _was_walked_after(build, read, resource)
        else ""
    )
    if tried or age > PROOF_AGE:
        return f"{resource}: {tried}those of {read.ended_at:%Y-%m-%d %H:%M} UTC are older than the {named_by}"
    return ""


def _was_walked_after(
    build: duckdb.DuckDBPyConnection, read: LastRead, resource: str, run_id: str | None = None
) -> bool:
    """Whether a list was walked after this read was recorded, successfully or not; by `rowid`, not by times, see `ops`.

    Args:
        build: has the tables of `ops`.
        read: the earlier one. Where its own list was walked again, that walk failed or was held back.
        resource: the list that may have been walked later.
        run_id: of the run that walked it; None: any.
    """
    sql = """
        SELECT count(*) FROM ops.coverage WHERE resource = $1 AND run_id = coalesce($2, run_id) AND rowid > (
            SELECT max(rowid) FROM ops.coverage WHERE resource = $3 AND run_id = $4)"""
    ((attempts,),) = build.execute(sql, [resource, run_id, read.resource, read.run_id]).fetchall()
    return bool(attempts)


def list_findings(
    build: duckdb.DuckDBPyConnection, reads: Reads, entity: str
) -> Iterator[pd.DataFrame]:
    """The findings about the last read of a list; none where it was never read.

    Yields:
        That it is not proven complete, with the number of rows older than its last walk; that it is known to be cut,
        with both counts; that it was read a while after the list whose records it names, with both times; the rows
        that were quarantined because a different row of the list has the same id.
    """
    from orderbridge.transforms.findings import rule_findings, table_finding
    from orderbridge.transforms.frames import from_arrow

    if (read := reads.get(entity)) is None:
        return
    if read.verdict != "complete":
        sql = f"""
            SELECT count(*) FROM raw.{entity}
            WHERE _missing_since IS NULL AND _run_id <> $run AND _last_seen_at < $at"""
        ((older,),) = build.execute(sql, {"run": read.run_id, "at": read.ended_at}).fetchall()
        yield table_finding(
            entity,
            "unproven",
            f"{coverage_gap(build, reads, entity)}; rows of earlier walks: {older}",
        )
    ((cut,),) = build.execute(
        "SELECT max(cut) FROM ops.coverage WHERE run_id = ? AND resource = ? AND published",
        [read.run_id, entity],
    ).fetchall()
    if cut is not None:
        yield table_finding(entity, "cut", f"{entity}: {cut}")
    named = reads.get(RECORDS[entity].refers_to)
    if named is not None and named.verdict == "complete":
        age = _age(build, named, read)
        if timedelta() < age <= PROOF_AGE and not _was_walked_after(build, named, named.resource):
            detail = (
                f"{named.resource} proven complete at {named.ended_at:%Y-%m-%d %H:%M:%S} UTC, {entity} read "
                f"{age.total_seconds():.0f} s later: what was added in between is reported as absent"
            )
            yield table_finding(entity, f"{named.resource}_read_before", detail)
    sql = """
        SELECT duplicate_id AS id, concat('quarantined row: page ', page, ', position ', position) AS detail
        FROM ops.quarantine WHERE run_id = $1 AND resource = $2 AND duplicate_id IS NOT NULL ORDER BY page, position"""
    rows = from_arrow(build.sql(sql, params=[read.run_id, entity]).to_arrow_table())
    yield rule_findings(entity, "id_duplicate", rows["id"], detail=rows["detail"])
