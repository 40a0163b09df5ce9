"""What the notebooks share: personal data masked, and whether a table is there.

In: frames and an open warehouse. Out: frames in which every column that is not known to be harmless is masked, since
the fields of orders are not shown and may hold anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import duckdb
import pandas as pd

MASK: Final = "•••"
HARMLESS: Final = frozenset(
    {
        "customer_id", "order_id", "promotion_id", "price_list_id", "root_price_list_id", "source_price_list_id",
        "entity_id", "platform_id", "product_id", "variant_id",
        "entity", "rule", "severity", "detail", "field", "status", "matched_by", "customer_status",
        "price_list_status", "price_list_name", "chain_status", "resource", "verdict", "run_id",
        "created_at", "ordered_at", "starts_at", "expires_at", "valid_from", "valid_to", "total", "document_count",
        "difference_count", "customer_count", "use_count", "usage_limit", "remaining_uses", "depth", "is_active",
        "is_missing", "line", "members", "member_lines", "version", "is_current", "ended_by",
        "_run_id", "_first_seen_at", "_last_seen_at", "_missing_since",
    }
)  # fmt: skip
"""Columns that hold ids of the platform, states, counts, instants and names of price lists."""


def masked(frame: pd.DataFrame, show_personal: bool = False, harmless: Iterable[str] = ()) -> pd.DataFrame:
    """The frame to be shown: what may be personal is there or not there, and nothing more is told of it.

    Args:
        frame: any columns.
        show_personal: shows it as it is.
        harmless: columns that are shown besides `HARMLESS`, such as counts that a query made.
    """
    if show_personal:
        return frame
    shown = {*HARMLESS, *harmless}
    hidden = {name: frame[name].map(_mask).astype("object") for name in frame.columns if name not in shown}
    return frame.assign(**hidden)


def _mask(value: object) -> str | None:
    if hasattr(value, "__len__") and not isinstance(value, str):
        return MASK
    return None if pd.isna(value) else MASK  # type: ignore[call-overload] # any scalar


def has_rows(warehouse: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Whether a table is there and holds anything.

    Args:
        warehouse: as `open_warehouse` opens it.
        table: with its schema, `reconciled.erp_customers`.
    """
    schema, _, name = table.partition(".")
    is_there = "SELECT count(*) FROM duckdb_tables() WHERE schema_name = ? AND table_name = ?"
    ((found,),) = warehouse.execute(is_there, [schema, name]).fetchall()
    return bool(found) and bool(warehouse.execute(f'SELECT 1 FROM "{schema}"."{name}" LIMIT 1').fetchall())
