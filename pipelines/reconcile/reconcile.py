"""Reconcile: the raw tables through the transforms into the reconciled ones, published as a whole.

In: a build with the raw tables, the settings, and the ERP's files. Out: the tables of `reconciled` in that
build, and their counts. `orderbridge run` does this in the build of its pull, so a reader never sees new raw tables
together with old reconciled ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import duckdb

from pipelines.reconcile.cluster import Cluster
from pipelines.reconcile.entities import ENTITIES, STEPS, Entity, Inputs
from pipelines.reconcile.erp_customers import MatchSummary, match_customers
from pipelines.reconcile.erp_files import ErpCustomers, ErpFiles, read_customers
from pipelines.reconcile.erp_variants import ErpVariants, VariantSummary, compare_variants, read_variants
from pipelines.reconcile.history import HISTORIES, record_history
from pipelines.warehouse import coverage, merge, ops
from pipelines.warehouse.build import warehouse_errors
from pipelines.warehouse.run import WarehouseRun
from pipelines.warehouse.schema_changes import enumeration
from pipelines.warehouse.tables import replace
from pipelines.warehouse.views import create_views
from sources.errors import BridgeError, ExitCode, UsageError
from sources.settings import ReconcileSettings, reconcile_settings, warehouse_path


@dataclass(slots=True)
class ReconcileResult:
    """The counts of a run.

    Attributes:
        rows: of each reconciled table.
        findings: entity, rule, severity and number, the most severe first.
        order_fields: the columns of the raw orders by the field that they hold; None where no column is known.
        proposed: those of `order_fields` that no setting names, with their evidence.
        match: with the ERP's customers; None without a file.
        variants: of the ERP compared with what was confirmed; None without a file.
    """

    run_id: str
    path: Path
    rows: dict[str, int] = field(default_factory=dict)
    findings: list[tuple[str, str, str, int]] = field(default_factory=list)
    order_fields: dict[str, str | None] = field(default_factory=dict)
    proposed: dict[str, str] = field(default_factory=dict)
    match: MatchSummary | None = None
    variants: VariantSummary | None = None

    @property
    def severities(self) -> Counter[str]:
        """Number of findings by severity."""
        severities: Counter[str] = Counter()
        for _, _, severity, count in self.findings:
            severities[severity] += count
        return severities

    @property
    def exit_code(self) -> int:
        """REJECTED where lines of the ERP's files were rejected, else 0."""
        return ExitCode.REJECTED if any(one is not None and one.refused for one in (self.match, self.variants)) else 0


@dataclass(frozen=True, slots=True)
class ErpInputs:
    """The contents of the ERP's files, read before anything else is done; None without a file.

    `cluster` is the one that makes and matches the customers; None: this process does.
    """

    customers: ErpCustomers | None = None
    variants: ErpVariants | None = None
    cluster: Cluster | None = None

    @classmethod
    def read(cls, files: ErpFiles) -> ErpInputs:
        """Reads the files, and connects to the cluster once. Raises UsageError."""
        cluster = Cluster(files.scheduler) if files.scheduler is not None else None
        if cluster is not None:
            cluster.check()
        return cls(read_customers(files), read_variants(files), cluster)


def reconcile(files: ErpFiles | None = None) -> ReconcileResult:
    """Builds the reconciled tables from the published raw ones, and publishes (`orderbridge reconcile`).

    Args:
        files: of the ERP, to be compared with the platform.

    Raises:
        UsageError: there is no warehouse; a setting names a column that the raw orders do not have; a file of the ERP
            cannot be used.
        LockedError: another run holds the lock. The published warehouse is unchanged after any error.
    """
    run = WarehouseRun("reconcile")
    with run.preparation():
        settings = _settings()
        if not run.build.path.exists():
            raise UsageError(f"there is no warehouse at {run.build.path}", "Run `orderbridge pull` first.")
        erp = ErpInputs.read(files or ErpFiles())
    result = ReconcileResult(run.run_id, run.build.path)
    with run.building() as build, warehouse_errors(build.path.parent), build.open() as connection:
        build_tables(connection, result, settings, run.started_at, erp)
        run.record(connection, result.exit_code)
        build.publish(connection)
    return result


def _settings() -> ReconcileSettings:
    """The settings of reconciling. Raises UsageError for a country whose phone numbers are not known."""
    settings = reconcile_settings()
    if settings.country is not None:
        from transforms.phones import CALLING_CODES

        if settings.country not in CALLING_CODES:
            raise UsageError(
                f"reconcile.country is {settings.country}, which is not a country with a calling code",
                "Set it to a code of ISO 3166-1, such as ES; the United Kingdom is GB.",
            )
    return settings


class Reconciling:
    """Reconciles in the build of a pull (a `BuildStep`). `result` is set when it was called.

    The ERP's files are read when this is created, so a file that cannot be used ends the run before its first request.
    """

    def __init__(self, files: ErpFiles | None = None) -> None:
        self._settings = _settings()
        self._erp = ErpInputs.read(files or ErpFiles())
        self.result: ReconcileResult | None = None

    def __call__(self, build: duckdb.DuckDBPyConnection, run_id: str, at: datetime) -> int:
        """See `pipelines.pull.model.BuildStep`."""
        self.result = ReconcileResult(run_id, warehouse_path())
        build_tables(build, self.result, self._settings, at, self._erp)
        return self.result.exit_code


def build_tables(
    build: duckdb.DuckDBPyConnection,
    result: ReconcileResult,
    settings: ReconcileSettings,
    as_of: datetime,
    erp: ErpInputs,
) -> None:
    """Makes the reconciled tables of a build anew, and fills in `result`.

    Args:
        build: open for writing.
        result: has its run and path.
        settings: of reconciling.
        as_of: the instant that promotions, birthdates and orders are compared with.
        erp: contents of the ERP's files.

    Raises:
        UsageError: a setting names a column that the raw orders do not have.
        BridgeError: rows would be lost.
    """
    import pandas as pd

    from transforms.findings import combine_findings

    merge.create_missing(build)
    ops.create_missing(build)
    build.execute("CREATE SCHEMA IF NOT EXISTS reconciled")
    inputs = Inputs.read(build, result.run_id, settings, as_of, erp.cluster)
    findings, observed = [], []
    for name, step in STEPS.items():
        entity = step(inputs)
        raw_rows = len(inputs.raw[name]) if entity.raw_rows is None else entity.raw_rows
        _record_entity(build, result, name, raw_rows, entity)
        inputs.reconciled[name] = entity.table
        findings.append(combine_findings([entity.findings]))
        result.order_fields |= entity.order_fields
        result.proposed |= entity.proposed
        if entity.dates is not None:
            observed.append(("date_format", f"{name}: {entity.dates.form}"))
    for history in HISTORIES:
        result.rows[history.name], current = record_history(build, history)
        totals = {"versions": result.rows[history.name], "current": current}
        ops.record_totals(build, result.run_id, history.table, totals)
    result.match, match_findings = match_customers(build, result.run_id, erp.customers, inputs)
    result.variants = compare_variants(build, result.run_id, erp.variants)
    findings.append(match_findings)
    for name in ENTITIES:
        for check in (coverage.unproven, coverage.proven_before, coverage.duplicate_ids):
            findings += check(build, inputs.reads, name)
    exceptions = pd.concat(findings, ignore_index=True)
    replace(build, "exceptions", exceptions)
    result.rows["exceptions"] = len(exceptions)
    result.findings = build.execute(_FINDINGS).fetchall()
    observed += [("order_fields", f"{name}: {column}") for name, column in result.order_fields.items() if column]
    statuses = build.execute("SELECT DISTINCT order_status FROM reconciled.orders").fetchall()
    observed += enumeration("orders.order_status", statuses)
    ops.record_observations(build, result.run_id, as_of, observed)
    create_views(build)


_FINDINGS: Final = """
    SELECT entity, rule, severity, count(*) FROM reconciled.exceptions GROUP BY entity, rule, severity
    ORDER BY CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, count(*) DESC, entity, rule"""


def _record_entity(
    build: duckdb.DuckDBPyConnection, result: ReconcileResult, name: str, raw_rows: int, entity: Entity
) -> None:
    """Writes the table of an entity and its totals.

    Raises:
        BridgeError: a raw row is neither in the table nor in a finding of severity `error` (design, promise 2).
    """
    rows, errors = len(entity.table), int((entity.findings["severity"] == "error").sum())
    if not raw_rows - errors <= rows <= raw_rows:
        raise BridgeError(f"{name}: {raw_rows} raw rows, {rows} reconciled, {errors} errors: the totals do not balance")
    if not entity.is_stored:
        replace(build, name, entity.table)
    result.rows[name] = rows
    totals = {"raw": raw_rows, "reconciled": rows, "findings": len(entity.findings)}
    ops.record_totals(build, result.run_id, f"reconciled.{name}", totals)
