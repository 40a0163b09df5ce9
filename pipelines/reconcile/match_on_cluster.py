"""The match with the ERP on a cluster: tables and lines of the ERP out to Parquet, the result into the build.

In: a build with the reconciled customers, and the ERP's lines. Out: its tables of the match, the same as `match` makes
here. DuckDB writes and reads the Parquet files, so the tables of either side are never in the memory of this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import duckdb
import pyarrow.parquet as pq

from pipelines.reconcile.buckets import new_folder
from pipelines.reconcile.match_tasks import OWNER_KEYS, ROWS_PER_BUCKET, ROWS_PER_GROUP, MatchJob, match_files
from pipelines.warehouse.sql import sql_text
from transforms.erp.columns import ERP_CUSTOMERS, ERP_DIFFERENCES, ERP_FIELDS, PLATFORM_CUSTOMERS, PLATFORM_DOCUMENTS
from transforms.frames import from_arrow, to_arrow

if TYPE_CHECKING:
    import pandas as pd

    from pipelines.reconcile.cluster import Cluster

_CUSTOMERS: Final = f"SELECT {', '.join(PLATFORM_CUSTOMERS)} FROM reconciled.customers WHERE NOT is_missing"
_DOCUMENTS: Final = f"""
    SELECT {", ".join(f"d.{name}" for name in PLATFORM_DOCUMENTS)},
        {", ".join(f"c.{name.removeprefix('owner_')} AS {name}" for name in OWNER_KEYS)}
    FROM raw.customers__documents d JOIN reconciled.customers c USING (customer_id) WHERE NOT c.is_missing"""
_MISSING_CODES: Final = "SELECT erp_code FROM reconciled.customers WHERE is_missing"
_ORDERS: Final = {
    "erp_customers": (ERP_CUSTOMERS, "line NULLS LAST, customer_id"),
    "erp_differences": (ERP_DIFFERENCES, f"line, list_position({list(ERP_FIELDS)}, field)"),
}


def match_on_cluster(
    build: duckdb.DuckDBPyConnection, lines: pd.DataFrame, country: str | None, cluster: Cluster
) -> tuple[pd.DataFrame, int]:
    """Makes `reconciled.erp_customers` and `.erp_differences`.

    Args:
        build: open for writing, with the reconciled customers and raw documents.
        lines: of the ERP's file.
        country: see `transforms.erp.match.match`.
        cluster: whose workers see the folder of the build.

    Returns:
        The findings, and the number of repeated lines.

    Raises:
        UsageError: see `Cluster.mapper`.
    """
    folder = new_folder(build, "match")
    rows = len(lines)
    for side, sql in (("customers", _CUSTOMERS), ("documents", _DOCUMENTS)):
        target = f"{sql_text(folder / f'{side}.parquet')} (FORMAT parquet, ROW_GROUP_SIZE {ROWS_PER_GROUP})"
        ((count,),) = build.execute(f"COPY ({sql}) TO {target}").fetchall()
        rows += count
    job = MatchJob(folder, tuple(name for name in ERP_FIELDS if name in lines), country, rows // ROWS_PER_BUCKET + 1)
    pq.write_table(to_arrow(lines, job.schemas["lines"]), job.file("lines"), ROWS_PER_GROUP)
    missing_codes = from_arrow(build.sql(_MISSING_CODES).to_arrow_table())["erp_code"]
    with cluster.mapper(folder) as over:
        result = match_files(job, missing_codes, over)
    for table, (columns, order) in _ORDERS.items():
        build.execute(
            f"CREATE OR REPLACE TABLE reconciled.{table} AS SELECT {', '.join(columns)} "
            f"FROM read_parquet({sql_text(folder / f'{table}-*.parquet')}) ORDER BY {order}"
        )
    return result
