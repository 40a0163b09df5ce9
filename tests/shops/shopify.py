"""Shopify (orders of its REST Admin interface): amounts are text, times have offsets, several fields make the state.

Beside the total lie the current one (refunds taken off), that of the presentment currency, and those without shipping.
A discount by code is allocated to lines while their `total_discount` stays 0.00. `user_id` is staff.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from .world import (
    ZERO,
    Answers,
    By,
    Item,
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
    text,
)

_PRODUCTS = catalogue(
    {
        "Merino Beanie": "29.00",
        "Waxed Jacket": "189.00",
        "Canvas Tote": "24.50",
        "Enamel Mug": "16.00",
        "Wool Socks 3-Pack": "21.90",
        "Trail Bottle 1 L": "34.95",
    },
    "SH-{:03d}",
    first=7_801_000_000_001,
)
_STATES: dict[str, int] = {
    "paid": 70,
    "pending": 6,
    "authorized": 4,
    "partially_paid": 2,
    "partially_refunded": 5,
    "refunded": 5,
    "voided": 3,
    "cancelled": 4,
    "test": 3,
}
_FINANCIAL: dict[str, Status] = {
    "paid": "sale",
    "partially_refunded": "sale",
    "pending": "open",
    "authorized": "open",
    "partially_paid": "open",
    "refunded": "refunded",
    "voided": "cancelled",
}
_BUYER, _ORDER = 6_500_000_000_001, 5_400_000_000_001


def shop() -> Shop:
    """A clothes shop in New York, with a counter (orders without a customer) and buyers who see euros."""
    customers = people(910, 60, first=_BUYER, code="".format)
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        10, 140, "America/New_York", _PRODUCTS, _STATES, customers=60, guests=0.08
    ):
        total = bought.goods + bought.shipping + _tax(bought)
        rows.append(_row(bought, total))
        truth.append(
            Order(
                key=str(_ORDER + bought.n),
                customer=None if bought.buyer is None else str(_BUYER + bought.buyer),
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=total,
                currency="USD",
                status=_class(bought.state),
                lines=lines_of(bought.items),
            )
        )
    return Shop(
        name="shopify",
        zone="America/New_York",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="customer.id",
            customer_is="id",
            instant="created_at",
            written="offset",
            total="{total_price}",
            total_is="gross",
            currency="currency",
            status=(
                By("test", {"true": "test"}),
                By("cancelled_at", {"*": "cancelled"}),
                By("financial_status", _FINANCIAL),
            ),
            lines=LineAnswers(
                at="line_items",
                product="sku",
                name="title",
                quantity="quantity",
                revenue="{price} * {quantity} - {discount_allocations[].amount}",
            ),
        ),
        notes=(
            "A cancelled order keeps the financial status that it had: paid, refunded or voided.",
            "Some orders of the counter were entered a day later: processed_at is then before created_at, "
            "and the owner counts created_at.",
        ),
    )


def _class(state: str) -> Status:
    if state in ("test", "cancelled"):
        return "test" if state == "test" else "cancelled"
    return _FINANCIAL[state]


def _tax(bought: Purchase) -> Decimal:
    return cents(bought.goods * Decimal("0.08875"))


def _set(amount: Decimal, presentment: str) -> Row:
    shown = cents(amount * Decimal("0.92")) if presentment == "EUR" else amount
    return {
        "shop_money": {"amount": text(amount), "currency_code": "USD"},
        "presentment_money": {"amount": text(shown), "currency_code": presentment},
    }


def _row(bought: Purchase, total: Decimal) -> Row:
    number, state, at = bought.n + 1001, bought.state, bought.at
    presentment = "EUR" if bought.n % 8 == 0 else "USD"
    financial = {"test": "paid", "cancelled": ("paid", "refunded", "voided")[bought.n % 3]}.get(
        state, state
    )
    back = {"refunded": total, "partially_refunded": cents(bought.items[0].revenue)}.get(
        financial, ZERO
    )
    row: Row = {
        "id": _ORDER + bought.n,
        "admin_graphql_api_id": f"gid://shopify/Order/{_ORDER + bought.n}",
        "name": f"#{number}",
        "number": number - 1000,
        "order_number": number,
        "created_at": at.isoformat(),
        "processed_at": (at - timedelta(days=1 if bought.n % 25 == 3 else 0)).isoformat(),
        "updated_at": (at + timedelta(days=5)).isoformat(),
        "closed_at": None,
        "cancelled_at": (at + timedelta(hours=2)).isoformat() if state == "cancelled" else None,
        "cancel_reason": "customer" if state == "cancelled" else None,
        "financial_status": financial,
        "fulfillment_status": "fulfilled" if financial == "paid" and bought.n % 4 else None,
        "test": state == "test",
        "confirmed": True,
        "currency": "USD",
        "presentment_currency": presentment,
        "total_price": text(total),
        "total_price_set": _set(total, presentment),
        "current_total_price": text(total - back),
        "current_total_price_set": _set(total - back, presentment),
        "subtotal_price": text(bought.goods),
        "total_line_items_price": text(bought.full),
        "total_discounts": text(bought.full - bought.goods),
        "total_tax": text(_tax(bought)),
        "total_outstanding": text(total if _class(state) == "open" else ZERO),
        "total_shipping_price_set": _set(bought.shipping, presentment),
        "taxes_included": False,
        "email": "" if bought.buyer is None else f"buyer{_BUYER + bought.buyer}@example.com",
        "source_name": "pos" if bought.buyer is None else "web",
        "user_id": 79_000_000_001 + bought.n % 3 if bought.buyer is None else None,
        "location_id": 65_000_000_001 if bought.buyer is None else None,
        "tags": "vip, repeat" if bought.n % 5 == 0 else "",
        "note": None,
        "discount_codes": [],
        "refunds": [{"id": 900_000_001 + bought.n, "created_at": at.isoformat()}] if back else [],
        "shipping_lines": [{"title": "Standard", "price": text(bought.shipping)}],
        "line_items": [_line(item, bought.n * 10 + k) for k, item in enumerate(bought.items)],
    }
    if bought.buyer is not None:
        address = {"name": "Another Name", "province": "New York", "country": "United States"}
        row |= {
            "customer": {
                "id": _BUYER + bought.buyer,
                "email": row["email"],
                "state": "enabled",
                "orders_count": bought.n % 7 + 1,
                "default_address": {"id": 8_000_000_001 + bought.buyer, **address},
            },
            "billing_address": address,
            "shipping_address": address,
        }
    return row


def _line(item: Item, serial: int) -> Row:
    allocated = [{"amount": text(item.discount), "discount_application_index": 0}]
    return {
        "id": 13_900_000_000_001 + serial,
        "product_id": item.product.id,
        "variant_id": item.product.id + 35_000_000_000_000,
        "sku": item.product.sku,
        "title": item.product.name,
        "variant_title": None,
        "vendor": "Hudson",
        "quantity": int(item.quantity),
        "current_quantity": int(item.quantity),
        "fulfillable_quantity": 0,
        "price": text(item.product.price),
        "total_discount": "0.00",
        "discount_allocations": allocated if item.percent else [],
        "grams": 300,
        "gift_card": False,
        "taxable": True,
    }
