"""classicmodels, the sample database of MySQL: no total, dates without times, and orders on hold or in dispute.

Numbers of customers are those of the ERP; `salesRepEmployeeNumber` is another number of four digits.
"""

from __future__ import annotations

from datetime import timedelta

from .world import (
    Answers,
    By,
    LineAnswers,
    Order,
    Row,
    Shop,
    Status,
    catalogue,
    lines_of,
    listed,
    people,
    purchases,
)

_PRODUCTS = catalogue(
    {
        "1969 Harley Davidson Ultimate Chopper": "95.70",
        "1952 Alpine Renault 1300": "214.30",
        "1996 Moto Guzzi 1100i": "118.94",
        "2003 Harley-Davidson Eagle Drag Bike": "193.66",
        "1972 Alfa Romeo GTA": "136.00",
        "1962 LanciaA Delta 16V": "147.74",
    },
    "S10_{:04d}",
)
_STATES: dict[str, int] = {
    "Shipped": 80,
    "Resolved": 3,
    "Cancelled": 5,
    "On Hold": 3,
    "Disputed": 3,
    "In Process": 4,
}
_CLASSES: dict[str, Status] = {
    "Shipped": "sale",
    "Resolved": "sale",
    "Cancelled": "cancelled",
    "On Hold": "open",
    "Disputed": "open",
    "In Process": "sale",
}


def shop() -> Shop:
    """A trader of model cars in Boston."""
    customers = people(918, 45, first=5001, code=lambda n: str(103 + n * 9))
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        18,
        110,
        "America/New_York",
        _PRODUCTS,
        _STATES,
        customers=45,
        strangers=0.02,
        discounted=0,
    ):
        buyer = bought.buyer or 0
        day = bought.at.date()
        rows.append(
            {
                "orderNumber": 10100 + bought.n,
                "orderDate": f"{day}",
                "requiredDate": f"{day + timedelta(days=7)}",
                "shippedDate": f"{day + timedelta(days=4)}" if bought.state == "Shipped" else None,
                "status": bought.state,
                "comments": "Check on availability." if bought.n % 5 == 0 else None,
                "customerNumber": 103 + buyer * 9,
                "salesRepEmployeeNumber": 1165 + bought.n % 6,
                "orderdetails": [
                    {
                        "orderNumber": 10100 + bought.n,
                        "productCode": item.product.sku,
                        "quantityOrdered": int(item.quantity),
                        "priceEach": float(item.product.price),
                        "orderLineNumber": k,
                        "product": {
                            "productName": item.product.name,
                            "productLine": "Classic Cars",
                            "buyPrice": float(item.product.price) / 2,
                            "MSRP": float(item.product.price) * 2,
                        },
                    }
                    for k, item in enumerate(bought.items, 1)
                ],
            }
        )
        truth.append(
            Order(
                key=str(10100 + bought.n),
                customer=str(103 + buyer * 9),
                customer_id=listed(customers, buyer),
                day=day,
                total=bought.goods,
                currency="USD",
                status=_CLASSES[bought.state],
                lines=lines_of(bought.items),
            )
        )
    return Shop(
        name="classicmodels",
        zone="America/New_York",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="orderNumber",
            customer="customerNumber",
            customer_is="erpCode",
            instant="orderDate",
            written="local",
            total=None,
            total_is="net",
            status=(By("status", _CLASSES),),
            lines=LineAnswers(
                "orderdetails",
                "productCode",
                "product.productName",
                "quantityOrdered",
                "{quantityOrdered} * {priceEach}",
            ),
        ),
    )
