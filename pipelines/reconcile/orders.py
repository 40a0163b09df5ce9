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

import pandas as pd
import pyarrow as pa

from pipelines.reconcile.parts import Parts
from pipelines.warehouse.sql import sql_name
from transforms.customer_index import CustomerIndex, CustomerNotation
from transforms.dates import DateContext, DateEvidence
from transforms.frames import from_arrow
from transforms.keys import BOOKKEEPING
from transforms.order_fields import AmountEvidence, OrderFields, texts_of
from transforms.orders import (
    ORDER_CUSTOMERS,
    ORDERS,
    OrdersReading,
    order_customers,
    orders_findings,
    orders_part,
    raw_column_names,
)

_NO_CUSTOMERS: Final = "NULL::VARCHAR AS customer_id, NULL::VARCHAR AS customer_status, NULL::BOOLEAN AS is_ambiguous"
_IS_MISSING: Final = "_missing_since IS NOT NULL AS is_missing"


@dataclass(frozen=True, slots=True)
class RawOrders:
    """The raw orders, one for each id: the `OrderColumns` of those that are listed.

    Attributes:
        tables: reads them.
        name: of the table.
        kinds: the type of each column.
        rows: the number of those that are listed.
    """

    tables: Parts
    name: str
    kinds: Mapping[str, pa.DataType]
    rows: int

    @classmethod
    def of(cls, tables: Parts) -> RawOrders:
        """Those of the build. Rows that are left out are findings."""
        name = tables.source("orders")
        schema = tables.build.sql(f"FROM {name} LIMIT 0").to_arrow_table().schema
        ((rows,),) = tables.build.execute(f"SELECT count(*) FROM {name} WHERE _missing_since IS NULL").fetchall()
        return cls(tables, name, dict(zip(schema.names, schema.types, strict=True)), rows)

    def parts(self, names: Sequence[str]) -> Iterator[pd.DataFrame]:
        """See `OrderColumns`."""
        for part in self.tables.read({self.name: f"{', '.join(map(sql_name, names))}, {_IS_MISSING}"}):
            yield part[~part.pop("is_missing")]

    def distinct(self, names: Sequence[str], where: str = "_missing_since IS NULL") -> pd.DataFrame:
        """See `OrderColumns`."""
        columns = ", ".join(map(sql_name, names))
        sql = f"SELECT {columns}, count(*) AS row_count FROM {self.name} WHERE {where} GROUP BY ALL"
        return from_arrow(self.tables.build.sql(sql).to_arrow_table())


@dataclass(frozen=True, slots=True)
class OrdersResult:
    """How the orders were read.

    Attributes:
        form: of their dates.
        matched_share: of the listed orders, those of a known customer; None without a column of customers or orders.
        customer_notation: how the column of customers is read; None where nothing shows it.
    """

    form: str
    matched_share: float | None
    customer_notation: CustomerNotation | None


def reconcile_orders(
    orders: RawOrders,
    index: CustomerIndex,
    fields: OrderFields,
    context: DateContext,
    coverage_gap: str = "",
    last_matched_share: float | None = None,
) -> OrdersResult:
    """Makes `reconciled.orders`.

    Args:
        orders: the raw ones.
        index: the reconciled customers.
        fields: columns of the raw orders.
        context: see `OrdersReading`.
        coverage_gap: see `OrdersReading`.
        last_matched_share: `matched_share` of the last run.
    """
    tables, names = orders.tables, fields.columns()
    customers, notation = _NO_CUSTOMERS, None
    if fields.customer_id is not None:
        customers, notation = "", _match_customers(orders, index, fields)
    dates, amounts = DateEvidence(context.order), AmountEvidence()
    read = {name: f"{sql_name(names[name])} AS {name}" for name in names if name != "customer_id"}
    decided = [read[name] for name in ("ordered_at", "total") if name in read]
    for part in tables.read({orders.name: ", ".join(decided)}) if decided else ():
        if "ordered_at" in part:
            dates.add(texts_of(part["ordered_at"]))
        if "total" in part:
            amounts.add(part["total"])
    reading = OrdersReading(fields, dates.form(), amounts, context, coverage_gap)
    sides = {orders.name: ", ".join(["id", _IS_MISSING, *read.values(), *filter(None, [customers])])}
    if not customers:
        sides["temp.order_customers"] = ", ".join(ORDER_CUSTOMERS)
    made, counts = tables.fill(ORDERS, partial(orders_part, reading=reading), tables.read(sides))
    share, findings = orders_findings(counts, reading, last_matched_share)
    tables.findings.add(findings)
    passed_on = sorted(name for name in orders.kinds if name not in ("id", *BOOKKEEPING))
    raw = [f"o.{sql_name(name)} AS {sql_name(new)}" for name, new in raw_column_names(ORDERS, passed_on).items()]
    columns = [*(f"f.{name}" for name in ORDERS), *raw, *(f"o.{name}" for name in BOOKKEEPING)]
    tables.build.execute(
        f"CREATE OR REPLACE TABLE reconciled.orders AS SELECT {', '.join(columns)} "
        f"FROM {orders.name} o POSITIONAL JOIN {made} f"
    )
    tables.build.execute("DROP TABLE IF EXISTS temp.order_customers")
    return OrdersResult(reading.dates.form, share, notation)


def _match_customers(orders: RawOrders, index: CustomerIndex, fields: OrderFields) -> CustomerNotation | None:
    """Makes `temp.order_customers`, a row for each order. Returns how the column is read."""
    name = fields.customer_id or ""
    values = orders.distinct([name], where="true")
    found = order_customers(values[name], values["row_count"], index, fields)
    orders.tables.findings.add(found.findings)
    columns = ", ".join(f"v.{column}" for column in ORDER_CUSTOMERS)
    with orders.tables.given("customer_values", found.table.assign(value=values[name])):
        orders.tables.build.execute(
            f"CREATE OR REPLACE TEMP TABLE order_customers AS SELECT {columns} FROM {orders.name} o "
            f"LEFT JOIN customer_values v ON o.{sql_name(name)} IS NOT DISTINCT FROM v.value ORDER BY o.rowid"
        )
    return found.notation
