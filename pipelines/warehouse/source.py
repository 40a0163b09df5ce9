"""Whose data a warehouse holds: hosts, environment and organization, in `ops.warehouse`.

In: what a run is about to read from. Out: UsageError where the warehouse holds other data: a sandbox never
overwrites production and one organization never another; otherwise the row of `ops.warehouse`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Final

import duckdb

from orderbridge.pipelines.warehouse.ops import insert, last_reads
from orderbridge.pipelines.warehouse.sql import has_tables
from orderbridge.sources.errors import UsageError
from orderbridge.sources.http.masking import masked
from orderbridge.sources.settings import DataSource

SOURCE_COLUMNS: Final = tuple(field.name for field in fields(DataSource))

SOURCE_FACTS: Final = "source"
"""The name of the refused source in the note of a failure."""


def read_source(warehouse: duckdb.DuckDBPyConnection) -> DataSource:
    """Whose data the warehouse holds; nothing is known of a new one."""
    if has_tables(warehouse, "ops", "warehouse"):
        for row in warehouse.execute(
            f"SELECT {', '.join(SOURCE_COLUMNS)} FROM ops.warehouse"
        ).fetchall():
            return stored_source(*row)
    return DataSource()


def source_run(warehouse: duckdb.DuckDBPyConnection) -> str:
    """The run that recorded whose data the warehouse holds; empty where none did."""
    if not has_tables(warehouse, "ops", "warehouse"):
        return ""
    row = warehouse.execute("SELECT run_id FROM ops.warehouse").fetchone()
    return "" if row is None else str(row[0] or "")


def stored_source(*values: str | None) -> DataSource:
    """A source from its stored values, in the order of `SOURCE_COLUMNS`.

    The organization is masked as that of GET /whoami is: one that an earlier version stored is still the same.
    """
    stored = DataSource(*values)
    return replace(stored, organization=masked(stored.organization))


def check_source(
    warehouse: duckdb.DuckDBPyConnection,
    held: DataSource,
    source: DataSource,
    replaced: Collection[str] | None = None,
) -> None:
    """Checks that a run reads what the warehouse holds.

    Args:
        warehouse: the published one, or a build of it.
        held: whose data it holds.
        source: that the run reads.
        replaced: where a new source is accepted, the lists that the run read of it.

    Raises:
        UsageError: it is another source, and none is accepted; or another organization or environment is, and a list of
            the one before would stay beside its lists.
    """
    differences = held.differences(source)
    if differences and replaced is None:
        error = UsageError(
            f"this warehouse holds the data of another source: {'; '.join(differences)}",
            "Name another file in WAREHOUSE__PATH. If it is the same organization, which has moved, run once more with "
            "--accept-new-source, or answer: orderbridge answer source accept",
        )
        error.facts = {SOURCE_FACTS: asdict(source)}
        raise error
    if not replace(held, legacy_host=None, public_v1_host=None).differences(source):
        return
    if stays := sorted(last_reads(warehouse).keys() - set(replaced or ())):
        raise UsageError(
            f"not every list was read from the new source, {', '.join(stays)} would stay that of the one before: "
            f"{'; '.join(differences)}",
            "Pull all lists in one run with --accept-new-source, and with --accept-shrink where they are held back; or "
            "name another file in WAREHOUSE__PATH.",
        )


def record_source(
    build: duckdb.DuckDBPyConnection, source: DataSource, run_id: str, at: datetime
) -> None:
    """Replaces the row of `ops.warehouse`; what this run does not know of its source stays."""
    recorded = read_source(build).updated(source)
    build.execute("DELETE FROM ops.warehouse")
    insert(build, "warehouse", **asdict(recorded), run_id=run_id, read_at=at)
