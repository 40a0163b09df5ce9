"""dlt source of family A: customers with their documents, and promotions.

    dlt.pipeline("erp", destination="duckdb").run(legacy())

Settings come from dlt's own resolution (`sources.legacy.*`, design §4) or as arguments. Each list is walked to its
end and proved before a row of it is loaded; a list that fails raises and loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import dlt
from dlt.extract import DltResource

from sources.contract import LIST_CUSTOMERS, LIST_PROMOTIONS
from sources.extract.result import SWEEPS_MAX, WalkOptions
from sources.http.client import Client
from sources.resources import Walks, of_walks

__all__ = ["legacy"]


@dlt.source(name="legacy", section="legacy")
def legacy(
    base_url: str = dlt.config.value,
    api_key: dlt.TSecretStrValue = dlt.secrets.value,
    page_limit: int = 100,
    sweeps: int = SWEEPS_MAX,
) -> Iterator[DltResource]:
    """Resources `customers`, `customers__documents`, `promotions` (interface, Family A).

    Args:
        base_url: of the legacy host, http only for loopback.
        api_key: sent as the header `api-key`.
        page_limit: items asked for per page; the platform may give fewer.
        sweeps: at most so many sweeps to prove a list; 1 proves nothing.

    Raises:
        BridgeError: when rows are asked for: settings, access, an unreachable platform, a broken contract.
    """
    walks = Walks(lambda: Client.with_http_settings("legacy", base_url, api_key), WalkOptions(page_limit, sweeps))
    for operation in (LIST_CUSTOMERS, LIST_PROMOTIONS):
        yield from of_walks(operation, walks)
