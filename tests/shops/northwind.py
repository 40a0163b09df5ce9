"""Northwind, the sample database of Microsoft: no total and no state, codes of customers are letters.

The discount of a line is a fraction; `Freight` is not a part of what the lines come to. `EmployeeID` is small.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from .world import (
    ZERO,
    Answers,
    Item,
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
        "Chai": "18.00",
        "Queso Cabrales": "21.00",
        "Singaporean Hokkien Fried Mee": "14.00",
        "Mozzarella di Giovanni": "34.80",
        "Manjimup Dried Apples": "53.00",
        "Jack's New England Clam Chowder": "9.65",
    },
    "{}",
)
_CODES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def shop() -> Shop:
    """A trader of groceries in Seattle."""
    customers = people(917, 50, first=1, code=_code)
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        17, 120, "America/Los_Angeles", _PRODUCTS, {"": 1}, customers=50, strangers=0.02
    ):
        buyer = bought.buyer or 0
        day = bought.at.date()
        rows.append(
            {
                "OrderID": 10248 + bought.n,
                "CustomerID": _code(buyer),
                "EmployeeID": bought.n % 9 + 1,
                "OrderDate": f"{day}T00:00:00Z",
                "RequiredDate": f"{day + timedelta(days=28)}T00:00:00Z",
                "ShippedDate": f"{day + timedelta(days=9)}T00:00:00Z" if bought.n % 20 else None,
                "ShipVia": bought.n % 3 + 1,
                "Freight": float(bought.shipping),
                "ShipName": f"Shop {buyer}",
                "ShipCity": ("Reims", "Münster", "Rio de Janeiro")[buyer % 3],
                "ShipRegion": (None, None, "RJ")[buyer % 3],
                "ShipCountry": ("France", "Germany", "Brazil")[buyer % 3],
                "Order_Details": [
                    {
                        "OrderID": 10248 + bought.n,
                        "ProductID": item.product.id,
                        "UnitPrice": float(item.product.price),
                        "Quantity": int(item.quantity),
                        "Discount": item.percent / 100,
                        "Product": {"ProductName": item.product.name, "CategoryID": 2},
                    }
                    for item in bought.items
                ],
            }
        )
        truth.append(
            Order(
                key=str(10248 + bought.n),
                customer=_code(buyer),
                customer_id=listed(customers, buyer),
                day=day,
                total=sum((_revenue(item) for item in bought.items), ZERO),
                currency="USD",
                status="sale",
                lines=lines_of(bought.items, lambda product: str(product.id), _revenue),
            )
        )
    return Shop(
        name="northwind",
        zone="America/Los_Angeles",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="OrderID",
            customer="CustomerID",
            customer_is="erpCode",
            instant="OrderDate",
            written="local",
            total=None,
            total_is="net",
            status=(),
            lines=LineAnswers(
                "Order_Details",
                "ProductID",
                "Product.ProductName",
                "Quantity",
                "{UnitPrice} * {Quantity} * (1 - {Discount})",
            ),
        ),
    )


def _code(buyer: int) -> str:
    return "".join(_CODES[buyer * step % 26] for step in (1, 3, 7)) + f"K{_CODES[buyer // 26 % 26]}"


def _revenue(item: Item) -> Decimal:
    return item.full * (100 - item.percent) / 100
