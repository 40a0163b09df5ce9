"""dlt source of family B: price lists, and orders with their child tables.

    dlt.pipeline("erp", destination="duckdb").run(public_v1())

Settings come from dlt's own resolution (`sources.public_v1.*`, design §4) or as arguments. Fields of an order are not
shown: they are typed from the whole walk.
"""

from __future__ import annotations

from collections.abc import Iterator

import dlt
from dlt.extract import DltResource

from sources.contract import LIST_ORDERS, LIST_PRICE_LISTS, PUBLIC_V1_LIMIT_MAX
from sources.extract.result import WalkOptions
from sources.http.client import Client
from sources.resources import Walks, of_walks

__all__ = ["public_v1"]


@dlt.source(name="public_v1", section="public_v1")
def public_v1(
    base_url: str = dlt.config.value,
    api_key: dlt.TSecretStrValue = dlt.secrets.value,
    page_limit: int = PUBLIC_V1_LIMIT_MAX,
) -> Iterator[DltResource]:
    """Resources `price_lists` and `orders` (interface, Family B).

    Args:
        base_url: without `/public/v1`.
        api_key: sent as a Bearer key.
        page_limit: items asked for per page, 1 to 100.

    Raises:
        BridgeError: when rows are asked for: settings, access, an unreachable platform, a broken contract.
    """
    walks = Walks(lambda: Client.with_http_settings("public_v1", base_url, api_key), WalkOptions(page_limit))
    for operation in (LIST_PRICE_LISTS, LIST_ORDERS):
        yield from of_walks(operation, walks)
