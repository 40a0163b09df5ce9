"""Orders, lines and customers made of frames by way of a build, in several parts where they have over three rows."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple
from unittest import mock

import duckdb
import pandas as pd
import pyarrow as pa

from orderbridge.pipelines.reconcile import parts
from orderbridge.pipelines.reconcile.customers import reconcile_customers
from orderbridge.pipelines.reconcile.orders.lines import RawLines, read_lines
from orderbridge.pipelines.reconcile.orders.orders import (
    RawOrders,
    match_customers,
    reconcile_orders,
)
from orderbridge.pipelines.reconcile.orders.refunds import find_refunds
from orderbridge.pipelines.reconcile.orders.totals import reconcile_customer_orders, reconcile_lines
from orderbridge.pipelines.reconcile.parts import Findings, Parts, folder_of
from orderbridge.transforms.findings import combine_findings
from orderbridge.transforms.frames import column, constant, from_arrow
from orderbridge.transforms.orders.amount_unit import UNIT
from orderbridge.transforms.orders.cancelled import NO_STATUS, Cancellation
from orderbridge.transforms.orders.columns import AmountEvidence, texts_of
from orderbridge.transforms.orders.customer_evidence import NOTATION
from orderbridge.transforms.orders.customer_index import CustomerIndex
from orderbridge.transforms.orders.fields import (
    CHARGES,
    FIELD_QUESTIONS,
    FieldChoice,
    LineUnits,
    OrderFields,
)
from orderbridge.transforms.orders.fields import choose_fields as choose
from orderbridge.transforms.orders.line_fields import choose_line_fields
from orderbridge.transforms.orders.statuses import (
    StatusEvidence,
    classes_in_force,
    proposed_classes,
)
from orderbridge.transforms.questions import ASSUMPTION, Answer
from orderbridge.transforms.values.dates import DateContext
from orderbridge.transforms.values.keys import BOOKKEEPING


@cache
def _build() -> duckdb.DuckDBPyConnection:
    folder = tempfile.mkdtemp(prefix="orderbridge-parts-")
    build = duckdb.connect(str(Path(folder) / "build.duckdb"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    build.execute("SET TimeZone = 'UTC'; CREATE SCHEMA raw; CREATE SCHEMA reconciled")
    return build


@contextmanager
def build_of(part_rows: int | None = None, **tables: pd.DataFrame) -> Iterator[Parts]:
    """A build with these tables, by schema and name (`raw__orders`); in a few parts unless it is set."""
    build = _build()
    part_rows = part_rows or max(3, *(len(rows) // 3 for rows in tables.values()))
    for name, rows in tables.items():
        build.register("rows_of_test", pa.Table.from_pandas(rows, preserve_index=False))
        build.execute(f"CREATE OR REPLACE TABLE {name.replace('__', '.', 1)} AS FROM rows_of_test")
        build.unregister("rows_of_test")
    with mock.patch.object(parts, "PART_ROWS", part_rows):
        yield Parts(build, Findings(folder_of(build)))
    for name in tables:
        if name.startswith("raw__orders__"):  # another test has no such lists
            build.execute(f"DROP TABLE {name.replace('__', '.', 1)}")


def rows_of(tables: Parts, table: str, order: str) -> pd.DataFrame:
    """The rows of a table of the build."""
    return from_arrow(
        tables.build.sql(f"FROM {table} ORDER BY {order}").to_arrow_table().combine_chunks()
    )


def found_in(tables: Parts) -> pd.DataFrame:
    """The findings so far, in the order of `combine_findings`."""
    return combine_findings([rows_of(tables, tables.findings.written(), "ALL")])


class Orders(NamedTuple):
    orders: pd.DataFrame
    findings: pd.DataFrame
    form: str
    matched_share: float | None
    customer_notation: str | None


def orders(
    raw: pd.DataFrame,
    customers: pd.DataFrame,
    fields: OrderFields,
    context: DateContext,
    coverage_gap: str = "",
    last_matched_share: float | None = None,
    part_rows: int | None = None,
    cancelled_values: tuple[str, ...] | None = None,
    notation: Answer | None = None,
    children: Mapping[str, pd.DataFrame] = MappingProxyType({}),
) -> Orders:
    """The orders, by id. Their status alone says whether they are cancelled."""
    status, amounts = fields.order_status, AmountEvidence()
    words: list[str] = []
    if status is not None:
        words = texts_of(raw[status]).fillna(NO_STATUS).unique().tolist()
    if fields.total is not None:
        amounts.add(raw[fields.total])
    known = StatusEvidence(status, tuple(words), cancelled=folded(cancelled_values))
    classes = classes_in_force(known, proposed_classes(known, {}, {}), None)
    alone = cancelled_values is not None
    cancellation = Cancellation.of(status, {}, is_status_alone=alone).with_classes(classes)
    charges = {name: AmountEvidence() for name in CHARGES if getattr(fields, name) is not None}
    for name, evidence in charges.items():
        evidence.add(raw[getattr(fields, name)])
    choice = FieldChoice(fields, amounts, cancellation, charges=charges)
    with build_of(part_rows, raw__orders=raw, **children) as tables:
        of_build = RawOrders.of(tables)
        choice = find_refunds(of_build, choice)
        index = CustomerIndex.of(customers)
        found = match_customers(of_build, index, fields.customer_id, notation, last_matched_share)
        dates, _ = reconcile_orders(of_build, choice, found, context, coverage_gap)
        made = rows_of(tables, "reconciled.orders", "order_id")
        value = found.notation.value if found.notation is not None else None
        return Orders(made, found_in(tables), dates.form, found.matched_share, value)


def folded(values: tuple[str, ...] | None) -> frozenset[str] | None:
    return None if values is None else frozenset(map(str.casefold, values))


_UNITS: Final = LineUnits()
NIGHT: Final = datetime(2026, 1, 5, tzinfo=UTC)
QUESTIONS: Final = {**FIELD_QUESTIONS, "notation": NOTATION, "unit": UNIT}


def answers(origin: str, values: Mapping[str, str], at: datetime | None) -> dict[str, Answer]:
    """Answers in force, by the field that they are about."""
    about = {"notation": values.get("customer_id", ""), "unit": values.get("total", "")}
    made: dict[str, Answer] = {}
    for name, value in values.items():
        subject = about.get(name, "") if origin == ASSUMPTION else ""
        made[QUESTIONS[name]] = Answer(value, origin, at, about=subject)
    return made


def choose_fields(
    rows: pd.DataFrame,
    customers: pd.DataFrame,
    configured: Mapping[str, str] = MappingProxyType({}),
    assumed: Mapping[str, str] = MappingProxyType({}),
    lines: pd.DataFrame | None = None,
    cancelled_values: tuple[str, ...] | None = None,
    answered: Mapping[str, Answer] = MappingProxyType({}),
) -> FieldChoice:
    """The choice for raw orders, which have the columns of bookkeeping, and their lines, which need not.

    `configured` and `assumed` are columns by field, and `notation` and `unit`; `answered` is by question.
    """
    in_force = {
        **answers(ASSUMPTION, assumed, NIGHT),
        **answers("config.toml", configured, None),
        **answered,
    }
    tables = {"raw__orders": rows}
    if lines is not None:
        absent = {
            name: constant(None, lines.index, kind)
            for name, kind in BOOKKEEPING.items()
            if name not in lines
        }
        tables["raw__orders__lines"] = lines.assign(**absent)
    with build_of(None, **tables) as build:
        raw_lines = None if lines is None else RawLines.of(build, "orders__lines")
        raw = RawOrders.of(build)
        if raw_lines is not None:
            of_lines = choose_line_fields(raw_lines, in_force, raw.totals())
            raw = RawOrders.of(build, raw_lines, of_lines)
        return choose(raw, CustomerIndex.of(customers), in_force, cancelled_values)


def customer_orders(
    made: pd.DataFrame, customers: pd.DataFrame, context: DateContext
) -> pd.DataFrame:
    """What customers ordered, by id."""
    with build_of(
        reconciled__orders=made, reconciled__customers=customers[["customer_id"]]
    ) as tables:
        reconcile_customer_orders(tables.build, context)
        return rows_of(tables, "reconciled.customer_orders", "customer_id")


def order_lines(
    lines: pd.DataFrame,
    made: pd.DataFrame,
    answered: Mapping[str, Answer] = MappingProxyType({}),
    units: LineUnits = _UNITS,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The lines by order and number, and findings; lines are missing where their order is."""
    gone = made.loc[made["is_missing"], "order_id"]
    missing = [
        datetime(2026, 1, 1, tzinfo=UTC) if order in set(gone) else None
        for order in lines["order_id"]
    ]
    lines = lines.assign(
        _missing_since=column(pa.array(missing, pa.timestamp("us", "UTC")), lines.index)
    )
    with build_of(raw__orders__lines=lines, reconciled__orders=made) as tables:
        raw_lines = RawLines.of(tables, "orders__lines")
        choice = choose_line_fields(raw_lines, answered)
        reconcile_lines(raw_lines, read_lines(raw_lines, choice, units))
        result = rows_of(tables, "reconciled.order_lines", "order_id, line_number")
        return result.drop(columns="_missing_since"), found_in(tables)


class Customers(NamedTuple):
    customers: pd.DataFrame
    findings: pd.DataFrame
    form: str


def customers(
    raw: pd.DataFrame,
    documents: pd.DataFrame,
    price_lists: pd.DataFrame,
    context: DateContext,
    coverage_gap: str = "",
    part_rows: int | None = None,
) -> Customers:
    """The customers, by id."""
    with build_of(part_rows, raw__customers=raw, raw__customers__documents=documents) as tables:
        form = reconcile_customers(tables, price_lists, context, coverage_gap).form
        made = rows_of(tables, "reconciled.customers", "customer_id")
        return Customers(made, found_in(tables), form)
