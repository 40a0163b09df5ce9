"""What went back of each order: refunds that are nested in it, columns of refunded amounts, and states of its payments.

In: the raw orders of a build and their child tables. Out: a temporary table with a row for each order, in their order,
which `reconcile_orders` reads beside it; and the column of the payments' state as one that may say that an order does
not count. Amounts are without a sign. Texts are read as those of totals are. A refund without an amount of its own has
that of its payments, else of its lines; without these, what went back of the order is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from orderbridge.pipelines.reconcile.orders.orders import RawOrders, child_columns
from orderbridge.pipelines.warehouse.sql import columns_of, sql_name, table_names
from orderbridge.transforms.orders.fields import FieldChoice
from orderbridge.transforms.orders.names import LINE_NAMES, ORDER_NAMES, REFUND_PARTS

TABLE: Final = "temp.order_refunds"
_NOTHING: Final = "NULL::DECIMAL(38, 9)"
_NESTED: Final = """
    LEFT JOIN (
        SELECT order_id, if(count(amount) = count(*), sum(abs(amount)), NULL) AS amount
        FROM (SELECT n.order_id, coalesce({amounts}) AS amount FROM raw.{table} n {joins}) GROUP BY order_id
    ) refunds ON refunds.order_id = o.id"""
_OF_REFUND: Final = """
    LEFT JOIN (
        SELECT order_id, refund, if(count(amount) = count(*), sum(amount), NULL) AS amount
        FROM (SELECT c.order_id, c.{key} AS refund, {amount} AS amount FROM raw.{table} c) GROUP BY ALL
    ) {name} ON {name}.order_id = n.order_id AND {name}.refund = n.position"""
"""What the payments or lines of each refund come to."""
_PRODUCT: Final = "TRY_CAST(({quantity})::DOUBLE * ({price})::DOUBLE AS DECIMAL(38, 9))"
_PAYMENTS: Final = """
    LEFT JOIN (SELECT order_id, arg_max({state}, position) AS state FROM raw.{table} GROUP BY order_id) payments
    ON payments.order_id = o.id"""
_ROWS: Final = """
    CREATE OR REPLACE TEMP TABLE order_refunds AS
    SELECT coalesce({amounts}) AS refunded, {state} AS state, {has_refund} AS has_refund
    FROM {orders} o {joins} ORDER BY o.rowid"""
_STATES: Final = "SELECT DISTINCT state FROM temp.order_refunds WHERE state IS NOT NULL"


def find_refunds(orders: RawOrders, choice: FieldChoice) -> FieldChoice:
    """Makes the table, and adds the payments' state to the choice; nothing where the orders have none of it."""
    build = orders.tables.build
    build.execute(f"DROP TABLE IF EXISTS {TABLE}")
    joins: list[str] = []
    amounts = [*_own_amounts(orders, choice)]
    nested = _nested_refunds(orders)
    if nested is not None:
        joins.append(nested)
        amounts.insert(0, "refunds.amount")
    payments = next(child_columns(build, "payments", "payment_state"), None)
    if payments is not None:
        table, column = payments
        state = sql_name(column)
        joins.append(_PAYMENTS.format(state=state, table=sql_name(f"orders__{table}")))
    if not joins and not amounts:
        return choice
    build.execute(
        _ROWS.format(
            amounts=", ".join([*amounts, _NOTHING]),
            state="NULL::VARCHAR" if payments is None else "payments.state::VARCHAR",
            has_refund="false" if nested is None else "refunds.order_id IS NOT NULL",
            orders=orders.name,
            joins=" ".join(joins),
        )
    )
    cancellation = choice.cancellation
    if payments is not None:
        words = {state for (state,) in build.execute(_STATES).fetchall()}
        cancellation = cancellation.with_payments("__".join(payments), words)
    return replace(choice, cancellation=cancellation, has_refunds=True)


def _nested_refunds(orders: RawOrders) -> str | None:
    """Joins what the refunds in each order come to (SQL), null where one has no amount; None: there are no refunds."""
    known = table_names(orders.tables.build, "raw")
    tables = [f"orders__{name}" for name in ORDER_NAMES["refunds"]]
    table = next((name for name in tables if name in known), None)
    if table is None:
        return None
    key = sql_name(f"{table.removeprefix('orders__')}_position")
    amounts = [*_amounts_in(orders, table, "n", ORDER_NAMES["refund_amount"])]
    joins: list[str] = []
    for array in REFUND_PARTS:
        part = f"{table}__{array}"
        amount = _amount_of_part(orders, part, array) if part in known else None
        if amount is not None:
            name = f"part_{len(joins)}"
            joins.append(_OF_REFUND.format(key=key, amount=amount, table=sql_name(part), name=name))
            amounts.append(f"{name}.amount")
    return _NESTED.format(
        amounts=", ".join([*amounts, _NOTHING]), table=sql_name(table), joins=" ".join(joins)
    )


def _amount_of_part(orders: RawOrders, table: str, array: str) -> str | None:
    """The amount of a payment or line of a refund (SQL); None where the table has none."""
    if array in ORDER_NAMES["payments"]:
        return next(_amounts_in(orders, table, "c", ORDER_NAMES["payment_amount"]), None)
    own = next(_amounts_in(orders, table, "c", LINE_NAMES["line_total"]), None)
    quantity = next(_amounts_in(orders, table, "c", LINE_NAMES["quantity"]), None)
    price = next(_amounts_in(orders, table, "c", LINE_NAMES["unit_price"]), None)
    if own is not None or quantity is None or price is None:
        return own
    return _PRODUCT.format(quantity=quantity, price=price)


def _amounts_in(orders: RawOrders, table: str, alias: str, names: Sequence[str]) -> Iterator[str]:
    """The columns of a raw table with one of these names, as numbers (SQL)."""
    columns = columns_of(orders.tables.build, f"raw.{sql_name(table)}")
    for name in names:
        if name in columns:
            yield orders.tables.numbers(f"raw.{sql_name(table)}", name, alias)


def _own_amounts(orders: RawOrders, choice: FieldChoice) -> Iterator[str]:
    """What columns of the orders say about the refunded amount (SQL)."""
    for name in ORDER_NAMES["refunded"]:
        if name in orders.kinds:
            yield f"abs({orders.tables.numbers(orders.name, name, 'o')})"
    total = choice.fields.total or ""
    for name in ORDER_NAMES["total_after_refunds"]:
        if total in orders.kinds and name in orders.kinds and name != total:
            before, after = (orders.tables.numbers(orders.name, one, "o") for one in (total, name))
            yield f"nullif(greatest({before} - {after}, 0), 0)"
