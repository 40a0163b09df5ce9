"""SAP Business One: sales orders of its service layer.

The day is a date with midnight in UTC, which is no moment. A cancelled order is closed as well: `Cancelled` says so.
`Price` is after the discount of the line and `UnitPrice` before it; `LineTotal` has no tax and `DocTotal` has. Some
orders have a discount of their own besides.
"""

from __future__ import annotations

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
    cents,
    lines_of,
    listed,
    people,
    purchases,
)

_PRODUCTS = catalogue(
    {
        "Harina de fuerza saco 25 kg": "21.40",
        "Mantequilla 82 % caja 10 kg": "78.90",
        "Levadura prensada 500 g": "1.85",
        "Azúcar blanco saco 25 kg": "24.15",
        "Chocolate 70 % bolsa 5 kg": "52.60",
        "Aceite de girasol 25 l": "41.30",
    },
    "A{:05d}",
)
_STATES: dict[str, tuple[str, str, Status, int]] = {
    "open": ("bost_Open", "tNO", "open", 20),
    "closed": ("bost_Close", "tNO", "sale", 66),
    "cancelled": ("bost_Close", "tYES", "cancelled", 9),
}
_TAX = Decimal("0.21")


def _card(n: int) -> str:
    return f"C{20000 + n}"


def _line(n: int, item: Item) -> Row:
    price = item.revenue / item.quantity
    return {
        "LineNum": n,
        "ItemCode": item.product.sku,
        "ItemDescription": item.product.name,
        "Quantity": float(item.quantity),
        "Price": float(price.quantize(Decimal("0.000001"))),
        "UnitPrice": float(item.product.price),
        "Currency": "EUR",
        "Rate": 0.0,
        "DiscountPercent": float(item.percent),
        "WarehouseCode": "01",
        "AccountCode": "70000000",
        "TaxCode": "R21",
        "VatGroup": "R3",
        "PriceAfterVAT": float((price * (1 + _TAX)).quantize(Decimal("0.000001"))),
        "LineTotal": float(item.revenue),
        "GrossTotal": float(cents(item.revenue * (1 + _TAX))),
        "LineStatus": "bost_Close",
        "BaseType": -1,
    }


def shop() -> Shop:
    """A wholesaler in Madrid who sells to bakeries."""
    customers = people(3601, 60, first=1, code=_card)
    rows: list[Row] = []
    truth = []
    weights = {state: of[3] for state, of in _STATES.items()}
    for bought in purchases(
        36, 130, "Europe/Madrid", _PRODUCTS, weights, customers=60, strangers=0.05, shipping=("0",)
    ):
        document, cancelled, status, _ = _STATES[bought.state]
        percent = 5 if bought.n % 7 == 0 else 0
        off = cents(bought.goods * percent / 100)
        tax = cents((bought.goods - off) * _TAX)
        total = bought.goods - off + tax
        day = bought.at.date()
        buyer = bought.buyer or 0
        rows.append(
            {
                "DocEntry": 7001 + bought.n,
                "DocNum": 25_000_001 + bought.n,
                "DocType": "dDocument_Items",
                "DocDate": f"{day}T00:00:00Z",
                "DocDueDate": f"{day}T00:00:00Z",
                "TaxDate": f"{day}T00:00:00Z",
                "CreationDate": f"{day}T00:00:00Z",
                "DocTime": f"{bought.at:%H:%M:%S}",
                "CardCode": _card(buyer),
                "CardName": f"Panadería {buyer}",
                "NumAtCard": f"PO-{bought.n * 3}",
                "DocTotal": float(total),
                "DocTotalSys": float(total),
                "DocTotalFc": 0.0,
                "VatSum": float(tax),
                "DiscountPercent": float(percent),
                "TotalDiscount": float(off),
                "DocCurrency": "EUR",
                "DocRate": 1.0,
                "PaidToDate": 0.0,
                "SalesPersonCode": 3 + bought.n % 4,
                "Series": 12,
                "DocumentStatus": document,
                "Cancelled": cancelled,
                "Confirmed": "tYES",
                "Printed": "psNo",
                "DocumentLines": [_line(k, item) for k, item in enumerate(bought.items)],
            }
        )
        truth.append(
            Order(
                key=str(7001 + bought.n),
                customer=_card(buyer),
                customer_id=listed(customers, buyer),
                day=day,
                total=total,
                currency="EUR",
                status=status,
                lines=lines_of(bought.items),
            )
        )
    return Shop(
        name="sapb1",
        zone="Europe/Madrid",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="DocEntry",
            customer="CardCode",
            customer_is="erpCode",
            instant="DocDate",
            written="local",
            total="{DocTotal}",
            total_is="gross",
            status=(
                By("Cancelled", {"tYES": "cancelled"}),
                By("DocumentStatus", {"bost_Open": "open", "bost_Close": "sale"}),
            ),
            lines=LineAnswers(
                at="DocumentLines",
                product="ItemCode",
                name="ItemDescription",
                quantity="Quantity",
                revenue="{LineTotal}",
            ),
            currency="DocCurrency",
        ),
        notes=("the discount of an order is not in its lines",),
    )
