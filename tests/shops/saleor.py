"""Saleor (GraphQL): amounts are nested with net, gross and currency, ids are base64, statuses are in upper case.

Drafts lie among the orders; `userEmail` and `user.id` name the customer.
"""

from __future__ import annotations

import base64
from datetime import UTC
from decimal import Decimal

from .world import (
    Answers,
    By,
    LineAnswers,
    Order,
    Purchase,
    Row,
    Shop,
    Status,
    catalogue,
    cents,
    lines_of,
    listed,
    people,
    purchases,
)

_PRODUCTS = catalogue(
    {
        "Apple Juice": "5.99",
        "Bean Juice": "3.49",
        "Blue Hoodie": "35.00",
        "Code Division T-shirt": "14.50",
        "Mirror": "120.00",
        "Reversed Monotype Tee": "21.25",
    },
    "{:08d}",
)
_STATES: dict[str, int] = {
    "FULFILLED": 60,
    "UNFULFILLED": 14,
    "PARTIALLY_FULFILLED": 4,
    "UNCONFIRMED": 5,
    "DRAFT": 6,
    "CANCELED": 6,
    "RETURNED": 3,
    "EXPIRED": 2,
}
_CLASSES: dict[str, Status] = {
    "FULFILLED": "sale",
    "UNFULFILLED": "sale",
    "PARTIALLY_FULFILLED": "sale",
    "UNCONFIRMED": "open",
    "DRAFT": "open",
    "CANCELED": "cancelled",
    "RETURNED": "refunded",
    "EXPIRED": "cancelled",
}


def shop() -> Shop:
    """A grocer and clothier in Warsaw, who sells in zloty."""
    customers = people(915, 40, first=11, code=lambda n: _id("User", n + 11))
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        15, 120, "Europe/Warsaw", _PRODUCTS, _STATES, customers=40, guests=0.1, strangers=0.02
    ):
        rows.append(_row(bought))
        truth.append(
            Order(
                key=_id("Order", bought.n),
                customer=None if bought.buyer is None else _id("User", bought.buyer + 11),
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=_gross(bought.goods) + bought.shipping,
                currency="PLN",
                status=_CLASSES[bought.state],
                lines=lines_of(bought.items, revenue=lambda item: _gross(item.revenue)),
            )
        )
    return Shop(
        name="saleor",
        zone="Europe/Warsaw",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="user.id",
            customer_is="erpCode",
            instant="created",
            written="offset",
            total="{total.gross.amount}",
            total_is="gross",
            currency="total.gross.currency",
            status=(By("status", _CLASSES),),
            lines=LineAnswers(
                "lines", "productSku", "productName", "quantity", "{totalPrice.gross.amount}"
            ),
        ),
        notes=("Lines are compared within three cents: the tax is rounded on sums.",),
        near=Decimal("0.03"),
    )


def _row(bought: Purchase) -> Row:
    at = f"{bought.at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{bought.n:06d}+00:00"
    buyer = None if bought.buyer is None else bought.buyer + 11
    return {
        "id": _id("Order", bought.n),
        "number": str(bought.n + 1),
        "status": bought.state,
        "isPaid": bought.state in ("FULFILLED", "UNFULFILLED"),
        "created": at,
        "updatedAt": at,
        "origin": "CHECKOUT",
        "userEmail": f"klient{bought.n}@shop.example",
        "user": None if buyer is None else {"id": _id("User", buyer)},
        "channel": {"slug": "channel-pln"},
        "shippingPrice": _money(bought.shipping, bought.shipping),
        "total": _money(bought.goods + bought.shipping, _gross(bought.goods) + bought.shipping),
        "undiscountedTotal": _money(
            bought.full + bought.shipping, _gross(bought.full) + bought.shipping
        ),
        "lines": [
            {
                "id": _id("OrderLine", bought.n * 10 + k),
                "productName": item.product.name,
                "variantName": "M",
                "productSku": item.product.sku,
                "quantity": int(item.quantity),
                "unitPrice": _money(
                    item.revenue / item.quantity, _gross(item.revenue) / item.quantity
                ),
                "totalPrice": _money(item.revenue, _gross(item.revenue)),
            }
            for k, item in enumerate(bought.items)
        ],
    }


def _gross(net: Decimal) -> Decimal:
    return cents(net * Decimal("1.23"))


def _money(net: Decimal, gross: Decimal) -> Row:
    return {
        "net": {"amount": float(net), "currency": "PLN"},
        "gross": {"amount": float(gross), "currency": "PLN"},
    }


def _id(kind: str, number: int) -> str:
    return base64.b64encode(f"{kind}:{number}".encode()).decode()
