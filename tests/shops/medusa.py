"""Medusa (v1): amounts are in cents and whole, `status` is `pending` for nearly all, and the payment's status decides.

Customers are named by the ids of Medusa, which the ERP has as its codes.
"""

from __future__ import annotations

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
    hexadecimal,
    lines_of,
    listed,
    minor,
    people,
    purchases,
)

_PRODUCTS = catalogue(
    {
        "Medusa T-Shirt": "19.50",
        "Medusa Sweatshirt": "33.50",
        "Medusa Sweatpants": "29.95",
        "Medusa Shorts": "25.00",
        "Medusa Hoodie": "44.90",
        "Medusa Longsleeve": "37.75",
    },
    "{}",
)
_STATES: dict[str, int] = {"captured": 70, "awaiting": 14, "refunded": 6, "canceled": 10}
_CLASSES: dict[str, Status] = {
    "captured": "sale",
    "awaiting": "open",
    "refunded": "refunded",
    "canceled": "cancelled",
}


def shop() -> Shop:
    """A clothes shop in Copenhagen that sells in euros."""
    customers = people(914, 50, first=1, code=lambda n: _id("cus", n))
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        14, 120, "Europe/Copenhagen", _PRODUCTS, _STATES, customers=50, strangers=0.03
    ):
        rows.append(_row(bought))
        truth.append(
            Order(
                key=_id("order", bought.n),
                customer=_id("cus", bought.buyer),
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=bought.goods + bought.shipping,
                currency="EUR",
                status=_CLASSES[bought.state],
                lines=lines_of(bought.items, lambda product: _id("variant", product.id)),
            )
        )
    return Shop(
        name="medusa",
        zone="Europe/Copenhagen",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="customer_id",
            customer_is="erpCode",
            instant="created_at",
            written="offset",
            total="{total}",
            total_is="gross",
            unit=Decimal("0.01"),
            currency="currency_code",
            status=(By("payment_status", _CLASSES),),
            lines=LineAnswers("items", "variant_id", "title", "quantity", "{total}"),
        ),
    )


def _row(bought: Purchase) -> Row:
    at = f"{bought.at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{bought.n:03d}Z"
    is_lost = bought.state == "canceled"
    return {
        "id": _id("order", bought.n),
        "object": "order",
        "status": "canceled" if is_lost else "pending",
        "fulfillment_status": "not_fulfilled" if is_lost else "fulfilled",
        "payment_status": bought.state,
        "display_id": bought.n + 1,
        "cart_id": _id("cart", bought.n),
        "customer_id": _id("cus", bought.buyer),
        "email": f"kunde{bought.buyer}@shop.example",
        "region_id": "reg_01",
        "currency_code": "eur",
        "tax_rate": None,
        "created_at": at,
        "updated_at": at,
        "canceled_at": at if is_lost else None,
        "subtotal": minor(bought.full),
        "discount_total": minor(bought.full - bought.goods),
        "shipping_total": minor(bought.shipping),
        "tax_total": 0,
        "refunded_total": minor(bought.goods + bought.shipping)
        if bought.state == "refunded"
        else 0,
        "total": minor(bought.goods + bought.shipping),
        "items": [
            {
                "id": _id("item", bought.n, k),
                "title": item.product.name,
                "variant_id": _id("variant", item.product.id),
                "is_giftcard": False,
                "unit_price": minor(item.product.price),
                "quantity": int(item.quantity),
                "fulfilled_quantity": int(item.quantity),
                "subtotal": minor(item.full),
                "discount_total": minor(item.discount),
                "total": minor(item.revenue),
            }
            for k, item in enumerate(bought.items)
        ],
    }


def _id(kind: str, *of: object) -> str:
    return f"{kind}_{hexadecimal(kind, *of, digits=26).upper()}"
