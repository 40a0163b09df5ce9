"""PrestaShop (orders of its web service): all values are text, amounts have six decimals, times are local.

`current_state` is the number of a state; unknown dates are 0000-00-00; `total_paid_real` is 0 until money came in.
"""

from __future__ import annotations

from datetime import timedelta
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
    text,
)

_PRODUCTS = catalogue(
    {
        "Hummingbird printed t-shirt - Size : S- Color : White": "23.90",
        "Hummingbird printed sweater": "35.90",
        "The best is yet to come' Framed poster": "29.00",
        "Mug The adventure begins": "11.90",
        "Mountain fox - Vector graphics": "9.00",
        "Customizable mug": "13.90",
    },
    "demo_{}",
)
_STATES: dict[str, int] = {
    "1": 3,
    "2": 10,
    "3": 6,
    "4": 14,
    "5": 44,
    "6": 7,
    "7": 4,
    "8": 3,
    "9": 2,
    "10": 4,
    "11": 3,
}
_CLASSES: dict[str, Status] = {
    "1": "open",
    "2": "sale",
    "3": "sale",
    "4": "sale",
    "5": "sale",
    "6": "cancelled",
    "7": "refunded",
    "8": "cancelled",
    "9": "sale",
    "10": "open",
    "11": "sale",
}
_VAT = Decimal("1.21")
_UNKNOWN = "0000-00-00 00:00:00"


def shop() -> Shop:
    """A gift shop in Madrid; 1 and 10 wait for money, 8 is a failed payment, 9 is paid and on backorder."""
    customers = people(909, 50, first=2, code="PS{:04d}".format)
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        9, 120, "Europe/Madrid", _PRODUCTS, _STATES, customers=50, hours=[0, *range(8, 24)]
    ):
        off = Decimal("5.00") if bought.n % 9 == 0 and bought.goods > 20 else ZERO
        total = bought.goods + bought.shipping - off
        rows.append(_row(bought, off, total))
        truth.append(
            Order(
                key=str(bought.n + 1),
                customer=str((bought.buyer or 0) + 2),
                customer_id=listed(customers, bought.buyer),
                day=bought.at.date(),
                total=total,
                currency="EUR",
                status=_CLASSES[bought.state],
                lines=lines_of(bought.items),
            )
        )
    return Shop(
        name="prestashop",
        zone="Europe/Madrid",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="id_customer",
            customer_is="id",
            instant="date_add",
            written="local",
            total="{total_paid_tax_incl}",
            total_is="gross",
            status=(By("current_state", _CLASSES),),
            lines=LineAnswers(
                at="associations.order_rows",
                product="product_reference",
                name="product_name",
                quantity="product_quantity",
                revenue="{unit_price_tax_incl} * {product_quantity}",
            ),
        ),
        notes=(
            "total_paid has the same value as total_paid_tax_incl.",
            "Vouchers (total_discounts) are off the order, not off its lines.",
            "product_price is the net price before a line's discount.",
        ),
    )


def _row(bought: Purchase, off: Decimal, total: Decimal) -> Row:
    at, state = bought.at, _CLASSES[bought.state]
    paid = state in ("sale", "refunded")

    def both(name: str, amount: Decimal) -> Row:
        return {
            name: text(amount, 6),
            f"{name}_tax_incl": text(amount, 6),
            f"{name}_tax_excl": text(cents(amount / _VAT), 6),
        }

    return {
        "id": bought.n + 1,
        "id_address_delivery": str((bought.buyer or 0) + 5),
        "id_address_invoice": str((bought.buyer or 0) + 5),
        "id_cart": str(bought.n + 6),
        "id_currency": "1",
        "id_lang": "1",
        "id_customer": str((bought.buyer or 0) + 2),
        "id_carrier": "2",
        "current_state": bought.state,
        "module": "ps_wirepayment",
        "invoice_number": str(bought.n + 1) if paid else "0",
        "invoice_date": f"{at + timedelta(minutes=3):%Y-%m-%d %H:%M:%S}" if paid else _UNKNOWN,
        "delivery_number": "0",
        "delivery_date": _UNKNOWN,
        "valid": str(int(paid)),
        "date_add": f"{at:%Y-%m-%d %H:%M:%S}",
        "date_upd": f"{at + timedelta(days=2):%Y-%m-%d %H:%M:%S}",
        "id_shop_group": "1",
        "id_shop": "1",
        "secure_key": hexadecimal("key", bought.buyer, digits=32),
        "payment": "Transferencia bancaria",
        "recyclable": "0",
        "gift": "0",
        "gift_message": "",
        **both("total_discounts", off),
        **both("total_paid", total),
        "total_paid_real": text(total if paid else ZERO, 6),
        "total_products": text(cents(bought.goods / _VAT), 6),
        "total_products_wt": text(bought.goods, 6),
        **both("total_shipping", bought.shipping),
        "carrier_tax_rate": "21.000",
        **both("total_wrapping", ZERO),
        "conversion_rate": "1.000000",
        "reference": "".join(chr(65 + (bought.n * k + 3 * k) % 26) for k in range(3, 12)),
        "associations": {
            "order_rows": [
                {
                    "id": str(bought.n * 5 + k),
                    "product_id": str(item.product.id),
                    "product_attribute_id": "0",
                    "product_quantity": str(item.quantity),
                    "product_name": item.product.name,
                    "product_reference": item.product.sku,
                    "product_ean13": "",
                    "product_price": text(item.product.price / _VAT, 6),
                    "unit_price_tax_incl": text(item.revenue / item.quantity, 6),
                    "unit_price_tax_excl": text(item.revenue / item.quantity / _VAT, 6),
                }
                for k, item in enumerate(bought.items)
            ]
        },
    }
