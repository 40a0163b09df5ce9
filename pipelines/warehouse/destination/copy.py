"""A copy of each published version in another destination of dlt's (docs/copy.md): Postgres, BigQuery and so on.

In: the published warehouse and the settings `warehouse.destination…`. Out: a copy in the datasets of a database
(`database`) or in a folder of Parquet files (`files`), checks before it, and the views for BI tools over it. The DuckDB
file remains the record from which first-seen and missing-since are derived.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

import duckdb

from orderbridge.pipelines.warehouse.bi.views import SCHEMA as VIEW_SCHEMA
from orderbridge.pipelines.warehouse.bi.views import VIEWS, statements
from orderbridge.pipelines.warehouse.build import SCHEMAS, Build, open_warehouse
from orderbridge.pipelines.warehouse.destination.changes import CopyNotes
from orderbridge.pipelines.warehouse.destination.database import (
    MARK,
    Database,
    OtherCopyError,
    execute,
)
from orderbridge.pipelines.warehouse.destination.errors import (
    PUBLISHED,
    destination_errors,
    destination_settings,
    reason,
)
from orderbridge.pipelines.warehouse.destination.files import ParquetStore
from orderbridge.pipelines.warehouse.destination.postgres import tls_warning
from orderbridge.pipelines.warehouse.extras import install_command
from orderbridge.pipelines.warehouse.source import read_source
from orderbridge.pipelines.warehouse.sql import table_names
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import WarehouseSettings, load_dlt

MEMORY: Final = "1GB"
"""What DuckDB may use to find what changed. It is enough for four million keys; for more it uses the disk."""


def connect_destination(settings: WarehouseSettings) -> str:
    """Connects to the destination and checks whose tables are in its datasets. Returns a summary for people.

    Raises:
        UsageError: dlt cannot use it, or a dataset holds tables of others.
        PlatformError: it cannot be reached.
    """
    name = settings.destination
    with _destination(settings, "", may_import=False) as found:
        if isinstance(found, ParquetStore):
            pointer = found.current(None) or {}
            return f"{name}, {found.folder}: {pointer.get('version', 'no copy yet')}"
        file = found.duckdb_file()
        if file is not None and file.parent.is_dir() and not file.exists():
            return f"{name}, {file}: no copy yet"  # a connection would make it
        existing = [schema for schema in SCHEMAS if found.last_copy(schema)[0]]
        _try_to_write(found)
    summary = f"{len(existing)} of {len(SCHEMAS)} exist"
    return f"{name}, datasets {settings.destination_dataset}_*: {summary}"


class _TriedError(Exception):
    """Rolls back what was tried."""


def _try_to_write(database: Database) -> None:
    """Makes a table in each dataset and takes it back, where the destination has transactions for tables."""
    with suppress(_TriedError), database.client() as client:
        if not client.capabilities.supports_ddl_transactions:
            return
        with client.begin_transaction():
            for dataset in (database.staging, *map(database.dataset, SCHEMAS)):
                mark = f"{dataset}.{MARK}"
                client.execute_sql(f"CREATE SCHEMA IF NOT EXISTS {dataset}")
                client.execute_sql(f"DROP TABLE IF EXISTS {mark}")
                client.execute_sql(f"CREATE TABLE {mark} (table_name {database.text_type})")
            raise _TriedError


def tls_warnings(settings: WarehouseSettings) -> list[str]:
    """What is wrong with how the copy travels, in words. Nothing is connected to.

    Raises:
        UsageError: see `_destination`.
    """
    with _destination(settings, may_import=False) as found:
        if isinstance(found, ParquetStore) or not found.is_postgres:
            return []
        warning = tls_warning(found.credentials())
    return [warning] if warning else []


def check_destination(settings: WarehouseSettings) -> None:
    """Checks that dlt has the destination, if there is one. Raises UsageError, see `_destination`."""
    if settings.destination:
        with _destination(settings):
            pass


def copy_to_destination(path: Path, settings: WarehouseSettings) -> None:
    """Copies every schema of the published warehouse, a dataset each; credentials are dlt's own settings.

    Args:
        path: of the published warehouse.
        settings: name the destination.

    Raises:
        UsageError: a dataset holds tables that this project did not make, or the data of another source.
        PlatformError: dlt could not load them, or another run is copying to the same datasets. The DuckDB file is
            published already and stays.
    """
    with (
        Build(path).copying() as folder,
        open_warehouse(path) as warehouse,
        _destination(settings, folder=folder / "dlt") as found,
    ):
        if isinstance(found, ParquetStore):
            names = (
                (schema, name) for schema in SCHEMAS for name in table_names(warehouse, schema)
            )
            found.copy(warehouse, names, read_source(warehouse))
        elif not found.is_postgres:
            found.replace(warehouse)
        else:
            warehouse.execute(f"SET memory_limit = '{MEMORY}'")
            notes = CopyNotes(path, folder)
            try:
                found.replace(warehouse, notes)
            except OtherCopyError:
                # in another folder: dlt would give its tables the columns it has loaded before
                notes.forget()
                Database(settings, folder / "again").replace(warehouse, notes)
            notes.keep()


def create_views(settings: WarehouseSettings) -> str:
    """Makes the views for BI tools over the copy at the destination. Returns what was made, in words.

    Raises:
        UsageError: there is no destination, or it has files instead of tables.
        PlatformError: it cannot be reached, or refuses: there is no copy yet, or a view had other columns.
    """
    hint = "Name a database in warehouse.destination, and copy the warehouse with `orderbridge run` first."
    if not settings.destination:
        raise UsageError("warehouse.destination is not set: there is no copy", hint)
    with _destination(settings, hint) as found:
        if isinstance(found, ParquetStore):
            raise UsageError(f"{settings.destination} holds files, which have no views", hint)
        made = statements(f"{settings.destination_dataset}_")
        dataset = found.dataset(VIEW_SCHEMA)
        drops = [f"DROP VIEW IF EXISTS {dataset}.{name}" for name in reversed(VIEWS)]
        with found.client() as client:
            try:
                execute(client, made)
            except Exception:  # whatever a driver raises
                # A view that has other columns, or types, is made anew.
                execute(client, [*drops, *made])
    return f"{len(VIEWS)} views in {settings.destination_dataset}_{VIEW_SCHEMA}"


@contextmanager
def _destination(
    settings: WarehouseSettings,
    state: str = PUBLISHED,
    folder: Path | None = None,
    *,
    may_import: bool = True,
) -> Iterator[ParquetStore | Database]:
    """The destination, with dlt's settings of destinations alone.

    Args:
        settings: name it.
        state: of the warehouse, for people.
        folder: for dlt's working files. None: nothing is loaded, and dlt needs none once the destination is found.
        may_import: see `dlt_destination`.

    Raises:
        UsageError: dlt does not know it, or lacks its driver or credentials.
        PlatformError: see `destination_errors`.
    """
    load_dlt()
    from dlt.destinations.impl.filesystem.filesystem import FilesystemClient

    with destination_settings():
        try:
            with nullcontext(folder) if folder else tempfile.TemporaryDirectory() as working:
                database = Database(settings, Path(working), may_import=may_import)
                client = database.pipeline.destination_client()
        except UsageError:
            raise
        except Exception as error:  # of many kinds, dlt's and the import system's
            raise _unusable(settings, error) from None
        if database.kind == "ducklake":
            _check_ducklake()
        with destination_errors(settings, state):
            if isinstance(client, FilesystemClient):
                path = f"{client.bucket_path.rstrip('/')}/{settings.destination_dataset}"
                yield ParquetStore(client.fs_client, path, client.config.is_local_filesystem)
            else:
                yield database


def _unusable(settings: WarehouseSettings, error: Exception) -> UsageError:
    """What dlt lacks for a destination, and how to install or where to set it."""
    name = settings.destination
    lacking: Sequence[str] = getattr(error, "dependencies", ())  # such as dlt[postgres]
    if isinstance(error, ImportError) and lacking:
        extra = lacking[0].partition("[")[2].removesuffix("]")
        return UsageError(
            f"WAREHOUSE__DESTINATION: the driver of {name!r} is not installed",
            f"Install it: {install_command(extra, lacking[0])}",
        )
    is_folder = name == "filesystem"
    example = 'bucket_url = "s3://…"' if is_folder else 'credentials = "postgresql://…"'
    return UsageError(
        f"WAREHOUSE__DESTINATION: dlt cannot use {name!r}: {reason(error)}",
        f"Under [destination.{name}] in .dlt/secrets.toml, set what it needs ({example}), then: orderbridge check",
    )


def _check_ducklake() -> None:
    """Raises UsageError with DuckDB 2, which lacks what dlt 1.31 calls."""
    if hasattr(duckdb.DuckDBPyRelation, "fetchone"):
        return
    words = f"dlt {version('dlt')} cannot write to a DuckLake with duckdb {duckdb.__version__}"
    hint = f"Install duckdb 1.5: {install_command('ducklake', 'duckdb<2')}"
    raise UsageError(f"WAREHOUSE__DESTINATION: {words}", hint)
