"""Danea Easyfatt (Italy): documents of all types in one list, and the type is what tells a sale from an offer.

All values are text, dates have no time, numbers begin anew in each type, lines lie in `Rows.Row`. Lines are net of VAT,
`Total` has it in it. The XML of Easyfatt names these fields; `id` is the platform's.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from .world import (
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
        "Olio extravergine 0,75 l": "9.80",
        "Passata di pomodoro 700 g": "1.45",
        "Parmigiano Reggiano 24 mesi": "18.90",
        "Caffè macinato 250 g": "3.60",
        "Aceto balsamico": "7.25",
        "Pasta di Gragnano 500 g": "2.15",
    },
    "ART{:04d}",
)
_STATES: dict[str, int] = {"C": 15, "I": 60, "Q": 12, "N": 6, "P": 7}
_CLASSES: dict[str, Status] = {"C": "open", "I": "sale", "Q": "open", "N": "refunded", "P": "open"}


def shop() -> Shop:
    """A grocer's documents: C orders, I invoices, Q offers, N credit notes, P pro forma."""
    customers = people(903, 45, first=301, code="{:04d}".format)
    rows: list[Row] = []
    truth = []
    numbers: dict[str, int] = dict.fromkeys(_STATES, 0)
    for bought in purchases(
        3, 100, "Europe/Rome", _PRODUCTS, _STATES, customers=45, strangers=0.03, hours=range(8, 19)
    ):
        buyer = bought.buyer or 0
        day, kind = bought.at.date(), bought.state
        numbers[kind] += 1
        net = bought.goods + bought.shipping
        vat = cents(net * Decimal("0.22"))
        rows.append(
            {
                "id": f"{kind}-{numbers[kind]}-{day.year}",
                "DocumentType": kind,
                "Number": str(numbers[kind]),
                "Numbering": "",
                "Date": f"{day}",
                "CustomerCode": f"{buyer:04d}",
                "CustomerWebLogin": "",
                "CustomerName": f"Cliente {buyer} S.r.l.",
                "CustomerCity": ("Milano", "Bari", "Torino")[buyer % 3],
                "CustomerProvince": ("MI", "BA", "TO")[buyer % 3],
                "CustomerVatCode": f"{12345670000 + buyer * 17}",
                "CustomerFiscalCode": "",
                "SalesAgent": ("Rossi", "Bianchi")[buyer % 2],
                "CostDescription": "Spedizione" if bought.shipping else "",
                "CostAmount": text(bought.shipping),
                "TotalWithoutTax": text(net),
                "VatAmount": text(vat),
                "WithholdingTaxAmount": "0.00",
                "Total": text(net + vat),
                "PricesIncludeVat": "false",
                "PriceList": "Privati",
                "PaymentName": "Bonifico 30 gg",
                "Payments": {
                    "Payment": [
                        {
                            "Advance": "false",
                            "Date": f"{day + timedelta(days=30)}",
                            "Amount": text(net + vat),
                            "Paid": "true" if kind == "I" and bought.n % 3 else "false",
                        }
                    ]
                },
                "Warehouse": "Principale",
                "InternalComment": "",
                "Rows": {
                    "Row": [
                        {
                            "Code": item.product.sku,
                            "Description": item.product.name,
                            "Qty": str(item.quantity),
                            "Um": "pz",
                            "Price": text(item.product.price),
                            "Discounts": f"{item.percent}%" if item.percent else "",
                            "Total": text(item.revenue),
                            "VatCode": "22",
                            "Stock": "true",
                            "Notes": "",
                        }
                        for item in bought.items
                    ]
                },
            }
        )
        truth.append(
            Order(
                key=f"{kind}-{numbers[kind]}-{day.year}",
                customer=f"{buyer:04d}",
                customer_id=listed(customers, buyer),
                day=day,
                total=net + vat,
                currency="EUR",
                status=_CLASSES[kind],
                lines=lines_of(bought.items),
            )
        )
    return Shop(
        name="danea",
        zone="Europe/Rome",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="CustomerCode",
            customer_is="erpCode",
            instant="Date",
            written="local",
            total="{Total}",
            total_is="gross",
            status=(By("DocumentType", _CLASSES),),
            lines=LineAnswers(
                at="Rows.Row",
                product="Code",
                name="Description",
                quantity="Qty",
                revenue="{Total}",
            ),
        ),
        notes=(
            "Invoices alone are sales: an order (C) becomes an invoice later, and would count twice.",
            "Total of a credit note is positive, as Easyfatt writes it.",
        ),
    )
