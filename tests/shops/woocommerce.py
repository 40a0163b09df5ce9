"""WooCommerce (REST API v3): amounts are texts, guests have the customer 0, times have no offset, refunds are nested.

`date_created` is by the shop's clock, `date_created_gmt` in UTC. `checkout-draft` and `pending` were never paid.
"""

from __future__ import annotations

from datetime import UTC

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
        "Hoodie with Logo": "45.00",
        "T-Shirt": "18.00",
        "Beanie": "20.00",
        "Belt": "65.00",
        "Cap": "18.50",
        "Sunglasses": "90.00",
    },
    "woo-{:03d}",
    first=811,
)
_STATES: dict[str, int] = {
    "completed": 60,
    "processing": 15,
    "on-hold": 5,
    "pending": 6,
    "cancelled": 5,
    "refunded": 4,
    "failed": 4,
    "checkout-draft": 3,
}
_CLASSES: dict[str, Status] = {
    "completed": "sale",
    "processing": "sale",
    "on-hold": "open",
    "pending": "open",
    "cancelled": "cancelled",
    "refunded": "refunded",
    "failed": "cancelled",
    "checkout-draft": "open",
}


def shop() -> Shop:
    """A clothes shop in Madrid."""
    customers = people(913, 45, first=2, code="W{:04d}".format)
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        13, 120, "Europe/Madrid", _PRODUCTS, _STATES, customers=45, guests=0.15, strangers=0.02
    ):
        rows.append(_row(bought))
        truth.append(
            Order(
                key=str(7000 + bought.n),
                customer=None if bought.buyer is None else str(bought.buyer + 2),
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=bought.goods + bought.shipping,
                currency="EUR",
                status=_CLASSES[bought.state],
                lines=lines_of(bought.items, lambda product: str(product.id)),
            )
        )
    return Shop(
        name="woocommerce",
        zone="Europe/Madrid",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="customer_id",
            customer_is="id",
            instant="date_created_gmt",
            written="utc",
            total="{total}",
            total_is="gross",
            currency="currency",
            status=(By("status", _CLASSES),),
            lines=LineAnswers("line_items", "product_id", "name", "quantity", "{total}"),
            guest="0",
        ),
    )


def _row(bought: Purchase) -> Row:
    at = bought.at
    utc = at.astimezone(UTC)
    total = bought.goods + bought.shipping
    is_paid = bought.state in ("completed", "processing", "refunded")
    return {
        "id": 7000 + bought.n,
        "parent_id": 0,
        "number": str(7000 + bought.n),
        "order_key": f"wc_order_{bought.n:08x}",
        "created_via": "checkout",
        "version": "9.4.1",
        "status": bought.state,
        "currency": "EUR",
        "date_created": f"{at:%Y-%m-%dT%H:%M:%S}",
        "date_created_gmt": f"{utc:%Y-%m-%dT%H:%M:%S}",
        "date_modified": f"{at:%Y-%m-%dT%H:%M:%S}",
        "date_paid": f"{at:%Y-%m-%dT%H:%M:%S}" if is_paid else None,
        "discount_total": text(bought.full - bought.goods),
        "discount_tax": "0.00",
        "shipping_total": text(bought.shipping),
        "shipping_tax": "0.00",
        "cart_tax": "0.00",
        "total": text(total),
        "total_tax": "0.00",
        "prices_include_tax": True,
        "customer_id": 0 if bought.buyer is None else bought.buyer + 2,
        "billing": {
            "first_name": "Ana",
            "email": f"pedido{bought.n}@shop.example",
            "state": ("M", "B", "V")[bought.n % 3],
            "country": "ES",
        },
        "payment_method": "stripe",
        "transaction_id": f"ch_{bought.n:010d}" if is_paid else "",
        "line_items": [
            {
                "id": bought.n * 10 + k,
                "name": item.product.name,
                "product_id": item.product.id,
                "variation_id": 0,
                "quantity": int(item.quantity),
                "tax_class": "",
                "subtotal": text(item.full),
                "subtotal_tax": "0.00",
                "total": text(item.revenue),
                "total_tax": "0.00",
                "sku": item.product.sku,
                "price": float(item.revenue / item.quantity),
            }
            for k, item in enumerate(bought.items)
        ],
        "shipping_lines": [
            {"id": bought.n, "method_title": "Envío", "total": text(bought.shipping)}
        ],
        "refunds": [{"id": 90000 + bought.n, "reason": "", "total": text(-total)}]
        if bought.state == "refunded"
        else [],
    }
