"""Olist (the public data set of a marketplace in Brazil): `customer_id` is new with each order, the person is
`customer_unique_id`.

Each row of the items is one unit. There is no total: the payments, of which an order may have several, add up to it.
Times are local and without a zone.
"""

from __future__ import annotations

from datetime import datetime, timedelta
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
    people,
    purchases,
)

_PRODUCTS = catalogue(
    {
        "cama_mesa_banho": "89.90",
        "beleza_saude": "34.50",
        "esporte_lazer": "119.00",
        "informatica_acessorios": "59.99",
        "moveis_decoracao": "149.90",
        "utilidades_domesticas": "24.90",
    },
    "{}",
)
_STATES: dict[str, int] = {
    "delivered": 78,
    "shipped": 6,
    "invoiced": 3,
    "processing": 3,
    "approved": 2,
    "created": 3,
    "unavailable": 2,
    "canceled": 4,
}
_CLASSES: dict[str, Status] = {
    "delivered": "sale",
    "shipped": "sale",
    "invoiced": "sale",
    "processing": "sale",
    "approved": "sale",
    "created": "open",
    "unavailable": "cancelled",
    "canceled": "cancelled",
}


def shop() -> Shop:
    """A marketplace in São Paulo."""
    customers = people(908, 60, first=1001, code=lambda n: hexadecimal("person", n, digits=32))
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        8,
        110,
        "America/Sao_Paulo",
        _PRODUCTS,
        _STATES,
        customers=60,
        discounted=0,
        shipping=("8.72", "15.10", "22.76"),
    ):
        person = hexadecimal("person", bought.buyer, digits=32)
        rows.append(_row(bought, person))
        truth.append(
            Order(
                key=hexadecimal("order", bought.n, digits=32),
                customer=person,
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=bought.goods + bought.shipping,
                currency="BRL",
                status=_CLASSES[bought.state],
                lines=lines_of(
                    bought.items, lambda product: hexadecimal("product", product.id, digits=32)
                ),
            )
        )
    return Shop(
        name="olist",
        zone="America/Sao_Paulo",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="order_id",
            customer="customer.customer_unique_id",
            customer_is="erpCode",
            instant="order_purchase_timestamp",
            written="local",
            total="{order_payments[].payment_value}",
            total_is="gross",
            status=(By("order_status", _CLASSES),),
            lines=LineAnswers(
                at="order_items",
                product="product_id",
                name="product_category_name",
                quantity=None,
                revenue="{price}",
            ),
        ),
        notes=(
            "A truth that joins the rows of one product in an order: each row is one unit.",
            "invoiced, processing and approved are paid: the owner counts them as sales.",
        ),
    )


def _row(bought: Purchase, person: str) -> Row:
    at, state = bought.at.replace(tzinfo=None), bought.state
    units = [item.product for item in bought.items for _ in range(int(item.quantity))]
    share = (bought.shipping / len(units)).quantize(Decimal("0.01"))
    freights = [*[share] * (len(units) - 1), bought.shipping - share * (len(units) - 1)]
    total = bought.goods + bought.shipping
    parts = [total]
    if bought.n % 7 == 0:
        parts = [Decimal("20.00"), total - 20]
    return {
        "order_id": hexadecimal("order", bought.n, digits=32),
        "customer_id": hexadecimal("customer of", bought.n, digits=32),
        "order_status": state,
        "order_purchase_timestamp": f"{at}",
        "order_approved_at": None if state == "created" else f"{at + timedelta(minutes=20)}",
        "order_delivered_carrier_date": f"{at + timedelta(days=2)}"
        if state in ("shipped", "delivered")
        else None,
        "order_delivered_customer_date": f"{at + timedelta(days=9)}"
        if state == "delivered"
        else None,
        "order_estimated_delivery_date": f"{datetime(at.year, at.month, at.day) + timedelta(days=21)}",
        "customer": {
            "customer_id": hexadecimal("customer of", bought.n, digits=32),
            "customer_unique_id": person,
            "customer_zip_code_prefix": f"{1000 + bought.n * 7:05d}",
            "customer_city": "sao paulo",
            "customer_state": ("SP", "RJ", "MG")[bought.n % 3],
        },
        "order_items": [
            {
                "order_item_id": k,
                "product_id": hexadecimal("product", product.id, digits=32),
                "product_category_name": product.name,
                "seller_id": hexadecimal("seller", product.id % 3, digits=32),
                "shipping_limit_date": f"{at + timedelta(days=6)}",
                "price": float(product.price),
                "freight_value": float(freight),
            }
            for k, (product, freight) in enumerate(zip(units, freights, strict=True), 1)
        ],
        "order_payments": [
            {
                "payment_sequential": k,
                "payment_type": "voucher" if k < len(parts) else "credit_card",
                "payment_installments": 1 if k < len(parts) else 3,
                "payment_value": float(part),
            }
            for k, part in enumerate(parts, 1)
        ],
        "order_reviews": [{"review_score": bought.n % 5 + 1}] if bought.n % 2 else [],
    }
