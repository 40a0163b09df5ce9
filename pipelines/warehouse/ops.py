"""The `ops` tables (`ops.sql`): runs, coverage of each list, quarantined rows, control totals, observations.

In: the facts of a run. Out: rows in `ops.*` of the build, and the last published read of each list, for those that rely
on it. No value of a row is in these tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

import duckdb

from orderbridge.pipelines.warehouse.sql import has_tables

if TYPE_CHECKING:
    from orderbridge.sources.extract.result import ListResult
    from orderbridge.transforms.orders.customer_index import CustomerNotation

ERP_FILE: Final = "erp_customers_file"
"""The observation of the name of the file that the ERP's customers were read from."""
RECONCILED_READS: Final = "reconciled.lists"
"""Entity of the control total `read_number`: the last read that the reconciled tables were made from."""
_LAST_READ: Final = """
    SELECT c.*, r.environment, r.legacy_host, r.public_v1_host, (
        SELECT count(DISTINCT q.row_hash) FROM ops.quarantine q WHERE q.run_id = c.run_id AND q.resource = c.resource
    ) AS quarantined_rows, t.run_id AS tail_run_id, t.ended_at AS tail_ended_at
    FROM ops.coverage c LEFT JOIN ops.runs r ON r.run_id = c.run_id LEFT JOIN LATERAL (
        SELECT arg_max(run_id, rowid) AS run_id, arg_max(ended_at, rowid) AS ended_at FROM ops.coverage
        WHERE resource = c.resource AND verdict = 'tail' AND rowid > c.rowid
    ) t ON true
    WHERE c.published AND c.verdict <> 'tail'
    QUALIFY row_number() OVER (PARTITION BY c.resource ORDER BY c.rowid DESC) = 1"""
"""By `rowid`, the order in which reads were recorded: times of a clock that was wrong once would stay the last."""


class Seen(NamedTuple):
    """A value that a run, or the push of a plan, saw of something that the interface does not show."""

    what: str
    value: str
    run_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class LastOrderFields:
    """The columns of the raw orders that were last accepted, by field, and the share of orders with a known customer.

    Attributes:
        columns: also the child table of the order lines, as `lines`.
        matched_share: the largest one since a person last accepted a smaller one.
        notation: how customers are read, `ids` or `codes`; None where nothing showed it.
        at: when they were recorded.
    """

    columns: dict[str, str]
    matched_share: float | None = None
    notation: CustomerNotation | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LastRead:
    """The last whole read of a list that is in its raw table: a row of the view `ops.last_read`.

    Only a whole read shows which records are absent. A tail after it has added rows.

    Attributes:
        rows: distinct records that were read.
        quarantined_rows: distinct rows; one that several sweeps quarantined counts once.
        legacy_host: of the run, without scheme; None in the build of that run, and where the family was not read.
        tail_run_id, tail_ended_at: of the last tail after this read; None without one.
    """

    resource: str
    run_id: str
    verdict: str
    rows: int
    quarantined_rows: int
    started_at: datetime
    ended_at: datetime
    legacy_host: str | None
    tail_run_id: str | None
    tail_ended_at: datetime | None

    @property
    def newest(self) -> tuple[str, datetime]:
        """Run and end of the read that brought the newest rows: this one, or the last tail after it."""
        return self.tail_run_id or self.run_id, self.tail_ended_at or self.ended_at

    def ages_h(self, now: datetime) -> list[float]:
        """Hours since the end of this read, and since that of the last tail after it."""
        ends = filter(None, (self.ended_at, self.tail_ended_at))
        return [round((now - at).total_seconds() / 3600, 6) for at in ends]


def last_reads(warehouse: duckdb.DuckDBPyConnection) -> dict[str, LastRead]:
    """The last published whole read of each list, by list; empty where nothing was pulled."""
    if not has_tables(warehouse, "ops", "coverage", "quarantine", "runs"):
        return {}
    sql = f"""
        SELECT resource, run_id, verdict, "distinct", quarantined_rows, started_at, ended_at, legacy_host,
            tail_run_id, tail_ended_at
        FROM ({_LAST_READ})"""
    return {row[0]: LastRead(*row) for row in warehouse.execute(sql).fetchall()}


def create_missing(build: duckdb.DuckDBPyConnection) -> None:
    """Creates the tables and the view that the build lacks, and adds the columns that earlier versions did not have."""
    build.execute(files("orderbridge.pipelines.warehouse").joinpath("ops.sql").read_text("utf-8"))
    build.execute(f"CREATE OR REPLACE VIEW ops.last_read AS {_LAST_READ}")


def insert(build: duckdb.DuckDBPyConnection, table: str, **values: object) -> None:
    """Inserts into a table of `ops`: a row, or as many as the values that are lists have; other values are in each row.

    Not a statement per row: there may be hundreds of thousands.
    """
    columns = (
        f'{f"unnest(${name})" if isinstance(value, list) else f"${name}"} AS "{name}"'
        for name, value in values.items()
    )
    build.execute(f"INSERT INTO ops.{table} BY NAME SELECT {', '.join(columns)}", values)


def record_coverage(
    build: duckdb.DuckDBPyConnection, run_id: str, walked: ListResult, *, published: bool
) -> None:
    """Records one row in `ops.coverage`, and one in `ops.quarantine` for each quarantined row.

    `published`: whether the raw table takes over what was read.
    """
    has_failed = walked.error is not None
    last = walked.sweeps[-1] if walked.sweeps else None
    number = "SELECT coalesce(max(read_number), 0) + 1 FROM ops.coverage"
    ((read_number,),) = build.execute(number).fetchall()
    insert(
        build,
        "coverage",
        run_id=run_id,
        resource=walked.resource,
        verdict=walked.verdict,
        sweeps=len(walked.sweeps),
        pages=sum(sweep.pages for sweep in walked.sweeps) if has_failed else walked.total("pages"),
        rows=sum(sweep.rows for sweep in walked.sweeps) if has_failed else walked.total("rows"),
        distinct=walked.distinct,
        duplicates=0 if has_failed else walked.duplicates,
        quarantined=len(walked.quarantined),
        total_reported=last.total if last else None,
        ended_by="error" if has_failed or last is None else last.ended_by,
        evidence="; ".join(walked.evidence),
        started_at=walked.started_at,
        ended_at=walked.ended_at,
        published=published,
        read_number=read_number,
        cut=walked.cut or None,
    )
    if walked.quarantined:
        _record_quarantined(build, run_id, walked)


def _record_quarantined(build: duckdb.DuckDBPyConnection, run_id: str, walked: ListResult) -> None:
    rows = walked.quarantined
    insert(
        build,
        "quarantine",
        run_id=run_id,
        resource=walked.resource,
        page=[row.page for row in rows],
        position=[row.position for row in rows],
        reason=[row.reason for row in rows],
        row_hash=[row.row_hash for row in rows],
        duplicate_id=[row.key if row.is_id_duplicate else None for row in rows],
    )


def record_totals(
    build: duckdb.DuckDBPyConnection, run_id: str, entity: str, totals: Mapping[str, int]
) -> None:
    """Writes a row of `ops.control_totals` for each measure."""
    insert(
        build,
        "control_totals",
        run_id=run_id,
        entity=entity,
        measure=list(totals),
        value=list(totals.values()),
    )


def record_reconciled_reads(build: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """Records that the reconciled tables are made from all reads up to now."""
    ((number,),) = build.execute(
        "SELECT coalesce(max(read_number), 0) FROM ops.coverage"
    ).fetchall()
    record_totals(build, run_id, RECONCILED_READS, {"read_number": number})


def record_promotion_uses(build: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """Keeps how often each promotion has been used where that has changed since it was last recorded."""
    build.execute(
        """INSERT INTO ops.promotion_uses SELECT promotion_id, $run, p.use_count, p._last_seen_at
        FROM reconciled.promotions p LEFT JOIN (
            SELECT promotion_id, arg_max(use_count, rowid) AS use_count FROM ops.promotion_uses GROUP BY promotion_id
        ) last USING (promotion_id) WHERE p.use_count IS NOT NULL AND p.use_count IS DISTINCT FROM last.use_count
        ORDER BY promotion_id""",
        {"run": run_id},
    )


def record_observations(
    build: duckdb.DuckDBPyConnection, run_id: str, at: datetime, observed: Iterable[tuple[str, str]]
) -> None:
    """What the interface does not show and this run saw: first and last run that saw it."""
    record_seen(build, [Seen(what, value, run_id, at) for what, value in sorted(set(observed))])


def record_seen(build: duckdb.DuckDBPyConnection, seen: Iterable[Seen]) -> None:
    """What the interface does not show, in the order of time in which it was seen."""
    first: dict[tuple[str, str], Seen] = {}
    last: dict[tuple[str, str], Seen] = {}
    for one in seen:
        first.setdefault((one.what, one.value), one)
        last[one.what, one.value] = one
    build.execute(
        """INSERT INTO ops.observations
        SELECT unnest($whats), unnest($values), unnest($first_runs), unnest($first_at), unnest($last_runs),
            unnest($last_at)
        ON CONFLICT DO UPDATE SET first_seen_at = least(first_seen_at, excluded.first_seen_at),
            last_run_id = excluded.last_run_id, last_seen_at = excluded.last_seen_at""",
        {
            "whats": [what for what, _ in first],
            "values": [value for _, value in first],
            "first_runs": [one.run_id for one in first.values()],
            "first_at": [one.at for one in first.values()],
            "last_runs": [last[key].run_id for key in first],
            "last_at": [last[key].at for key in first],
        },
    )


def last_observed(warehouse: duckdb.DuckDBPyConnection, what: str) -> str | None:
    """The value that was seen last of something that the interface does not show; None where none was."""
    if not has_tables(warehouse, "ops", "observations", "runs"):
        return None
    sql = """
        SELECT o.value FROM ops.observations o JOIN ops.runs r ON r.run_id = o.last_run_id WHERE o.what = ?
        ORDER BY r.rowid DESC LIMIT 1"""
    row = warehouse.execute(sql, [what]).fetchone()
    return None if row is None else str(row[0])


def last_order_fields(build: duckdb.DuckDBPyConnection) -> LastOrderFields:
    """What `record_order_fields` recorded last; nothing where no run did."""
    rows = build.execute(
        "SELECT field, column_name, matched_share, notation, recorded_at FROM ops.order_fields ORDER BY rowid"
    ).fetchall()
    columns = {field: column for field, column, *_ in rows}
    return LastOrderFields(columns, *rows[0][2:]) if rows else LastOrderFields(columns)


def record_order_fields(
    build: duckdb.DuckDBPyConnection, run_id: str, used: LastOrderFields
) -> None:
    """Pins the columns that orders are read from, for the next run. Without any, the last ones stay pinned."""
    if used.columns:
        build.execute("DELETE FROM ops.order_fields")
        fields = {"field": list(used.columns), "column_name": list(used.columns.values())}
        known = {
            "matched_share": used.matched_share,
            "notation": used.notation,
            "recorded_at": used.at,
        }
        insert(build, "order_fields", run_id=run_id, **fields, **known)
