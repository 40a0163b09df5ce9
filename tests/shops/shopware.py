"""Shopware 6 (orders of its Admin interface): two state machines, ids of hexadecimal digits beside numbers of people.

Times are UTC with an offset, and `orderDate` is the day in UTC. A voucher is a row among the lines, without a product.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from decimal import Decimal

from .world import (
    ZERO,
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
    hexadecimal,
    lines_of,
    listed,
    people,
    purchases,
)

_PRODUCTS = catalogue(
    {
        "Wanderrucksack 30 l": "89.95",
        "Thermosflasche": "24.90",
        "Stirnlampe": "39.00",
        "Trekkingstöcke (Paar)": "64.50",
        "Isomatte": "49.99",
        "Regenhülle": "17.95",
    },
    "SW{:05d}",
    first=10001,
)
_STATES: dict[str, int] = {
    "completed/paid": 64,
    "in_progress/paid": 8,
    "in_progress/open": 4,
    "open/open": 7,
    "open/failed": 3,
    "cancelled/cancelled": 7,
    "completed/refunded": 5,
    "completed/refunded_partially": 2,
}
_ORDERS: dict[str, Status] = {
    "completed": "sale",
    "in_progress": "sale",
    "open": "open",
    "cancelled": "cancelled",
}


def shop() -> Shop:
    """An outdoor shop in Munich. Money that went back makes an order refunded; then its own state decides."""
    customers = people(911, 45, first=5001, code=lambda n: f"{10000 + n}")
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        11,
        120,
        "Europe/Berlin",
        _PRODUCTS,
        _STATES,
        customers=45,
        discounted=0,
        hours=[0, *range(8, 24)],
    ):
        off = cents(bought.goods / 10) if bought.n % 6 == 0 else ZERO
        total = bought.goods + bought.shipping - off
        order, _, money = bought.state.partition("/")
        rows.append(_row(bought, off, total))
        truth.append(
            Order(
                key=hexadecimal("order", bought.n, digits=32),
                customer=f"{10000 + (bought.buyer or 0)}",
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=total,
                currency="EUR",
                status="refunded" if money == "refunded" else _ORDERS[order],
                lines=lines_of(bought.items),
            )
        )
    return Shop(
        name="shopware",
        zone="Europe/Berlin",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="orderCustomer.customerNumber",
            customer_is="erpCode",
            instant="orderDateTime",
            written="offset",
            total="{amountTotal}",
            total_is="gross",
            currency="currency.isoCode",
            status=(
                By("transactions.0.stateMachineState.technicalName", {"refunded": "refunded"}),
                By("stateMachineState.technicalName", _ORDERS),
            ),
            lines=LineAnswers(
                at="lineItems",
                product="payload.productNumber",
                name="label",
                quantity="quantity",
                revenue="{totalPrice}",
                skip=("type", "promotion"),
            ),
        ),
        notes=("A voucher (type promotion) is no line: it is off the order.",),
    )


def _row(bought: Purchase, off: Decimal, total: Decimal) -> Row:
    at = bought.at.astimezone(UTC)
    order, _, money = bought.state.partition("/")
    net = cents(total / Decimal("1.19"))
    lines = [
        {
            "id": hexadecimal("line", bought.n, k, digits=32),
            "identifier": hexadecimal("product", item.product.id, digits=32),
            "productId": hexadecimal("product", item.product.id, digits=32),
            "type": "product",
            "label": item.product.name,
            "quantity": int(item.quantity),
            "unitPrice": float(item.product.price),
            "totalPrice": float(item.revenue),
            "position": k,
            "good": True,
            "payload": {"productNumber": item.product.sku, "stock": 40, "taxId": "a1"},
        }
        for k, item in enumerate(bought.items, 1)
    ]
    if off:
        voucher = {"id": hexadecimal("voucher", bought.n, digits=32), "identifier": "SOMMER10"}
        kind = {"productId": None, "type": "promotion", "label": "10 % Gutschein", "quantity": 1}
        amount = {"unitPrice": -float(off), "totalPrice": -float(off), "position": len(lines) + 1}
        lines.append({**voucher, **kind, **amount, "good": False, "payload": {"code": "SOMMER10"}})
    return {
        "id": hexadecimal("order", bought.n, digits=32),
        "versionId": "0fa91ce3e96a4bc2be4bd9ce752c3425",
        "autoIncrement": bought.n + 1,
        "orderNumber": f"{10000 + bought.n}",
        "orderDateTime": f"{at:%Y-%m-%dT%H:%M:%S}.000+00:00",
        "orderDate": f"{at.date()}",
        "createdAt": f"{at + timedelta(seconds=2):%Y-%m-%dT%H:%M:%S}.118+00:00",
        "updatedAt": f"{at + timedelta(days=3):%Y-%m-%dT%H:%M:%S}.512+00:00",
        "amountTotal": float(total),
        "amountNet": float(net),
        "positionPrice": float(bought.goods - off),
        "shippingTotal": float(bought.shipping),
        "taxStatus": "gross",
        "currencyFactor": 1,
        "currencyId": "b7d2554b0ce847cd82f3ac9bd1c0dfca",
        "currency": {"isoCode": "EUR", "symbol": "€"},
        "salesChannelId": hexadecimal("channel", digits=32),
        "stateId": hexadecimal("state", order, digits=32),
        "stateMachineState": {"technicalName": order, "name": order.title()},
        "price": {"netPrice": float(net), "totalPrice": float(total), "rawTotal": float(total)},
        "orderCustomer": {
            "id": hexadecimal("order customer", bought.n, digits=32),
            "customerId": hexadecimal("customer", bought.buyer, digits=32),
            "customerNumber": f"{10000 + (bought.buyer or 0)}",
            "email": f"buyer{5001 + (bought.buyer or 0)}@example.com",
            "firstName": "Anna",
            "lastName": "Beispiel",
            "company": None,
        },
        "transactions": [
            {
                "id": hexadecimal("transaction", bought.n, digits=32),
                "amount": {"totalPrice": float(total)},
                "stateMachineState": {"technicalName": money, "name": money.title()},
            }
        ],
        "deliveries": [
            {"stateMachineState": {"technicalName": "shipped" if order == "completed" else "open"}}
        ],
        "lineItems": lines,
    }
