"""Magento 2 (orders of its REST interface): times of UTC without a zone, amounts in the order's and the base currency.

A configurable product is two rows: the variant's row has a `parent_item_id`, no price and the same sku. `state` and
`status` are nearly alike; a guest's `customer_id` is null.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from decimal import Decimal

from .world import (
    Answers,
    By,
    Line,
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
        "Joust Duffle Bag": "34.00",
        "Hero Hoodie": "54.00",
        "Fusion Backpack": "59.00",
        "Radiant Tee": "22.00",
        "Quest Lumaflex Band": "19.00",
        "Sprite Yoga Strap": "14.00",
    },
    "24-MB{:02d}",
)
_STATES: dict[str, int] = {
    "complete": 58,
    "processing": 12,
    "pending": 5,
    "pending_payment": 5,
    "holded": 3,
    "fraud": 3,
    "payment_review": 2,
    "closed": 6,
    "canceled": 6,
}
_STATE_OF = {"pending": "new", "fraud": "processing"}
_CLASSES: dict[str, Status] = {
    "complete": "sale",
    "processing": "sale",
    "pending": "open",
    "pending_payment": "open",
    "holded": "open",
    "fraud": "open",
    "payment_review": "open",
    "closed": "refunded",
    "canceled": "cancelled",
}
_CONFIGURABLE = {"Hero Hoodie": "Hero Hoodie-S-Gray", "Radiant Tee": "Radiant Tee-M-Blue"}
_RATE = Decimal("0.9")


def shop() -> Shop:
    """A sports shop in Chicago that also sells in euros."""
    customers = people(906, 55, first=1, code="M{:05d}".format)
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        6, 130, "America/Chicago", _PRODUCTS, _STATES, customers=55, guests=0.15
    ):
        rate, currency = (_RATE, "EUR") if bought.n % 6 == 0 else (Decimal(1), "USD")
        tax = cents(bought.goods * Decimal("0.0825"))
        base = bought.goods + tax + bought.shipping
        total = cents(base * rate)
        buyer = None if bought.buyer is None else str(bought.buyer + 1)
        rows.append(_row(bought, total, rate, currency))
        truth.append(
            Order(
                key=str(bought.n + 1),
                customer=buyer,
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=total,
                currency=currency,
                status=_CLASSES[bought.state],
                lines=_lines(bought, rate),
            )
        )
    return Shop(
        name="magento",
        zone="America/Chicago",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="entity_id",
            customer="customer_id",
            customer_is="id",
            instant="created_at",
            written="utc",
            total="{grand_total}",
            total_is="gross",
            currency="order_currency_code",
            status=(By("status", _CLASSES),),
            lines=LineAnswers(
                at="items",
                product="sku",
                name="name",
                quantity="qty_ordered",
                revenue="{row_total} - {discount_amount}",
                skip=("parent_item_id", "*"),
            ),
        ),
        notes=(
            "Lines are net of the sales tax, the total has it in it.",
            "Who does not leave out rows with parent_item_id counts units twice, not revenue.",
        ),
    )


def _lines(bought: Purchase, rate: Decimal) -> tuple[Line, ...]:
    return lines_of(
        bought.items, revenue=lambda item: cents(item.full * rate) - cents(item.discount * rate)
    )


def _row(bought: Purchase, total: Decimal, rate: Decimal, currency: str) -> Row:
    tax = cents(bought.goods * Decimal("0.0825"))
    discount = bought.full - bought.goods
    at = bought.at.astimezone(UTC)
    paid = _CLASSES[bought.state] in ("sale", "refunded")

    def local(amount: Decimal) -> float:
        return float(cents(amount * rate))

    row: Row = {
        "entity_id": bought.n + 1,
        "increment_id": f"{bought.n + 1:09d}",
        "state": _STATE_OF.get(bought.state, bought.state),
        "status": bought.state,
        "store_id": 1,
        "store_name": "Main Website\nMain Website Store\nDefault Store View",
        "created_at": f"{at:%Y-%m-%d %H:%M:%S}",
        "updated_at": f"{at + timedelta(days=4):%Y-%m-%d %H:%M:%S}",
        "customer_id": None if bought.buyer is None else bought.buyer + 1,
        "customer_is_guest": int(bought.buyer is None),
        "customer_group_id": 0 if bought.buyer is None else 1,
        "customer_email": f"buyer{(bought.buyer or 0) + 1}@example.com",
        "base_currency_code": "USD",
        "global_currency_code": "USD",
        "order_currency_code": currency,
        "base_to_order_rate": float(rate),
        "base_grand_total": float(bought.goods + tax + bought.shipping),
        "grand_total": float(total),
        "base_subtotal": float(bought.full),
        "subtotal": local(bought.full),
        "discount_amount": -local(discount),
        "tax_amount": local(tax),
        "shipping_amount": local(bought.shipping),
        "total_paid": float(total) if paid else None,
        "total_due": 0 if paid else float(total),
        "total_qty_ordered": int(sum(item.quantity for item in bought.items)),
        "billing_address": {
            "firstname": "Billing",
            "lastname": "Name",
            "region": "Illinois",
            "country_id": "US",
            "entity_id": bought.n * 2 + 1,
        },
        "payment": {"method": "braintree", "amount_ordered": float(total)},
        "items": [],
    }
    if bought.state == "closed":
        row["total_refunded"] = float(total)
    for item in bought.items:
        line: Row = {
            "item_id": bought.n * 10 + len(row["items"]) + 1,
            "order_id": bought.n + 1,
            "product_id": item.product.id,
            "product_type": "simple",
            "sku": item.product.sku,
            "name": item.product.name,
            "qty_ordered": int(item.quantity),
            "qty_refunded": int(item.quantity) if bought.state == "closed" else 0,
            "qty_canceled": 0,
            "base_price": float(item.product.price),
            "price": local(item.product.price),
            "row_total": local(item.full),
            "discount_percent": item.percent,
            "discount_amount": local(item.discount),
        }
        row["items"].append(line)
        if item.product.name in _CONFIGURABLE:
            line["product_type"] = "configurable"
            child = {"item_id": line["item_id"] + 1, "parent_item_id": line["item_id"]}
            free = {"price": 0, "base_price": 0, "row_total": 0, "discount_amount": 0}
            named = {
                "product_type": "simple",
                "name": _CONFIGURABLE[item.product.name],
                "product_id": 90,
            }
            row["items"].append({**line, **child, **free, **named})
    return row
