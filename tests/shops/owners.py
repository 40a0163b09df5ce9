"""What the owner of each shop answers: settings below `reconcile.`, by the names of the raw columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OWNERS: Final[Mapping[str, Mapping[str, str]]] = {
    "bikestores": {
        "order_customer_id": "customer_id",
        "order_customer_notation": "ids",
        "order_ordered_at": "order_date",
        "order_total": "sum_of_lines",
        "order_status": "order_status",
        "order_statuses": "1=open,2=open,3=cancelled,4=sale",
        "order_lines": "orders__order_items",
        "order_line_product": "product_id",
        "order_line_product_name": "product__product_name",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "list_price",
        "order_line_discount": "discount",
        "order_line_discount_unit": "fraction",
    },
    "chinook": {
        "order_customer_id": "customer_id",
        "order_ordered_at": "invoice_date",
        "order_total": "total",
        "order_lines": "orders__invoice_lines",
        "order_line_product": "track_id",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "unit_price",
    },
    "danea": {
        "order_customer_id": "customer_code",
        "order_customer_notation": "codes",
        "order_ordered_at": "date",
        "order_total": "total",
        "order_status": "document_type",
        "order_statuses": "C=open,I=sale,Q=open,N=refunded,P=open",
        "order_lines": "orders__rows__row",
        "order_line_product": "code",
        "order_line_quantity": "qty",
        "order_line_total": "total",
    },
    "erp_flat": {
        "order_customer_id": "codcli",
        "order_customer_notation": "codes",
        "order_ordered_at": "fecped",
        "order_total": "totped",
        "order_status": "estado",
        "order_statuses": "P=open,S=sale,F=sale,A=cancelled,D=refunded",
        "date_order": "day_first",
    },
    "holded": {
        "order_customer_id": "contact",
        "order_customer_notation": "codes",
        "order_ordered_at": "date",
        "order_total": "total",
        "order_status": "status",
        "order_statuses": "0=open,1=sale,2=open,-1=cancelled",
        "order_lines": "orders__products",
        "order_line_product": "sku",
        "order_line_quantity": "units",
        "order_line_unit_price": "price",
        "order_line_discount": "discount",
        "order_line_discount_unit": "percent",
    },
    "magento": {
        "order_customer_id": "customer_id",
        "order_ordered_at": "created_at",
        "order_clock": "utc",
        "order_total": "grand_total",
        "order_status": "status",
        "order_statuses": (
            "complete=sale,processing=sale,pending=open,pending_payment=open,holded=open,"
            "fraud=open,payment_review=open,closed=refunded,canceled=cancelled"
        ),
        "order_lines": "orders__items",
        "order_line_kinds": "parent_item_id: *=part",
        "order_line_product": "sku",
        "order_line_quantity": "qty_ordered",
        "order_line_total": "row_total",
        "order_line_discount": "discount_amount",
        "order_line_discount_unit": "amount",
    },
    "odoo": {
        "order_customer_id": "partner_id",
        "order_customer_notation": "ids",
        "order_ordered_at": "date_order",
        "order_clock": "utc",
        "order_total": "amount_total",
        "order_status": "state",
        "order_statuses": "draft=open,sent=open,sale=sale,done=sale,cancel=cancelled",
        "order_lines": "orders__order_line",
        "order_line_product": "product_id",
        "order_line_quantity": "product_uom_qty",
        "order_line_total": "price_subtotal",
    },
    "olist": {
        "order_total": "sum_of_payments",
        "order_clock": "local",
        "order_customer_id": "customer__customer_unique_id",
        "order_customer_notation": "codes",
        "order_ordered_at": "order_purchase_timestamp",
        "order_status": "order_status",
        "order_statuses": (
            "delivered=sale,shipped=sale,invoiced=sale,processing=sale,approved=sale,"
            "created=open,unavailable=cancelled,canceled=cancelled"
        ),
        "order_lines": "orders__order_items",
        "order_line_product": "product_id",
        "order_line_quantity": "one",
        "order_line_unit_price": "price",
    },
    "prestashop": {
        "order_customer_id": "id_customer",
        "order_ordered_at": "date_add",
        "order_total": "total_paid_tax_incl",
        "order_status": "current_state",
        "order_statuses": (
            "1=open,2=sale,3=sale,4=sale,5=sale,6=cancelled,7=refunded,8=cancelled,"
            "9=sale,10=open,11=sale"
        ),
        "order_lines": "orders__associations__order_rows",
        "order_line_product": "product_reference",
        "order_line_quantity": "product_quantity",
        "order_line_unit_price": "unit_price_tax_incl",
    },
    "shopify": {
        "order_customer_id": "customer__id",
        "order_ordered_at": "created_at",
        "order_total": "total_price",
        "order_status": "financial_status",
        "order_statuses": (
            "paid=sale,partially_refunded=sale,pending=open,authorized=open,"
            "partially_paid=open,refunded=refunded,voided=cancelled"
        ),
        "order_lines": "orders__line_items",
        "order_line_product": "sku",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "price",
    },
    "shopware": {
        "order_customer_id": "order_customer__customer_number",
        "order_customer_notation": "codes",
        "order_ordered_at": "order_date_time",
        "order_total": "amount_total",
        "order_status": "state_machine_state__technical_name",
        "order_statuses": "completed=sale,in_progress=sale,open=open,cancelled=cancelled",
        "order_lines": "orders__line_items",
        "order_line_kinds": "type: product=product,type: promotion=no_product",
        "order_line_product": "payload__product_number",
        "order_line_quantity": "quantity",
        "order_line_total": "total_price",
    },
    "vtex": {
        "order_customer_id": "client_profile_data__user_profile_id",
        "order_customer_notation": "codes",
        "order_ordered_at": "creation_date",
        "order_total": "value",
        "order_total_unit": "cents",
        "order_status": "status",
        "order_statuses": (
            "invoiced=sale,handling=sale,ready-for-handling=sale,payment-approved=sale,"
            "payment-pending=open,canceled=cancelled,cancellation-requested=open"
        ),
        "order_lines": "orders__items",
        "order_line_product": "id",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "selling_price",
    },
    "woocommerce": {
        "order_customer_id": "customer_id",
        "order_ordered_at": "date_created_gmt",
        "order_total": "total",
        "order_status": "status",
        "order_statuses": (
            "completed=sale,processing=sale,on-hold=open,pending=open,cancelled=cancelled,"
            "refunded=refunded,failed=cancelled,checkout-draft=open"
        ),
        "order_lines": "orders__line_items",
        "order_line_product": "product_id",
        "order_line_product_name": "name",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "price",
        "order_line_total": "total",
    },
    "medusa": {
        "order_customer_id": "customer_id",
        "order_customer_notation": "codes",
        "order_ordered_at": "created_at",
        "order_total": "total",
        "order_total_unit": "cents",
        "order_status": "payment_status",
        "order_statuses": (
            "captured=sale,awaiting=open,refunded=refunded,canceled=cancelled,pending=sale,"
            "payment_status: awaiting=open,payment_status: refunded=refunded"
        ),
        "order_lines": "orders__items",
        "order_line_product": "variant_id",
        "order_line_product_name": "title",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "unit_price",
        "order_line_total": "total",
    },
    "saleor": {
        "order_customer_id": "user__id",
        "order_customer_notation": "codes",
        "order_ordered_at": "created",
        "order_total": "total__gross__amount",
        "order_currency": "total__gross__currency",
        "order_status": "status",
        "order_statuses": (
            "FULFILLED=sale,UNFULFILLED=sale,PARTIALLY_FULFILLED=sale,UNCONFIRMED=open,DRAFT=open,"
            "CANCELED=cancelled,RETURNED=refunded,EXPIRED=cancelled"
        ),
        "order_lines": "orders__lines",
        "order_line_product": "product_sku",
        "order_line_product_name": "product_name",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "unit_price__gross__amount",
        "order_line_total": "total_price__gross__amount",
    },
    "spree": {
        "order_customer_id": "user_id",
        "order_customer_notation": "ids",
        "order_ordered_at": "completed_at",
        "order_total": "total",
        "order_status": "state",
        "order_statuses": "complete=sale,cart=open,payment=open,canceled=cancelled,returned=refunded",
        "order_lines": "orders__line_items",
        "order_line_product": "variant_id",
        "order_line_product_name": "name",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "price",
        "order_line_total": "total",
    },
    "northwind": {
        "order_customer_id": "customer_id",
        "order_customer_notation": "codes",
        "order_ordered_at": "order_date",
        "order_total": "sum_of_lines",
        "order_status": "none",
        "order_lines": "orders__order_details",
        "order_line_product": "product_id",
        "order_line_product_name": "product__product_name",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "unit_price",
        "order_line_discount": "discount",
        "order_line_discount_unit": "fraction",
    },
    "classicmodels": {
        "order_customer_id": "customer_number",
        "order_customer_notation": "codes",
        "order_ordered_at": "order_date",
        "order_total": "sum_of_lines",
        "order_status": "status",
        "order_statuses": (
            "Shipped=sale,Resolved=sale,Cancelled=cancelled,On Hold=open,Disputed=open,In Process=sale"
        ),
        "order_lines": "orders__orderdetails",
        "order_line_product": "product_code",
        "order_line_product_name": "product__product_name",
        "order_line_quantity": "quantity_ordered",
        "order_line_unit_price": "price_each",
    },
    "bigcommerce": {
        "order_customer_id": "customer_id",
        "order_ordered_at": "date_created",
        "order_total": "total_inc_tax",
        "order_status": "status",
        "order_statuses": (
            "Completed=sale,Shipped=sale,Awaiting Fulfillment=sale,Awaiting Payment=open,"
            "Incomplete=open,Cancelled=cancelled,Declined=cancelled,Refunded=refunded"
        ),
        "order_lines": "orders__products",
        "order_line_product": "product_id",
        "order_line_product_name": "name",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "price_inc_tax",
        "order_line_total": "total_inc_tax",
    },
    "tiendanube": {
        "order_customer_id": "customer__id",
        "order_ordered_at": "created_at",
        "order_total": "total",
        "order_status": "payment_status",
        "order_statuses": (
            "paid=sale,pending=open,refunded=refunded,voided=cancelled,abandoned=open,open=sale,"
            "closed=sale,cancelled=cancelled,payment_status: pending=open,"
            "payment_status: refunded=refunded,payment_status: abandoned=open"
        ),
        "order_lines": "orders__products",
        "order_line_product": "sku",
        "order_line_product_name": "name",
        "order_line_quantity": "quantity",
        "order_line_unit_price": "price",
    },
}
