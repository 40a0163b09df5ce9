"""OpenCart: the table of orders with its products and totals, all values as text.

`total` and the prices are in the currency of the shop, while `currency_code` and `currency_value` are what the customer
saw. States are numbers: 0 is a checkout that was never finished. Prices of products have no tax; `total` has. A coupon
is a row of the totals.
"""

from __future__ import annotations

from decimal import Decimal

from tests.shops.world import (
    Answers,
    By,
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
    text,
)

_PRODUCTS = catalogue(
    {
        "HTC Touch HD": "100.00",
        "iMac": "122.00",
        "Canon EOS 5D": "80.00",
        "Palm Treo Pro": "279.99",
        "Apple Cinema 30": "90.50",
        "Samsung SyncMaster": "242.99",
        "HP LP3065": "102.25",
    },
    "Product {}",
    first=28,
)
_STATES: dict[str, tuple[Status, int]] = {
    "0": ("open", 8),
    "1": ("open", 6),
    "2": ("sale", 12),
    "3": ("sale", 16),
    "5": ("sale", 40),
    "7": ("cancelled", 6),
    "8": ("cancelled", 1),
    "10": ("cancelled", 3),
    "11": ("refunded", 4),
    "13": ("refunded", 1),
    "14": ("cancelled", 1),
    "16": ("cancelled", 1),
}
_TAX = Decimal("0.20")


def shop() -> Shop:
    """A shop in London; some customers look at its prices in euros."""
    customers = people(3101, 60, first=1, code="{:05d}".format)
    rows: list[Row] = []
    truth = []
    weights = {state: weight for state, (_, weight) in _STATES.items()}
    for bought in purchases(
        31, 130, "Europe/London", _PRODUCTS, weights, customers=60, guests=0.25, discounted=0
    ):
        coupon = cents(bought.goods / 10) if bought.n % 6 == 0 else Decimal(0)
        tax = cents((bought.goods - coupon + bought.shipping) * _TAX)
        total = bought.goods - coupon + bought.shipping + tax
        in_euros = bought.n % 10 == 3
        totals = [
            ("sub_total", "Sub-Total", bought.goods),
            ("shipping", "Flat Shipping Rate", bought.shipping),
            ("tax", "VAT (20%)", tax),
            ("total", "Total", total),
        ]
        if coupon:
            totals.insert(1, ("coupon", "Coupon (2222)", -coupon))
        customer_id = listed(customers, bought.buyer)
        rows.append(
            {
                "order_id": str(1001 + bought.n),
                "invoice_no": str(bought.n % 90),
                "invoice_prefix": "INV-2025-00",
                "store_id": "0",
                "store_name": "Your Store",
                "customer_id": str(customer_id or 0),
                "customer_group_id": "1",
                "firstname": "Ann",
                "lastname": f"Buyer {bought.n}",
                "email": f"order{bought.n}@example.com",
                "telephone": f"020 7946 {bought.n:04d}",
                "payment_postcode": f"SW1A {bought.n % 9}AA",
                "payment_method": "Cash On Delivery",
                "shipping_method": "Flat Shipping Rate",
                "comment": "",
                "total": text(total, 4),
                "order_status_id": bought.state,
                "affiliate_id": "0",
                "commission": "0.0000",
                "language_id": "1",
                "currency_id": "3" if in_euros else "1",
                "currency_code": "EUR" if in_euros else "GBP",
                "currency_value": "1.17450000" if in_euros else "1.00000000",
                "ip": "203.0.113.7",
                "date_added": f"{bought.at:%Y-%m-%d %H:%M:%S}",
                "date_modified": f"{bought.at:%Y-%m-%d} 23:59:59",
                "products": [
                    {
                        "order_product_id": str(bought.n * 4 + k),
                        "product_id": str(item.product.id),
                        "name": item.product.name,
                        "model": item.product.sku,
                        "quantity": str(item.quantity),
                        "price": text(item.product.price, 4),
                        "total": text(item.revenue, 4),
                        "tax": text(item.product.price * _TAX, 4),
                        "reward": "0",
                    }
                    for k, item in enumerate(bought.items, 1)
                ],
                "totals": [
                    {
                        "code": code,
                        "title": title,
                        "value": text(value, 4),
                        "sort_order": str(place),
                    }
                    for place, (code, title, value) in enumerate(totals, 1)
                ],
            }
        )
        truth.append(
            Order(
                key=str(1001 + bought.n),
                customer=None if customer_id is None else str(customer_id),
                customer_id=customer_id,
                day=bought.at.date(),
                total=total,
                currency="GBP",
                status=_STATES[bought.state][0],
                lines=lines_of(bought.items),
            )
        )
    return Shop(
        name="opencart",
        zone="Europe/London",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="order_id",
            customer="customer_id",
            customer_is="id",
            guest="0",
            instant="date_added",
            written="local",
            total="{total}",
            total_is="gross",
            status=(By("order_status_id", {state: one for state, (one, _) in _STATES.items()}),),
            lines=LineAnswers(
                at="products",
                product="model",
                name="name",
                quantity="quantity",
                revenue="{total}",
            ),
        ),
        notes=("the total is in the currency of the shop, whatever `currency_code` says",),
    )
