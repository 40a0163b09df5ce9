"""Names under which ordering platforms keep the fields of an order, in English and Spanish.

In: nothing. Out: for each field the names in the order in which they are preferred, as columns of the raw orders: snake
case, `__` between an object and its field. They are those of WooCommerce, Shopify, Magento, BigCommerce, PrestaShop,
Odoo, VTEX, MercadoLibre, Olist, OpenCart, Amazon, Shopware, Medusa and others, as documented. A name that is not here
is never chosen without a setting: names such as `user_id`, `approved_by` or `updated_at` are of other people and times.
"""

from __future__ import annotations

import re
from typing import Final

CUSTOMER_NAME: Final = re.compile(
    r"(order__)?(id_|codigo_|cod_)?(customer|client|cliente|buyer|comprador|shopper|partner)"
    r"(_data|_info|_details)?(_+(id|code|key|number|no|ref|reference|codigo|numero|erp_code|external_id|customer_id))?"
    r"|client_profile_data__user_profile_id"
)
"""The customer who orders, by an id or a code."""

CODE_NAME: Final = re.compile(r"(^|_)(codigo|cod|code|number|no|numero|ref|reference|external_id)(_|$)")
"""Names of these that mean a code that somebody else assigned, not an id of the platform."""

ORDERED_AT_NAMES: Final = (
    "ordered_at", "order_date", "order_datetime", "order_date_time", "date_ordered", "date_order", "order_placed_at",
    "placed_at", "order_time", "order_timestamp", "order_purchase_timestamp", "purchase_timestamp", "purchase_date",
    "purchased_at", "date_purchased", "checkout_completed_at", "submitted_at", "fecha_pedido", "fecha_orden",
    "fecha_compra", "fecha_de_pedido", "fecha_de_compra", "fecha_venta", "order_created_at", "order_creation_date",
    "created_at_gmt", "created_at", "date_created_gmt", "date_created", "date_created_utc", "created_date",
    "creation_date", "date_creation", "create_date", "created_on", "created_time", "create_time", "created_timestamp",
    "create_timestamp", "creation_time", "created", "date_add", "date_added", "txn_date", "tran_date",
    "transaction_date", "document_date", "doc_date", "fecha_creacion", "fecha_de_creacion", "fecha_alta", "creado_en",
    "order_created", "date", "datetime", "timestamp", "fecha", "fecha_hora",
)  # fmt: skip
"""When the order was made."""

TOTAL_NAMES: Final = (
    "total", "order_total", "grand_total", "total_amount", "order_amount", "amount_total", "total_price",
    "current_total_price", "total_inc_tax", "total_incl_tax", "total_with_tax", "total_paid_tax_incl", "total_paid",
    "order_total__amount", "total_amount__amount", "total__amount", "total__gross__amount", "total_gross",
    "gross_total", "final_total", "total_value", "total_order", "price_total", "amount_net_of_tax_and_shipping",
    "total_pedido", "importe_total", "monto_total", "total_general", "valor_total", "total_con_iva", "amount",
    "importe", "monto",
)  # fmt: skip
"""What the order amounts to, in the unit of its currency. Names of amounts in cents are left out (`value` of VTEX)."""

STATUS_NAMES: Final = (
    "order_status", "status", "state", "order_state", "current_state", "status_name", "status__name", "status__code",
    "state__name", "state_machine_state__technical_name", "state_machine_state__name", "status_code", "status_id",
    "order_status_id", "estado", "estado_pedido", "estado_orden", "situacion", "estado__nombre",
)  # fmt: skip
"""How far the order is, in the platform's own words."""

CANCELLED_WORDS: Final = r"cancel|anulad|void"
"""Words of statuses of orders that do not count. What a status means is not shown: this is the policy."""

CURRENCY_NAMES: Final = (
    "currency", "currency_code", "order_currency", "order_currency_code", "currency_id", "currency__code",
    "currency__iso_code", "currency_iso_code", "presentment_currency", "total__currency", "total__currency_code",
    "total__gross__currency", "order_total__currency_code", "total_amount__currency",
    "store_preferences_data__currency_code", "base_currency_code", "moneda", "divisa", "codigo_moneda", "moneda_codigo",
    "moneda__codigo",
)  # fmt: skip
"""Codes of three letters (ISO 4217)."""

RELATED_NAMES: Final = {
    "customer_id": re.compile(r"customer|client|buyer|comprador|shopper|partner|user|usuario|account|member|contact"),
    "ordered_at": re.compile(r"(^|_)(at|on|date|fecha|time|timestamp|datetime|hora)(_|$)|created|placed|ordered"),
    "total": re.compile(r"total|amount|importe|monto|value|valor|price|precio|paid"),
}
"""Names to mention as candidates where none is chosen."""

LINES_NAMES: Final = (
    "line_items", "order_lines", "lines", "order_items", "items", "order_rows", "order_products", "products",
    "order_line", "order_details", "details", "lineas", "detalle", "detalles", "articulos", "productos", "renglones",
)  # fmt: skip
"""The arrays of an order that hold its lines."""

PRODUCT_NAMES: Final = (
    "variant_id", "variation_id", "product_variant_id", "sku", "product_id", "product_code", "item_id", "item__id",
    "product__id", "variant__id", "code", "codigo", "codigo_producto", "producto_id", "articulo", "id_producto",
)  # fmt: skip
QUANTITY_NAMES: Final = (
    "quantity", "qty", "qty_ordered", "product_quantity", "product_uom_qty", "units", "cantidad", "unidades",
)  # fmt: skip
UNIT_PRICE_NAMES: Final = (
    "unit_price", "price", "price_unit", "product_price", "base_price", "selling_price", "price_inc_tax",
    "price_amount", "precio_unitario", "precio",
)  # fmt: skip
LINE_TOTAL_NAMES: Final = (
    "line_total", "total", "subtotal", "amount", "total_price", "row_total", "total_inc_tax", "price_total",
    "line_amount", "importe", "total_linea",
)  # fmt: skip
"""Fields of a line, the most specific name of a product first."""
