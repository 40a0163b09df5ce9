"""The orders of a build, reconciled in parts.

In: the raw orders, and which of their columns hold what. Out: `reconciled.orders`: our columns, and the raw ones as
they are. Which customers the values of a column are is decided once for each distinct value, the form of dates and the
notation of totals from those columns alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final

import duckdb
import pandas as pd
import pyarrow as pa

from orderbridge.pipelines.reconcile.orders.lines import RawLines
from orderbridge.pipelines.reconcile.orders.name_pairs import split_pairs
from orderbridge.pipelines.reconcile.parts import Parts
from orderbridge.pipelines.warehouse.answers.accepted import Accepted
from orderbridge.pipelines.warehouse.raw.recent_rows import (
    ALL_ROWS,
    KINDS,
    RECENT,
    Count,
    Measure,
    RecentRows,
    RowKind,
)
from orderbridge.pipelines.warehouse.sql import columns_of, sql_name, table_names
from orderbridge.transforms.chance import Share
from orderbridge.transforms.findings import FINDINGS, table_finding
from orderbridge.transforms.frames import TEXT, frame, from_arrow
from orderbridge.transforms.orders.columns import money, texts_of
from orderbridge.transforms.orders.customer_index import CustomerIndex
from orderbridge.transforms.orders.fields import FieldChoice
from orderbridge.transforms.orders.line_fields import AMOUNTS, LineChoice
from orderbridge.transforms.orders.lines import LineReading, read_amounts
from orderbridge.transforms.orders.names import ORDER_NAMES
from orderbridge.transforms.orders.orders import (
    ORDER_CUSTOMERS,
    ORDERS,
    SHARE_FALL_MAX,
    UNKNOWN_STATUS,
    WITNESS,
    OrderCustomers,
    is_midnight_in_utc,
    order_customers,
    orders_findings,
    orders_part,
    raw_column_names,
)
from orderbridge.transforms.orders.total_candidates import SUM_OF_PAYMENTS, SUMS
from orderbridge.transforms.questions import Answer
from orderbridge.transforms.value_questions import DATES
from orderbridge.transforms.values.dates import (
    UNREAD_FORMS,
    ColumnForm,
    DateContext,
    DateEvidence,
    ReadDates,
)
from orderbridge.transforms.values.keys import BOOKKEEPING

COMPARED_ROWS: Final = 20_000
"""So many orders are compared with their lines."""
_NO_CUSTOMERS: Final = (
    "NULL::VARCHAR AS customer_id, NULL::VARCHAR AS customer_status, NULL::BOOLEAN AS is_ambiguous"
)
_IS_MISSING: Final = "_missing_since IS NOT NULL AS is_missing"
NO_SUMS: Final = "SELECT NULL::VARCHAR AS order_id, NULL::DECIMAL(38, 9) AS total"
"""The sums of orders that have nothing to add up (SQL)."""
_PAYMENT_SUMS: Final = """
    SELECT n.order_id, if(count(n.amount) = count(*), sum(n.amount), NULL)::DECIMAL(38, 9) AS total
    FROM (SELECT n.order_id, {amount} AS amount FROM {child} n) n GROUP BY n.order_id"""
_ORDER_SUMS: Final = """
    CREATE OR REPLACE TEMP TABLE order_sums AS
    SELECT s.total FROM {orders} o LEFT JOIN ({sums}) s ON s.order_id = o.id ORDER BY o.rowid"""


@dataclass(frozen=True, slots=True)
class RawOrders:
    """The raw orders: the `OrderColumns` of those that are listed.

    Attributes:
        tables: reads them.
        raw: the table whose columns `reconciled.orders` passes on.
        name: of the table that is read: the same, or a copy with ids and names in place of pairs.
        kinds: the type of each column.
        rows: the number of those that are listed.
        lines: their lines; None where there are none.
        line_choice: the columns of these.
        payments: the child table of their payments, and its column of amounts; None where there is none.
    """

    tables: Parts
    raw: str
    name: str
    kinds: Mapping[str, pa.DataType]
    rows: int
    lines: RawLines | None = None
    line_choice: LineChoice = field(default_factory=LineChoice)
    payments: tuple[str, str] | None = None

    @classmethod
    def of(
        cls, tables: Parts, lines: RawLines | None = None, line_choice: LineChoice | None = None
    ) -> RawOrders:
        """Those of the build."""
        raw = tables.numbered("orders")
        name = split_pairs(tables, raw, "orders_with_names")
        schema = tables.build.sql(f"FROM {name} LIMIT 0").to_arrow_table().schema
        ((rows,),) = tables.build.execute(
            f"SELECT count(*) FROM {name} WHERE _missing_since IS NULL"
        ).fetchall()
        kinds = dict(zip(schema.names, schema.types, strict=True))
        payments = next(child_columns(tables.build, "payments", "payment_amount"), None)
        return cls(tables, raw, name, kinds, rows, lines, line_choice or LineChoice(), payments)

    @property
    def keys(self) -> Sequence[str]:
        """See `RawColumns`."""
        return ("id",)

    def passed_on(self) -> dict[str, str]:
        """The raw columns of `reconciled.orders`: their names there by their own."""
        columns = {*columns_of(self.tables.build, self.raw)} - {"id", *BOOKKEEPING}
        return raw_column_names(ORDERS, sorted(columns))

    def parts(self, columns: Iterable[str]) -> Iterator[pd.DataFrame]:
        """See `OrderColumns`."""
        return self.tables.read({self.name: ", ".join([*map(sql_name, columns), _IS_MISSING])})

    def filled_by_run(self, column: str, after: datetime) -> list[Share]:
        """See `OrderColumns`."""
        text = f"trim({sql_name(column)}::VARCHAR)"
        sql = f"""
            SELECT count(nullif({text}, '')), count(*) FROM {self.name}
            WHERE _missing_since IS NULL AND _first_seen_at > ? GROUP BY _first_seen_at ORDER BY _first_seen_at DESC"""
        return [Share(*row) for row in self.tables.build.execute(sql, [after]).fetchall()]

    def distinct(self, names: Sequence[str], where: str = "_missing_since IS NULL") -> pd.DataFrame:
        """See `OrderColumns`."""
        columns = ", ".join(map(sql_name, names))
        count = "count(*) FILTER (_missing_since IS NULL) AS row_count"
        sql = f"SELECT {columns}, {count} FROM {self.name} WHERE {where} GROUP BY ALL"
        return from_arrow(self.tables.build.sql(sql).to_arrow_table())

    @property
    def discount(self) -> str | None:
        """See `OrderColumns`."""
        return self.line_choice.fields.discount

    @property
    def have_payments(self) -> bool:
        """See `OrderColumns`."""
        return self.payments is not None

    @property
    def share(self) -> int:
        """Of so many orders, one is in a sample."""
        return self.rows // COMPARED_ROWS + 1

    def totals(self) -> pd.DataFrame:
        """Columns of the sample that have a name of the total, as numbers, with the ids as the index."""
        names = [name for name in ORDER_NAMES["total"] if name in self.kinds]
        some, _ = self.sample(names)
        numbers = {name: money(some[name]).astype("float64") for name in names}
        return pd.DataFrame(numbers).set_axis(some["id"], axis="index")

    def sample(self, names: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """See `OrderColumns`."""
        own = [sql_name(name) for name in names if name != SUM_OF_PAYMENTS]
        sql = f"""
            SELECT {", ".join(["id", *own])} FROM {self.name}
            WHERE _missing_since IS NULL AND hash(id) % {self.share} = 0"""
        if SUM_OF_PAYMENTS in names:
            sums = self.payment_sums()
            sql = f"SELECT o.*, s.total AS {SUM_OF_PAYMENTS} FROM ({sql}) o LEFT JOIN ({sums}) s ON s.order_id = o.id"
        rows = from_arrow(self.tables.build.sql(sql).to_arrow_table())
        if self.lines is None:
            return rows, frame({"order_id": TEXT, "line_kind": TEXT})
        fields = self.line_choice.fields
        read = {name: column for name, column in fields.columns().items() if name in AMOUNTS}
        lines = self.lines.sample(read)
        amounts = read_amounts(lines, LineReading.of(self.line_choice))
        return rows, amounts.assign(order_id=lines["order_id"], line_kind=lines["line_kind"])

    def payment_sums(self) -> str:
        """The payments of each order (SQL: `order_id` and `total`), null where one has no amount."""
        if self.payments is None:
            return NO_SUMS
        table, column = self.payments
        child = f"raw.{sql_name(f'orders__{table}')}"
        amount = self.tables.numbers(child, column, "n")
        return _PAYMENT_SUMS.format(amount=amount, child=child)

    def keep_sums(self, sums: str) -> None:
        """Makes `temp.order_sums`, a row for each order: its total of sums (SQL: `order_id` and `total`)."""
        self.tables.build.execute(_ORDER_SUMS.format(orders=self.name, sums=sums))


def child_columns(
    build: duckdb.DuckDBPyConnection, tables: str, columns: str
) -> Iterator[tuple[str, str]]:
    """The child tables of a kind, each with its first column of a kind; both are keys of `ORDER_NAMES`."""
    known = table_names(build, "raw")
    for table in ORDER_NAMES[tables]:
        child = f"orders__{table}"
        found = columns_of(build, f"raw.{sql_name(child)}") if child in known else {}
        named = [name for name in ORDER_NAMES[columns] if name in found]
        if named:
            yield table, named[0]


def match_customers(
    orders: RawOrders,
    index: CustomerIndex,
    name: str | None,
    answer: Answer | None = None,
    last_matched_share: float | None = None,
) -> OrderCustomers:
    """Makes `temp.order_customers`, a row for each order; see `order_customers`."""
    build = orders.tables.build
    if name is None:
        build.execute(
            f"CREATE OR REPLACE TEMP TABLE order_customers AS SELECT {_NO_CUSTOMERS} FROM {orders.name}"
        )
        return OrderCustomers(frame(ORDER_CUSTOMERS), None, None, "", frame(FINDINGS))
    values = orders.distinct([name], where="true")
    found = order_customers(
        values[name], values["row_count"], index, name, answer, last_matched_share
    )
    orders.tables.findings.add(found.findings)
    columns = ", ".join(f"v.{column}" for column in ORDER_CUSTOMERS)
    with orders.tables.given("customer_values", found.table.assign(value=values[name])):
        build.execute(
            f"CREATE OR REPLACE TEMP TABLE order_customers AS SELECT {columns} FROM {orders.name} o "
            f"LEFT JOIN customer_values v ON o.{sql_name(name)} IS NOT DISTINCT FROM v.value ORDER BY o.rowid"
        )
    return found


_KNOWN_CUSTOMERS: Final = f"""
    SELECT s.batch, count_if(o.customer_status = 'matched'), count(*)
    FROM {RECENT} s JOIN reconciled.orders o ON o.order_id = s.id WHERE NOT o.is_missing GROUP BY s.batch"""


def fewer_known_customers(
    rows: RecentRows, column: str, accepted: Accepted
) -> Iterator[pd.DataFrame]:
    """A finding where far fewer of the new or changed orders are of a known customer than before.

    Args:
        rows: of the orders; `reconciled.orders` is made.
        column: of the customers.
        accepted: changes that a person has accepted.
    """

    def count(kind: RowKind) -> Iterator[Count]:
        for batch, matched, orders in rows.build.execute(_KNOWN_CUSTOMERS).fetchall():
            yield Count(batch, column, Share(matched, orders))

    def is_large(now: Share, before: Share) -> bool:
        return now.part < before.part - SHARE_FALL_MAX

    rule = "matched_share_fell"
    first = dict.fromkeys(KINDS, ALL_ROWS.format("orders"))
    measure = Measure("customer known", count, is_large, first)
    for fall in rows.fallen(measure, partial(accepted.is_changed, f"orders.{rule}")):
        words = fall.words("are of a known customer")
        yield table_finding("orders", rule, f"{fall.place}: {words}")


def reconcile_orders(
    orders: RawOrders,
    choice: FieldChoice,
    customers: OrderCustomers,
    context: DateContext,
    coverage_gap: str = "",
    clock: str | None = None,
) -> tuple[ReadDates, Mapping[str, str]]:
    """Makes `reconciled.orders`.

    Args:
        orders: the raw ones.
        choice: their columns, and how these are read.
        customers: what `match_customers` found. `temp.order_sums` is made where the total is a sum.
        context: see `orders_part`.
        coverage_gap: `gap` there.
        clock: by which clock their times are, or that midnights are dates; None: it is not known.

    Returns:
        How their dates were read; why customers, dates or totals are not known, by field.
    """
    tables = orders.tables
    column = choice.fields.ordered_at
    dates, midnights = _examined_dates(orders, column, context)
    form = dates.form()
    are_dates = clock == DATES or (clock is None and midnights.hits == midnights.rows)
    unknown = _unknown(choice, customers, form)
    task = partial(
        orders_part,
        choice=replace(choice, unknown=unknown),
        form=form,
        context=context,
        gap=coverage_gap,
        are_dates=are_dates,
    )
    made, counts = tables.fill(ORDERS, task, tables.read(_sides(orders, choice)))
    tables.findings.add(orders_findings(counts, choice, form, coverage_gap))
    raw = [f"o.{sql_name(name)} AS {sql_name(new)}" for name, new in orders.passed_on().items()]
    columns = [*(f"f.{name}" for name in ORDERS), *raw, *(f"o.{name}" for name in BOOKKEEPING)]
    tables.build.execute(
        f"CREATE OR REPLACE TABLE reconciled.orders AS SELECT {', '.join(columns)} "
        f"FROM {orders.raw} o POSITIONAL JOIN {made} f"
    )
    tables.build.execute("DROP TABLE temp.order_customers")
    naive = counts["zone_unknown"]
    return ReadDates(column or "", form.form, form.evidence, naive, midnights), unknown


def _examined_dates(
    orders: RawOrders, column: str | None, context: DateContext
) -> tuple[DateEvidence, Share]:
    """What the column of dates proves about its form, and how many of its times are at midnight in UTC."""
    dates = DateEvidence(context.order)
    midnights = times = 0
    for part in () if column is None else orders.parts([column]):
        texts = texts_of(part[column])
        dates.add(texts)
        midnights += int(is_midnight_in_utc(texts).sum())
        times += int(texts.count())
    return dates, Share(midnights, times)


def _unknown(choice: FieldChoice, customers: OrderCustomers, form: ColumnForm) -> dict[str, str]:
    """Why customers, dates, totals or statuses are not known, by field."""
    fields = choice.fields
    unknown = dict(choice.unknown)
    if customers.unknown:
        unknown["customer_id"] = f"customer_id: {customers.unknown}"
    if form.form in UNREAD_FORMS:
        unknown["ordered_at"] = (
            f"ordered_at: {fields.ordered_at} is {form.form}: no form of its dates is proven"
        )
    if choice.amounts.is_ambiguous:
        unknown["total"] = f"total: {fields.total} has texts such as 1.234"
    unknown["order_status"] = UNKNOWN_STATUS
    return unknown


def _sides(orders: RawOrders, choice: FieldChoice) -> dict[str, str]:
    """The tables that orders are made from, side by side, with their columns (SQL)."""
    cancellation = choice.cancellation
    read = ["id", _IS_MISSING]
    for name, column in choice.fields.columns().items():
        if name != "customer_id" and column not in SUMS:
            read.append(f"{sql_name(column)} AS {name}")
    for name in cancellation.columns:
        if name != cancellation.nested:
            read.append(f"{sql_name(name)} AS {sql_name(f'{WITNESS}{name}')}")
    sides = {orders.name: ", ".join(read), "temp.order_customers": ", ".join(ORDER_CUSTOMERS)}
    if choice.fields.total in SUMS:
        sides["temp.order_sums"] = "total"
    if choice.has_refunds:
        of_payments = f"{WITNESS}{cancellation.nested}"
        sides["temp.order_refunds"] = f"refunded, has_refund, state AS {sql_name(of_payments)}"
    return sides
