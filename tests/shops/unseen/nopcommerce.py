"""nopCommerce: the entity of an order with two states in numbers, that of the order and that of its payment.

Times are in UTC without saying so. Each amount is there with and without tax; the price of a line is after its
discount. A guest has a customer of his own, which is not listed. A cancelled order may have been paid back.
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
    lines_of,
    listed,
    people,
    purchases,
    uuid,
)

_PRODUCTS = catalogue(
    {
        "Adidas Consortium Campus 80s": "27.56",
        "Levi's 511 Jeans": "43.50",
        "Oversized Women T-Shirt": "24.00",
        "Elegant Gemstone Necklace": "369.00",
        "Ray Ban Aviator": "25.00",
        "Nike SB Zoom Stefan Janoski": "30.00",
    },
    "NC_{:03d}",
    first=24,
)
_STATES: dict[str, tuple[int, int, Status, int]] = {
    "pending": (10, 10, "open", 8),
    "authorized": (20, 20, "open", 4),
    "processing": (20, 30, "sale", 14),
    "complete": (30, 30, "sale", 44),
    "partly refunded": (30, 35, "sale", 4),
    "refunded": (40, 40, "refunded", 6),
    "cancelled": (40, 10, "cancelled", 8),
    "voided": (40, 50, "cancelled", 3),
}
"""State of the order, state of its payment, what both mean, how often."""
_TAX = Decimal("1.22")


def _without(amount: Decimal) -> float:
    return float((amount / _TAX).quantize(Decimal("0.0001")))


def _line(n: int, item: Item) -> Row:
    unit = item.revenue / item.quantity
    return {
        "Id": n,
        "OrderItemGuid": uuid("nop", n),
        "ProductId": item.product.id,
        "Quantity": int(item.quantity),
        "UnitPriceInclTax": float(unit.quantize(Decimal("0.0001"))),
        "UnitPriceExclTax": _without(unit),
        "PriceInclTax": float(item.revenue),
        "PriceExclTax": _without(item.revenue),
        "DiscountAmountInclTax": float(item.discount),
        "DiscountAmountExclTax": _without(item.discount),
        "OriginalProductCost": _without(item.product.price / 2),
        "AttributeDescription": "",
        "ItemWeight": 0.5,
        "Product": {
            "Id": item.product.id,
            "Name": item.product.name,
            "Sku": item.product.sku,
            "Price": float(item.product.price),
        },
    }


def shop() -> Shop:
    """A shop in Italy with prices that contain the tax."""
    customers = people(3201, 50, first=7, code="{:04d}".format)
    rows: list[Row] = []
    truth = []
    weights = {state: of[3] for state, of in _STATES.items()}
    for bought in purchases(
        32, 130, "Europe/Rome", _PRODUCTS, weights, customers=50, strangers=0.2
    ):
        order_state, payment_state, status, _ = _STATES[bought.state]
        total = bought.goods + bought.shipping
        back = {"refunded": total, "partly refunded": cents(total / 5)}.get(bought.state, ZERO)
        customer_id = listed(customers, bought.buyer)
        account = customer_id or 9000 + bought.n
        moment = f"{bought.at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
        is_paid = payment_state in (30, 35, 40)
        rows.append(
            {
                "Id": 501 + bought.n,
                "OrderGuid": uuid("nop order", bought.n),
                "CustomOrderNumber": str(501 + bought.n),
                "StoreId": 1,
                "CustomerId": account,
                "BillingAddressId": 300 + bought.n,
                "ShippingAddressId": 300 + bought.n,
                "PickupInStore": False,
                "OrderStatusId": order_state,
                "ShippingStatusId": 40 if order_state == 30 else 20,
                "PaymentStatusId": payment_state,
                "PaymentMethodSystemName": "Payments.CheckMoneyOrder",
                "CustomerCurrencyCode": "EUR",
                "CurrencyRate": 1.0,
                "CustomerTaxDisplayTypeId": 0,
                "OrderSubtotalInclTax": float(bought.goods),
                "OrderSubtotalExclTax": _without(bought.goods),
                "OrderSubTotalDiscountInclTax": 0.0,
                "OrderShippingInclTax": float(bought.shipping),
                "OrderShippingExclTax": _without(bought.shipping),
                "OrderTax": float(cents(total - total / _TAX)),
                "OrderDiscount": 0.0,
                "OrderTotal": float(total),
                "RefundedAmount": float(back),
                "RewardPointsHistoryEntryId": None,
                "CustomerLanguageId": 1,
                "AffiliateId": 0,
                "CustomerIp": "203.0.113.9",
                "PaidDateUtc": moment if is_paid else None,
                "Deleted": False,
                "CreatedOnUtc": moment,
                "OrderItems": [
                    _line(bought.n * 4 + k, item) for k, item in enumerate(bought.items, 1)
                ],
            }
        )
        truth.append(
            Order(
                key=str(501 + bought.n),
                customer=str(account),
                customer_id=customer_id,
                day=bought.at.date(),
                total=total,
                currency="EUR",
                status=status,
                lines=lines_of(bought.items),
            )
        )
    return Shop(
        name="nopcommerce",
        zone="Europe/Rome",
        orders=rows,
        customers=customers,
        truth=tuple(truth),
        answers=Answers(
            key="Id",
            customer="CustomerId",
            customer_is="id",
            instant="CreatedOnUtc",
            written="utc",
            total="{OrderTotal}",
            total_is="gross",
            status=(
                By("PaymentStatusId", {"40": "refunded"}),
                By("OrderStatusId", {"40": "cancelled"}),
                By("PaymentStatusId", {"10": "open", "20": "open", "30": "sale", "35": "sale"}),
            ),
            lines=LineAnswers(
                at="OrderItems",
                product="Product.Sku",
                name="Product.Name",
                quantity="Quantity",
                revenue="{PriceInclTax}",
            ),
            currency="CustomerCurrencyCode",
        ),
    )
