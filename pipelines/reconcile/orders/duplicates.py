"""Orders that the platform lists twice under two ids.

In: the reconciled orders of a build, with their raw columns. Out: a finding for each further copy of an order. A copy
has the same reference, such as the number that a customer sees, the same customer, instant and total: people order the
same again, but not under the same number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import duckdb
import pandas as pd

from orderbridge.pipelines.warehouse.sql import columns_of, sql_name
from orderbridge.transforms.findings import rule_findings
from orderbridge.transforms.frames import from_arrow
from orderbridge.transforms.orders.names import ORDER_NAMES

_COPIES: Final = """
    SELECT order_id, 'the same {name}, customer, time and total as ' || first AS detail FROM (
        SELECT order_id, min(order_id) OVER of_order AS first FROM reconciled.orders
        WHERE NOT is_missing AND is_sale IS NOT false AND ordered_at IS NOT NULL AND total IS NOT NULL
            AND trim({column}::VARCHAR) <> ''
        WINDOW of_order AS (PARTITION BY trim({column}::VARCHAR), customer_id, ordered_at, total, currency))
    WHERE order_id <> first ORDER BY order_id"""


def duplicate_orders(build: duckdb.DuckDBPyConnection) -> Iterator[pd.DataFrame]:
    """Findings of the orders that are copies of another one."""
    known = columns_of(build, "reconciled.orders")
    for name in ORDER_NAMES["reference"]:
        if name in known:
            sql = _COPIES.format(column=sql_name(name), name=name)
            copies = from_arrow(build.sql(sql).to_arrow_table())
            yield rule_findings("orders", "duplicate", copies["order_id"], detail=copies["detail"])
            return
