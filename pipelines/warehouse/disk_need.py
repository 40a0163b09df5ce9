"""The disk space that a pull needs, compared before hours are spent: a full disk ends a run only after its walks.

In: what the last whole read of each list had on disk, or the first page of a list that reports its length. Out: a
warning with both amounts where less is free (docs/performance.md has the formula). The run goes on: the need is an
estimate, and a list that was not read because of it would be missing in the morning.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import duckdb

from pipelines.warehouse.build import Build
from pipelines.warehouse.sql import table_names
from sources.extract.result import ListResult

log = logging.getLogger("orderbridge.pull")

MEASURE: Final = "disk_bytes"
"""Of `ops.control_totals`: what a whole read of a list had on disk."""
FIRST_FACTOR: Final = 5
"""Disk space of a list as a multiple of its compressed pages: two sweeps, page files, loaded files, raw tables."""
LOGGED_CELL_BYTES: Final = 24
"""In DuckDB's log; measured 10 for orders' lines, 25 for documents of customers."""
_LOGGED: Final = """
    SELECT coalesce(sum(column_count * least(estimated_size, 122_880)), 0)::BIGINT FROM duckdb_tables()
    WHERE schema_name = 'raw' AND list_contains(?, split_part(table_name, '__', 1))"""
"""Cells of the last row groups of the new tables: they are in DuckDB's log until all tables of the lists are merged."""
_LAST: Final = f"""
    SELECT coalesce(sum(bytes), 0)::BIGINT FROM (
        SELECT arg_max(value, run_id) AS bytes FROM ops.control_totals
        WHERE measure = '{MEASURE}' AND list_contains(?, entity) GROUP BY entity)"""


def disk_need(warehouse: duckdb.DuckDBPyConnection, path: Path, lists: Sequence[str]) -> tuple[int, int]:
    """Bytes that a pull of these lists needs next to the published file, and bytes that are free there.

    It needs what the lists had on disk the last time, a copy of the published file, as much for the new tables, and
    DuckDB's log; less the spools that a killed run left, which are resumed or replaced.
    """
    need = 2 * path.stat().st_size - sum(_spooled(Build(path), name) for name in lists)
    need += LOGGED_CELL_BYTES * warehouse.execute(_LOGGED, [list(lists)]).fetchall()[0][0]
    if "control_totals" in table_names(warehouse, "ops"):
        ((bytes_,),) = warehouse.execute(_LAST, [list(lists)]).fetchall()
        need += bytes_
    return need, shutil.disk_usage(path.parent).free


def compare_with_last_read(warehouse: duckdb.DuckDBPyConnection, path: Path, lists: Sequence[str]) -> None:
    """Warns where less is free than a pull of these lists needed the last time."""
    _compare(str(path.parent), *disk_need(warehouse, path, lists))


def compare_with_first_page(build: Build, resource: str, rows: int, total: int) -> None:
    """Warns where the disk is too small for a list, judged by its first page: all that is in its spools."""
    need = FIRST_FACTOR * _spooled(build, resource) * total // rows
    free = shutil.disk_usage(build.path.parent).free
    _compare(f"{build.path.parent}: {resource} has {total:,} rows", need, free)


def _compare(subject: str, need: int, free: int) -> None:
    if free < need:
        log.warning(
            "%s: a pull needs about %s MB of disk space, %s MB are free. "
            "Free space, or name a file on another disk in WAREHOUSE__PATH",
            subject,
            f"{need / 1e6:,.0f}",
            f"{free / 1e6:,.0f}",
        )


def bytes_on_disk(build: Build, walked: ListResult) -> int:
    """What a list has on disk before it is published: its spools, its files, and dlt's copy of these."""
    return _spooled(build, walked.resource) + 2 * sum(
        path.stat().st_size for files in walked.files.values() for path, _ in files
    )


def _spooled(build: Build, resource: str) -> int:
    return sum(file.stat().st_size for file in (build.spools / resource).glob("*.pages"))
