"""The lists of the shops whose projects are upgraded.

In: the name of a shop. Out: records of each list, always the same. The shops differ in the form of their orders: that
of most platforms, and amounts as JavaScript and PHP send them (8.264462809917356) with lists that mostly have one
element. Nothing in them depends on the day: orders and ended promotions are years old, the others run for a century.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

Record = dict[str, Any]
Lists = dict[str, list[Record]]
CUSTOMERS: Final = 40
ORDERS: Final = 120
_GROSS_OF_NET: Final = 1.21


def _customers(draw: random.Random) -> list[Record]:
    return [
        {
            "id": 1000 + n,
            "firstName": f"Ana {n}",
            "lastName": draw.choice(("Quispe", "Rojas", "Peña")),
            "phone": f"+51 9{n:08d}",
            "email": f"ana{n}@shop.example",
            "createdAt": f"2023-{n % 9 + 1:02d}-{n % 27 + 1:02d}T10:00:00Z",
            "priceListId": n % 3 + 1,
            "erpCode": f"C{n:04d}",
            "documents": [
                {
                    "number": f"20{n:09d}",
                    "fiscalName": f"Empresa {n}",
                    "fiscalAddress": f"Calle {n}",
                    "isDefault": True,
                    "forTaxes": n % 2 == 0,
                }
            ],
        }
        for n in range(1, CUSTOMERS + 1)
    ]


def _line(draw: random.Random, amount: float, n: int) -> Record:
    return {
        "sku": f"00{n % 7}-A",
        "name": f"Producto {n % 7}",
        "quantity": draw.randint(1, 9),
        "unitPrice": amount,
    }


def _order(n: int, total: float, items: list[Record]) -> Record:
    return {
        "id": f"ord_{n:05d}",
        "number": n,
        "status": "CANCELLED" if n % 17 == 0 else "DELIVERED",
        "createdAt": f"2024-{n % 10 + 1:02d}-{n % 27 + 1:02d}T12:30:00Z",
        "currency": "PEN",
        "customer": {"id": 1001 + n % CUSTOMERS, "erpCode": f"C{n % CUSTOMERS + 1:04d}"},
        "total": total,
        "items": items,
    }


def _plain_orders(draw: random.Random) -> list[Record]:
    orders = []
    for n in range(ORDERS):
        items = [_line(draw, draw.randint(100, 9000) / 100, n + k) for k in range(n % 4 + 1)]
        total = round(sum(item["quantity"] * item["unitPrice"] for item in items), 2)
        orders.append(_order(n, total, items))
    return orders


def _net_orders(draw: random.Random) -> list[Record]:
    """Totals divided by 1.21 in floating point, and 96 of 100 orders with one line."""
    orders = []
    for n in range(ORDERS):
        count = 2 if n % 25 == 24 else 1
        items = [
            _line(draw, draw.randint(100, 9000) / 100 / _GROSS_OF_NET, n) for _ in range(count)
        ]
        total = sum(item["quantity"] * item["unitPrice"] for item in items)
        orders.append(_order(n, total, items))
    return orders


SHOPS: Final[dict[str, Callable[[random.Random], list[Record]]]] = {
    "plain": _plain_orders,
    "net": _net_orders,
}


def lists_of(shop: str) -> Lists:
    """The lists of a shop."""
    draw = random.Random(shop)
    promotions = [
        {
            "id": n,
            "name": f"Promo {n}",
            "useCount": n,
            "usageLimit": 50,
            "isActive": n % 4 > 0,
            "startDate": "2024-01-01T00:00:00Z",
            "expirationDate": f"{2024 if n % 3 else 2124}-12-31T23:59:59Z",
        }
        for n in range(1, 9)
    ]
    price_lists = [
        {
            "id": str(n),
            "name": f"Lista {n}",
            "sourcePriceListId": str(n - 1) if n > 1 else None,
            "adjustmentType": "NONE",
            "adjustmentValue": "0.00",
        }
        for n in range(1, 4)
    ]
    return {
        "customers": _customers(draw),
        "promotions": promotions,
        "price_lists": price_lists,
        "orders": SHOPS[shop](draw),
    }


def lists_in(folder: Path) -> Lists:
    """The lists of a real shop, from JSON arrays in files named after them; those without a file are of `plain`."""
    lists = lists_of("plain")
    for name in lists:
        file = folder / f"{name}.json"
        if file.exists():
            lists[name] = json.loads(file.read_text("utf-8"))
    return lists


def next_night(lists: Lists) -> Lists:
    """The lists a day later: one customer moved, one left, an order was added."""
    customers = [{**row} for row in lists["customers"]]
    customers[3]["firstName"] = "Berta"
    del customers[5]
    added = {**lists["orders"][-1], "id": "ord_next"}
    return {**lists, "customers": customers, "orders": [*lists["orders"], added]}
