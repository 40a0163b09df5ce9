"""The published tables, in another destination of dlt's (design §6): Postgres, BigQuery, files and so on.

In: the published warehouse. Out: the same tables, replaced as a whole where the destination can do that. The DuckDB
file stays the record from which first-seen and missing-since are told; what is named in its place gets a copy.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.warehouse.build import open_warehouse
from sources.errors import PlatformError, UsageError

ROWS_AT_ONCE: Final = 100_000
MIRRORED: Final = ("raw", "reconciled", "ops")


def check_destination(destination: str | None) -> None:
    """Raises UsageError where dlt knows no such destination, or lacks what it needs for it; None means none."""
    if not destination:
        return
    from dlt.common.destination.reference import Destination

    try:
        known: Any = Destination.from_reference(destination)
        known.client_class  # noqa: B018 # imports what it needs
    except Exception as error:  # of many kinds, dlt's and the import system's; without their texts
        raise UsageError(
            f"WAREHOUSE__DESTINATION: dlt cannot use {destination!r} ({type(error).__name__})",
            "Name one of dlt's destinations, and install what it needs, e.g. pip install 'dlt[postgres]'.",
        ) from None


def mirror(path: Path, destination: str | None) -> None:
    """Copies every schema to a dlt destination, a dataset each; its credentials are dlt's own settings.

    Args:
        path: of the published warehouse.
        destination: its name or its class; None: nothing is copied.

    Raises:
        PlatformError: dlt could not load them. The DuckDB file is published already and stays.
    """
    if not destination:
        return
    import dlt
    from dlt.pipeline.exceptions import PipelineStepFailed

    for schema in MIRRORED:
        with tempfile.TemporaryDirectory(prefix="orderbridge-") as folder, open_warehouse(path) as connection:
            sql = "SELECT table_name FROM duckdb_tables() WHERE schema_name = $1 ORDER BY 1"
            tables = [name for (name,) in connection.execute(sql, [schema]).fetchall()]
            if not tables:
                continue
            resources = [
                dlt.resource(_rows(connection, f'{schema}."{name}"'), name=name, write_disposition="replace")
                for name in tables
            ]
            pipeline = dlt.pipeline(
                f"orderbridge_{schema}", pipelines_dir=folder, destination=destination, dataset_name=schema
            )
            try:
                pipeline.run(resources)
            except PipelineStepFailed as error:
                raise PlatformError(
                    f"the destination {destination} could not be loaded: step {error.step}",
                    "Look at its credentials in .dlt/secrets.toml. The DuckDB file is published.",
                ) from None


def _rows(connection: duckdb.DuckDBPyConnection, table: str) -> Iterator[Any]:
    """A table as Arrow tables, of which the first may be empty: a table without rows has its columns there too."""
    cursor = connection.cursor()
    cursor.execute("SET TimeZone = 'UTC'")
    reader = cursor.sql(f"FROM {table}").to_arrow_reader(ROWS_AT_ONCE)
    yield reader.schema.empty_table()
    yield from reader
