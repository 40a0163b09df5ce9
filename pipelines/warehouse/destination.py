"""A copy of each published version in another destination of dlt's (docs/warehouse.md): Postgres, BigQuery and so on.

In: the published warehouse and the settings `warehouse.destination…`. Out: datasets `<prefix>_raw`,
`<prefix>_reconciled` and `<prefix>_ops`. Rows are loaded into staging datasets; then all tables are replaced in one
transaction, where the destination has transactions for tables, so that a reader sees the old or the new version. In
Postgres what changed is sent (`destination_changes`), and tables stay: so do grants and other people's views. The table
`_orderbridge` in each dataset lists the tables that this project made: no other table is ever touched. The DuckDB file
remains the record from which first-seen and missing-since are derived.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.warehouse.build import SCHEMAS, open_warehouse
from pipelines.warehouse.descriptions import column_comments, primary_keys, table_description
from pipelines.warehouse.destination_changes import REMOVED, CopyNotes, TableChanges
from pipelines.warehouse.destination_errors import (
    PUBLISHED,
    check_destination,
    destination_errors,
    destination_settings,
)
from pipelines.warehouse.destination_files import ParquetStore
from pipelines.warehouse.destination_postgres import (
    changed_columns,
    exclusive_client,
    merge_rows,
    replace_rows,
    table_columns,
    unquoted,
)
from pipelines.warehouse.source import SOURCE_COLUMNS, DataSource, read_source
from pipelines.warehouse.sql import sql_name, sql_text, table_names
from pipelines.warehouse.views import SCHEMA as VIEW_SCHEMA
from pipelines.warehouse.views import VIEWS, statements
from sources.errors import PlatformError, UsageError
from sources.settings import WarehouseSettings

ROWS_PER_BATCH: Final = 100_000
MEMORY: Final = "1GB"
"""Of DuckDB, to find what changed: enough for four million keys; with more it uses the disk."""
MARK: Final = "_orderbridge"
"""The table that lists, in each dataset, the tables of this project, and whose data they hold."""
_STAGING: Final = "_orderbridge_staging"


def connect_destination(settings: WarehouseSettings) -> str:
    """Connects to the destination and checks whose tables are in its datasets. Returns a summary for people.

    Raises:
        UsageError: dlt cannot use it, or a dataset holds tables of others.
        PlatformError: it cannot be reached.
    """
    check_destination(settings)
    with _working_folder(settings, "") as folder:
        if (store := _parquet_store(settings, folder)) is not None:
            version = (store.current(None) or {}).get("version", "no copy yet")
            return f"{settings.destination}, {store.folder}: {version}"
        datasets = [_Dataset(settings, schema, folder) for schema in SCHEMAS]
        existing = [dataset.name for dataset in datasets if dataset.own_tables(None)]
        with suppress(_TriedError), datasets[0].pipeline.sql_client() as client:
            if client.capabilities.supports_ddl_transactions:
                with client.begin_transaction():
                    for dataset in datasets:
                        for schema in (dataset.staging, dataset.target):
                            client.execute_sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
                            client.execute_sql(f"DROP TABLE IF EXISTS {schema}.{MARK}")
                            client.execute_sql(f"CREATE TABLE {schema}.{MARK} (table_name VARCHAR)")
                    raise _TriedError
    return f"{settings.destination}, datasets {settings.destination_dataset}_*: {len(existing)} of {len(SCHEMAS)} exist"


def copy_to_destination(path: Path, settings: WarehouseSettings) -> bool:
    """Copies every schema of the published warehouse, a dataset each; credentials are dlt's own settings.

    Args:
        path: of the published warehouse.
        settings: `destination` None: nothing is copied.

    Returns:
        Whether there is a destination.

    Raises:
        UsageError: a dataset holds tables that this project did not make, or the data of another source.
        PlatformError: dlt could not load them, or another run is copying to the same datasets. The DuckDB file is
            published already and stays.
    """
    if not settings.destination:
        return False
    with open_warehouse(path) as warehouse, _working_folder(settings) as folder:
        tables = {schema: table_names(warehouse, schema) for schema in SCHEMAS}
        if (store := _parquet_store(settings, folder)) is not None:
            names = ((schema, name) for schema in SCHEMAS for name in tables[schema])
            store.copy(warehouse, names, read_source(warehouse))
            return True
        datasets = [_Dataset(settings, schema, folder, tables[schema]) for schema in SCHEMAS]
        if not datasets[0].is_postgres:
            _replace(datasets, warehouse)
            return True
        warehouse.execute(f"SET memory_limit = '{MEMORY}'")
        notes = CopyNotes(path)
        try:
            _replace(datasets, warehouse, notes)
        except _OtherCopyError:
            notes.forget()  # and with another folder: dlt would give its tables the columns that it has loaded before
            again = [replace(dataset, folder=folder / "again", changes={}, copied=None) for dataset in datasets]
            _replace(again, warehouse, notes)
        notes.keep()
    return True


def create_views(settings: WarehouseSettings) -> str:
    """Makes the views for BI tools over the copy at the destination. Returns what was made, in words.

    Raises:
        UsageError: there is no destination, or it has files instead of tables.
        PlatformError: it cannot be reached, or refuses: there is no copy yet, or a view had other columns.
    """
    hint = "Name a database in warehouse.destination, and copy the warehouse with `orderbridge run` first."
    if not settings.destination:
        raise UsageError("warehouse.destination is not set: there is no copy", hint)
    check_destination(settings)
    with _working_folder(settings, hint) as folder:
        if _parquet_store(settings, folder) is not None:
            raise UsageError(f"{settings.destination} holds files, which have no views", hint)
        dataset = _Dataset(settings, VIEW_SCHEMA, folder)
        made = statements(f"{settings.destination_dataset}_")
        drops = [f"DROP VIEW IF EXISTS {dataset.target}.{name}" for name in reversed(VIEWS)]
        with dataset.pipeline.sql_client() as client:
            try:
                _execute(client, made)
            except Exception:  # whatever a driver raises: a view that has other columns, or types, is made anew
                _execute(client, [*drops, *made])
    return f"{len(VIEWS)} views in {dataset.name}"


@contextmanager
def _working_folder(settings: WarehouseSettings, state: str = PUBLISHED) -> Iterator[Path]:
    """A folder for dlt, with its settings of destinations alone. Raises as `destination_errors`."""
    with (
        tempfile.TemporaryDirectory(prefix="orderbridge-") as folder,
        destination_settings(),
        destination_errors(settings, state),
    ):
        yield Path(folder)


def _replace(datasets: list[_Dataset], warehouse: duckdb.DuckDBPyConnection, notes: CopyNotes | None = None) -> None:
    """Loads what changed into staging datasets, then changes the tables of the last copy, all at once.

    Raises:
        _OtherCopyError: they are not as the last copy left them: all rows have to be sent.
    """
    first, source = datasets[0], read_source(warehouse)
    with exclusive_client(first.pipeline, first.settings) if first.is_postgres else nullcontext() as locked:
        own = {dataset.name: dataset.own_tables(source) for dataset in datasets}
        datasets = [dataset for dataset in datasets if dataset.tables]
        for dataset in datasets:
            dataset.load(warehouse, notes, own[dataset.name])
        with first.pipeline.sql_client() if locked is None else nullcontext(locked) as client:
            for dataset in datasets:
                dataset.check_staging(client, warehouse)
            facts = [_text(fact) for fact in (*astuple(source), notes.copy_id if notes else None)]
            changes = [sql for dataset in datasets for sql in dataset.swap(client, own[dataset.name], facts)]
            _execute(client, changes, *(partial(dataset.check_merged, client, warehouse) for dataset in datasets))
        for dataset in datasets:
            dataset.drop_staging()


def _execute(client: Any, changes: Sequence[str], *checks: Callable[[], None]) -> None:  # noqa: ANN401 # dlt's, untyped
    """Executes statements, then checks, all or none where the destination has transactions for tables."""
    with client.begin_transaction() if client.capabilities.supports_ddl_transactions else nullcontext():
        for statement in changes:
            client.execute_sql(statement)
        for check in checks:
            check()


def _parquet_store(settings: WarehouseSettings, folder: Path) -> ParquetStore | None:
    """The files of the copy, if the destination is dlt's `filesystem`."""
    import dlt
    from dlt.destinations.impl.filesystem.filesystem import FilesystemClient

    pipeline = dlt.pipeline("orderbridge", pipelines_dir=str(folder), destination=settings.destination)
    client = pipeline.destination_client()
    if not isinstance(client, FilesystemClient):
        return None
    path = f"{client.bucket_path.rstrip('/')}/{settings.destination_dataset}"
    return ParquetStore(client.fs_client, path, client.config.is_local_filesystem)


class _TriedError(Exception):
    """Rolls back what was tried."""


class _OtherCopyError(Exception):
    """The destination is not as the last copy left it."""


@dataclass
class _Dataset:
    """A schema of the warehouse at the destination.

    Attributes:
        settings: of the destination.
        schema: `raw`, `reconciled` or `ops`.
        folder: for dlt's working files.
        tables: to be copied.
        target, staging: quoted names of the dataset, and of the one that rows are loaded into.
        copied: the copy that the destination holds, where `own_tables` found one with notes.
        changes: of each table, as `load` found them.
    """

    settings: WarehouseSettings
    schema: str
    folder: Path
    tables: list[str] = field(default_factory=list)
    copied: str | None = None
    changes: dict[str, TableChanges] = field(default_factory=dict)

    def __post_init__(self) -> None:
        import dlt

        self.name = f"{self.settings.destination_dataset}_{self.schema}"
        self.target, self.staging = sql_name(self.name), sql_name(f"{self.name}{_STAGING}")
        self.pipeline = dlt.pipeline(
            f"orderbridge_{self.schema}",
            pipelines_dir=str(self.folder),
            destination=self.settings.destination,
            dataset_name=f"{self.name}{_STAGING}",
        )

    @property
    def is_ducklake(self) -> bool:
        """A DuckLake has no constraints."""
        return self.pipeline.destination.destination_type.endswith(".ducklake")

    @property
    def is_postgres(self) -> bool:
        """Whether rows are replaced in place, and a lock keeps other runs away."""
        return self.pipeline.destination.destination_type.endswith(".postgres")

    def own_tables(self, source: DataSource | None) -> list[str]:
        """The tables that this project made; none where the dataset does not exist.

        Args:
            source: whose data is to be copied; None: not compared.

        Raises:
            UsageError: a table to be copied has the name of one that others made, or the dataset has only tables of
                others, or those of another source.
        """
        with self.pipeline.sql_client() as client:
            sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
            existing = {str(name) for (name,) in client.execute_sql(sql, self.name) or ()}
            if not existing:
                return []
            hint = "Name another prefix in WAREHOUSE__DESTINATION_DATASET."
            if MARK not in existing:
                raise UsageError(
                    f"the dataset {self.name} holds tables that orderbridge did not create: nothing was touched", hint
                )
            columns = ", ".join(("table_name", *SOURCE_COLUMNS))
            mark = f"{self.target}.{MARK}"
            marks = client.execute_sql(f"SELECT {columns} FROM {mark}") or ()
            if self.is_postgres:  # an earlier version made a table without the column
                rows = client.execute_sql(f"SELECT max(to_jsonb(m) ->> 'copy_id') FROM {mark} m")
                self.copied = rows[0][0] if rows else None
        own = [str(name) for name, *_ in marks if name in existing]
        foreign = sorted((existing - set(own)).intersection(self.tables))
        if foreign:
            raise UsageError(f"{self.name}.{foreign[0]} was not created by orderbridge: nothing was touched", hint)
        differences = DataSource(*marks[0][1:]).differences(source) if marks and source is not None else []
        if differences:
            raise UsageError(f"the dataset {self.name} holds another source's data: {'; '.join(differences)}", hint)
        return own

    def load(self, warehouse: duckdb.DuckDBPyConnection, notes: CopyNotes | None, own: Sequence[str]) -> None:
        """Loads what changed in the tables into the staging dataset; all rows, where there are no notes."""
        import dlt

        self.drop_staging()
        self.comments = {name: column_comments(warehouse, self.schema, name) for name in self.tables}
        for name in self.tables:
            copied = self.copied if name in own else None
            whole = TableChanges(sql_name(self.schema, name))
            self.changes[name] = notes.changes(warehouse, self.schema, name, copied) if notes else whole
        sent = [
            dlt.resource(_rows(warehouse, changes), name=name, write_disposition="replace")
            for name, changes in self._sent()
        ]
        if sent:  # the CSV loader for Postgres reads empty texts as null
            self.pipeline.run(sent, loader_file_format="insert_values" if self.is_postgres else "parquet")

    def _sent(self) -> list[tuple[str, TableChanges]]:
        return [(name, changes) for name, changes in self.changes.items() if changes.is_sent]

    def check_staging(self, client: Any, warehouse: duckdb.DuckDBPyConnection) -> None:  # noqa: ANN401 # dlt's, untyped
        """Compares the number of rows in staging with those to be sent. Raises PlatformError."""
        for table, changes in self._sent():
            ((expected,),) = changes.rows(warehouse).aggregate("count(*)").fetchall()
            ((count,),) = client.execute_sql(f"SELECT count(*) FROM {self.staging}.{sql_name(table)}")
            if count != expected:
                raise PlatformError(
                    f"{self.name}.{table}: {count} of {expected} rows are in staging: no table was replaced",
                    f"Run again when no other run is copying to the same datasets. {PUBLISHED}",
                )

    def check_merged(self, client: Any, warehouse: duckdb.DuckDBPyConnection) -> None:  # noqa: ANN401 # dlt's, untyped
        """Compares the number of rows in tables that were merged with the warehouse's. Raises _OtherCopyError."""
        for table, changes in self._sent():
            if changes.changed is not None:
                ((expected,),) = warehouse.execute(f"SELECT count(*) FROM {changes.table}").fetchall()
                ((count,),) = client.execute_sql(f"SELECT count(*) FROM {sql_name(self.name, table)}")
                if count != expected:
                    raise _OtherCopyError

    def swap(self, client: Any, own: list[str], facts: list[str]) -> Iterator[str]:  # noqa: ANN401 # dlt's, untyped
        """The statements that make this dataset's tables those of the warehouse, from what is in staging.

        Args:
            client: of the database.
            own: the tables of the last copy.
            facts: of this copy, in SQL: its source, its id.
        """
        target, staging = self.target, self.staging
        old, new = ({}, {}) if not self.is_postgres else map(partial(table_columns, client), (target, staging))
        yield f"CREATE SCHEMA IF NOT EXISTS {target}"
        for table in dict.fromkeys([*(name for name in own if name not in self.tables or name not in old), MARK]):
            yield f"DROP TABLE IF EXISTS {target}.{sql_name(table)}"
        for table in self.tables:
            copy, staged = f"{target}.{sql_name(table)}", f"{staging}.{sql_name(table)}"
            key = () if self.is_ducklake else primary_keys(self.schema, table)
            changed = changed_columns(old[table], new[table]) if table in old and table in new else []
            if self.changes[table].changed is not None:
                if table in new and {**new[table], REMOVED: "boolean"} != {**old[table], REMOVED: "boolean"}:
                    raise _OtherCopyError
                yield from merge_rows(copy, staged, self.changes[table], old[table])
            elif self.is_postgres:
                if table not in old:  # the default privileges of a schema are those of tables that are created in it
                    yield f"CREATE TABLE {copy} (LIKE {staged} INCLUDING ALL)"
                yield from replace_rows(copy, staged, changed, old.get(table, new[table]), new[table])
            else:
                yield f"CREATE TABLE {copy} AS SELECT * FROM {staged}"
            if key and (table not in old or set(map(unquoted, changed)) & set(key)):
                yield f"ALTER TABLE {copy} ADD PRIMARY KEY ({', '.join(map(sql_name, key))})"
            if description := table_description(self.schema, table):
                yield f"COMMENT ON TABLE {copy} IS {_text(description)}"
            for column, text in self.comments[table].items():
                yield f"COMMENT ON COLUMN {copy}.{sql_name(column)} IS {_text(text)}"
        columns = ", ".join(f"{name} VARCHAR" for name in ("table_name", *SOURCE_COLUMNS, "copy_id"))
        yield f"CREATE TABLE {target}.{MARK} ({columns})"
        marks = (f"({', '.join((_text(table), *facts))})" for table in self.tables)
        yield f"INSERT INTO {target}.{MARK} VALUES {', '.join(marks)}"

    def drop_staging(self) -> None:
        """Removes the staging dataset, also one that a killed run left."""
        with self.pipeline.sql_client() as client:
            if client.has_dataset():
                client.drop_dataset()


def _rows(warehouse: duckdb.DuckDBPyConnection, changes: TableChanges) -> Iterator[Any]:
    """The rows to send as Arrow tables. The first may be empty: a table without rows has its columns there too."""
    cursor = warehouse.cursor()
    cursor.execute("SET TimeZone = 'UTC'")
    reader = changes.rows(cursor).to_arrow_reader(ROWS_PER_BATCH)
    yield reader.schema.empty_table()
    yield from reader


def _text(value: str | None) -> str:
    return "NULL" if value is None else sql_text(value)
