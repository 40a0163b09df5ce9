"""commercetools: orders with amounts in cents, names in two languages and four states.

`orderState` is Open until somebody closes it, paid or not: the payment says whether it is a sale. Guests have an
`anonymousId` in place of a customer. One shop sells in euros and in Swiss francs. Prices contain the tax.
"""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal

from tests.shops.world import (
    Answers,
    By,
    Item,
    LineAnswers,
    Order,
    Row,
    Shop,
    Status,
    catalogue,
    lines_of,
    listed,
    minor,
    people,
    purchases,
    uuid,
)

_PRODUCTS = catalogue(
    {
        "Laufschuh Herren": "129.95",
        "Regenjacke": "89.90",
        "Trinkflasche 0,7 l": "14.50",
        "Stirnlampe": "39.00",
        "Rucksack 25 l": "74.99",
        "Wandersocken": "12.90",
    },
    "M0E20000000{:04d}",
)
_STATES: dict[str, tuple[str, str, Status, int]] = {
    "paid": ("Open", "Paid", "sale", 50),
    "complete": ("Complete", "Paid", "sale", 20),
    "pending": ("Open", "Pending", "open", 8),
    "balance due": ("Open", "BalanceDue", "open", 3),
    "failed": ("Open", "Failed", "cancelled", 3),
    "cancelled": ("Cancelled", "Pending", "cancelled", 6),
    "cancelled after payment": ("Cancelled", "CreditOwed", "refunded", 5),
}


def _money(amount: Decimal, currency: str) -> Row:
    return {
        "type": "centPrecision",
        "currencyCode": currency,
        "centAmount": minor(amount),
        "fractionDigits": 2,
    }


def _line(n: int, item: Item, currency: str) -> Row:
    row: Row = {
        "id": uuid("ct line", n),
        "productId": uuid("ct product", item.product.id),
        "name": {"de": item.product.name, "en": f"EN {item.product.name}"},
        "productType": {"typeId": "product-type", "id": uuid("ct type")},
        "variant": {"id": 1, "sku": item.product.sku, "attributes": []},
        "price": {"id": uuid("ct price", n), "value": _money(item.product.price, currency)},
        "quantity": int(item.quantity),
        "discountedPricePerQuantity": [],
        "taxRate": {"name": "19%", "amount": 0.19, "includedInPrice": True, "country": "DE"},
        "totalPrice": _money(item.revenue, currency),
        "lineItemMode": "Standard",
    }
    if item.discount:
        unit = (item.revenue / item.quantity).quantize(Decimal("0.01"))
        row["price"]["discounted"] = {"value": _money(unit, currency)}
    return row


def shop() -> Shop:
    """A shop in Berlin."""
    customers = people(3701, 50, first=31, code=lambda n: uuid("ct customer", n))
    rows: list[Row] = []
    truth = []
    weights = {state: of[3] for state, of in _STATES.items()}
    for bought in purchases(
        37, 130, "Europe/Berlin", _PRODUCTS, weights, customers=50, guests=0.25, discounted=0.2
    ):
        order_state, payment_state, status, _ = _STATES[bought.state]
        currency = "CHF" if bought.n % 6 == 5 else "EUR"
        total = bought.goods + bought.shipping
        at = bought.at.astimezone(UTC)
        moment = f"{at:%Y-%m-%dT%H:%M:%S}.{bought.n:03d}Z"
        key = uuid("ct order", bought.n)
        row: Row = {
            "type": "Order",
            "id": key,
            "version": 3 + bought.n % 5,
            "createdAt": moment,
            "lastModifiedAt": moment,
            "orderNumber": f"ORD-{10001 + bought.n}",
            "customerEmail": f"contact{bought.n}@example.com",
            "locale": "de",
            "totalPrice": _money(total, currency),
            "taxedPrice": {
                "totalNet": _money(total / Decimal("1.19"), currency),
                "totalGross": _money(total, currency),
            },
            "country": "CH" if currency == "CHF" else "DE",
            "orderState": order_state,
            "paymentState": payment_state,
            "shipmentState": "Shipped" if order_state == "Complete" else "Pending",
            "shippingInfo": {
                "shippingMethodName": "DHL",
                "price": _money(bought.shipping, currency),
            },
            "lineItems": [
                _line(bought.n * 4 + k, item, currency) for k, item in enumerate(bought.items)
            ],
            "customLineItems": [],
            "origin": "Customer",
        }
        customer = None
        if bought.buyer is None:
            row["anonymousId"] = uuid("ct guest", bought.n)
        else:
            customer = row["customerId"] = uuid("ct customer", bought.buyer)
        rows.append(row)
        truth.append(
            Order(
                key=key,
                customer=customer,
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=total,
                currency=currency,
                status=status,
                lines=lines_of(bought.items),
            )
        )
    return Shop(
        name="commercetools",
        zone="Europe/Berlin",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="customerId",
            customer_is="erpCode",
            instant="createdAt",
            written="offset",
            total="{totalPrice.centAmount}",
            total_is="gross",
            status=(
                By("paymentState", {"CreditOwed": "refunded"}),
                By("orderState", {"Cancelled": "cancelled"}),
                By(
                    "paymentState",
                    {
                        "Paid": "sale",
                        "Pending": "open",
                        "BalanceDue": "open",
                        "Failed": "cancelled",
                    },
                ),
            ),
            lines=LineAnswers(
                at="lineItems",
                product="variant.sku",
                name="name.de",
                quantity="quantity",
                revenue="{totalPrice.centAmount}",
            ),
            currency="totalPrice.currencyCode",
            unit=Decimal("0.01"),
        ),
    )
