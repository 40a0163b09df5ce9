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

from orderbridge.pipelines.reconcile.customers import reconcile_customers
from orderbridge.pipelines.reconcile.odd_values import odd_values
from orderbridge.pipelines.reconcile.order_totals import reconcile_customer_orders, reconcile_lines
from orderbridge.pipelines.reconcile.orders import RawOrders, match_customers, reconcile_orders
from orderbridge.pipelines.reconcile.parts import Findings, Mapper, Parts, folder_of
from orderbridge.pipelines.warehouse import coverage, ops
from orderbridge.pipelines.warehouse.accepted import Accepted
from orderbridge.pipelines.warehouse.sql import table_names
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import ReconcileSettings
from orderbridge.sources.words import number
from orderbridge.transforms.customer_index import ORDERING_CUSTOMERS, CustomerIndex
from orderbridge.transforms.dates import DateContext
from orderbridge.transforms.findings import combine_findings, table_finding
from orderbridge.transforms.frames import BIGINT, constant, frame, from_arrow
from orderbridge.transforms.order_fields import ORDER_FIELDS, OrderFields, choose_fields
from orderbridge.transforms.order_lines import ORDER_LINES, lines_tables
from orderbridge.transforms.price_lists import CUSTOMER_PRICE_LISTS, price_lists
from orderbridge.transforms.promotions import promotions


@dataclass(slots=True)
class StepInputs:
    """What entities are made from.

    Attributes:
        build: open for writing, with the raw tables.
        run_id: of this run.
        settings: of reconciling.
        dates: the instant of the run, and how dates are read.
        map_tasks: maps a function over parts of tables.
        accepted: changes that a person has accepted.
        findings: what the steps find.
        parts: reads and writes long tables.
        reads: the last published read of each list.
        unknown: why customers, dates or totals of the orders are not known, by field.
        lines: the raw table of the lines of the orders.
    """

    build: duckdb.DuckDBPyConnection
    run_id: str
    settings: ReconcileSettings
    dates: DateContext
    map_tasks: Mapper
    accepted: Accepted
    findings: Findings = field(init=False)
    parts: Parts = field(init=False)
    reads: Mapping[str, ops.LastRead] = field(init=False)
    unknown: Mapping[str, str] = field(default_factory=dict)
    lines: str | None = None

    def __post_init__(self) -> None:
        self.reads = ops.last_reads(self.build)
        self.findings = Findings(folder_of(self.build))
        self.parts = Parts(self.build, self.findings, self.map_tasks)

    def raw(self, table: str) -> pd.DataFrame:
        """The raw table of a list. It is read when it is needed and not kept: lists may have millions of rows."""
        return from_arrow(self.build.sql(f"FROM {self.parts.numbered(table)}").to_arrow_table())

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
        form: of its dates; None where it has none.
        raw_rows: of the table that it is made from; None: the raw table of its name.
        order_fields: of orders: the columns of the raw table by the field that they hold.
        proposed: of orders: the fields that no setting names, with their evidence.
    """

    table: pd.DataFrame | None = None
    form: str | None = None
    raw_rows: int | None = None
    order_fields: Mapping[str, str | None] = field(default_factory=dict)
    proposed: Mapping[str, str] = field(default_factory=dict)


def _customers(inputs: StepInputs) -> Entity:
    gap = inputs.coverage_gap("price_lists", "customers")
    return Entity(
        form=reconcile_customers(inputs.parts, inputs.raw("price_lists"), inputs.dates, gap)
    )


def _promotions(inputs: StepInputs) -> Entity:
    table, findings, dates = promotions(inputs.raw("promotions"), inputs.dates)
    inputs.findings.add(findings)
    return Entity(table, dates.form)


def _price_lists(inputs: StepInputs) -> Entity:
    gap = inputs.coverage_gap("price_lists")
    known = inputs.reconciled("customers", CUSTOMER_PRICE_LISTS)
    table, findings = price_lists(inputs.raw("price_lists"), known, gap)
    inputs.findings.add(findings)
    if "customers" not in inputs.reads:
        table["customer_count"] = constant(None, table.index, BIGINT)
    return Entity(table)


def _orders(inputs: StepInputs) -> Entity:
    settings, last = inputs.settings, ops.last_order_fields(inputs.build)
    kept = {
        name: column for name, column in last.columns.items() if not _is_changed(inputs, name, last)
    }
    inputs.lines = _lines_table(inputs, kept.get(_LINES))
    raw = RawOrders.of(inputs.parts, inputs.lines)
    index = CustomerIndex.of(inputs.reconciled("customers", ORDERING_CUSTOMERS))
    configured = OrderFields(
        **{name: getattr(settings.orders, name.removeprefix("order_")) for name in ORDER_FIELDS}
    )
    for name, column in configured.columns().items():
        if column not in raw.kinds:
            raise UsageError(
                f"reconcile.order_{name.removeprefix('order_')} is {column!r}, which is not a column of raw.orders",
                "List the columns with DESCRIBE raw.orders, or remove the setting: the field is then detected.",
            )
    values = settings.orders.cancelled
    configured = replace(
        configured,
        customer_notation=settings.orders.customer_notation,
        cancelled_values=None if values is None else tuple(map(str.strip, values.split(","))),
    )
    notation = last.notation if "customer_id" in kept else None
    was_in_cents = kept.get(_UNIT) == "cents" and "total" in kept
    pinned = OrderFields(
        *map(kept.get, ORDER_FIELDS), customer_notation=notation, is_in_cents=was_in_cents
    )
    share = (
        None
        if inputs.accepted.is_changed("orders.matched_share_fell", "", last.at)
        else last.matched_share
    )
    choice = choose_fields(raw, index, configured, pinned)
    inputs.findings.add(choice.findings)
    customers = match_customers(raw, index, choice.fields, share)
    del index  # of a million customers: not while the orders are worked on
    gap = inputs.coverage_gap("customers", "orders")
    form, inputs.unknown = reconcile_orders(raw, choice, customers, inputs.dates, gap)
    used = choice.fields.columns()
    # The next run compares with what was accepted, not with this one: an alarm does not fall silent by itself.
    shares = [one for one in (share, customers.matched_share) if one is not None]
    pins = {
        **used,
        **{name: column for name, column in kept.items() if name not in configured.columns()},
    }
    pins[_UNIT] = "cents" if choice.fields.is_in_cents else "whole"
    if lines := settings.orders.lines or kept.get(_LINES) or inputs.lines:
        pins[_LINES] = lines
    if pins.get("customer_id") == used.get("customer_id"):
        notation = customers.notation
    pinned_now = ops.LastOrderFields(pins, max(shares, default=None), notation, inputs.accepted.at)
    ops.record_order_fields(inputs.build, inputs.run_id, pinned_now)
    detected = {name: column for name, column in used.items() if name not in configured.columns()}
    proposed = {
        name: choice.evidence.get(column, "used by the last run")
        for name, column in detected.items()
    }
    inputs.findings.add(combine_findings(odd_values(inputs.build, "orders")))
    return Entity(form=form, order_fields=dict.fromkeys(ORDER_FIELDS) | used, proposed=proposed)


def _is_changed(inputs: StepInputs, name: str, last: ops.LastOrderFields) -> bool:
    """Whether a person has accepted a change of this field of orders since it was recorded."""
    return inputs.accepted.is_changed("orders.field_changed", name, last.at)


def _lines_table(inputs: StepInputs, pinned: str | None) -> str | None:
    """The child table of the raw orders that holds their lines; what is doubtful about it is a finding."""
    setting = inputs.settings.orders.lines
    children = [name for name in table_names(inputs.build, "raw") if name.startswith("orders__")]
    if setting is not None and setting not in children:
        raise UsageError(
            f"reconcile.order_lines is {setting!r}, which is not a child table of raw.orders",
            f"There are: {', '.join(sorted(children)) or 'none'}. Without the setting, the table is detected.",
        )
    # A table that the platform has renamed keeps the lines of orders that are no longer listed, or none.
    listed = {name: inputs.row_count(_LISTED_LINES.format(name)) for name in lines_tables(children)}
    best = max(listed, key=lambda name: listed[name], default=None)
    table = setting or (
        pinned
        if pinned in listed and (listed[pinned] or best is None or not listed[best])
        else best
    )
    others = [
        f"{name} has {number(rows, 'row')}"
        for name, rows in listed.items()
        if rows and name != table
    ]
    if setting is None and table is not None and (others or pinned not in (None, table)):
        before = [f"{pinned} was used before"] if pinned not in (None, table) else []
        doubt = (
            f"lines: {table} is used; {', '.join([*before, *others])}; set reconcile.order_lines"
        )
        inputs.findings.add(table_finding("orders", "field_changed", doubt))
    return table


def _order_lines(inputs: StepInputs) -> Entity:
    if inputs.lines is None:
        return Entity(frame(ORDER_LINES), raw_rows=0)
    return Entity(raw_rows=reconcile_lines(inputs.parts, inputs.lines))


def _customer_orders(inputs: StepInputs) -> Entity:
    orders = inputs.row_count("reconciled.orders")
    of_known = inputs.row_count("reconciled.orders WHERE customer_status IN ('matched', 'none')")
    unknown = dict(inputs.unknown)
    if "orders" not in inputs.reads:
        unknown["customer_id"] = "orders were not read"
    elif orders and not of_known:
        unknown.setdefault("customer_id", "customer_id: no order is of a known customer")
    reconcile_customer_orders(inputs.build, inputs.dates, unknown)
    return Entity(raw_rows=inputs.row_count("reconciled.customers"))


_UNIT: Final = "total_unit"
"""The name under which `ops.order_fields` has the unit of the totals."""
_LINES: Final = "lines"
"""The name under which `ops.order_fields` has the child table of the order lines."""
_LISTED_LINES: Final = '(FROM raw."{}" WHERE _missing_since IS NULL)'
STEPS: Final[dict[str, Callable[[StepInputs], Entity]]] = {
    "customers": _customers,
    "promotions": _promotions,
    "price_lists": _price_lists,
    "orders": _orders,
    "order_lines": _order_lines,
    "customer_orders": _customer_orders,
}
"""What makes each reconciled table, in order: a step may read the tables of those before it. Each list has one."""
