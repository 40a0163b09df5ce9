"""Chinook, the sample database of a music shop: invoices without any state, so that all are sales.

Ids of customers, invoices and tracks are small numbers that overlap; `BillingState` is a part of the address.
"""

from __future__ import annotations

from .world import (
    Answers,
    LineAnswers,
    Order,
    Row,
    Shop,
    catalogue,
    lines_of,
    listed,
    people,
    purchases,
)

_PRODUCTS = catalogue(
    {
        "For Those About To Rock (We Salute You)": "0.99",
        "Balls to the Wall": "0.99",
        "Fast As a Shark": "0.99",
        "Battlestar Galactica, Pt. 1": "1.99",
        "Garota De Ipanema": "0.99",
        "The Fix": "1.99",
        "Samba De Uma Nota Só": "0.99",
        "Occupation / Precipice": "1.99",
    },
    "{}",
)
_PLACES = (
    ("Stuttgart", None, "Germany"),
    ("São José dos Campos", "SP", "Brazil"),
    ("Mountain View", "CA", "USA"),
    ("Montréal", "QC", "Canada"),
    ("Paris", None, "France"),
)


def shop() -> Shop:
    """A music shop that writes its times at midnight, without a zone."""
    customers = people(902, 59, first=1, code="{:03d}".format)
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        2, 120, "America/New_York", _PRODUCTS, {"": 1}, customers=59, discounted=0
    ):
        buyer = bought.buyer or 0
        city, state, country = _PLACES[buyer % 5]
        day = bought.at.date()
        rows.append(
            {
                "InvoiceId": bought.n + 1,
                "CustomerId": buyer + 1,
                "InvoiceDate": f"{day}T00:00:00",
                "BillingAddress": f"{buyer * 7} Main Street",
                "BillingCity": city,
                "BillingState": state,
                "BillingCountry": country,
                "BillingPostalCode": f"{10000 + buyer * 31}",
                "Total": float(bought.goods),
                "InvoiceLines": [
                    {
                        "InvoiceLineId": bought.n * 4 + k,
                        "TrackId": item.product.id,
                        "Track": {
                            "Name": item.product.name,
                            "Composer": None,
                            "Milliseconds": 1000 * (200 + item.product.id * 37),
                            "UnitPrice": float(item.product.price),
                        },
                        "UnitPrice": float(item.product.price),
                        "Quantity": int(item.quantity),
                    }
                    for k, item in enumerate(bought.items, 1)
                ],
            }
        )
        truth.append(
            Order(
                key=str(bought.n + 1),
                customer=str(buyer + 1),
                customer_id=listed(customers, buyer),
                day=day,
                total=bought.goods,
                currency="USD",
                status="sale",
                lines=lines_of(bought.items, lambda product: str(product.id)),
            )
        )
    return Shop(
        name="chinook",
        zone="America/New_York",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="InvoiceId",
            customer="CustomerId",
            customer_is="id",
            instant="InvoiceDate",
            written="local",
            total="{Total}",
            total_is="gross",
            status=(),
            lines=LineAnswers(
                at="InvoiceLines",
                product="TrackId",
                name="Track.Name",
                quantity="Quantity",
                revenue="{UnitPrice} * {Quantity}",
            ),
        ),
    )
