"""Reconcile: the raw tables through the transforms into the reconciled ones, published as a whole.

In: a build with the raw tables, the settings, and the ERP's files. Out: the tables of `reconciled` in that
build, and their counts. `orderbridge run` does this in the build of its pull, so a reader never sees new raw tables
together with old reconciled ones.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal

import duckdb
import pandas as pd

from orderbridge.pipelines.reconcile.cluster import Cluster
from orderbridge.pipelines.reconcile.entities import STEPS, Entity, StepInputs
from orderbridge.pipelines.reconcile.erp.customers import MatchSummary, match_customers
from orderbridge.pipelines.reconcile.erp.files import ErpFiles, read_erp_customers
from orderbridge.pipelines.reconcile.erp.variants import (
    VariantSummary,
    compare_variants,
    read_erp_variants,
)
from orderbridge.pipelines.reconcile.history import HISTORIES, record_history
from orderbridge.pipelines.reconcile.odd_values import lost_values
from orderbridge.pipelines.reconcile.own_checks import check_findings, read_checks
from orderbridge.pipelines.reconcile.parts import Mapper, folder_of
from orderbridge.pipelines.reconcile.value_questions import (
    ask_about_values,
    check_country,
    settings_in_force,
)
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.questions import RunQuestions
from orderbridge.pipelines.warehouse.answers.run_answers import RunAnswers
from orderbridge.pipelines.warehouse.bi.views import create_views
from orderbridge.pipelines.warehouse.build import warehouse_errors
from orderbridge.pipelines.warehouse.finding_history import (
    NewFindings,
    new_findings,
    prepare_findings,
    record_findings,
)
from orderbridge.pipelines.warehouse.new_rules import NewRule, new_rules
from orderbridge.pipelines.warehouse.raw import coverage, merge
from orderbridge.pipelines.warehouse.raw.recent_rows import BATCH_ROWS_MIN
from orderbridge.pipelines.warehouse.raw.schema_changes import enumeration
from orderbridge.pipelines.warehouse.run import WarehouseRun
from orderbridge.pipelines.warehouse.source import read_source
from orderbridge.pipelines.warehouse.sql import change_settings, replace
from orderbridge.sources.contract import LISTS
from orderbridge.sources.errors import BridgeError, ExitCode, UsageError
from orderbridge.sources.settings import ReconcileSettings, reconcile_settings, warehouse_path
from orderbridge.transforms.findings import combine_findings, rule_findings
from orderbridge.transforms.frames import constant
from orderbridge.transforms.questions import Question
from orderbridge.transforms.values.dates import DateContext, ReadDates

steps = logging.getLogger("orderbridge.steps")
MEMORY_MB: Final = 350
MEMORY_MB_PER_MILLION: Final = 12
MEMORY_MB_MAX: Final = 900
"""Of DuckDB: to begin with, for a million raw rows, and in all; the process takes 500 MB more. By default it uses most
of the machine's memory; beyond this, it writes to the disk what it can."""
THREADS: Final = 1
"""Of DuckDB. Each needs memory of its own, and two that write a table in the order of another one take twice the CPU of
one."""
_DOUBLINGS: Final = 4
FailOn = Literal["error", "warning", "never"]
"""The least severity of findings that nobody has accepted which end a run with exit code 9."""


@dataclass(slots=True)
class ReconcileResult:
    """The counts of a run.

    Attributes:
        rows: of each reconciled table.
        findings: entity, rule, severity and number of those that nobody has accepted, the most severe first.
        new: those of `findings` that the run before did not have, by rule.
        new_rules: those whose findings are info, since an older version did not have them.
        accepted: the number of accepted findings.
        questions: those that are open, assumed or contradicted.
        is_first: no run before has reconciled this warehouse.
        new_questions: the ids of those that are asked for the first time.
        fail_on: see `FailOn`.
        order_fields: the columns of the raw orders by the field that they hold; None where no column is known.
        proposed: those of `order_fields` that no setting names, with their evidence.
        left_revenue: what a new version does not count as revenue any more, in lines; empty but after an upgrade.
        never_read: lists that the warehouse has no read of.
        match: with the ERP's customers; None without a file.
        variants: of the ERP compared with what was confirmed; None without a file.
    """

    run_id: str
    path: Path
    rows: dict[str, int] = field(default_factory=dict)
    findings: list[tuple[str, str, str, int]] = field(default_factory=list)
    new: list[NewFindings] = field(default_factory=list)
    new_rules: list[NewRule] = field(default_factory=list)
    accepted: int = 0
    questions: list[Question] = field(default_factory=list)
    is_first: bool = False
    new_questions: list[str] = field(default_factory=list)
    fail_on: FailOn = "error"
    order_fields: dict[str, str | None] = field(default_factory=dict)
    proposed: dict[str, str] = field(default_factory=dict)
    left_revenue: list[str] = field(default_factory=list)
    never_read: list[str] = field(default_factory=list)
    match: MatchSummary | None = None
    variants: VariantSummary | None = None

    @property
    def severities(self) -> Counter[str]:
        """Number of findings that nobody has accepted, by severity."""
        severities: Counter[str] = Counter()
        for _, _, severity, count in self.findings:
            severities[severity] += count
        return severities

    @property
    def named(self) -> list[str]:
        """Those of `findings` that a person must know of, by rule: `8 error customers.login_missing`."""
        named = ("error", "warning") if self.fail_on == "warning" else ("error",)
        return [
            f"{count} {severity} {entity}.{rule}"
            for entity, rule, severity, count in self.findings
            if severity in named
        ]

    @property
    def exit_code(self) -> int:
        """FINDINGS, see `fail_on`; else REJECTED where lines of the ERP's files were rejected; else 0."""
        looked_at = {"error": ("error",), "warning": ("error", "warning"), "never": ()}[
            self.fail_on
        ]
        if any(
            severity in looked_at and rule != "line_refused"
            for _, rule, severity, _ in self.findings
        ):
            # a rejected line is a finding too, and has an exit code of its own
            return ExitCode.FINDINGS
        return ExitCode.REJECTED if self._has_rejected_lines() else 0

    def _has_rejected_lines(self) -> bool:
        """Whether lines of the ERP's files were rejected, and not by checks that are new in this project alone."""
        are_info = "erp_customers.line_refused" in {rule.name for rule in self.new_rules}
        has_customers = self.match is not None and bool(self.match.refused) and not are_info
        return has_customers or (self.variants is not None and bool(self.variants.refused))


def reconcile(files: ErpFiles | None = None, fail_on: FailOn = "error") -> ReconcileResult:
    """Builds the reconciled tables from the published raw ones, and publishes (`orderbridge reconcile`).

    Args:
        files: of the ERP.
        fail_on: see `FailOn`.

    Raises:
        UsageError: there is no warehouse; a setting names a column that the raw orders do not have; a file of the ERP
            cannot be used.
        LockedError: another run holds the lock. The published warehouse is unchanged after any error.
    """
    run = WarehouseRun("reconcile")
    with run.preparation():
        if not run.build.path.exists():
            raise UsageError(
                f"there is no warehouse at {run.build.path}", "Run `orderbridge run` first."
            )
        reconciling = Reconciling(files, fail_on=fail_on)
    with run.building() as build, warehouse_errors(build.path.parent):
        with build.published():
            pass  # it can be built on
        with build.open() as connection:
            result = reconciling.build_tables(connection, run.run_id, run.started_at)
            run.record(connection, result.exit_code)
            steps.info("publishing", extra={"phase": "publish"})
            build.publish(connection)
    return result


class Reconciling:
    """Reconciles in a build: in that of a pull as its `BuildStep`. `result` is set when it was called.

    The ERP's files are read when this is created, and the cluster is connected to once: what cannot be used ends a run
    before its first request. So are the acceptances of findings, and again when the tables are made.

    Raises:
        UsageError: a file, the cluster, a setting or an acceptance cannot be used.
    """

    def __init__(
        self,
        files: ErpFiles | None = None,
        settings: ReconcileSettings | None = None,
        fail_on: FailOn = "error",
    ) -> None:
        files = files or ErpFiles()
        self._fail_on = fail_on
        self._forget = files.forget
        self._erp_file = files.customers
        self._answers = RunAnswers.read()
        self._checks = read_checks()
        self._settings = settings or reconcile_settings()
        check_country(self._settings.country)
        self._cluster = Cluster(files.scheduler) if files.scheduler is not None else None
        if self._cluster is not None:
            self._cluster.check()
        self._customers, self._variants = read_erp_customers(files), read_erp_variants(files)
        self.result: ReconcileResult | None = None

    def __call__(self, build: duckdb.DuckDBPyConnection, run_id: str, at: datetime) -> int:
        """See `pipelines.pull.model.BuildStep`."""
        self.result = self.build_tables(build, run_id, at)
        return self.result.exit_code

    def build_tables(
        self, build: duckdb.DuckDBPyConnection, run_id: str, at: datetime
    ) -> ReconcileResult:
        """Makes the reconciled tables of a build, open for writing, anew and in one transaction.

        Where DuckDB runs out of the memory that it may use, they are made again with twice as much, in the end with all
        that it uses by default. `at` is the instant that promotions, birthdates and orders are compared with.

        Raises:
            UsageError: a setting names a column that the raw orders do not have; see `Cluster.mapper`.
            BridgeError: rows would be lost.
        """
        ((rows,),) = build.execute(_SIZE).fetchall()
        least_mb = min(MEMORY_MB + rows * MEMORY_MB_PER_MILLION // 1_000_000, MEMORY_MB_MAX)
        tries: list[dict[str, object]] = [
            {"memory_limit": f"{least_mb * 2**doublings}MB", "threads": THREADS}
            for doublings in range(_DOUBLINGS + 1)
        ]
        default = change_settings(build, tries[0])
        for settings, more in pairwise([*tries, default]):
            try:
                result = self._commit_tables(build, run_id, at)
            except duckdb.OutOfMemoryException:
                words = "reconciling again: DuckDB needs more memory (memory_limit = '%s')"
                steps.info(words, settings["memory_limit"])
            else:
                change_settings(build, default)
                return result
            # Here, and not above: the exception holds the frames of the part that was worked on.
            _start_again(build, more)
        return self._commit_tables(build, run_id, at)

    def _commit_tables(
        self, build: duckdb.DuckDBPyConnection, run_id: str, at: datetime
    ) -> ReconcileResult:
        mapper = (
            nullcontext(map) if self._cluster is None else self._cluster.mapper(folder_of(build))
        )
        build.begin()  # otherwise each statement would be synced to disk
        with mapper as map_tasks:
            result = self._build_tables(build, run_id, at, map_tasks)
        build.commit()
        return result

    def _build_tables(
        self, build: duckdb.DuckDBPyConnection, run_id: str, at: datetime, map_tasks: Mapper
    ) -> ReconcileResult:
        merge.create_missing(build)
        ops.create_missing(build)
        merge.rename_reserved(build)
        build.execute("CREATE SCHEMA IF NOT EXISTS reconciled")
        _check_ids(build)
        result = ReconcileResult(run_id, warehouse_path(), fail_on=self._fail_on)
        accepted = self._answers.accepted
        given = self._answers.in_force(read_source(build))
        questions = RunQuestions(build, given, accepted)
        settings = settings_in_force(self._settings, questions.answers)
        dates = DateContext(at, settings.date_order, settings.timezone)
        reviews = self._answers.reviews
        inputs = StepInputs(build, run_id, settings, dates, map_tasks, accepted, reviews, questions)
        ((earlier,),) = build.execute(_RECONCILED_BEFORE, [run_id]).fetchall()
        result.is_first = not earlier
        result.never_read = [name for name in LISTS if name not in inputs.reads]
        findings = inputs.findings
        read = _build_entities(inputs, result)
        findings.add(ask_about_values(build, questions, read, settings))
        steps.info("reconciling histories, files of the ERP and findings")
        for history in HISTORIES:
            versions, current = record_history(build, history)
            result.rows[history.name] = versions
            totals = {"versions": versions, "current": current}
            ops.record_totals(build, run_id, history.table, totals)
        ops.record_promotion_uses(build, run_id)
        result.match, match_findings = match_customers(inputs, self._customers, forget=self._forget)
        findings.add(match_findings)
        result.variants = compare_variants(build, run_id, self._variants, forget=self._forget)
        for name in LISTS:
            about_list = coverage.list_findings(build, inputs.reads, name)
            lost = lost_values(inputs.recent(name), accepted, _NEWEST.get(name))
            findings.add(combine_findings([*about_list, *lost]))
        build.execute(_AS_OF, [at, dates.today, dates.zone])
        prepare_findings(build)
        create_views(build)
        findings.add(check_findings(build, self._checks, folder_of(build)))
        written = findings.written()
        result.new_rules = new_rules(build, run_id, written, self._answers.hash)
        result.rows["exceptions"], result.accepted = record_findings(
            build, run_id, at, written, accepted, result.new_rules
        )
        result.findings = build.execute(_FINDINGS).fetchall()
        result.new = new_findings(build)
        result.new_questions = [one.id for one in questions.record(build, run_id, at)]
        result.questions = [one for one in questions.decided if one.is_asked]
        observed = _observations(build, result, read)
        if self._erp_file is not None:
            observed.append((ops.ERP_FILE, self._erp_file.name))
        ops.record_observations(build, run_id, at, observed)
        ops.record_reconciled_reads(build, run_id)
        return result


def _check_ids(build: duckdb.DuckDBPyConnection) -> None:
    """Each id is of one row. Raises BridgeError."""
    for name in LISTS:
        if ids := build.execute(_NOT_UNIQUE.format(table=name)).fetchall():
            raise BridgeError(
                f"raw.{name}: {len(ids)} ids are of several rows, which no pull writes",
                f"Keep one row of each, with DuckDB: {_KEEP_ONE.format(table=name)}",
            )


def _build_entities(inputs: StepInputs, result: ReconcileResult) -> dict[str, ReadDates]:
    """Makes the table of each entity. Returns how dates were read, by entity."""
    findings = inputs.findings
    read: dict[str, ReadDates] = {}
    for name, step in STEPS.items():
        steps.info("reconciling %s", name, extra={"phase": "reconcile"})
        found_before = findings.count, findings.errors
        if name in LISTS:
            no_ids = constant(None, pd.RangeIndex(inputs.parts.blank_rows(name)))
            findings.add(rule_findings(name, "id_missing", no_ids))
        entity = step(inputs)
        _record_entity(inputs, result, name, entity, found_before)
        result.order_fields |= entity.order_fields
        result.proposed |= entity.proposed
        result.left_revenue += entity.left_revenue
        if entity.dates is not None:
            read[name] = entity.dates
        del entity  # its rows are in the build: they need not be held while the next step works
    return read


def _observations(
    build: duckdb.DuckDBPyConnection, result: ReconcileResult, read: Mapping[str, ReadDates]
) -> list[tuple[str, str]]:
    """What was seen of what the interface leaves open."""
    dates = [("date_format", f"{name}: {one.form}") for name, one in read.items()]
    fields = [
        ("order_fields", f"{name}: {column}")
        for name, column in result.order_fields.items()
        if column
    ]
    statuses = build.execute("SELECT DISTINCT order_status FROM reconciled.orders").fetchall()
    return [*dates, *fields, *enumeration("orders.order_status", statuses)]


def _start_again(build: duckdb.DuckDBPyConnection, settings: Mapping[str, object]) -> None:
    """Undoes what a run out of memory has left, with other settings of DuckDB.

    An aborted transaction executes nothing, and its rollback takes memory: another cursor gives it that before.
    """
    with build.cursor() as cursor:
        change_settings(cursor, settings)
    build.rollback()
    build.execute("RESET disabled_optimizers")  # of a step that was interrupted
    for file in folder_of(build).glob("*.parquet"):
        file.unlink()


_RECONCILED_BEFORE: Final = """
    SELECT count(*) FROM ops.control_totals WHERE entity LIKE 'reconciled.%' AND run_id <> ?"""
_SIZE: Final = """
    SELECT coalesce(sum(estimated_size), 0)::BIGINT FROM duckdb_tables() WHERE schema_name = 'raw'"""
_NOT_UNIQUE: Final = """
    SELECT id FROM raw.{table}
    WHERE hash(id) IN (SELECT hash(id) FROM raw.{table} GROUP BY ALL HAVING count(*) > 1)
    GROUP BY id HAVING id IS NOT NULL AND count(*) > 1"""
_KEEP_ONE: Final = (
    "DELETE FROM raw.{table} WHERE id IS NOT NULL "
    "AND rowid NOT IN (SELECT max(rowid) FROM raw.{table} GROUP BY id);"
)
_NEWEST_ROWS: Final = """
    SELECT {key} AS id FROM reconciled.{table} WHERE NOT is_missing AND {date} IS NOT NULL
    ORDER BY {date} DESC LIMIT {limit}"""
_NEWEST: Final = {
    table: _NEWEST_ROWS.format(table=table, key=key, date=date, limit=BATCH_ROWS_MIN)
    for table, key, date in (
        ("customers", "customer_id", "created_at"),
        ("orders", "order_id", "ordered_at"),
    )
}
"""The newest rows of the lists whose records have a date. So few, as fields that are filled later are empty in the
newest rows only."""
_AS_OF: Final = """
    CREATE OR REPLACE TABLE reconciled.as_of AS
    SELECT $1::TIMESTAMPTZ AS as_of, $2::DATE AS today, $3::VARCHAR AS time_zone"""
_FINDINGS: Final = """
    SELECT entity, rule, severity, count(*) FROM reconciled.exceptions WHERE NOT is_accepted
    GROUP BY entity, rule, severity
    ORDER BY CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, count(*) DESC, entity, rule"""


def _record_entity(
    inputs: StepInputs,
    result: ReconcileResult,
    name: str,
    entity: Entity,
    found_before: tuple[int, int],
) -> None:
    """Writes the table of an entity and its totals; `found_before` are the findings, and the errors, of earlier ones.

    Raises:
        BridgeError: a raw row is neither in the table nor in a finding of severity `error`.
    """
    if entity.table is not None:
        replace(inputs.build, name, entity.table)
    rows = inputs.row_count(f"reconciled.{name}")
    errors = inputs.findings.errors - found_before[1]
    raw_rows = inputs.row_count(f"raw.{name}") if entity.raw_rows is None else entity.raw_rows
    if not raw_rows - errors <= rows <= raw_rows:
        raise BridgeError(
            f"{name}: {raw_rows} raw rows, {rows} reconciled, {errors} errors: the totals do not balance"
        )
    result.rows[name] = rows
    totals = {
        "raw": raw_rows,
        "reconciled": rows,
        "findings": inputs.findings.count - found_before[0],
    }
    ops.record_totals(inputs.build, result.run_id, f"reconciled.{name}", totals)
