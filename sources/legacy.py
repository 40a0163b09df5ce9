"""dlt source of the legacy family, such as customers with their documents.

    dlt.pipeline("erp", destination="duckdb").run(legacy())

Settings are resolved by dlt (`sources.legacy.*`) or given as arguments. Each list is walked to its end and
checked before a row of it is loaded; a list that fails raises, and nothing of it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator

import dlt
from dlt.extract import DltResource

from orderbridge.sources.contract import records_of
from orderbridge.sources.extract.result import SWEEPS_MAX, WalkOptions
from orderbridge.sources.resources import ListSource, ListWalker, list_resources
from orderbridge.sources.settings import LegacySettings

__all__ = ["legacy"]


@dlt.source(name="legacy", section="legacy", _impl_cls=ListSource, root_key=True)
def legacy(
    base_url: str = dlt.config.value,
    api_key: dlt.TSecretStrValue = dlt.secrets.value,
    page_limit: int = LegacySettings.page_limit,
    sweeps: int = SWEEPS_MAX,
) -> Iterator[DltResource]:
    """The lists of the legacy family (interface, Family A).

    docs/sources/legacy.md has its resources with endpoints, keys and columns.

    The source can be run any number of times; each run walks the lists again. Resources yield Arrow tables, also to
    `add_map`, `add_filter` and `add_limit`. `with_resources("customers")` includes the documents; if customers are
    merged, the documents of the merged customers are replaced.

    Args:
        base_url: of the legacy host; http for loopback only.
        api_key: sent in the header `api-key`.
        page_limit: rows to request per page; the platform may return fewer.
        sweeps: most sweeps to prove a list; a single one does not prove it.

    Raises:
        BridgeError: when rows are read: settings, access, an unreachable platform, a broken contract.
    """
    for record in records_of("legacy"):
        yield from list_resources(
            ListWalker(record, base_url, api_key, WalkOptions(page_limit, sweeps))
        )
