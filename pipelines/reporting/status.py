"""The state of a warehouse for a person or a monitor: lists and their age, runs, the last failure, open plans.

In: the published warehouse, the note of a failed run, the ledger. Out: `Status`, which `orderbridge status` prints.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from orderbridge.pipelines.ledger.lock import ledger_lock_file
from orderbridge.pipelines.ledger.model import FINAL_STATES, OpenPlan
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.pushed_columns import newest_by_header
from orderbridge.pipelines.questions.model import AskedQuestion
from orderbridge.pipelines.questions.questions import asked_questions
from orderbridge.pipelines.reporting.plan_folders import PlanFolder, removable_plans
from orderbridge.pipelines.warehouse import failure as failures
from orderbridge.pipelines.warehouse.build import lock_file, open_warehouse
from orderbridge.pipelines.warehouse.finding_history import NewFindings, new_findings
from orderbridge.pipelines.warehouse.lock import lock_holder
from orderbridge.pipelines.warehouse.ops import LastRead, last_reads
from orderbridge.pipelines.warehouse.raw.schema_changes import SchemaChange, schema_changes
from orderbridge.pipelines.warehouse.sql import read_rows
from orderbridge.sources.command_line import typed_command
from orderbridge.sources.contract import LISTS
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KINDS, KindName, additive_fields
from orderbridge.sources.settings import is_set, ledger_path, legacy_settings, warehouse_path

if TYPE_CHECKING:
    from orderbridge.pipelines.push.next_steps import Step

_CLOCK_SKEW_H: Final = 0.1
_FAILED_MAX: Final = 5
_LAST_TRY: Final = """
    SELECT resource, arg_max(run_id, rowid), arg_max(evidence, rowid)
    FROM ops.coverage GROUP BY 1 ORDER BY 1"""
_RUNS_SQL: Final = """
    SELECT run_id, if(command = 'import', 'pull (import)', command) AS command, started_at, ended_at, exit_code
    FROM ops.runs ORDER BY ops.runs.rowid DESC LIMIT 5"""
"""The row of an import is that of its pull. How the import itself ended is in its plan folder."""


@dataclass(slots=True)
class Status:
    """What `orderbridge status` shows.

    Attributes:
        lists: the last whole read of each list that was ever published, in the order of the contract.
        at: the time that its ages refer to.
        never_read: lists that were tried and never read whole.
        problems: why the last read of a list was not published, by list.
        runs: the last five, the newest first: `run_id`, `command`, `started_at`, `ended_at`, `exit_code`, which is that
            of the copy to the destination where it failed. The pull of an import is `pull (import)`: its exit code is
            not that of the import.
        failed_runs: those that failed after the first of `runs`, the newest first, also where one has succeeded since:
            `command`, `failed_at`, `exit_code`, `message`.
        failure: the note of the run that failed last, if none has succeeded since.
        running: the run that is going on: its process, command and beginning.
        killed: the run that was killed, if none has begun since, likewise.
        destination_failure: the note of the copy to the destination that failed last, if none has succeeded since.
        max_age_h: the given age, in hours.
        too_old: lists older than it, or never read.
        questions: how many are asked, by state.
        open_plans: plans with operations left that can still be sent, or are to be settled.
        is_sending: a command works on the ledger now: requests in flight are on their way, and not unknown.
        removable_plans: plan folders that can go.
        new_findings: what the last run that reconciled found and the one before did not.
        schema_changes: what the last pull saw of the platform's fields, types and enumerations for the first time.
    """

    warehouse: str
    lists: list[LastRead] = field(default_factory=list)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    never_read: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)
    failed_runs: list[dict[str, Any]] = field(default_factory=list)
    failure: dict[str, Any] | None = None
    running: str = ""
    killed: str = ""
    destination_failure: dict[str, Any] | None = None
    max_age_h: float | None = None
    too_old: list[str] = field(default_factory=list)
    questions: dict[str, int] = field(default_factory=dict)
    open_plans: list[OpenPlan] = field(default_factory=list)
    is_sending: bool = False
    removable_plans: list[PlanFolder] = field(default_factory=list)
    new_findings: list[NewFindings] = field(default_factory=list)
    schema_changes: list[SchemaChange] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: lists with their ages in hours, the times of plans as instants like all others."""
        record = asdict(self)
        for read, one in zip(record["lists"], self.lists, strict=True):
            ages = zip(("age_h", "tail_age_h"), [*one.ages_h(self.at), None], strict=False)
            read |= {"quarantined": one.quarantined_rows, **dict(ages)}
        for plan in record["open_plans"]:
            for name in ("opened_at", "doubt_at"):
                plan[name] = None if plan[name] is None else datetime.fromtimestamp(plan[name], UTC)
        return record


def read_status(
    max_age_h: float | None = None, asked: Sequence[AskedQuestion] | None = None
) -> Status:
    """Reads the status. Lists not read for more than `max_age_h` hours, whole or as a tail, are `too_old`.

    `asked` are the questions, where they were read before.

    Raises:
        UsageError: there is no warehouse, no note of a failure, no run, no open plan and none that can go.
    """
    if max_age_h is not None and math.isnan(max_age_h):
        raise UsageError(
            "--max-age is not a number of hours", f"Give one: {typed_command('--max-age', '26')}"
        )
    path = warehouse_path()
    status = Status(str(path), max_age_h=max_age_h)
    _read_plans(status)
    holder, is_running = lock_holder(lock_file(path))
    if is_running:
        status.running = holder
    else:
        status.killed = holder
    status.failure = failures.read(path)
    status.destination_failure = failures.read(path, is_destination=True)
    is_anything_known = status.failure or status.open_plans or status.removable_plans or is_running
    if path.exists() or not is_anything_known:
        _read_warehouse(path, status)
    status.failed_runs = _failed_since(path, status)
    asked = asked_questions() if asked is None else asked
    status.questions = dict(Counter(one.state for one in asked))
    if max_age_h is not None:
        status.too_old = _older_lists(status, max_age_h)
    return status


def _read_plans(status: Status) -> None:
    """Adds the plans of the ledger that are not finished, and the folders that nothing needs any more."""
    # before the states are read: a push that ends meanwhile leaves nothing in flight
    status.is_sending = lock_holder(ledger_lock_file(ledger_path()))[1]
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        unfinished = ledger.open_plans()
        left = [_without_overtaken(plan, status, ledger) for plan in unfinished]
        needed = _plans_with_columns(ledger)
    unfinished_ids = {plan.plan_id for plan in unfinished}
    status.open_plans = [plan for plan in left if _is_open(plan) and can_resume(plan)]
    status.removable_plans = removable_plans(unfinished_ids | needed, status.at)


def _without_overtaken(plan: OpenPlan, status: Status, ledger: Ledger) -> OpenPlan:
    """A plan without what another one has confirmed since: it is never sent.

    Nothing is searched while the plan is being sent: a page asks every few seconds then.
    """
    if "planned" not in plan.states or is_being_sent(plan, status):
        return plan
    overtaken = ledger.overtaken(plan.plan_id)
    states = Counter(plan.states) - Counter({"planned": overtaken})
    return replace(plan, states=dict(states))


def _is_open(plan: OpenPlan) -> bool:
    return not set(plan.states) <= set(FINAL_STATES)


def is_being_sent(plan: OpenPlan, status: Status) -> bool:
    """Whether a command is sending the plan: the ledger is locked, and a request of the plan has no answer yet."""
    return status.is_sending and "in_flight" in plan.states


def _older_lists(status: Status, max_age_h: float) -> list[str]:
    """The lists that were last read too long ago, or never."""
    if not status.lists:
        return [*LISTS]
    old = [one.resource for one in status.lists if _is_older(one.ages_h(status.at), max_age_h)]
    return [*old, *status.never_read]


def _failed_since(path: Path, status: Status) -> list[dict[str, Any]]:
    """The runs that failed since the first of those that are shown, without the one whose note is."""
    shown = (status.failure or {}).get("failed_at")
    since = min((run["ended_at"].replace(tzinfo=UTC) for run in status.runs), default=status.at)
    return [
        one
        for one in failures.past_failures(path)
        if one["failed_at"] != shown and datetime.fromisoformat(one["failed_at"]) > since
    ][:_FAILED_MAX]


def _plans_with_columns(ledger: Ledger) -> set[str]:
    """The plans whose columns the next plan without a mapping goes on with."""
    if not is_set("sources.legacy"):
        return set()
    host = legacy_settings().base_url
    return {
        one.plan_id for kind in get_args(KindName) for one in newest_by_header(ledger, host, kind)
    }


def _is_older(ages_h: list[float], max_age_h: float) -> bool:
    """Whether the last read, whole or a tail, is older. `pull` limits the age of the whole one itself.

    A read in the future proves no age: it was written, or is judged, by a clock that is wrong.
    """
    return not -_CLOCK_SKEW_H <= min(ages_h) <= max_age_h


def can_resume(plan: OpenPlan) -> bool:
    """Whether a push or an answer can still change something: not what was never sent of a plan that is out of date."""
    if not plan.states.keys().isdisjoint(("in_flight", "in_doubt", "conflict")):
        return True
    # not needed without open plans, and imports httpx
    from orderbridge.pipelines.push.lookups import intact_plan

    intact = intact_plan(plan.plan_id, plan.folder)
    return intact is not None and intact.manifest.changed_file() is None


def next_steps(plan: OpenPlan) -> list[Step]:
    """What ends the operations of an open plan, each step once."""
    # not needed without open plans, and imports httpx
    from orderbridge.pipelines.push.lookups import steps_of_plan
    from orderbridge.pipelines.push.next_steps import ACTIONS, Action, action_of
    from orderbridge.pipelines.push.plan_ledger import PlanLedger
    from orderbridge.pipelines.push.rules import SETTLE_S

    steps = steps_of_plan(plan.plan_id, plan.folder)
    semantics = legacy_settings().semantics if is_set("sources.legacy") else {}
    additive = additive_fields(semantics)
    kind = KINDS[cast("KindName", plan.kind)]
    latest: dict[Action, float] = {}
    if "planned" in plan.states and not steps.is_lost:  # else nobody can send it any more
        latest["again"] = 0.0
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        now = ledger.clock.now()
        kept = ledger.settle_s(plan.plan_id)
        settle_s = SETTLE_S if kept is None or steps.is_lost else kept
        for group in PlanLedger(ledger, plan.plan_id).unsettled_groups():
            is_additive = bool(additive & set(group.fields))
            for since in (group.first_at, group.last_at):
                settles_at = since + settle_s
                action = action_of(
                    group.state,
                    is_listed=kind.is_listed,
                    is_repeatable=kind.is_update and not is_additive and not steps.is_lost,
                    settles_at=settles_at,
                    now=now,
                )
                at = ledger.clock.wall_time(settles_at)
                latest[action] = max(at, latest.get(action, 0.0))
    return [steps.step(action, at=latest[action]) for action in ACTIONS if action in latest]


def _read_warehouse(path: Path, status: Status) -> None:
    """Adds what the warehouse has."""
    with open_warehouse(path) as connection:
        reads = last_reads(connection)
        tables = {
            name
            for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        }
        if not {"coverage", "runs"} <= tables:
            return
        status.lists = [reads[name] for name in LISTS if name in reads]
        tried = connection.execute(_LAST_TRY).fetchall()
        status.never_read = [name for name, *_ in tried if name not in reads]
        published = {name: read.newest[0] for name, read in reads.items()}
        status.problems = {
            name: evidence for name, run_id, evidence in tried if published.get(name) != run_id
        }
        status.runs = read_rows(connection, _RUNS_SQL)
        copies = failures.failed_copies(path)
        for run in status.runs:
            run["exit_code"] = copies.get(run["run_id"], run["exit_code"])
        status.new_findings = new_findings(connection)
        if "observations" in tables:
            status.schema_changes = schema_changes(connection, status.at)
