"""Odoo (sale.order as JSON-RPC reads it): references are [id, name], what is empty is false, times are bare UTC.

Drafts and sent quotations lie among the orders; `user_id` is the seller, `partner_invoice_id` another contact.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from decimal import Decimal

from .world import (
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
        "Escritorio personalizable": "750.00",
        "Silla de oficina": "120.50",
        "Lámpara LED": "40.00",
        "Archivador con cerradura": "345.90",
        "Tacho de pedal": "47.00",
        "Pizarra acrílica": "62.30",
    },
    "FURN_{:04d}",
    first=21,
)
_STATES: dict[str, int] = {"draft": 8, "sent": 8, "sale": 60, "done": 14, "cancel": 10}
_CLASSES: dict[str, Status] = {
    "draft": "open",
    "sent": "open",
    "sale": "sale",
    "done": "sale",
    "cancel": "cancelled",
}


def shop() -> Shop:
    """A furniture dealer in Lima."""
    customers = people(907, 50, first=7, code="C{:04d}".format)
    rows: list[Row] = []
    truth = []
    for bought in purchases(
        7, 120, "America/Lima", _PRODUCTS, _STATES, customers=50, strangers=0.02, shipping=("0",)
    ):
        buyer = bought.buyer or 0
        partner = [buyer + 7, f"Empresa {buyer} S.A.C."]
        at = bought.at.astimezone(UTC)
        untaxed = bought.goods
        tax = cents(untaxed * Decimal("0.18"))
        rows.append(
            {
                "id": bought.n + 31,
                "name": f"S{bought.n + 31:05d}",
                "state": bought.state,
                "date_order": f"{at:%Y-%m-%d %H:%M:%S}",
                "create_date": f"{at - timedelta(days=2):%Y-%m-%d %H:%M:%S}",
                "write_date": f"{at + timedelta(days=3):%Y-%m-%d %H:%M:%S}",
                "validity_date": f"{(at + timedelta(days=30)).date()}",
                "commitment_date": False,
                "client_order_ref": f"OC-{bought.n * 3}" if bought.n % 4 == 0 else False,
                "partner_id": partner,
                "partner_invoice_id": [buyer + 207, f"{partner[1]}, Contabilidad"],
                "partner_shipping_id": [buyer + 7, partner[1]],
                "user_id": [
                    bought.n % 4 + 7,
                    ("Ana Ríos", "Luis Paz", "Eva Sol", "Juan Gil")[bought.n % 4],
                ],
                "team_id": [1, "Ventas"],
                "company_id": [1, "Muebles del Sur S.A.C."],
                "currency_id": [154, "PEN"],
                "pricelist_id": [1, "Tarifa pública (PEN)"],
                "amount_untaxed": float(untaxed),
                "amount_tax": float(tax),
                "amount_total": float(untaxed + tax),
                "invoice_status": {"sale": "to invoice", "done": "invoiced"}.get(
                    bought.state, "no"
                ),
                "note": False,
                "order_line": [
                    _line(item, bought.n * 10 + k, bought.state)
                    for k, item in enumerate(bought.items)
                ],
            }
        )
        truth.append(
            Order(
                key=str(bought.n + 31),
                customer=str(buyer + 7),
                customer_id=listed(customers, buyer),
                day=bought.at.date(),
                total=untaxed + tax,
                currency="PEN",
                status=_CLASSES[bought.state],
                lines=lines_of(bought.items, lambda product: str(product.id)),
            )
        )
    return Shop(
        name="odoo",
        zone="America/Lima",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="id",
            customer="partner_id.0",
            customer_is="id",
            instant="date_order",
            written="utc",
            total="{amount_total}",
            total_is="gross",
            currency="currency_id.1",
            status=(By("state", _CLASSES),),
            lines=LineAnswers(
                at="order_line",
                product="product_id.0",
                name="name",
                quantity="product_uom_qty",
                revenue="{price_subtotal}",
            ),
        ),
        notes=(
            "Lines are net (price_subtotal), the total is gross; price_total of a line is gross.",
        ),
    )


def _line(item: Item, serial: int, state: str) -> Row:
    tax = cents(item.revenue * Decimal("0.18"))
    return {
        "id": 400 + serial,
        "sequence": 10,
        "product_id": [item.product.id, f"[{item.product.sku}] {item.product.name}"],
        "name": item.product.name,
        "product_uom_qty": float(item.quantity),
        "qty_delivered": float(item.quantity) if state == "done" else 0.0,
        "qty_invoiced": float(item.quantity) if state == "done" else 0.0,
        "product_uom": [1, "Unidades"],
        "price_unit": float(item.product.price),
        "discount": float(item.percent),
        "price_subtotal": float(item.revenue),
        "price_tax": float(tax),
        "price_total": float(item.revenue + tax),
        "display_type": False,
    }
