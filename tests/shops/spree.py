"""Spree: carts lie among the orders, and `completed_at` is the time of the purchase; `created_at` is that of the cart.

The state says how far the checkout is, the state of the payment whether it was paid.
"""

from __future__ import annotations

from datetime import UTC, timedelta

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
    lines_of,
    listed,
    people,
    purchases,
    text,
)

_PRODUCTS = catalogue(
    {
        "Ruby on Rails Tote": "15.99",
        "Ruby on Rails Bag": "22.99",
        "Spree Mug": "13.99",
        "Spree Stein": "16.99",
        "Apache Baseball Jersey": "19.99",
        "Spree Ringer T-Shirt": "17.50",
    },
    "SPR-{:05d}",
    first=101,
)
_STATES: dict[str, int] = {"complete": 70, "cart": 8, "payment": 6, "canceled": 8, "returned": 5}
_CLASSES: dict[str, Status] = {
    "complete": "sale",
    "cart": "open",
    "payment": "open",
    "canceled": "cancelled",
    "returned": "refunded",
}


def shop() -> Shop:
    """A shop of mugs and shirts in New York."""
    customers = people(916, 40, first=21, code="SP{:03d}".format)
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        16, 110, "America/New_York", _PRODUCTS, _STATES, customers=40, guests=0.1, strangers=0.02
    ):
        rows.append(_row(bought))
        is_made = bought.state not in ("cart", "payment")
        truth.append(
            Order(
                key=str(bought.n + 1),
                customer=None if bought.buyer is None else str(bought.buyer + 21),
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date() if is_made else None,
                total=bought.goods + bought.shipping,
                currency="USD",
                status=_CLASSES[bought.state],
                lines=lines_of(bought.items, lambda product: str(product.id)),
            )
        )
    return Shop(
        name="spree",
        zone="America/New_York",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="user_id",
            customer_is="id",
            instant="completed_at",
            written="offset",
            total="{total}",
            total_is="gross",
            currency="currency",
            status=(By("state", _CLASSES),),
            lines=LineAnswers(
                "line_items",
                "variant_id",
                "name",
                "quantity",
                "{price} * {quantity} + {promo_total}",
            ),
        ),
    )


def _row(bought: Purchase) -> Row:
    at = bought.at.astimezone(UTC)
    is_made = bought.state not in ("cart", "payment")
    payment = {"complete": "paid", "canceled": "void", "returned": "credit_owed"}
    return {
        "id": bought.n + 1,
        "number": f"R{bought.n * 7919 % 10**9:09d}",
        "item_total": text(bought.full),
        "total": text(bought.goods + bought.shipping),
        "ship_total": text(bought.shipping),
        "state": bought.state,
        "adjustment_total": text(bought.goods - bought.full),
        "user_id": None if bought.buyer is None else bought.buyer + 21,
        "created_at": f"{at - timedelta(hours=bought.n % 40):%Y-%m-%dT%H:%M:%S}.000Z",
        "updated_at": f"{at + timedelta(days=2):%Y-%m-%dT%H:%M:%S}.000Z",
        "completed_at": f"{at:%Y-%m-%dT%H:%M:%S}.000Z" if is_made else None,
        "payment_total": text(bought.goods + bought.shipping if is_made else bought.goods * 0),
        "shipment_state": "shipped" if is_made else None,
        "payment_state": payment.get(bought.state),
        "email": f"buyer{bought.n}@shop.example",
        "currency": "USD",
        "channel": "spree",
        "considered_risky": False,
        "line_items": [
            {
                "id": bought.n * 10 + k,
                "quantity": int(item.quantity),
                "price": text(item.product.price),
                "variant_id": item.product.id,
                "name": item.product.name,
                "promo_total": text(-item.discount),
                "total": text(item.revenue),
            }
            for k, item in enumerate(bought.items)
        ],
    }
