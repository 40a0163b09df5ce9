"""Who reads a published file: this version what 0.3.0 wrote with DuckDB 2, and ibis what this version wrote."""

from __future__ import annotations

import lzma
import os
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pytest

from orderbridge.pipelines.reconcile.reconcile import reconcile
from orderbridge.pipelines.warehouse.build import open_warehouse
from tests.pipelines.bridge import SMALL, Bridge

PUBLISHED_BY_0_3_0 = Path(__file__).with_name("published_by_0_3_0.xz")
"""The warehouse of two runs of orderbridge 0.3.0 with DuckDB 2.0.1, from a sandbox with the rows in `ROWS`."""
ROWS = {"customers": 12, "promotions": 6, "price_lists": 4, "orders": 15}


def rows_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of all tables and views."""
    with open_warehouse(path) as warehouse:
        names = warehouse.execute(
            "SELECT concat(table_schema, '.', table_name) FROM information_schema.tables ORDER BY ALL"
        ).fetchall()
        return {
            name: warehouse.execute(f"FROM {name} ORDER BY ALL").fetchall() for (name,) in names
        }


def test_a_warehouse_that_0_3_0_wrote_with_duckdb_2_is_read_and_built_on(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    path.write_bytes(lzma.decompress(PUBLISHED_BY_0_3_0.read_bytes()))
    path.chmod(0o600)
    before = rows_of(path)
    os.environ["WAREHOUSE__PATH"] = str(path)
    reconcile()
    after = rows_of(path)
    for rows in (before, after):
        for schema in ("raw", "reconciled", "bi"):
            assert {name: len(rows[f"{schema}.{name}"]) for name in ROWS} == ROWS
    for name in before:
        assert before[name] == after[name] or not name.startswith("raw."), name
    assert len(after["ops.runs"]) == len(before["ops.runs"]) + 1


@pytest.mark.xfail(
    duckdb.__version__.startswith("2."), reason="ibis 12 calls what DuckDB 2 no longer has"
)
def test_ibis_reads_a_published_warehouse(published: Bridge) -> None:
    warehouse = ibis.duckdb.connect(published.path, read_only=True)
    try:
        customers = warehouse.table("customers", database="raw")
        assert customers.count().execute() == SMALL["customers"]
        assert customers.to_pyarrow().num_rows == SMALL["customers"]
    finally:
        warehouse.disconnect()
