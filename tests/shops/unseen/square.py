"""Square: orders of a counter, with amounts in cents and quantities as text.

The total has tax and tips. Items are sold at `gross_sales_money` less `total_discount_money`; `total_money` of an item
has its tax. Most buyers are nobody's customer. An order that was paid back stays COMPLETED: its refund says so.
"""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal

from tests.shops.world import (
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
    cents,
    hexadecimal,
    lines_of,
    listed,
    minor,
    people,
    purchases,
)

_PRODUCTS = catalogue(
    {
        "Sourdough Loaf": "7.50",
        "Almond Croissant": "4.25",
        "Cappuccino": "4.75",
        "Cold Brew": "5.00",
        "Bag of Beans": "18.00",
        "Cinnamon Roll": "3.95",
    },
    "{}",
)
_STATES: dict[str, tuple[str, Status, int]] = {
    "paid": ("COMPLETED", "sale", 70),
    "refunded": ("COMPLETED", "refunded", 5),
    "partly refunded": ("COMPLETED", "sale", 4),
    "open": ("OPEN", "open", 6),
    "cancelled": ("CANCELED", "cancelled", 6),
    "draft": ("DRAFT", "open", 2),
}
_TAX = Decimal("0.0825")


def _code(*of: object) -> str:
    return hexadecimal("square", *of, digits=26).upper()


def _money(amount: Decimal) -> Row:
    return {"amount": minor(amount), "currency": "USD"}


def _line(n: int, item: Item) -> Row:
    tax = cents(item.revenue * _TAX)
    return {
        "uid": _code("line", n),
        "catalog_object_id": _code("product", item.product.sku),
        "catalog_version": 1735689600000,
        "name": item.product.name,
        "variation_name": "Regular",
        "item_type": "ITEM",
        "quantity": str(item.quantity),
        "base_price_money": _money(item.product.price),
        "variation_total_price_money": _money(item.full),
        "gross_sales_money": _money(item.full),
        "total_discount_money": _money(item.discount),
        "total_tax_money": _money(tax),
        "total_money": _money(item.revenue + tax),
    }


def shop() -> Shop:
    """A counter in Chicago."""
    customers = people(3301, 40, first=11, code=lambda n: _code("customer", n))
    rows: list[Row] = []
    truth = []
    weights = {state: of[2] for state, of in _STATES.items()}
    for bought in purchases(
        33, 140, "America/Chicago", _PRODUCTS, weights, customers=40, guests=0.4, shipping=("0",)
    ):
        written, status, _ = _STATES[bought.state]
        tax = sum((cents(item.revenue * _TAX) for item in bought.items), ZERO)
        tip = cents(bought.goods * Decimal("0.15")) if bought.n % 4 == 0 else ZERO
        total = bought.goods + tax + tip
        at = bought.at.astimezone(UTC)
        moment = f"{at:%Y-%m-%dT%H:%M:%S}.{bought.n:03d}Z"
        key = _code("order", bought.n)
        row: Row = {
            "id": key,
            "location_id": "L88917AVBK2S5",
            "source": {"name": "Point of Sale"},
            "line_items": [_line(bought.n * 4 + k, item) for k, item in enumerate(bought.items)],
            "created_at": moment,
            "updated_at": moment,
            "state": written,
            "version": 4,
            "total_money": _money(total),
            "total_tax_money": _money(tax),
            "total_discount_money": _money(bought.full - bought.goods),
            "total_tip_money": _money(tip),
            "total_service_charge_money": _money(ZERO),
            "net_amount_due_money": _money(total if written in ("OPEN", "DRAFT") else ZERO),
        }
        customer_id = listed(customers, bought.buyer)
        if bought.buyer is not None:
            row["customer_id"] = _code("customer", bought.buyer)
        if written == "COMPLETED":
            row["closed_at"] = moment
            row["tenders"] = [
                {
                    "id": _code("tender", bought.n),
                    "type": "CARD" if bought.n % 3 else "CASH",
                    "amount_money": _money(total),
                    "tip_money": _money(tip),
                }
            ]
        back = {"refunded": total, "partly refunded": cents(total / 4)}.get(bought.state)
        if back is not None:
            row["refunds"] = [
                {
                    "id": _code("refund", bought.n),
                    "reason": "Returned goods",
                    "status": "APPROVED",
                    "amount_money": _money(back),
                }
            ]
        rows.append(row)
        truth.append(
            Order(
                key=key,
                customer=row.get("customer_id"),
                customer_id=customer_id,
                day=bought.at.date(),
                total=total,
                currency="USD",
                status=status,
                lines=lines_of(bought.items, lambda product: _code("product", product.sku)),
            )
        )
    return Shop(
        name="square",
        zone="America/Chicago",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="customer_id",
            customer_is="erpCode",
            instant="created_at",
            written="offset",
            total="{total_money.amount}",
            total_is="gross",
            status=(
                By("state", {"OPEN": "open", "DRAFT": "open", "CANCELED": "cancelled"}),
                By("state", {"COMPLETED": "sale"}),
            ),
            lines=LineAnswers(
                at="line_items",
                product="catalog_object_id",
                name="name",
                quantity="quantity",
                revenue="{gross_sales_money.amount} - {total_discount_money.amount}",
            ),
            currency="total_money.currency",
            unit=Decimal("0.01"),
        ),
        notes=("refunded if the refunds are the total, which no state says",),
    )
