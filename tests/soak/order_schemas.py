"""Orders in schemas that platforms may have, with the truth: who ordered, for how much, what counts.

In: a seed. Out: raw orders, lines and customers, and the truth of each order in plain Python. What the product states
must be true, and what is null must have a reason; where the orders prove a field, it has to be stated.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pandas as pd

from pipelines.reconcile.orders import RawOrders, match_customers, reconcile_orders
from tests.pipelines.reconcile.in_parts import build_of, rows_of
from tests.soak.outcome import Outcome
from transforms.customer_index import ORDERING_CUSTOMERS, CustomerIndex
from transforms.dates import DateContext
from transforms.frames import BIGINT, BOOLEAN, MONEY, TEXT, TIMESTAMP, frame
from transforms.keys import BOOKKEEPING
from transforms.order_fields import OrderFields, choose_fields

AS_OF = datetime(2026, 3, 29, 12, tzinfo=UTC)
LIVE = (
    "PENDING", "confirmed", "Entregado", "CANCELLATION_REJECTED", "window-to-cancel", "refund pending", "pagado",
    "Parcialmente reembolsado", "Solicitud de anulación", "Not cancelled", "cancellationRequested",
)  # fmt: skip
DEAD = (
    "CANCELLED", "Rechazado", "refunded", "Anulada", "canceled", "voided", "Devuelto", "declined", "order_cancelled",
    "Cancelled - refund pending", "PAYMENT_VOIDED", "Pedido rechazado",
)  # fmt: skip
WITNESSES = ("status", "isCancelled", "cancelledAt", "state", "financial_status", "setting")
TOTALS = ("plain", "text", "cents", "pieces", "cents beside", "only pieces")
CUSTOMERS = ("id", "code", "rival", "same", "staff")
COUNT = 60


@dataclass(slots=True)
class OrderSchema:
    """The orders of a seed; their lines, if any; the truth of each; and the fields that they prove."""

    orders: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    kinds: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    truth: dict[str, dict[str, Any]] = field(default_factory=dict)
    proven: set[str] = field(default_factory=set)
    cancelled_values: tuple[str, ...] | None = None


def order_schema(seed: int) -> OrderSchema:
    """The schema and the orders of a seed."""
    draw = random.Random(f"order schema {seed}")
    witness, amount, who = draw.choice(WITNESSES), draw.choice(TOTALS), draw.choice(CUSTOMERS)
    has_lines = draw.random() < 0.6
    status = draw.choice(("status", "order_status", "estado"))
    tax = Decimal(draw.choice(("1", "1.18", "1.21")))
    live, dead = draw.sample(LIVE, 4), draw.sample(DEAD, 3)
    made = OrderSchema()
    if witness == "setting":
        dead = ["9", "X-3"]
        made.cancelled_values = ("x-3", "9")
    names = {"id": TEXT, "created_at": TEXT, status: TEXT, **BOOKKEEPING}
    made.kinds = (
        names,
        {"order_id": TEXT, "position": BIGINT, "quantity": BIGINT, "price": MONEY, "_missing_since": TIMESTAMP},
    )
    made.proven = {"is_cancelled"} | ({"customer_id"} if who != "rival" else set())
    if amount in ("plain", "text") or (has_lines and amount in ("cents", "pieces", "cents beside")):
        made.proven.add("total")
    for number in range(COUNT):
        one, is_dead, customer = f"o{number:03}", draw.random() < 0.2, draw.randrange(1, 41)
        row: dict[str, Any] = {"id": one, "created_at": (AS_OF - timedelta(hours=number)).isoformat()}
        row[status] = draw.choice(dead if is_dead and witness in ("status", "setting") else live)
        if witness in ("isCancelled", "cancelledAt", "state", "financial_status"):
            name = {"isCancelled": "is_cancelled", "cancelledAt": "cancelled_at"}.get(witness, witness)
            names[name] = BOOLEAN if witness == "isCancelled" else TEXT
            row[name] = {
                "isCancelled": is_dead,
                "cancelledAt": AS_OF.isoformat() if is_dead else None,
                "state": draw.choice(dead) if is_dead else "open",
                "financial_status": "refunded" if is_dead else "paid",
            }[witness]
        net, pieces = Decimal(0), 0
        for position in range(draw.randrange(1, 4)):  # of which the platform may list none
            quantity, price = draw.randrange(1, 9), Decimal(draw.randrange(300, 90_000)) / 100
            net, pieces = net + quantity * price, pieces + quantity
            line = {"order_id": one, "position": position, "quantity": quantity, "price": price}
            made.lines += [line] if has_lines else []
        total = (net * tax).quantize(Decimal("0.01"))
        row |= _amounts(amount, total, pieces, names)
        row |= _customer(who, customer, draw, names)
        made.orders.append(row)
        made.truth[one] = {"customer_id": str(customer), "total": total, "is_cancelled": is_dead}
        if not has_lines and amount in ("cents", "only pieces"):
            del made.truth[one]["total"]  # nothing shows it: a column of whole numbers may be amounts
    return made


def _amounts(amount: str, total: Decimal, pieces: int, names: dict[str, Any]) -> dict[str, Any]:
    cents = int(total * 100)
    schemas: dict[str, dict[str, Any]] = {
        "plain": {"total": total},
        "text": {"total": f"{total + 0}"},
        "cents": {"total": cents},
        "pieces": {"total": pieces, "total_amount": total},
        "cents beside": {"total": cents, "grand_total": total},
        "only pieces": {"total": pieces},
    }
    values = schemas[amount]
    kinds = {Decimal: MONEY, int: BIGINT, str: TEXT}
    names |= {name: kinds[type(value)] for name, value in values.items()}
    return values


def _customer(who: str, customer: int, draw: random.Random, names: dict[str, Any]) -> dict[str, Any]:
    other = draw.randrange(1, 41)
    schemas: dict[str, dict[str, Any]] = {
        "id": {"customer_id": customer},
        "code": {"customer__code": f"C{customer}"},
        "rival": {"buyer__id": other, "account__id": customer},
        "same": {"customer__id": customer, "account__id": customer},
        "staff": {"customer__id": customer, "user_id": other % 4 + 1},
    }
    values = schemas[who]
    names |= {name: TEXT if isinstance(value, str) else BIGINT for name, value in values.items()}
    return values


def order_schema_seed(seed: int) -> Outcome:
    """What the product states of the orders of a seed: counts of right, unknown and wrong values."""
    made = order_schema(seed)
    known = [{"customer_id": str(one), "erp_code": f"C{one}", "is_missing": False} for one in range(1, 41)]
    customers = frame(ORDERING_CUSTOMERS, known)
    tables = {"raw__orders": frame(made.kinds[0], made.orders), "raw__orders__lines": frame(made.kinds[1], made.lines)}
    stated, reasons = _stated(made, customers, tables)
    counts, problems = Counter[str](), []
    for one, truth in made.truth.items():
        for name, value in truth.items():
            said = stated[one][name]
            outcome = "unknown" if said is None else "right" if said == value else "wrong"
            counts[outcome] += 1
            if outcome == "wrong":
                problems.append(f"{name} of {one} is {said}, in truth {value}")
            elif outcome == "unknown" and name in made.proven:
                problems.append(f"{name} of {one} is unknown, although it is proven to be {value}: {reasons[one]}")
            elif outcome == "unknown" and name not in reasons[one]:
                problems.append(f"{name} of {one} is unknown without a reason")
    return Outcome(counts, problems[:3])


def _stated(
    made: OrderSchema, customers: pd.DataFrame, tables: dict[str, pd.DataFrame]
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Of each order what is stated, by id, and the reasons for what is not."""
    with build_of(7, **tables) as build:
        raw = RawOrders.of(build, "orders__lines" if made.lines else None)
        index = CustomerIndex.of(customers)
        choice = choose_fields(raw, index, OrderFields(cancelled_values=made.cancelled_values))
        reconcile_orders(raw, choice, match_customers(raw, index, choice.fields), DateContext(AS_OF))
        rows = rows_of(build, "reconciled.orders", "order_id").to_dict("records")
    stated, reasons = {}, {}
    for row in _without_na(rows):
        is_known = row["customer_status"] == "matched"
        stated[row["order_id"]] = {**row, "customer_id": row["customer_id"] if is_known else None}
        reasons[row["order_id"]] = row["unknown_because"] or ""
    return stated, reasons


def _without_na(rows: list[dict[Any, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield {str(name): None if value is pd.NA else value for name, value in row.items()}
