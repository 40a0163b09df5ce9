"""Mercado Libre: orders of a seller, with the price that was paid and the full one.

Times have the offset -04:00, an hour behind Buenos Aires. `paid_amount` has the shipping and is 0 until it is paid;
`total_amount` is that of the goods. Orders that a developer made have the tag `test_order` and are paid.
"""

from __future__ import annotations

from datetime import timedelta, timezone
from decimal import Decimal

from tests.shops.world import (
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
    lines_of,
    listed,
    people,
    purchases,
)

_PRODUCTS = catalogue(
    {
        "Yerba Mate Orgánica 1 Kg": "4850.00",
        "Bombilla De Alpaca": "7990.00",
        "Mate Imperial Cuero": "38500.00",
        "Termo Acero 1 Litro": "52999.00",
        "Alfajores Caja X12": "12300.00",
        "Dulce De Leche 400 G": "2150.00",
    },
    "MATE-{:03d}",
)
_STATES: dict[str, tuple[str, Status, int]] = {
    "paid": ("paid", "sale", 70),
    "partly refunded": ("partially_refunded", "sale", 4),
    "payment required": ("payment_required", "open", 5),
    "payment in process": ("payment_in_process", "open", 4),
    "cancelled": ("cancelled", "cancelled", 10),
    "test": ("paid", "test", 4),
}
_ZONE = timezone(timedelta(hours=-4))


def _buyer(n: int) -> int:
    return 236_401_000 + n * 7919


def _revenue(item: Item) -> Decimal:
    """A unit price has cents, so that a line is a multiple of it."""
    return cents(item.revenue / item.quantity) * item.quantity


def _line(item: Item) -> Row:
    number = 600_000_000 + item.product.id
    return {
        "item": {
            "id": f"MLA{number}",
            "title": item.product.name,
            "category_id": "MLA1403",
            "variation_id": None,
            "seller_sku": item.product.sku,
            "condition": "new",
        },
        "quantity": int(item.quantity),
        "requested_quantity": {"measure": "unit", "value": int(item.quantity)},
        "unit_price": float(_revenue(item) / item.quantity),
        "full_unit_price": float(item.product.price),
        "currency_id": "ARS",
        "sale_fee": float(cents(item.product.price * 13 / 100)),
        "listing_type_id": "gold_special",
    }


def shop() -> Shop:
    """A seller in Buenos Aires."""
    customers = people(3501, 45, first=1, code=lambda n: str(_buyer(n)))
    rows: list[Row] = []
    truth = []
    weights = {state: of[2] for state, of in _STATES.items()}
    for bought in purchases(
        35,
        130,
        "America/Argentina/Buenos_Aires",
        _PRODUCTS,
        weights,
        customers=45,
        strangers=0.3,
        discounted=0.3,
        shipping=("0", "3890.00", "5490.00"),
        hours=range(24),
    ):
        written, status, _ = _STATES[bought.state]
        at = bought.at.astimezone(_ZONE)
        moment = f"{at:%Y-%m-%dT%H:%M:%S}.000-04:00"
        is_paid = status in ("sale", "test")
        goods = sum((_revenue(item) for item in bought.items), ZERO)
        paid = goods + bought.shipping
        buyer = _buyer(45 + bought.n if bought.buyer is None else bought.buyer)
        tags = ["paid" if is_paid else "not_paid", "delivered" if is_paid else "not_delivered"]
        if status == "test":
            tags.append("test_order")
        key = 2_000_003_508_000_000 + bought.n * 4191
        back = cents(paid / 5) if bought.state == "partly refunded" else 0
        rows.append(
            {
                "id": key,
                "status": written,
                "status_detail": None,
                "date_created": moment,
                "date_closed": moment if is_paid else None,
                "last_updated": moment,
                "order_items": [_line(item) for item in bought.items],
                "total_amount": float(goods),
                "paid_amount": float(paid) if is_paid else 0,
                "currency_id": "ARS",
                "buyer": {"id": buyer, "nickname": f"COMPRADOR{buyer % 9973}"},
                "seller": {"id": 89660613, "nickname": "MATESDELSUR"},
                "payments": (
                    [
                        {
                            "id": 5_400_000_000 + bought.n,
                            "order_id": key,
                            "status": "approved",
                            "status_detail": "accredited",
                            "payment_method_id": "visa",
                            "transaction_amount": float(goods),
                            "transaction_amount_refunded": float(back),
                            "shipping_cost": float(bought.shipping),
                            "total_paid_amount": float(paid),
                            "date_approved": moment,
                            "currency_id": "ARS",
                        }
                    ]
                    if is_paid
                    else []
                ),
                "shipping": {"id": 41_297_142_000 + bought.n},
                "pack_id": None,
                "tags": tags,
                "coupon": {"id": None, "amount": 0},
                "context": {"channel": "marketplace", "site": "MLA", "flows": []},
            }
        )
        truth.append(
            Order(
                key=str(key),
                customer=str(buyer),
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=goods,
                currency="ARS",
                status=status,
                lines=lines_of(bought.items, revenue=_revenue),
            )
        )
    return Shop(
        name="mercadolibre",
        zone="America/Argentina/Buenos_Aires",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="buyer.id",
            customer_is="erpCode",
            instant="date_created",
            written="offset",
            total="{total_amount}",
            total_is="gross",
            status=(
                By("tags[]", {"test_order": "test"}),
                By(
                    "status",
                    {
                        "paid": "sale",
                        "partially_refunded": "sale",
                        "payment_required": "open",
                        "payment_in_process": "open",
                        "cancelled": "cancelled",
                    },
                ),
            ),
            lines=LineAnswers(
                at="order_items",
                product="item.seller_sku",
                name="item.title",
                quantity="quantity",
                revenue="{unit_price} * {quantity}",
            ),
            currency="currency_id",
        ),
    )
