"""Names under which ordering platforms keep the fields of an order, in English and Spanish.

In: `order_names.toml`. Out: for each field the names in the order in which they are preferred, and patterns of names
and words that are too many to list.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Final

_NAMES: Final = tomllib.loads(
    files("orderbridge.transforms").joinpath("order_names.toml").read_text("utf-8")
)
ORDER_NAMES: Final[dict[str, list[str]]] = _NAMES["order"]
"""The columns of an order by what they hold; `lines` are the arrays that hold its lines."""
LINE_NAMES: Final[dict[str, list[str]]] = _NAMES["line"]
"""The columns of an order line."""
CUSTOMER_NAME: Final = re.compile(
    r"(order__)?(id_|codigo_|cod_)?(customer|client|cliente|buyer|comprador|shopper|partner)"
    r"(_data|_info|_details)?(_+(id|code|key|number|no|ref|reference|codigo|numero|erp_code|external_id|customer_id))?"
    r"|client_profile_data__user_profile_id"
)
"""The customer who orders, by an id or a code."""
RIVAL_NAME: Final = re.compile(
    r"(account|cuenta|member|socio|user|usuario|company|empresa)_+(id|code|codigo)"
)
"""Columns that are not taken for the customer, but put another one in doubt that refers to other customers."""
CODE_NAME: Final = re.compile(
    r"(^|_)(codigo|cod|code|number|no|numero|ref|reference|external_id)(_|$)"
)
"""Names of these that mean a code that somebody else assigned, not an id of the platform."""
ID_NAME: Final = re.compile(r"(^|_)id(_|$)")
"""Names of these that mean an id of the platform, unless they are of `CODE_NAME`."""
RELATED_NAMES: Final = {
    "customer_id": re.compile(
        r"customer|client|buyer|comprador|shopper|partner|user|usuario|account|member|contact"
    ),
    "ordered_at": re.compile(
        r"(^|_)(at|on|date|fecha|time|timestamp|datetime|hora)(_|$)|created|placed|ordered"
    ),
    "order_status": re.compile(
        r"(^|_)(status|state|estado|situacion)(_|$)|cancel|anulad|annul|storn|void"
    ),
    "total": re.compile(r"total|amount|importe|monto|value|valor|price|precio|paid"),
}
"""Names to mention as candidates where none is chosen."""
