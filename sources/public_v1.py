"""dlt source of the public v1 family, such as orders with their child tables.

    dlt.pipeline("erp", destination="duckdb").run(public_v1())

Settings are resolved by dlt (`sources.public_v1.*`) or given as arguments. The fields of an order are not
shown: their types are those of most values of the first walk, and are kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import dlt
from dlt.extract import DltResource

from orderbridge.sources.contract import records_of
from orderbridge.sources.extract.result import WalkOptions
from orderbridge.sources.resources import ListSource, ListWalker, list_resources
from orderbridge.sources.settings import PublicV1Settings

__all__ = ["public_v1"]


@dlt.source(name="public_v1", section="public_v1", _impl_cls=ListSource, root_key=True)
def public_v1(
    base_url: str = dlt.config.value,
    api_key: dlt.TSecretStrValue = dlt.secrets.value,
    page_limit: int = PublicV1Settings.page_limit,
    order_key: str = PublicV1Settings.order_key,
    decimals: bool = False,
) -> Iterator[DltResource]:
    """The lists of the public v1 family (interface, Family B).

    docs/sources/public_v1.md has its resources with endpoints, keys and columns.

    The source can be run any number of times; each run walks the lists again. Resources yield Arrow tables, also to
    `add_map`, `add_filter` and `add_limit`. `with_resources("orders")` includes the child tables; if orders are merged,
    the child rows of the merged orders are replaced.

    Args:
        base_url: without `/public/v1`; http for loopback only.
        api_key: the Bearer key.
        page_limit: rows to request per page, 1 to 100.
        order_key: the field that identifies an order (not shown); the column is `id`.
        decimals: make columns of decimals also of order fields in which only whole numbers were seen so far, so that
            a first fraction changes no type.

    Raises:
        BridgeError: when rows are read: settings, access, an unreachable platform, a broken contract.
    """
    for record in records_of("public_v1"):
        options = WalkOptions(page_limit, key=order_key if record.key_setting else "")
        yield from list_resources(ListWalker(record, base_url, api_key, options, decimals=decimals))
