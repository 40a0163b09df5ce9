"""BigCommerce (orders of v2): dates as in e-mails, amounts are texts of four decimals, a status is a number and a word.

Each total is there with and without tax; guests have the customer 0.
"""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal
from email.utils import format_datetime

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
    text,
)

_PRODUCTS = catalogue(
    {
        "[Sample] Able Brewing System": "225.00",
        "[Sample] Canvas Laundry Cart": "200.00",
        "[Sample] Chemex Coffeemaker": "49.50",
        "[Sample] Dustpan & Brush": "34.95",
        "[Sample] Fog Linen Chambray Towel": "49.00",
        "[Sample] Tiered Wire Basket": "119.95",
    },
    "SKU-{:04d}",
    first=77,
)
_IDS: dict[str, int] = {
    "Completed": 10,
    "Shipped": 2,
    "Awaiting Fulfillment": 11,
    "Awaiting Payment": 7,
    "Incomplete": 0,
    "Cancelled": 5,
    "Declined": 6,
    "Refunded": 4,
}
_STATES = dict(zip(_IDS, (55, 12, 12, 5, 6, 5, 3, 4), strict=True))
_CLASSES: dict[str, Status] = {
    "Completed": "sale",
    "Shipped": "sale",
    "Awaiting Fulfillment": "sale",
    "Awaiting Payment": "open",
    "Incomplete": "open",
    "Cancelled": "cancelled",
    "Declined": "cancelled",
    "Refunded": "refunded",
}


def shop() -> Shop:
    """A shop of household goods in Austin."""
    customers = people(919, 40, first=1, code="BC-{:03d}".format)
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        19, 120, "America/Chicago", _PRODUCTS, _STATES, customers=40, guests=0.1, discounted=0
    ):
        rows.append(_row(bought))
        truth.append(
            Order(
                key=str(100 + bought.n),
                customer=None if bought.buyer is None else str(bought.buyer + 1),
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=_gross(bought.goods) + bought.shipping,
                currency="USD",
                status=_CLASSES[bought.state],
                lines=lines_of(
                    bought.items,
                    lambda product: str(product.id),
                    lambda item: _gross(item.revenue),
                ),
            )
        )
    return Shop(
        name="bigcommerce",
        zone="America/Chicago",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="customer_id",
            customer_is="id",
            instant="date_created",
            written="offset",
            form="RFC 2822",
            total="{total_inc_tax}",
            total_is="gross",
            currency="currency_code",
            status=(By("status", _CLASSES),),
            lines=LineAnswers("products", "product_id", "name", "quantity", "{total_inc_tax}"),
            guest="0",
        ),
    )


def _row(bought: Purchase) -> Row:
    at = format_datetime(bought.at.astimezone(UTC))
    gross = _gross(bought.goods) + bought.shipping
    net = bought.goods + bought.shipping
    return {
        "id": 100 + bought.n,
        "customer_id": 0 if bought.buyer is None else bought.buyer + 1,
        "date_created": at,
        "date_modified": at,
        "date_shipped": at if bought.state == "Shipped" else "",
        "status_id": _IDS[bought.state],
        "status": bought.state,
        "subtotal_ex_tax": text(bought.goods, 4),
        "subtotal_inc_tax": text(_gross(bought.goods), 4),
        "base_shipping_cost": text(bought.shipping, 4),
        "shipping_cost_inc_tax": text(bought.shipping, 4),
        "total_ex_tax": text(net, 4),
        "total_inc_tax": text(gross, 4),
        "total_tax": text(gross - net, 4),
        "items_total": int(sum(item.quantity for item in bought.items)),
        "refunded_amount": text(gross if bought.state == "Refunded" else Decimal(0), 4),
        "currency_code": "USD",
        "currency_id": 1,
        "is_deleted": False,
        "payment_method": "Test Payment Gateway",
        "billing_address": {"state": "Texas", "country_iso2": "US", "zip": "78704"},
        "products": [
            {
                "id": bought.n * 10 + k,
                "order_id": 100 + bought.n,
                "product_id": item.product.id,
                "variant_id": item.product.id,
                "name": item.product.name,
                "sku": item.product.sku,
                "quantity": int(item.quantity),
                "base_price": text(item.product.price, 4),
                "price_ex_tax": text(item.product.price, 4),
                "price_inc_tax": text(_gross(item.product.price), 4),
                "total_ex_tax": text(item.revenue, 4),
                "total_inc_tax": text(_gross(item.revenue), 4),
                "total_tax": text(_gross(item.revenue) - item.revenue, 4),
            }
            for k, item in enumerate(bought.items)
        ],
    }


def _gross(net: Decimal) -> Decimal:
    return cents(net * Decimal("1.0825"))
