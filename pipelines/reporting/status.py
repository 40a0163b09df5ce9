"""The state of a warehouse for a person or a monitor: lists and their age, runs, the last failure, open plans.

In: the published warehouse, the note of a failed run, the ledger. Out: `Status`, which `orderbridge status` prints.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pipelines.ledger.model import OpenPlan
from pipelines.ledger.store import Ledger
from pipelines.reporting.report_data import read_rows
from pipelines.warehouse import failure as failures
from pipelines.warehouse.build import lock_file, open_warehouse
from pipelines.warehouse.finding_history import NewFindings, new_findings
from pipelines.warehouse.lock import killed_holder
from pipelines.warehouse.ops import LastRead, last_reads
from pipelines.warehouse.schema_changes import SchemaChange, schema_changes
from sources.contract import LISTS
from sources.errors import UsageError
from sources.settings import ledger_path, warehouse_path

_CLOCK_SKEW_H: Final = 0.1
_LAST_TRY: Final = (
    "SELECT resource, arg_max(run_id, rowid), arg_max(evidence, rowid) FROM ops.coverage GROUP BY 1 ORDER BY 1"
)
_RUNS_SQL = "SELECT run_id, command, started_at, ended_at, exit_code FROM ops.runs ORDER BY rowid DESC LIMIT 5"


@dataclass(frozen=True, slots=True)
class ListStatus:
    """The last whole read of a list that was published.

    Attributes:
        rows: distinct records.
        quarantined: rows left out of it.
        age_h: hours since its end.
        tail_ended_at, tail_age_h: of the last tail after it, which read new records only; None without one.
    """

    resource: str
    verdict: str
    rows: int
    quarantined: int
    ended_at: datetime
    run_id: str
    age_h: float
    tail_ended_at: datetime | None = None
    tail_age_h: float | None = None

    def is_older_than(self, hours: float) -> bool:
        """Whether the last read, whole or a tail, is older. `pull` limits the age of the whole one itself.

        A read in the future proves no age: it was written, or is judged, by a clock that is wrong.
        """
        age = min(self.age_h, self.age_h if self.tail_age_h is None else self.tail_age_h)
        return age > hours or age < -_CLOCK_SKEW_H


@dataclass(slots=True)
class Status:
    """What `orderbridge status` shows.

    Attributes:
        lists: each list that was ever published, in the order of the contract.
        never_read: lists that were tried and never read whole.
        problems: why the last read of a list was not published, by list.
        runs: the last five, the newest first: `run_id`, `command`, `started_at`, `ended_at`, `exit_code`.
        failure: the note of the run that failed last, if none has succeeded since.
        killed: the run that was killed, if none has begun since: its process, command and beginning.
        destination_failure: the note of the copy to the destination that failed last, if none has succeeded since.
        too_old: lists older than the given age, or never read.
        open_plans: plans with operations left that can still be sent, or are to be settled.
        new_findings: what the last run that reconciled found and the one before did not.
        schema_changes: what the last pull saw of the platform's fields, types and enumerations for the first time.
    """

    warehouse: str
    lists: list[ListStatus] = field(default_factory=list)
    never_read: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)
    failure: dict[str, Any] | None = None
    killed: str = ""
    destination_failure: dict[str, Any] | None = None
    too_old: list[str] = field(default_factory=list)
    open_plans: list[OpenPlan] = field(default_factory=list)
    new_findings: list[NewFindings] = field(default_factory=list)
    schema_changes: list[SchemaChange] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the times of plans as instants like all others."""
        record = asdict(self)
        for plan in record["open_plans"]:
            for name in ("opened_at", "doubt_at"):
                plan[name] = None if plan[name] is None else datetime.fromtimestamp(plan[name], UTC)
        return record


def read_status(max_age_h: float | None = None) -> Status:
    """Reads the status. Lists not read for more than `max_age_h` hours, whole or as a tail, are `too_old`.

    Raises:
        UsageError: there is no warehouse, no note of a failure and no open plan.
    """
    if max_age_h is not None and math.isnan(max_age_h):
        raise UsageError("--max-age is not a number of hours", "Example: --max-age 26")
    path = warehouse_path()
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        status = Status(str(path), open_plans=[plan for plan in ledger.open_plans() if _can_resume(plan)])
    status.killed = killed_holder(lock_file(path))
    status.failure, status.destination_failure = failures.read(path), failures.read(path, is_destination=True)
    if path.exists() or not (status.failure or status.open_plans):
        _read_warehouse(path, status)
    if max_age_h is not None:
        status.too_old = [one.resource for one in status.lists if one.is_older_than(max_age_h)]
        status.too_old += status.never_read if status.lists else LISTS
    return status


def _can_resume(plan: OpenPlan) -> bool:
    """Whether a push or an answer can still change something: not what was never sent of a plan that is out of date."""
    if not plan.states.keys().isdisjoint(("in_flight", "in_doubt", "conflict")):
        return True
    from pipelines.push.checks import changed_file  # not needed without open plans, and imports httpx
    from pipelines.push.lookups import intact_plan

    intact = intact_plan(plan.plan_id, plan.folder)
    return intact is not None and changed_file(intact.manifest) is None


def _read_warehouse(path: Path, status: Status) -> None:
    """Adds what the warehouse has."""
    now = datetime.now(UTC)
    with open_warehouse(path) as connection:
        reads = last_reads(connection)
        tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if not {"coverage", "runs"} <= tables:
            return
        status.lists = [_list_status(reads[name], now) for name in LISTS if name in reads]
        tried = connection.execute(_LAST_TRY).fetchall()
        status.never_read = [name for name, *_ in tried if name not in reads]
        published = {name: read.newest[0] for name, read in reads.items()}
        status.problems = {name: evidence for name, run_id, evidence in tried if published.get(name) != run_id}
        status.runs = read_rows(connection, _RUNS_SQL)
        status.new_findings = new_findings(connection)
        if "observations" in tables:
            status.schema_changes = schema_changes(connection, now)


def _list_status(read: LastRead, now: datetime) -> ListStatus:
    def hours(since: datetime) -> float:
        return round((now - since).total_seconds() / 3600, 6)

    return ListStatus(
        read.resource, read.verdict, read.rows, read.quarantined_rows, read.ended_at, read.run_id, hours(read.ended_at),
        read.tail_ended_at, None if read.tail_ended_at is None else hours(read.tail_ended_at),
    )  # fmt: skip
