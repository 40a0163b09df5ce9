"""Holded (Spain), sales orders: dates are seconds since 1970 at midnight in Madrid, which is the day before in UTC.

States are numbers; the currency is in lower case; a line's price is net and its discount is in percent.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from .world import (
    ZERO,
    Answers,
    By,
    Item,
    LineAnswers,
    Order,
    Row,
    Shop,
    Status,
    catalogue,
    cents,
    hexadecimal,
    lines_of,
    listed,
    people,
    purchases,
)

_PRODUCTS = catalogue(
    {
        "Silla apilable": "38.00",
        "Mesa plegable 180": "89.90",
        "Taburete alto": "54.50",
        "Perchero de pie": "41.25",
        "Lámpara de arco": "120.00",
    },
    "MOB-{:03d}",
)
_STATES: dict[str, int] = {"0": 18, "1": 70, "2": 5, "-1": 7}
_CLASSES: dict[str, Status] = {"0": "open", "1": "sale", "2": "open", "-1": "cancelled"}


def shop() -> Shop:
    """A furniture maker; 0 pending, 1 accepted, 2 partly, -1 rejected."""
    customers = people(905, 40, first=11, code=lambda n: hexadecimal("contact", n))
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        5, 90, "Europe/Madrid", _PRODUCTS, _STATES, customers=40, strangers=0.02, shipping=("0",)
    ):
        buyer = bought.buyer or 0
        day = bought.at.date()
        midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo("Europe/Madrid"))
        net = cents(sum((_revenue(item) for item in bought.items), ZERO))
        tax = cents(net * Decimal("0.21"))
        rows.append(
            {
                "id": hexadecimal("order", bought.n),
                "docNumber": f"SO25{bought.n + 1:04d}",
                "contact": hexadecimal("contact", buyer),
                "contactName": f"Reformas {buyer} S.L.",
                "desc": "",
                "date": int(midnight.timestamp()),
                "dueDate": int(midnight.timestamp()) + 30 * 86_400,
                "approvedAt": int(bought.at.timestamp()) if bought.state == "1" else None,
                "notes": "",
                "tags": ["web"] if bought.n % 3 else [],
                "products": [
                    {
                        "name": item.product.name,
                        "desc": "",
                        "price": float(item.product.price),
                        "units": int(item.quantity),
                        "tax": 21,
                        "taxes": ["s_iva_21"],
                        "discount": item.percent,
                        "retention": 0,
                        "costPrice": float(cents(item.product.price * Decimal("0.6"))),
                        "weight": 4.5,
                        "sku": item.product.sku,
                        "productId": hexadecimal("product", item.product.id),
                    }
                    for item in bought.items
                ],
                "subtotal": float(net),
                "discount": 0,
                "tax": float(tax),
                "total": float(net + tax),
                "currency": "eur",
                "currencyChange": 1,
                "language": "es",
                "status": int(bought.state),
                "draft": None,
                "customFields": [],
            }
        )
        truth.append(
            Order(
                key=hexadecimal("order", bought.n),
                customer=hexadecimal("contact", buyer),
                customer_id=listed(customers, buyer),
                day=day,
                total=net + tax,
                currency="EUR",
                status=_CLASSES[bought.state],
                lines=lines_of(bought.items, revenue=_revenue),
            )
        )
    return Shop(
        name="holded",
        zone="Europe/Madrid",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="contact",
            customer_is="erpCode",
            instant="date",
            written="offset",
            form="seconds since 1970",
            total="{total}",
            total_is="gross",
            currency="currency",
            status=(By("status", _CLASSES),),
            lines=LineAnswers(
                at="products",
                product="sku",
                name="name",
                quantity="units",
                revenue="{price} * {units} * (1 - {discount} / 100)",
            ),
        ),
    )


def _revenue(item: Item) -> Decimal:
    return item.full * (100 - item.percent) / 100
