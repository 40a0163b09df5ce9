"""BikeStores, the sample database of SQL Server: dates without times, states as numbers, no total anywhere.

The discount of a line is a fraction. `staff_id` and `store_id` are as small as the ids of customers.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from .world import (
    ZERO,
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
    people,
    purchases,
)

_PRODUCTS = catalogue(
    {
        "Trek 820 - 2016": "379.99",
        "Ritchey Timberwolf Frameset - 2016": "749.99",
        "Surly Wednesday Frameset - 2016": "999.99",
        "Heller Shagamaw Frame - 2016": "1320.99",
        "Pure Cycles Vine 8-Speed - 2016": "429.00",
        "Electra Townie Original 21D - 2016": "549.99",
        "Sun Bicycles Cruz 3 - 2017": "449.99",
    },
    "B-{:03d}",
)
_STATES: dict[str, int] = {"1": 8, "2": 6, "3": 5, "4": 81}
_CLASSES: dict[str, Status] = {"1": "open", "2": "open", "3": "cancelled", "4": "sale"}


def shop() -> Shop:
    """A chain of three bicycle shops in the USA."""
    customers = people(901, 60, first=1, code="BS{:04d}".format)
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        1, 110, "America/New_York", _PRODUCTS, _STATES, customers=60, strangers=0.02
    ):
        buyer = bought.buyer or 0
        day, done = bought.at.date(), bought.state == "4"
        rows.append(
            {
                "order_id": bought.n + 1,
                "customer_id": buyer + 1,
                "order_status": int(bought.state),
                "order_date": f"{day}",
                "required_date": f"{day + timedelta(days=3)}",
                "shipped_date": f"{day + timedelta(days=2)}" if done else None,
                "store_id": bought.n % 3 + 1,
                "staff_id": bought.n % 8 + 2,
                "order_items": [
                    {
                        "item_id": k,
                        "product_id": item.product.id,
                        "product": {"product_name": item.product.name, "model_year": 2016},
                        "quantity": int(item.quantity),
                        "list_price": float(item.product.price),
                        "discount": item.percent / 100,
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
                total=sum((_revenue(item) for item in bought.items), ZERO),
                currency="USD",
                status=_CLASSES[bought.state],
                lines=lines_of(bought.items, lambda product: str(product.id), _revenue),
            )
        )
    return Shop(
        name="bikestores",
        zone="America/New_York",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="order_id",
            customer="customer_id",
            customer_is="id",
            instant="order_date",
            written="local",
            total=None,
            total_is="net",
            status=(By("order_status", _CLASSES),),
            lines=LineAnswers(
                at="order_items",
                product="product_id",
                name="product.product_name",
                quantity="quantity",
                revenue="{quantity} * {list_price} * (1 - {discount})",
            ),
        ),
        notes=("No rounding: discounted lines have more than two decimals.",),
    )


def _revenue(item: Item) -> Decimal:
    return item.full * (100 - item.percent) / 100
