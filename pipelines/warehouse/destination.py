"""A copy of each published version in another destination of dlt's (design §6): Postgres, BigQuery and so on.

In: the published warehouse and the settings `warehouse.destination…`. Out: datasets `<prefix>_raw`,
`<prefix>_reconciled` and `<prefix>_ops`. Rows are loaded into staging datasets; then all tables are replaced in one
transaction, where the destination has transactions for tables, so that a reader sees the old or the new version. In
Postgres the rows of existing tables are replaced, not the tables: grants and other people's views stay. The table
`_orderbridge` in each dataset lists the tables that this project made: no other table is ever touched. The DuckDB file
remains the record from which first-seen and missing-since are derived.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb

from pipelines.warehouse.build import SCHEMAS, open_warehouse
from pipelines.warehouse.descriptions import column_comments, primary_keys
from pipelines.warehouse.destination_files import ParquetStore
from pipelines.warehouse.destination_postgres import changed_columns, dependent_object, replace_rows, table_columns
from pipelines.warehouse.destination_support import check_destination
from pipelines.warehouse.source import DataSource, read_source
from sources.errors import BridgeError, PlatformError, UsageError
from sources.settings import WarehouseSettings

ROWS_PER_BATCH: Final = 100_000
MARK: Final = "_orderbridge"
"""The table that lists, in each dataset, the tables of this project, and whose data they hold."""
_STAGING: Final = "_orderbridge_staging"
_PUBLISHED: Final = "The DuckDB file is published."
_CREDENTIALS: Final = re.compile(r"(://)[^@\s/]*@|(password\s*=\s*)\S+", re.IGNORECASE)
_VALUE_ERRORS: Final = ("DataError", "IntegrityError")
"""Errors of databases whose texts hold values of rows."""


def connect_destination(settings: WarehouseSettings) -> str:
    """Connects to the destination and checks whose tables are in its datasets. Returns a summary for people.

    Raises:
        UsageError: dlt cannot use it, or a dataset holds tables of others.
        PlatformError: it cannot be reached.
    """
    check_destination(settings.destination)
    with tempfile.TemporaryDirectory(prefix="orderbridge-") as folder, _errors(settings):
        if (store := _parquet_store(settings, Path(folder))) is not None:
            version = (store.current(None) or {}).get("version", "no copy yet")
            return f"{settings.destination}, {store.folder}: {version}"
        datasets = [_Dataset(settings, schema, Path(folder)) for schema in SCHEMAS]
        existing = [dataset.name for dataset in datasets if dataset.own_tables(None)]
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
        PlatformError: dlt could not load them. The DuckDB file is published already and stays.
    """
    if not settings.destination:
        return False
    with tempfile.TemporaryDirectory(prefix="orderbridge-") as folder, open_warehouse(path) as warehouse:
        source = read_source(warehouse)
        with _errors(settings):
            if (store := _parquet_store(settings, Path(folder))) is not None:
                store.copy(warehouse, ((s, name) for s in SCHEMAS for name in _tables(warehouse, s)), source)
                return True
            datasets = [_Dataset(settings, schema, Path(folder)) for schema in SCHEMAS]
            tables = {dataset.name: _tables(warehouse, dataset.schema) for dataset in datasets}
            own = {dataset.name: dataset.own_tables(source, tables[dataset.name]) for dataset in datasets}
            datasets = [dataset for dataset in datasets if tables[dataset.name]]
            for dataset in datasets:
                dataset.load(warehouse, tables[dataset.name])
            if datasets:
                with datasets[0].pipeline.sql_client() as client:
                    statements = [
                        statement
                        for dataset in datasets
                        for statement in dataset.swap(client, tables[dataset.name], own[dataset.name], source)
                    ]
                    _execute(client, statements)
            for dataset in datasets:
                dataset.drop_staging()
    return True


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


@dataclass
class _Dataset:
    """A schema of the warehouse at the destination."""

    settings: WarehouseSettings
    schema: str
    folder: Path

    def __post_init__(self) -> None:
        import dlt

        self.name = f"{self.settings.destination_dataset}_{self.schema}"
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

    def own_tables(self, source: DataSource | None, wanted: list[str] | None = None) -> list[str]:
        """The tables that this project made; none where the dataset does not exist.

        Args:
            source: whose data is to be copied; None: not compared.
            wanted: tables to be written.

        Raises:
            UsageError: the dataset holds tables of others, or another source's.
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
            columns = "table_name, legacy_host, public_v1_host, environment, organization"
            marks = client.execute_sql(f"SELECT {columns} FROM {_quoted(self.name)}.{MARK}") or ()
        own = [str(name) for name, *_ in marks]
        foreign = sorted((existing - set(own)) & set(wanted or ()))
        if foreign:
            raise UsageError(f"{self.name}.{foreign[0]} was not created by orderbridge: nothing was touched", hint)
        differences = DataSource(*marks[0][1:]).differences(source) if marks and source is not None else []
        if differences:
            raise UsageError(f"the dataset {self.name} holds another source's data: {'; '.join(differences)}", hint)
        return own

    def load(self, warehouse: duckdb.DuckDBPyConnection, tables: list[str]) -> None:
        """Loads the tables into the staging dataset, with keys and comments."""
        import dlt

        self.drop_staging()
        self.comments = {name: column_comments(warehouse, self.schema, name) for name in tables}
        is_postgres = self.settings.destination == "postgres"  # its CSV loader reads empty texts as null
        self.pipeline.run(
            [
                dlt.resource(_rows(warehouse, f'{self.schema}."{name}"'), name=name, write_disposition="replace")
                for name in tables
            ],
            loader_file_format="insert_values" if is_postgres else "parquet",
        )

    def swap(self, client: Any, tables: list[str], own: list[str], source: DataSource) -> Iterator[str]:  # noqa: ANN401 # dlt's, untyped
        """The statements that replace this dataset's tables by those in staging."""
        target, staging = _quoted(self.name), _quoted(f"{self.name}{_STAGING}")
        is_postgres = client.capabilities.sqlglot_dialect == "postgres"
        old, new = ({}, {}) if not is_postgres else map(partial(table_columns, client), (target, staging))
        yield f"CREATE SCHEMA IF NOT EXISTS {target}"
        for table in dict.fromkeys([*(name for name in own if name not in tables or name not in old), MARK]):
            yield f"DROP TABLE IF EXISTS {target}.{_quoted(table)}"
        for table in tables:
            copy, staged = f"{target}.{_quoted(table)}", f"{staging}.{_quoted(table)}"
            key = () if self.is_ducklake else primary_keys(self.schema, table)
            changed = changed_columns(old[table], new[table]) if table in old else []
            if table in old:
                yield from replace_rows(copy, staged, changed, old[table], new[table])
            elif is_postgres:
                yield f"ALTER TABLE {staged} SET SCHEMA {target}"
            else:
                yield f"CREATE TABLE {copy} AS SELECT * FROM {staged}"
            if key and (table not in old or set(changed) & set(map(_quoted, key))):
                yield f"ALTER TABLE {copy} ADD PRIMARY KEY ({', '.join(map(_quoted, key))})"
            for column, text in self.comments[table].items():
                yield f"COMMENT ON COLUMN {copy}.{_quoted(column)} IS {_text(text)}"
        columns = ("legacy_host", "public_v1_host", "environment", "organization")
        listed = ", ".join(f"{name} VARCHAR" for name in columns)
        yield f"CREATE TABLE {target}.{MARK} (table_name VARCHAR, {listed})"
        facts = ", ".join(_text(getattr(source, name)) for name in columns)
        for table in tables:
            yield f"INSERT INTO {target}.{MARK} VALUES ({_text(table)}, {facts})"

    def drop_staging(self) -> None:
        """Removes the staging dataset, also one that a killed run left."""
        with self.pipeline.sql_client() as client:
            if client.has_dataset():
                client.drop_dataset()


def _execute(client: Any, statements: list[str]) -> None:  # noqa: ANN401 # dlt's, untyped
    """Runs the statements in one transaction, where the destination has transactions for tables."""
    if not client.capabilities.supports_ddl_transactions:
        for statement in statements:
            client.execute_sql(statement)
        return
    with client.begin_transaction():
        for statement in statements:
            client.execute_sql(statement)


@contextmanager
def _errors(settings: WarehouseSettings) -> Iterator[None]:
    """Turns errors of dlt and of the database into PlatformError, with their reason and without secrets or values."""
    try:
        yield
    except BridgeError:
        raise
    except Exception as error:  # dlt wraps whatever a database's driver raises
        cause = _cause(error)
        if dependent := dependent_object(cause):
            raise PlatformError(
                f"the destination {settings.destination} was not updated: other objects need its tables: {dependent}",
                f"Drop the object, run again, then create it anew. {_PUBLISHED}",
            ) from None
        raise PlatformError(
            f"the destination {settings.destination} could not be loaded: {_reason(cause)}",
            f"Check its credentials in .dlt/secrets.toml and its permissions. {_PUBLISHED}",
        ) from None


def _cause(error: BaseException) -> BaseException:
    """The error of the database's driver that dlt wrapped."""
    while True:
        inner = getattr(error, "dbapi_exception", None) or getattr(error, "exception", None) or error.__cause__
        if not isinstance(inner, BaseException) or inner is error:
            return error
        error = inner


def _reason(error: BaseException) -> str:
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds.intersection(_VALUE_ERRORS) or "JobFailed" in type(error).__name__:
        return type(error).__name__
    text = " ".join(str(error).split("DETAIL:")[0].split())
    shown = _CREDENTIALS.sub(lambda match: f"{match[1]}***@" if match[1] else f"{match[2]}***", text)
    return f"{type(error).__name__}: {shown[:300]}"


def _tables(warehouse: duckdb.DuckDBPyConnection, schema: str) -> list[str]:
    sql = "SELECT table_name FROM duckdb_tables() WHERE schema_name = $1 ORDER BY 1"
    return [name for (name,) in warehouse.execute(sql, [schema]).fetchall()]


def _rows(warehouse: duckdb.DuckDBPyConnection, table: str) -> Iterator[Any]:
    """A table as Arrow tables, of which the first may be empty: a table without rows has its columns there too."""
    cursor = warehouse.cursor()
    cursor.execute("SET TimeZone = 'UTC'")
    reader = cursor.sql(f"FROM {table}").to_arrow_reader(ROWS_PER_BATCH)
    yield reader.schema.empty_table()
    yield from reader


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"
