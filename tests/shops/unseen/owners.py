"""What the owner of each of these shops answers: settings below `reconcile.`, by the names of the raw columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OWNERS: Final[Mapping[str, Mapping[str, str]]] = {
    "opencart": {
        "order_customer_id": "customer_id",
        "order_customer_notation": "ids",
        "order_ordered_at": "date_added",
        "order_clock": "local",
        "order_total": "total",
        "order_currency": "none",
        "order_status": "order_status_id",
        "order_statuses": (
            "0=open,1=open,2=sale,3=sale,5=sale,7=cancelled,8=cancelled,10=cancelled,"
            "11=refunded,13=refunded,14=cancelled,16=cancelled"
        ),
        "order_lines": "orders__products",
        "order_line_product": "model",
        "order_line_product_name": "name",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "price",
        "order_line_total": "total",
    },
    "nopcommerce": {
        "order_customer_id": "customer_id",
        "order_customer_notation": "ids",
        "order_ordered_at": "created_on_utc",
        "order_clock": "utc",
        "order_total": "order_total",
        "order_currency": "customer_currency_code",
        "order_status": "order_status_id",
        "order_statuses": (
            "10=open,20=sale,30=sale,40=cancelled,payment_status_id: 20=open,"
            "payment_status_id: 40=refunded"
        ),
        "order_lines": "orders__order_items",
        "order_line_product": "product__sku",
        "order_line_product_name": "product__name",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "unit_price_incl_tax",
        "order_line_total": "price_incl_tax",
    },
    "square": {
        "order_customer_id": "customer_id",
        "order_customer_notation": "codes",
        "order_ordered_at": "created_at",
        "order_total": "total_money__amount",
        "order_total_unit": "cents",
        "order_currency": "total_money__currency",
        "order_status": "state",
        "order_statuses": "COMPLETED=sale,OPEN=open,DRAFT=open,CANCELED=cancelled",
        "order_lines": "orders__line_items",
        "order_line_product": "catalog_object_id",
        "order_line_product_name": "name",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "base_price_money__amount",
        "order_line_discount": "total_discount_money__amount",
        "order_line_discount_unit": "amount",
    },
    "squarespace": {
        "order_customer_id": "customer_email",
        "order_ordered_at": "created_on",
        "order_total": "grand_total__value",
        "order_currency": "grand_total__currency",
        "order_status": "fulfillment_status",
        "order_statuses": "FULFILLED=sale,PENDING=sale,CANCELED=cancelled,testmode: true=test",
        "order_lines": "orders__line_items",
        "order_line_product": "sku",
        "order_line_product_name": "product_name",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "unit_price_paid__value",
    },
    "mercadolibre": {
        "order_customer_id": "buyer__id",
        "order_customer_notation": "codes",
        "order_ordered_at": "date_created",
        "order_total": "total_amount",
        "order_currency": "currency_id",
        "order_status": "status",
        "order_statuses": (
            "paid=sale,partially_refunded=sale,payment_required=open,payment_in_process=open,"
            "cancelled=cancelled"
        ),
        "order_lines": "orders__order_items",
        "order_line_product": "item__seller_sku",
        "order_line_product_name": "item__title",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "unit_price",
    },
    "sapb1": {
        "order_customer_id": "card_code",
        "order_customer_notation": "codes",
        "order_ordered_at": "doc_date",
        "order_clock": "local",
        "order_total": "doc_total",
        "order_currency": "doc_currency",
        "order_status": "document_status",
        "order_statuses": "bost_Open=open,bost_Close=sale,cancelled: tYES=cancelled",
        "order_lines": "orders__document_lines",
        "order_line_product": "item_code",
        "order_line_product_name": "item_description",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "price",
        "order_line_total": "line_total",
    },
    "commercetools": {
        "order_customer_id": "customer_id",
        "order_customer_notation": "codes",
        "order_ordered_at": "created_at",
        "order_total": "total_price__cent_amount",
        "order_total_unit": "cents",
        "order_currency": "total_price__currency_code",
        "order_status": "order_state",
        "order_statuses": (
            "Open=sale,Complete=sale,Cancelled=cancelled,payment_state: Pending=open,"
            "payment_state: BalanceDue=open,payment_state: Failed=cancelled,"
            "payment_state: CreditOwed=refunded"
        ),
        "order_lines": "orders__line_items",
        "order_line_product": "variant__sku",
        "order_line_product_name": "name__de",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "price__value__cent_amount",
        "order_line_total": "total_price__cent_amount",
    },
    "baeckerei": {
        "order_customer_id": "kd_nr",
        "order_customer_notation": "codes",
        "order_ordered_at": "datum",
        "order_total": "summe",
        "date_order": "day_first",
        "order_status": "status",
        "order_statuses": (
            "bestellt=open,geliefert=sale,bezahlt=sale,storno: -1=cancelled,belegart: G=refunded"
        ),
        "order_lines": "orders__positionen",
        "order_line_product": "art_nr",
        "order_line_product_name": "bezeichnung",
        "order_line_quantity": "menge",
        "order_line_unit_price": "e_preis",
        "order_line_total": "g_preis",
    },
}
