"""The `ops` tables: what each run did, how far each list was covered, what was refused, what was observed.

In: the facts of a run. Out: rows in `ops.*` of the build. Nothing here holds a value of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import duckdb

from sources.extract.result import ListResult

TABLES: Final = {
    "runs": """
        run_id VARCHAR PRIMARY KEY, command VARCHAR, version VARCHAR, started_at TIMESTAMPTZ, ended_at TIMESTAMPTZ,
        exit_code INTEGER, environment VARCHAR, legacy_host VARCHAR, public_v1_host VARCHAR""",
    "coverage": """
        run_id VARCHAR, resource VARCHAR, verdict VARCHAR, sweeps INTEGER, pages BIGINT, rows BIGINT,
        "distinct" BIGINT, duplicates BIGINT, quarantined BIGINT, total_reported BIGINT, ended_by VARCHAR,
        evidence VARCHAR, started_at TIMESTAMPTZ, ended_at TIMESTAMPTZ""",
    "quarantine": """
        run_id VARCHAR, resource VARCHAR, page INTEGER, position INTEGER, reason VARCHAR, row_hash VARCHAR""",
    "control_totals": "run_id VARCHAR, entity VARCHAR, measure VARCHAR, value BIGINT",
    "observations": """
        what VARCHAR, value VARCHAR, first_run_id VARCHAR, first_seen_at TIMESTAMPTZ, last_run_id VARCHAR,
        last_seen_at TIMESTAMPTZ, PRIMARY KEY (what, value)""",
    "push_log": """
        plan_id VARCHAR, operation_id VARCHAR, kind VARCHAR, method VARCHAR, path VARCHAR, state VARCHAR,
        status INTEGER, attempts INTEGER, updated_at TIMESTAMPTZ""",
}

TAKEN: Final = "verdict <> 'incomplete' AND evidence NOT LIKE '%held back:%'"
"""Of a row in `ops.coverage`: whether the raw table took over what the walk read."""


def create_missing(build: duckdb.DuckDBPyConnection) -> None:
    """Makes the tables where there are none yet."""
    build.execute("CREATE SCHEMA IF NOT EXISTS ops")
    for name, columns in TABLES.items():
        build.execute(f"CREATE TABLE IF NOT EXISTS ops.{name} ({columns})")


def record_run(build: duckdb.DuckDBPyConnection, run: Mapping[str, object]) -> None:
    """One row in `ops.runs`; the keys are its columns."""
    build.execute(f"INSERT INTO ops.runs ({', '.join(run)}) VALUES ({', '.join('?' * len(run))})", list(run.values()))


def record_coverage(build: duckdb.DuckDBPyConnection, run_id: str, walked: ListResult) -> None:
    """One row in `ops.coverage`, and one in `ops.quarantine` for each row that was refused."""
    last = walked.sweeps[-1] if walked.sweeps else None
    failed = walked.error is not None
    build.execute(
        "INSERT INTO ops.coverage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            run_id,
            walked.resource,
            walked.verdict,
            len(walked.sweeps),
            sum(s.pages for s in walked.sweeps) if failed else walked.total("pages"),
            sum(s.rows for s in walked.sweeps) if failed else walked.total("rows"),
            walked.distinct,
            0 if failed else walked.duplicates,
            walked.total("quarantined"),
            last.total if last else None,
            "error" if failed or last is None else last.ended_by,
            "; ".join(walked.evidence),
            walked.started_at,
            walked.ended_at,
        ],
    )
    build.executemany(
        "INSERT INTO ops.quarantine VALUES (?, ?, ?, ?, ?, ?)",
        [[run_id, walked.resource, row.page, row.position, row.reason, row.row_hash] for row in walked.quarantined],
    ) if walked.quarantined else None


def record_totals(build: duckdb.DuckDBPyConnection, run_id: str, entity: str, totals: Mapping[str, int]) -> None:
    """Rows in `ops.control_totals`, a measure each."""
    build.executemany(
        "INSERT INTO ops.control_totals VALUES (?, ?, ?, ?)",
        [[run_id, entity, measure, value] for measure, value in totals.items()],
    )


def record_observations(
    build: duckdb.DuckDBPyConnection, run_id: str, at: datetime, observed: Iterable[tuple[str, str]]
) -> None:
    """What the interface does not show and this run saw (design §9): first and last run that saw it."""
    pairs = sorted(set(observed))
    build.execute(
        """INSERT INTO ops.observations SELECT unnest($whats), unnest($values), $run, $at, $run, $at
        ON CONFLICT DO UPDATE SET last_run_id = excluded.last_run_id, last_seen_at = excluded.last_seen_at""",
        {"whats": [what for what, _ in pairs], "values": [value for _, value in pairs], "run": run_id, "at": at},
    )
