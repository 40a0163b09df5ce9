"""Reconcile: the raw tables through the transforms into the reconciled ones, published as a whole.

In: a build that holds `raw` (design §6), the fields of an order where the settings name them. Out: the tables of
`reconciled` in that build, with what was found counted. `orderbridge run` does this in the build of its pull, so that
a reader never sees new raw tables beside old reconciled ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb

from pipelines.reconcile import history
from pipelines.reconcile.erp_customers import ErpCustomers, ErpFiles, MatchSummary, match_into, read_customers
from pipelines.reconcile.erp_variants import ErpVariants, VariantSummary, compare_into, read_variants
from pipelines.warehouse import coverage, merge, ops
from pipelines.warehouse.build import warehouse_errors
from pipelines.warehouse.run import WarehouseRun
from pipelines.warehouse.tables import replace
from sources.errors import BridgeError, ExitCode, UsageError
from sources.settings import ReconcileSettings, reconcile_settings, warehouse_path

if TYPE_CHECKING:
    import pandas as pd

    from transforms.dates import DateColumn

ENTITIES: Final = ("customers", "promotions", "price_lists", "orders")


@dataclass(slots=True)
class ReconcileResult:
    """What reconciling made.

    Attributes:
        rows: of each reconciled table.
        findings: entity, rule, severity and how many, the gravest first.
        order_fields: the columns of the raw orders that are read as customer, instant and total, or None.
        proposed: those of `order_fields` that no setting names, with the evidence that chose them.
        match: with the ERP's customers, where a file of them was told.
        variants: the ERP's beside what was last confirmed, likewise.
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
    def exit_code(self) -> int:
        """Whether lines of the ERP's files were refused."""
        return ExitCode.REJECTED if any(one is not None and one.refused for one in (self.match, self.variants)) else 0


@dataclass(frozen=True, slots=True)
class ErpInputs:
    """What the ERP's files hold, read before anything else is done; None for a file that is not told."""

    customers: ErpCustomers | None = None
    variants: ErpVariants | None = None

    @classmethod
    def read(cls, files: ErpFiles) -> ErpInputs:
        """Reads them. Raises UsageError."""
        return cls(read_customers(files), read_variants(files.variants, files.variants_mapping))


def reconcile(files: ErpFiles | None = None) -> ReconcileResult:
    """Builds the reconciled tables from the published raw ones, and publishes (design §5, `orderbridge reconcile`).

    Args:
        files: of the ERP's, to be compared.

    Raises:
        UsageError: there is no warehouse; a setting names a field of orders that is not there; a file of the ERP's
            cannot be used.
        LockedError: another run is at work. In every case the old file stays as it was.
    """
    run = WarehouseRun("reconcile")
    with run.preparation():
        settings = reconcile_settings()
        if not run.build.path.exists():
            raise UsageError(f"there is no warehouse at {run.build.path}", "Run `orderbridge pull` first.")
        erp = ErpInputs.read(files or ErpFiles())
    result = ReconcileResult(run.run_id, run.build.path)
    with run.building() as build, warehouse_errors(build.path.parent), build.open() as connection:
        into(connection, result, settings, run.started_at, erp)
        run.record(connection, result.exit_code)
        build.publish(connection)
    return result


class Reconciling:
    """Reconciles in the build of a pull, as its `after`. `made` is there once it was called.

    Files of the ERP's are read when it is made: one that cannot be used ends the run before its first request.
    """

    def __init__(self, files: ErpFiles | None = None) -> None:
        self._settings = reconcile_settings()
        self._erp = ErpInputs.read(files or ErpFiles())
        self.made: ReconcileResult | None = None

    def __call__(self, build: duckdb.DuckDBPyConnection, run_id: str, at: datetime) -> int:
        """See `pipelines.pull.model.BuildStep`."""
        self.made = ReconcileResult(run_id, warehouse_path())
        into(build, self.made, self._settings, at, self._erp)
        return self.made.exit_code


def into(
    build: duckdb.DuckDBPyConnection,
    made: ReconcileResult,
    settings: ReconcileSettings,
    as_of: datetime,
    erp: ErpInputs,
) -> None:
    """Makes the reconciled tables of a build anew, and fills in `made`.

    Args:
        build: open for writing.
        made: its run and path are told.
        settings: what is told of the raw tables.
        as_of: the instant that promotions, birthdates and orders are held against.
        erp: what the ERP's files hold.

    Raises:
        UsageError: a setting names a column that the raw orders have not.
        BridgeError: rows would have been lost.
    """
    from transforms.customers import customers
    from transforms.findings import combine_findings
    from transforms.order_fields import OrderFields, choose_fields
    from transforms.orders import orders
    from transforms.price_lists import price_lists
    from transforms.promotions import promotions

    merge.create_missing(build)
    ops.create_missing(build)
    build.execute("CREATE SCHEMA IF NOT EXISTS reconciled")
    came = {table: _frame(build, f"raw.{table}") for table in (*ENTITIES, "customers__documents")}

    frames: dict[str, pd.DataFrame] = {}
    found: dict[str, pd.DataFrame] = {}
    dates: dict[str, DateColumn] = {}
    frames["customers"], found["customers"], dates["customers"] = customers(
        came["customers"],
        came["customers__documents"],
        came["price_lists"],
        as_of,
        settings.date_order,
        coverage.coverage_gap(build, "price_lists", "customers"),
        settings.timezone,
    )
    frames["promotions"], found["promotions"], dates["promotions"] = promotions(
        came["promotions"], as_of, settings.date_order, settings.timezone
    )
    frames["price_lists"], found["price_lists"] = price_lists(
        came["price_lists"], frames["customers"], coverage.coverage_gap(build, "price_lists")
    )
    named = asdict(settings.orders)
    for name, column in named.items():
        if column is not None and column not in came["orders"]:
            raise UsageError(
                f"reconcile.order_{name} names the column {column!r}, which raw.orders has not",
                "Its columns: DESCRIBE raw.orders. Or leave the setting out: a field is looked for.",
            )
    configured = OrderFields(
        named["customer_id"], named["ordered_at"], named["total"], named["status"], named["currency"]
    )
    choice = choose_fields(came["orders"], frames["customers"], configured, date_order=settings.date_order)
    found["order_fields"] = choice.findings
    made.order_fields = asdict(choice.fields)
    chosen = {name: column for name, column in choice.fields.columns().items() if name not in configured.columns()}
    made.proposed = {name: choice.evidence[column] for name, column in chosen.items()}
    reconciled_orders = orders(
        came["orders"],
        frames["customers"],
        choice.fields,
        as_of,
        settings.date_order,
        coverage.coverage_gap(build, "customers", "orders"),
        settings.timezone,
    )
    frames["orders"], found["orders"] = reconciled_orders.orders, reconciled_orders.findings
    dates["orders"] = reconciled_orders.dates

    for entity in ENTITIES:
        _check(entity, len(came[entity]), len(frames[entity]), found[entity])
        replace(build, entity, frames[entity])
        made.rows[entity] = len(frames[entity])
        ops.record_totals(
            build,
            made.run_id,
            f"reconciled.{entity}",
            {"raw": len(came[entity]), "reconciled": len(frames[entity]), "findings": len(found[entity])},
        )
    made.rows[history.NAME], current = history.record(build)
    ops.record_totals(
        build, made.run_id, f"reconciled.{history.NAME}", {"versions": made.rows[history.NAME], "current": current}
    )
    made.match, found["erp"] = match_into(
        build,
        made.run_id,
        erp.customers,
        frames["customers"],
        came["customers__documents"],
        coverage.coverage_gap(build, "customers"),
    )
    made.variants = compare_into(build, made.run_id, erp.variants)
    import pandas as pd

    unproven = [one for entity in ENTITIES for one in coverage.unproven(build, entity)]
    findings = pd.concat([*(combine_findings([one]) for one in found.values()), *unproven], ignore_index=True)
    replace(build, "exceptions", findings)
    made.rows["exceptions"] = len(findings)
    made.findings = build.execute(
        """SELECT entity, rule, severity, count(*) FROM reconciled.exceptions GROUP BY entity, rule, severity
        ORDER BY CASE severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, count(*) DESC, entity, rule"""
    ).fetchall()
    ops.record_observations(build, made.run_id, as_of, _observed(dates, made.order_fields))


def _observed(dates: Mapping[str, DateColumn], fields: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """What was seen of the gaps: the form of the dates, and the fields of an order (design §9)."""
    seen = [("date_format", f"{entity}: {read.form}") for entity, read in dates.items()]
    return seen + [("order_fields", f"{name}: {column}") for name, column in fields.items() if column]


def _frame(build: duckdb.DuckDBPyConnection, table: str) -> pd.DataFrame:
    from transforms.frames import from_arrow

    return from_arrow(build.sql(f"FROM {table}").to_arrow_table())


def _check(entity: str, came: int, kept: int, findings: pd.DataFrame) -> None:
    """No row is lost in silence: what is not in the table is a finding of severity `error` (promise 2)."""
    errors = int((findings["severity"] == "error").sum())
    if not came - errors <= kept <= came:
        raise BridgeError(f"{entity}: {came} raw rows, {kept} reconciled, {errors} errors: the totals do not balance")
