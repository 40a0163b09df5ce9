"""Squarespace: orders of a web shop, some of them with `testmode`.

The customer is known by the e-mail address alone, written as the buyer wrote it. Amounts are text beside a currency.
A discount is of the whole order. A refund does not change the state: `refundedTotal` is as large as `grandTotal`.
"""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal

from tests.shops.world import (
    ZERO,
    Answers,
    By,
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
    text,
    uuid,
)

_PRODUCTS = catalogue(
    {
        "Linen Apron": "48.00",
        "Walnut Board": "89.00",
        "Stoneware Mug": "26.50",
        "Beeswax Candle": "19.75",
        "Olive Oil 500 ml": "22.00",
        "Cookbook": "35.00",
    },
    "SQ{:07d}",
)
_STATES: dict[str, tuple[str, Status, int]] = {
    "fulfilled": ("FULFILLED", "sale", 60),
    "pending": ("PENDING", "sale", 16),
    "refunded": ("FULFILLED", "refunded", 5),
    "partly refunded": ("FULFILLED", "sale", 4),
    "cancelled": ("CANCELED", "cancelled", 8),
    "test": ("FULFILLED", "test", 4),
}
_TAX = Decimal("0.08875")


def _money(amount: Decimal) -> Row:
    return {"currency": "USD", "value": text(amount)}


def shop() -> Shop:
    """A shop in New York whose taxes are added to the prices."""
    customers = people(3401, 50, first=201, code=lambda n: "")
    rows: list[Row] = []
    truth = []
    weights = {state: of[2] for state, of in _STATES.items()}
    for bought in purchases(
        34, 130, "America/New_York", _PRODUCTS, weights, customers=50, strangers=0.2, discounted=0
    ):
        written, status, _ = _STATES[bought.state]
        off = cents(bought.goods / 10) if bought.n % 5 == 1 else ZERO
        tax = cents((bought.goods - off) * _TAX)
        total = bought.goods - off + bought.shipping + tax
        back = {"refunded": total, "partly refunded": cents(total / 3)}.get(bought.state, ZERO)
        customer_id = listed(customers, bought.buyer)
        email = f"stranger{bought.n}@example.com"
        if customer_id is not None:
            email = f"buyer{customer_id}@example.com"
        if bought.n % 5 == 2:
            email = email.capitalize()
        at = bought.at.astimezone(UTC)
        key = hexadecimal("squarespace", bought.n)
        rows.append(
            {
                "id": key,
                "orderNumber": str(1001 + bought.n),
                "createdOn": f"{at:%Y-%m-%dT%H:%M:%S}.{bought.n:03d}Z",
                "modifiedOn": f"{at:%Y-%m-%dT%H:%M:%S}.999Z",
                "channel": "web",
                "testmode": bought.state == "test",
                "customerEmail": email,
                "billingAddress": {
                    "firstName": "Ann",
                    "lastName": f"Buyer {bought.n}",
                    "city": "Brooklyn",
                    "state": "NY",
                    "countryCode": "US",
                    "postalCode": f"112{bought.n % 100:02d}",
                },
                "fulfillmentStatus": written,
                "lineItems": [
                    {
                        "id": hexadecimal("squarespace line", bought.n, k),
                        "variantId": uuid("variant", item.product.id),
                        "sku": item.product.sku,
                        "weight": 0.0,
                        "productId": hexadecimal("squarespace product", item.product.id),
                        "productName": item.product.name,
                        "quantity": int(item.quantity),
                        "unitPricePaid": _money(item.product.price),
                        "variantOptions": [],
                        "lineItemType": "PHYSICAL_PRODUCT",
                    }
                    for k, item in enumerate(bought.items)
                ],
                "shippingLines": [{"method": "Flat Rate", "amount": _money(bought.shipping)}],
                "discountLines": (
                    [{"description": "10% off", "promoCode": "TEN", "amount": _money(off)}]
                    if off
                    else []
                ),
                "subtotal": _money(bought.goods),
                "shippingTotal": _money(bought.shipping),
                "discountTotal": _money(off),
                "taxTotal": _money(tax),
                "refundedTotal": _money(back),
                "grandTotal": _money(total),
                "priceTaxInterpretation": "EXCLUSIVE",
            }
        )
        truth.append(
            Order(
                key=key,
                customer=email,
                customer_id=customer_id,
                day=bought.at.date(),
                total=total,
                currency="USD",
                status=status,
                lines=lines_of(bought.items),
            )
        )
    return Shop(
        name="squarespace",
        zone="America/New_York",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="customerEmail",
            customer_is="email",
            instant="createdOn",
            written="offset",
            total="{grandTotal.value}",
            total_is="gross",
            status=(
                By("testmode", {"true": "test"}),
                By("fulfillmentStatus", {"CANCELED": "cancelled"}),
                By("fulfillmentStatus", {"PENDING": "sale", "FULFILLED": "sale"}),
            ),
            lines=LineAnswers(
                at="lineItems",
                product="sku",
                name="productName",
                quantity="quantity",
                revenue="{unitPricePaid.value} * {quantity}",
            ),
            currency="grandTotal.currency",
        ),
        notes=("refunded if `refundedTotal` is the total, which no state says",),
    )
