"""The reconciled entities: what each is made from, in the order in which they are made.

In: the raw tables of a build, the settings, and the entities made before. Out: a frame for each reconciled table, with
its findings and how its dates were read. The transforms make the frames. Only the columns that orders are read from are
written here: a run pins them in `ops.order_fields` for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import duckdb
import pandas as pd

from pipelines.reconcile.cluster import Cluster
from pipelines.reconcile.customers_on_cluster import customers_on_cluster
from pipelines.reconcile.odd_values import odd_values
from pipelines.warehouse import coverage, ops
from pipelines.warehouse.sql import table_names
from sources.errors import UsageError
from sources.settings import ReconcileSettings
from transforms.customer_index import ORDERING_CUSTOMERS
from transforms.customers import customers
from transforms.dates import DateColumn, DateContext
from transforms.findings import FINDINGS, combine_findings
from transforms.frames import BIGINT, constant, frame, from_arrow
from transforms.order_fields import ORDER_FIELDS, OrderFields, choose_fields
from transforms.order_totals import ORDER_LINES, customer_orders, lines_tables, order_lines
from transforms.orders import ORDERS, orders
from transforms.price_lists import CUSTOMER_PRICE_LISTS, price_lists
from transforms.promotions import promotions

ENTITIES: Final = ("customers", "promotions", "price_lists", "orders")
"""The lists of the platform, each with a raw and a reconciled table of its name."""
DOCUMENTS: Final = "customers__documents"


@dataclass(slots=True)
class StepInputs:
    """What entities are made from.

    Attributes:
        build: open for writing, with the raw tables.
        run_id: of this run.
        settings: of reconciling.
        dates: the instant of the run, and how dates are read.
        cluster: that makes the customers; None: this process.
        reads: the last published read of each list.
    """

    build: duckdb.DuckDBPyConnection
    run_id: str
    settings: ReconcileSettings
    dates: DateContext
    cluster: Cluster | None
    reads: Mapping[str, ops.LastRead] = field(init=False)

    def __post_init__(self) -> None:
        self.reads = ops.last_reads(self.build)

    def raw(self, table: str) -> pd.DataFrame:
        """A raw table. It is read when it is needed and not kept: lists may have millions of rows."""
        return from_arrow(self.build.sql(f'FROM raw."{table}"').to_arrow_table())

    def reconciled(self, table: str, columns: Iterable[str] = ("*",)) -> pd.DataFrame:
        """A table that an earlier step made, sorted by its first column; see `raw`."""
        sql = f"SELECT {', '.join(columns)} FROM reconciled.{table} ORDER BY 1"
        return from_arrow(self.build.sql(sql).to_arrow_table())

    def row_count(self, table: str) -> int:
        """The number of rows of a table of the build, which is named with its schema."""
        ((count,),) = self.build.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(count)

    def coverage_gap(self, listed: str, named_by: str | None = None) -> str:
        """Why a list may hold records that its raw table lacks; empty where it is proven to hold none."""
        return coverage.coverage_gap(self.build, self.reads, listed, named_by)


@dataclass(frozen=True, slots=True)
class Entity:
    """A reconciled table.

    Attributes:
        table: its rows; None: the build has them already.
        findings: about them.
        dates: how its dates were read; None where it has none.
        raw_rows: of the table that it is made from; None: the raw table of its name.
        order_fields: of orders: the columns of the raw table by the field that they hold.
        proposed: of orders: the fields that no setting names, with their evidence.
    """

    table: pd.DataFrame | None
    findings: pd.DataFrame
    dates: DateColumn | None = None
    raw_rows: int | None = None
    order_fields: Mapping[str, str | None] = field(default_factory=dict)
    proposed: Mapping[str, str] = field(default_factory=dict)


def _customers(inputs: StepInputs) -> Entity:
    options = (inputs.raw("price_lists"), inputs.dates, inputs.coverage_gap("price_lists", "customers"))
    if inputs.cluster is None:
        return Entity(*customers(inputs.raw("customers"), inputs.raw(DOCUMENTS), *options))
    return Entity(None, *customers_on_cluster(inputs.build, *options, inputs.cluster))


def _promotions(inputs: StepInputs) -> Entity:
    return Entity(*promotions(inputs.raw("promotions"), inputs.dates))


def _price_lists(inputs: StepInputs) -> Entity:
    gap = inputs.coverage_gap("price_lists")
    known = inputs.reconciled("customers", CUSTOMER_PRICE_LISTS)
    table, findings = price_lists(inputs.raw("price_lists"), known, gap)
    if "customers" not in inputs.reads:
        table["customer_count"] = constant(None, table.index, BIGINT)
    return Entity(table, findings)


def _orders(inputs: StepInputs) -> Entity:
    raw, settings = inputs.raw("orders"), inputs.settings
    known = inputs.reconciled("customers", ORDERING_CUSTOMERS)
    configured = OrderFields(**{name: getattr(settings.orders, name.removeprefix("order_")) for name in ORDER_FIELDS})
    for name, column in configured.columns().items():
        if column not in raw:
            raise UsageError(
                f"reconcile.order_{name.removeprefix('order_')} is {column!r}, which is not a column of raw.orders",
                "List the columns with DESCRIBE raw.orders, or remove the setting: the field is then detected.",
            )
    configured = replace(configured, customer_notation=settings.orders.customer_notation)
    last = ops.last_order_fields(inputs.build)
    pinned = OrderFields(*map(last.columns.get, ORDER_FIELDS), customer_notation=last.notation)
    choice = choose_fields(raw[raw["_missing_since"].isna()], known, configured, pinned)
    gap = inputs.coverage_gap("customers", "orders")
    result = orders(raw, known, choice.fields, inputs.dates, gap, last.matched_share)
    used = choice.fields.columns()
    pins = ops.LastOrderFields(used, result.matched_share, result.customer_notation)
    ops.record_order_fields(inputs.build, inputs.run_id, pins)
    detected = {name: column for name, column in used.items() if name not in configured.columns()}
    proposed = {name: choice.evidence.get(column, "used by the last run") for name, column in detected.items()}
    findings = combine_findings([choice.findings, result.findings, *odd_values(inputs.build, "orders", inputs.reads)])
    return Entity(
        result.orders, findings, result.dates, order_fields=dict.fromkeys(ORDER_FIELDS) | used, proposed=proposed
    )


def _order_lines(inputs: StepInputs) -> Entity:
    tables = lines_tables(table_names(inputs.build, "raw"))
    if not tables:
        return Entity(frame(ORDER_LINES), frame(FINDINGS), raw_rows=0)
    # One that the platform has renamed keeps the lines of orders that are no longer listed, or none.
    listed = (name for name in tables if inputs.build.execute(_LISTED_ROW.format(name)).fetchall())
    table = next(listed, tables[0])
    lines = inputs.raw(table)
    return Entity(*order_lines(lines, inputs.reconciled("orders", ORDERS)), raw_rows=len(lines))


def _customer_orders(inputs: StepInputs) -> Entity:
    orders, known = inputs.reconciled("orders", ORDERS), inputs.reconciled("customers", ["customer_id"])
    is_known = "orders" in inputs.reads and (orders.empty or orders["customer_status"].isin(["matched", "none"]).any())
    table = customer_orders(orders, known, inputs.dates.as_of, is_known=bool(is_known))
    return Entity(table, frame(FINDINGS), raw_rows=len(known))


_LISTED_ROW: Final = 'SELECT true FROM raw."{}" WHERE _missing_since IS NULL LIMIT 1'
STEPS: Final[dict[str, Callable[[StepInputs], Entity]]] = {
    "customers": _customers,
    "promotions": _promotions,
    "price_lists": _price_lists,
    "orders": _orders,
    "order_lines": _order_lines,
    "customer_orders": _customer_orders,
}
"""What makes each reconciled table, in order: a step may read the tables of those before it."""
