"""The orders of a build, reconciled in parts.

In: the raw orders, and which of their columns hold what. Out: `reconciled.orders`: our columns, and the raw ones as
they are. Which customers the values of a column are is decided once for each distinct value, the form of dates and the
notation of totals from those columns alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import duckdb
import pandas as pd
import pyarrow as pa

from pipelines.reconcile.parts import Parts
from pipelines.warehouse.merge import columns_of
from pipelines.warehouse.sql import sql_name
from transforms.cancelled import Cancellation
from transforms.customer_index import CustomerIndex, CustomerNotation
from transforms.dates import UNREAD_FORMS, DateContext, DateEvidence
from transforms.frames import TEXT, frame, from_arrow, look_up
from transforms.keys import BOOKKEEPING
from transforms.order_fields import AmountEvidence, OrderFields, texts_of
from transforms.order_lines import line_columns, line_sums
from transforms.orders import (
    ORDER_CUSTOMERS,
    ORDERS,
    WITNESS,
    OrderCustomers,
    OrdersReading,
    order_customers,
    orders_findings,
    orders_part,
    raw_column_names,
)
from transforms.total_candidates import LINE_SUMS

COMPARED_ROWS: Final = 20_000
"""So many orders are compared with their lines."""
_NO_CUSTOMERS: Final = "NULL::VARCHAR AS customer_id, NULL::VARCHAR AS customer_status, NULL::BOOLEAN AS is_ambiguous"
_IS_MISSING: Final = "_missing_since IS NOT NULL AS is_missing"


def filled_columns(build: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """The columns of a raw child table with a value of a listed order; of any order where none is listed."""
    columns = list(columns_of(build, table))
    counts = ", ".join(f"count({sql_name(column)})" for column in columns)
    sql = f"SELECT count(*), {counts} FROM {table}"
    (rows,) = build.execute(f"{sql} WHERE _missing_since IS NULL").fetchall()
    if not rows[0]:
        (rows,) = build.execute(sql).fetchall()
    return [column for column, count in zip(columns, rows[1:], strict=True) if count]


@dataclass(frozen=True, slots=True)
class RawOrders:
    """The raw orders, one for each id: the `OrderColumns` of those that are listed.

    Attributes:
        tables: reads them.
        name: of the table.
        kinds: the type of each column.
        rows: the number of those that are listed.
        lines: the raw table of their lines; None where there is none.
    """

    tables: Parts
    name: str
    kinds: Mapping[str, pa.DataType]
    rows: int
    lines: str | None = None

    @classmethod
    def of(cls, tables: Parts, lines: str | None = None) -> RawOrders:
        """Those of the build. Rows that are left out are findings."""
        name = tables.source("orders")
        schema = tables.build.sql(f"FROM {name} LIMIT 0").to_arrow_table().schema
        ((rows,),) = tables.build.execute(f"SELECT count(*) FROM {name} WHERE _missing_since IS NULL").fetchall()
        return cls(tables, name, dict(zip(schema.names, schema.types, strict=True)), rows, lines)

    def parts(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """See `OrderColumns`."""
        for part in self.tables.read({self.name: f"{', '.join(map(sql_name, names))}, {_IS_MISSING}"}):
            yield part[~part.pop("is_missing")]

    def distinct(self, names: Sequence[str], where: str = "_missing_since IS NULL") -> pd.DataFrame:
        """See `OrderColumns`."""
        columns = ", ".join(map(sql_name, names))
        count = "count(*) FILTER (_missing_since IS NULL) AS row_count"
        sql = f"SELECT {columns}, {count} FROM {self.name} WHERE {where} GROUP BY ALL"
        return from_arrow(self.tables.build.sql(sql).to_arrow_table())

    def with_lines(self, names: Sequence[str]) -> pd.DataFrame:
        """See `OrderColumns`."""
        build, columns = self.tables.build, ", ".join(f"o.{sql_name(name)}" for name in names)
        build.execute(
            f"CREATE OR REPLACE TEMP TABLE some_orders AS SELECT id, {columns} FROM {self.name} o "
            f"WHERE _missing_since IS NULL AND hash(id) % {self.rows // COMPARED_ROWS + 1} = 0"
        )
        rows = from_arrow(build.sql("FROM some_orders").to_arrow_table())
        lines = frame({"order_id": TEXT, **LINE_SUMS})
        if self.lines is not None:
            filled = line_columns(filled_columns(build, f"raw.{self.lines}"))
            read = [f"l.{sql_name(column)} AS {name}" for name, column in filled.items() if name != "product"]
            if read:
                table = f"raw.{self.lines} l SEMI JOIN some_orders s ON l.order_id = s.id"
                rows_of = build.sql(f"SELECT l.order_id, {', '.join(read)} FROM {table}").to_arrow_table()
                lines = line_sums(from_arrow(rows_of))
        build.execute("DROP TABLE some_orders")
        return rows.assign(**look_up(rows.pop("id"), lines, "order_id")[list(LINE_SUMS)])


@dataclass(frozen=True, slots=True)
class OrdersResult:
    """How the orders were read.

    Attributes:
        form: of their dates.
        matched_share: of the listed orders, those of a known customer; None without a column of customers or orders.
        customer_notation: how the column of customers is read; None where nothing shows it.
        unknown: why customers, dates or totals are not known, by field.
    """

    form: str
    matched_share: float | None
    customer_notation: CustomerNotation | None
    unknown: Mapping[str, str]


def reconcile_orders(
    orders: RawOrders,
    index: CustomerIndex,
    fields: OrderFields,
    context: DateContext,
    coverage_gap: str = "",
    last_matched_share: float | None = None,
    cancellation: Cancellation | None = None,
    unknown: Mapping[str, str] | None = None,
) -> OrdersResult:
    """Makes `reconciled.orders`.

    Args:
        orders: the raw ones.
        index: the reconciled customers.
        fields: columns of the raw orders.
        context: see `OrdersReading`.
        coverage_gap: see `OrdersReading`.
        last_matched_share: `matched_share` of the last run.
        cancellation: see `OrdersReading`.
        unknown: see `OrdersReading`; what is found here is added.
    """
    tables, names, unknown = orders.tables, fields.columns(), dict(unknown or {})
    cancellation = cancellation or Cancellation()
    customers, share, notation = _NO_CUSTOMERS, None, None
    if fields.customer_id is not None:
        matched = _match_customers(orders, index, fields, last_matched_share)
        customers, share, notation = "", matched.matched_share, matched.notation
        if matched.unknown:
            unknown["customer_id"] = f"customer_id: {matched.unknown}"
    dates, amounts = DateEvidence(context.order), AmountEvidence()
    read = {name: f"{sql_name(names[name])} AS {name}" for name in names if name != "customer_id"}
    decided = [read[name] for name in ("ordered_at", "total") if name in read]
    for part in tables.read({orders.name: ", ".join(decided)}) if decided else ():
        if "ordered_at" in part:
            dates.add(texts_of(part["ordered_at"]))
        if "total" in part:
            amounts.add(part["total"])
    form = dates.form()
    if form.form in UNREAD_FORMS:
        unknown["ordered_at"] = f"ordered_at: {names['ordered_at']} is {form.form}: no form of its dates is proven"
    if amounts.is_ambiguous:
        unknown["total"] = f"total: {names['total']} has texts such as 1.234"
    reading = OrdersReading(fields, form, amounts, context, coverage_gap, cancellation, unknown)
    said = [f"{sql_name(name)} AS {sql_name(f'{WITNESS}{name}')}" for name in cancellation.witnesses]
    sides = {orders.name: ", ".join(["id", _IS_MISSING, *read.values(), *said, *filter(None, [customers])])}
    if not customers:
        sides["temp.order_customers"] = ", ".join(ORDER_CUSTOMERS)
    made, counts = tables.fill(ORDERS, partial(orders_part, reading=reading), tables.read(sides))
    tables.findings.add(orders_findings(counts, reading))
    passed_on = sorted(name for name in orders.kinds if name not in ("id", *BOOKKEEPING))
    raw = [f"o.{sql_name(name)} AS {sql_name(new)}" for name, new in raw_column_names(ORDERS, passed_on).items()]
    columns = [*(f"f.{name}" for name in ORDERS), *raw, *(f"o.{name}" for name in BOOKKEEPING)]
    tables.build.execute(
        f"CREATE OR REPLACE TABLE reconciled.orders AS SELECT {', '.join(columns)} "
        f"FROM {orders.name} o POSITIONAL JOIN {made} f"
    )
    tables.build.execute("DROP TABLE IF EXISTS temp.order_customers")
    return OrdersResult(form.form, share, notation, unknown)


def _match_customers(
    orders: RawOrders, index: CustomerIndex, fields: OrderFields, last_matched_share: float | None
) -> OrderCustomers:
    """Makes `temp.order_customers`, a row for each order."""
    name = fields.customer_id or ""
    values = orders.distinct([name], where="true")
    found = order_customers(values[name], values["row_count"], index, fields, last_matched_share)
    orders.tables.findings.add(found.findings)
    columns = ", ".join(f"v.{column}" for column in ORDER_CUSTOMERS)
    with orders.tables.given("customer_values", found.table.assign(value=values[name])):
        orders.tables.build.execute(
            f"CREATE OR REPLACE TEMP TABLE order_customers AS SELECT {columns} FROM {orders.name} o "
            f"LEFT JOIN customer_values v ON o.{sql_name(name)} IS NOT DISTINCT FROM v.value ORDER BY o.rowid"
        )
    return found
