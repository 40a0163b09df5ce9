"""What went back of each order: refunds that are nested in it, columns of refunded amounts, and states of its payments.

In: the raw orders of a build and their child tables. Out: a temporary table with a row for each order, in their order,
which `reconcile_orders` reads beside it; and the column of the payments' state as one that may say that an order does
not count. Amounts are without a sign. Texts are read as those of totals are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from orderbridge.pipelines.reconcile.orders.orders import RawOrders, child_columns
from orderbridge.pipelines.warehouse.sql import sql_name
from orderbridge.transforms.orders.fields import FieldChoice
from orderbridge.transforms.orders.names import ORDER_NAMES

TABLE: Final = "temp.order_refunds"
_NOTHING: Final = "NULL::DECIMAL(38, 9)"
_NESTED: Final = """
    LEFT JOIN (SELECT order_id, sum(abs({amount})) AS amount FROM raw.{table} n GROUP BY order_id) refunds
    ON refunds.order_id = o.id"""
_PAYMENTS: Final = """
    LEFT JOIN (SELECT order_id, arg_max({state}, position) AS state FROM raw.{table} GROUP BY order_id) payments
    ON payments.order_id = o.id"""
_ROWS: Final = """
    CREATE OR REPLACE TEMP TABLE order_refunds AS
    SELECT coalesce({amounts}) AS refunded, {state} AS state FROM {orders} o {joins} ORDER BY o.rowid"""
_STATES: Final = "SELECT DISTINCT state FROM temp.order_refunds WHERE state IS NOT NULL"


def find_refunds(orders: RawOrders, choice: FieldChoice) -> FieldChoice:
    """Makes the table, and adds the payments' state to the choice; nothing where the orders have none of it."""
    build = orders.tables.build
    build.execute(f"DROP TABLE IF EXISTS {TABLE}")
    joins: list[str] = []
    amounts = [*_own_amounts(orders, choice)]
    nested = next(child_columns(build, "refunds", "refund_amount"), None)
    if nested is not None:
        table = sql_name(f"orders__{nested[0]}")
        amount = orders.tables.numbers(f"raw.{table}", nested[1], "n")
        joins.append(_NESTED.format(amount=amount, table=table))
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
            orders=orders.name,
            joins=" ".join(joins),
        )
    )
    cancellation = choice.cancellation
    if payments is not None:
        words = {state for (state,) in build.execute(_STATES).fetchall()}
        cancellation = cancellation.with_payments("__".join(payments), words)
    return replace(choice, cancellation=cancellation, has_refunds=True)


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
