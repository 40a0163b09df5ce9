"""Tiendanube (Argentina): three statuses beside each other, offsets without a colon, and the customer is an object.

An order is `open` until it is archived (`closed`): only the status of the payment says whether it is a sale.
"""

from __future__ import annotations

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
        "Mate de calabaza": "12500.00",
        "Bombilla de alpaca": "8900.50",
        "Yerba 1 kg": "3450.00",
        "Termo de acero": "45990.00",
        "Matera de cuero": "38750.00",
        "Yerbera": "9999.90",
    },
    "MATE-{:03d}",
    first=44001,
)
_STATES: dict[str, int] = {"paid": 70, "pending": 12, "refunded": 5, "voided": 8, "abandoned": 4}
_CLASSES: dict[str, Status] = {
    "paid": "sale",
    "pending": "open",
    "refunded": "refunded",
    "voided": "cancelled",
    "abandoned": "open",
}


def shop() -> Shop:
    """A shop of mate cups in Buenos Aires."""
    customers = people(920, 45, first=102_000_001, code="TN{:04d}".format)
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        20, 120, "America/Argentina/Buenos_Aires", _PRODUCTS, _STATES, customers=45, strangers=0.03
    ):
        buyer = bought.buyer or 0
        rows.append(_row(bought, 102_000_001 + buyer))
        truth.append(
            Order(
                key=str(871_254_000 + bought.n),
                customer=str(102_000_001 + buyer),
                customer_id=listed(customers, buyer),
                day=bought.at.date(),
                total=bought.goods + bought.shipping,
                currency="ARS",
                status=_CLASSES[bought.state],
                lines=lines_of(bought.items, revenue=lambda item: item.full),
            )
        )
    return Shop(
        name="tiendanube",
        zone="America/Argentina/Buenos_Aires",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="customer.id",
            customer_is="id",
            instant="created_at",
            written="offset",
            total="{total}",
            total_is="gross",
            currency="currency",
            status=(By("payment_status", _CLASSES),),
            lines=LineAnswers("products", "sku", "name", "quantity", "{price} * {quantity}"),
        ),
        notes=("Discounts are of the whole order: a line has none.",),
    )


def _row(bought: Purchase, customer: int) -> Row:
    at = f"{bought.at:%Y-%m-%dT%H:%M:%S%z}"
    is_void = bought.state == "voided"
    return {
        "id": 871_254_000 + bought.n,
        "number": bought.n + 101,
        "token": f"{bought.n:040x}",
        "store_id": "1234567",
        "contact_email": f"comprador{bought.n}@shop.example",
        "subtotal": text(bought.full),
        "discount": text(bought.full - bought.goods),
        "shipping_cost_customer": text(bought.shipping),
        "total": text(bought.goods + bought.shipping),
        "total_usd": text((bought.goods + bought.shipping) / 1000),
        "currency": "ARS",
        "language": "es",
        "gateway": "mercadopago",
        "status": "cancelled" if is_void else ("open", "closed")[bought.n % 2],
        "payment_status": bought.state,
        "shipping_status": ("unpacked", "shipped")[bought.n % 2],
        "created_at": at,
        "updated_at": at,
        "completed_at": {"date": f"{bought.at:%Y-%m-%d %H:%M:%S}.000000", "timezone_type": 3},
        "cancelled_at": at if is_void else None,
        "cancel_reason": "customer" if is_void else None,
        "paid_at": at if bought.state == "paid" else None,
        "customer": {
            "id": customer,
            "name": "Comprador",
            "email": f"c{customer}@shop.example",
            "default_address": {"province": "Buenos Aires", "country": "AR"},
        },
        "products": [
            {
                "id": bought.n * 10 + k,
                "product_id": item.product.id,
                "variant_id": item.product.id + 900_000,
                "name": item.product.name,
                "price": text(item.product.price),
                "quantity": str(item.quantity),
                "sku": item.product.sku,
                "weight": "0.300",
            }
            for k, item in enumerate(bought.items)
        ],
    }
