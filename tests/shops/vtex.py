"""VTEX (orders of its OMS interface, Brazil): amounts are whole cents, times are UTC with seven decimals of a second.

`clientProfileData.id` is the name of the section, not a customer; the address has a `state`; the sku of a line is `id`.
"""

from __future__ import annotations

from datetime import UTC, timedelta
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
    cents,
    lines_of,
    listed,
    minor,
    people,
    purchases,
    uuid,
)

_PRODUCTS = catalogue(
    {
        "Cafeteira Italiana 6 Xícaras": "129.90",
        "Jogo de Copos 6 Peças": "59.90",
        "Panela de Pressão 4,5 L": "189.00",
        "Faqueiro Inox 24 Peças": "149.90",
        "Assadeira de Vidro": "49.90",
        "Garrafa Térmica 1 L": "79.90",
    },
    "{}",
    first=310,
)
_STATES: dict[str, int] = {
    "invoiced": 72,
    "handling": 6,
    "ready-for-handling": 5,
    "payment-approved": 2,
    "payment-pending": 6,
    "canceled": 8,
    "cancellation-requested": 1,
}
_CLASSES: dict[str, Status] = {
    "invoiced": "sale",
    "handling": "sale",
    "ready-for-handling": "sale",
    "payment-approved": "sale",
    "payment-pending": "open",
    "canceled": "cancelled",
    "cancellation-requested": "open",
}


def shop() -> Shop:
    """A kitchen shop in São Paulo."""
    customers = people(912, 50, first=81, code=lambda n: uuid("profile", n))
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        12, 120, "America/Sao_Paulo", _PRODUCTS, _STATES, customers=50, strangers=0.02
    ):
        # A price per unit in whole cents: the discount of a line is one of each unit.
        units = [cents(item.revenue / item.quantity) for item in bought.items]
        goods = sum(
            (unit * item.quantity for unit, item in zip(units, bought.items, strict=True)),
            Decimal(0),
        )
        total = goods + bought.shipping
        rows.append(_row(bought, units, total, goods))
        truth.append(
            Order(
                key=_key(bought.n),
                customer=uuid("profile", bought.buyer),
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=total,
                currency="BRL",
                status=_CLASSES[bought.state],
                lines=lines_of(
                    bought.items,
                    lambda product: str(product.id),
                    lambda item: cents(item.revenue / item.quantity) * item.quantity,
                ),
            )
        )
    return Shop(
        name="vtex",
        zone="America/Sao_Paulo",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="orderId",
            customer="clientProfileData.userProfileId",
            customer_is="erpCode",
            instant="creationDate",
            written="offset",
            total="{value}",
            total_is="gross",
            unit=Decimal("0.01"),
            currency="storePreferencesData.currencyCode",
            status=(By("status", _CLASSES),),
            lines=LineAnswers(
                at="items",
                product="id",
                name="name",
                quantity="quantity",
                revenue="{sellingPrice} * {quantity}",
            ),
        ),
    )


def _key(n: int) -> str:
    return f"12{34560123456 + n * 7919}-01"


def _row(bought: Purchase, units: list[Decimal], total: Decimal, goods: Decimal) -> Row:
    at = bought.at.astimezone(UTC)
    buyer = bought.buyer or 0
    return {
        "orderId": _key(bought.n),
        "sequence": str(500_100 + bought.n),
        "marketplaceOrderId": "",
        "sellerOrderId": f"00-{_key(bought.n)}",
        "origin": "Marketplace",
        "salesChannel": "1",
        "merchantName": None,
        "status": bought.state,
        "statusDescription": {"invoiced": "Faturado", "canceled": "Cancelado"}.get(
            bought.state, "Em processamento"
        ),
        "isCompleted": True,
        "isCheckedIn": False,
        "value": minor(total),
        "creationDate": f"{at:%Y-%m-%dT%H:%M:%S}.0000000+00:00",
        "lastChange": f"{at + timedelta(days=2):%Y-%m-%dT%H:%M:%S}.4512345+00:00",
        "authorizedDate": None
        if bought.state == "payment-pending"
        else f"{at + timedelta(hours=5):%Y-%m-%dT%H:%M:%S}.0000000+00:00",
        "totals": [
            {"id": "Items", "name": "Total dos Itens", "value": minor(bought.full)},
            {
                "id": "Discounts",
                "name": "Total dos Descontos",
                "value": -minor(bought.full - goods),
            },
            {"id": "Shipping", "name": "Total do Frete", "value": minor(bought.shipping)},
            {"id": "Tax", "name": "Total da Taxa", "value": 0},
        ],
        "clientProfileData": {
            "id": "clientProfileData",
            "email": f"{uuid('mask', buyer)[:13]}b.ct.vtex.com.br",
            "firstName": "Maria",
            "lastName": "Souza",
            "documentType": "cpf",
            "document": f"{30_000_000_000 + buyer * 7_919}",
            "userProfileId": uuid("profile", bought.buyer),
            "isCorporate": False,
            "customerClass": None,
        },
        "shippingData": {
            "id": "shippingData",
            "address": {
                "receiverName": "Outra Pessoa",
                "state": ("SP", "RJ", "PR")[buyer % 3],
                "country": "BRA",
            },
        },
        "paymentData": {
            "transactions": [
                {
                    "isActive": True,
                    "transactionId": uuid("transaction", bought.n),
                    "payments": [
                        {"paymentSystemName": "Pix", "value": minor(total), "installments": 1}
                    ],
                }
            ]
        },
        "sellers": [{"id": "1", "name": "Loja"}],
        "storePreferencesData": {
            "countryCode": "BRA",
            "currencyCode": "BRL",
            "timeZone": "E. South America Standard Time",
        },
        "items": [
            {
                "uniqueId": uuid("line", bought.n, item.product.id),
                "id": str(item.product.id),
                "productId": str(item.product.id + 9000),
                "refId": f"REF{item.product.sku}",
                "ean": None,
                "quantity": int(item.quantity),
                "seller": "1",
                "name": item.product.name,
                "listPrice": minor(item.product.price * Decimal("1.1")),
                "price": minor(item.product.price),
                "sellingPrice": minor(unit),
                "tax": 0,
                "priceTags": [],
            }
            for unit, item in zip(units, bought.items, strict=True)
        ],
    }
