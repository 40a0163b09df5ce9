"""Names under which ordering platforms keep the fields of an order and of its lines, in six languages.

In: `names.toml`. Out: for each field the names in the order in which they are preferred, and patterns of names
and words that are too many to list.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Final

_NAMES: Final = tomllib.loads(
    files("orderbridge.transforms.orders").joinpath("names.toml").read_text("utf-8")
)
_OF_MONEY: Final = ("__amount", "__value", "__cent_amount")
"""How an amount is called in an object with its currency, such as `total_price: {centAmount, currencyCode}`."""
_OF_MONEY_NAMED: Final = (*_OF_MONEY, "_money__amount")
_OF_SHARE: Final = ("_percent", "_percentage", "_pct", "_prozent", "_porcentaje", "_pourcentage")


def _with_endings(names: dict[str, list[str]], endings: tuple[str, ...], *fields: str) -> None:
    """Adds to the names of fields the same ones with an ending, after all others."""
    for field in fields:
        more = [f"{name}{ending}" for name in names[field] for ending in endings]
        names[field] += [name for name in more if name not in names[field]]


_with_endings(
    _NAMES["order"],
    _OF_MONEY_NAMED,
    *("total", "tax", "shipping", "refunded", "refund_amount", "payment_amount"),
)
_with_endings(_NAMES["line"], _OF_MONEY_NAMED, "unit_price", "discount")
_with_endings(_NAMES["line"], _OF_MONEY, "line_total")
_with_endings(_NAMES["line"], _OF_SHARE, "discount")
ORDER_NAMES: Final[dict[str, list[str]]] = _NAMES["order"]
"""The columns of an order by what they hold; `lines` are the arrays that hold its lines."""
SECOND_STATUSES: Final[list[str]] = _NAMES["order"].pop("second_status")
"""Columns that are the status of an order where it has no other: of its payment, or the kind of its document."""
ORDER_NAMES["order_status"] += SECOND_STATUSES
REFUND_PARTS: Final = (
    *ORDER_NAMES["payments"],
    *ORDER_NAMES.pop("refund_lines"),
    *ORDER_NAMES["lines"],
)
"""The arrays of a refund that have its amount where it has none of its own: payments, then lines."""
LINE_NAMES: Final[dict[str, list[str]]] = _NAMES["line"]
"""The columns of an order line."""
LINE_KIND_NAMES: Final[dict[str, list[str]]] = _NAMES["line_kinds"]
"""The columns that say of what kind a line is, and the words of one that is no product."""
DISCOUNT_ARRAYS: Final[list[str]] = _NAMES["line_discounts"]["arrays"]
DISCOUNT_AMOUNTS: Final[list[str]] = _NAMES["line_discounts"]["amounts"]
"""The arrays of a line that hold discounts, and the columns of their amounts."""
CUSTOMER_NAME: Final = re.compile(
    r"(order_{1,2})?(id_|codigo_|cod_)?(customer|client|cliente|buyer|comprador|shopper|partner|kunde|kunden|kd|acheteur|acquirente)"
    r"(_data|_info|_details)?(_+(id|code|key|number|no|nr|nummer|ref|reference|codigo|codice|numero|erp_code|external_id"
    r"|customer_id|customer_number))?|client_profile_data__user_profile_id|kundennummer|kundennr|kdnr"
)
"""The customer who orders, by an id or a code."""
RIVAL_NAME: Final = re.compile(
    r"(account|cuenta|member|socio|user|usuario|company|empresa)_+(id|code|codigo)"
)
"""Columns that are not taken for the customer, but put another one in doubt that refers to other customers."""
CODE_NAME: Final = re.compile(
    r"(^|_)(codigo|cod|code|codice|number|no|nr|nummer|numero|kundennummer|kundennr|kdnr|ref|reference|external_id)(_|$)"
)
"""Names of these that mean a code that somebody else assigned, not an id of the platform."""
ID_NAME: Final = re.compile(r"(^|_)id(_|$)")
"""Names of these that mean an id of the platform, unless they are of `CODE_NAME`."""
RELATED_NAMES: Final = {
    "customer_id": re.compile(
        r"customer|client|buyer|comprador|shopper|partner|user|usuario|account|member|contact|kunde"
    ),
    "ordered_at": re.compile(
        r"(^|_)(at|on|date|fecha|data|datum|time|timestamp|datetime|hora)(_|$)|created|placed|ordered"
    ),
    "order_status": re.compile(
        r"(^|_)(status|state|estado|situacion)(_|$)|cancel|anulad|annul|storn|void"
    ),
    "total": re.compile(
        r"total|amount|importe|importo|monto|montant|betrag|summe|value|valor|price|precio|prix|preis|paid"
    ),
}
"""Names to mention as candidates where none is chosen."""
