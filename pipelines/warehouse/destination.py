"""A copy of each published version in another destination of dlt's (docs/copy.md): Postgres, BigQuery and so on.

In: the published warehouse and the settings `warehouse.destination…`. Out: datasets `<prefix>_raw`,
`<prefix>_reconciled` and `<prefix>_ops`. Rows are loaded into a staging dataset; then all tables are replaced in one
transaction, where the destination has transactions for tables, so that a reader sees the old or the new version. In
Postgres what changed is sent (`destination_changes`), and tables stay: so do grants and other people's views. The table
`_orderbridge` in each dataset lists the tables that this project made: no other table is ever touched. The DuckDB file
remains the record from which first-seen and missing-since are derived.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import astuple
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import duckdb

from orderbridge.pipelines.warehouse.build import SCHEMAS, Build, open_warehouse
from orderbridge.pipelines.warehouse.descriptions import (
    column_comments,
    primary_keys,
    table_description,
)
from orderbridge.pipelines.warehouse.destination_changes import REMOVED, CopyNotes, TableChanges
from orderbridge.pipelines.warehouse.destination_errors import (
    PUBLISHED,
    destination_errors,
    destination_settings,
    reason,
)
from orderbridge.pipelines.warehouse.destination_files import ParquetStore
from orderbridge.pipelines.warehouse.destination_names import dlt_destination
from orderbridge.pipelines.warehouse.destination_postgres import (
    ColumnTypes,
    SqlClient,
    exclusive_client,
    table_columns,
    tls_warning,
    unquoted,
    update_table,
)
from orderbridge.pipelines.warehouse.extras import install_command
from orderbridge.pipelines.warehouse.source import SOURCE_COLUMNS, read_source, stored_source
from orderbridge.pipelines.warehouse.sql import sql_text, table_names
from orderbridge.pipelines.warehouse.views import SCHEMA as VIEW_SCHEMA
from orderbridge.pipelines.warehouse.views import VIEWS, statements
from orderbridge.sources.decode.table_schema import shorten
from orderbridge.sources.errors import PlatformError, UsageError
from orderbridge.sources.settings import DataSource, WarehouseSettings, load_dlt

ROWS_PER_BATCH: Final = 100_000
MEMORY: Final = "1GB"
"""Of DuckDB, to find what changed: enough for four million keys; with more it uses the disk."""
MARK: Final = "_orderbridge"
"""The table that lists, in each dataset, the tables of this project, and whose data they hold."""
_STAGING: Final = "_orderbridge_staging"
_DATABASE_EXTRAS: Final = ("postgres", "bigquery", "snowflake")
"""Extras that bring the driver of the destination of that name."""


def connect_destination(settings: WarehouseSettings) -> str:
    """Connects to the destination and checks whose tables are in its datasets. Returns a summary for people.

    Raises:
        UsageError: dlt cannot use it, or a dataset holds tables of others.
        PlatformError: it cannot be reached.
    """
    with _destination(settings, "", may_import=False) as found:
        if isinstance(found, ParquetStore):
            version = (found.current(None) or {}).get("version", "no copy yet")
            return f"{settings.destination}, {found.folder}: {version}"
        file = Path(
            str(getattr(found.pipeline.destination_client().config.credentials, "database", ""))
        )
        if (
            found.kind == "duckdb" and file.parent.is_dir() and not file.exists()
        ):  # a connection would make it
            return f"{settings.destination}, {file}: no copy yet"
        existing = [schema for schema in SCHEMAS if found.last_copy(schema)[0]]
        with suppress(_TriedError), found.client() as client:
            if client.capabilities.supports_ddl_transactions:
                with client.begin_transaction():
                    for dataset in (found.staging, *map(found.dataset, SCHEMAS)):
                        client.execute_sql(f"CREATE SCHEMA IF NOT EXISTS {dataset}")
                        client.execute_sql(f"DROP TABLE IF EXISTS {dataset}.{MARK}")
                        client.execute_sql(
                            f"CREATE TABLE {dataset}.{MARK} (table_name {found.text_type})"
                        )
                    raise _TriedError
    return f"{settings.destination}, datasets {settings.destination_dataset}_*: {len(existing)} of {len(SCHEMAS)} exist"


def tls_warnings(settings: WarehouseSettings) -> list[str]:
    """What is wrong with how the copy travels, in words. Nothing is connected to.

    Raises:
        UsageError: see `_destination`.
    """
    with _destination(settings, may_import=False) as found:
        if isinstance(found, ParquetStore) or not found.is_postgres:
            return []
        warning = tls_warning(found.pipeline.destination_client().config.credentials)
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
            except _OtherCopyError:
                # in another folder: dlt would give its tables the columns it has loaded before
                notes.forget()
                _Database(settings, folder / "again").replace(warehouse, notes)
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
        drops = [
            f"DROP VIEW IF EXISTS {found.dataset(VIEW_SCHEMA)}.{name}" for name in reversed(VIEWS)
        ]
        with found.client() as client:
            try:
                _execute(client, made)
            except (
                Exception
            ):  # whatever a driver raises: a view that has other columns, or types, is made anew
                _execute(client, [*drops, *made])
    return f"{len(VIEWS)} views in {settings.destination_dataset}_{VIEW_SCHEMA}"


@contextmanager
def _destination(
    settings: WarehouseSettings,
    state: str = PUBLISHED,
    folder: Path | None = None,
    *,
    may_import: bool = True,
) -> Iterator[ParquetStore | _Database]:
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
                database = _Database(settings, Path(working), may_import=may_import)
                client = database.pipeline.destination_client()
        except UsageError:
            raise
        except Exception as error:  # of many kinds, dlt's and the import system's
            extra = settings.destination if settings.destination in _DATABASE_EXTRAS else "postgres"
            raise UsageError(
                f"WAREHOUSE__DESTINATION: dlt cannot use {settings.destination!r}: {reason(error)}",
                f"Under [destination.{settings.destination}] in .dlt/secrets.toml, set what it needs (credentials = "
                f'"postgresql://…"). Drivers are extras, such as: {install_command(extra, f"dlt[{extra}]")}',
            ) from None
        # dlt 1.31 calls what DuckDB 2 has no more
        if database.kind == "ducklake" and not hasattr(duckdb.DuckDBPyRelation, "fetchone"):
            versions = (
                f"dlt {version('dlt')} cannot write to a DuckLake with duckdb {duckdb.__version__}"
            )
            hint = f"Install duckdb 1.5: {install_command('ducklake', 'duckdb<2')}"
            raise UsageError(f"WAREHOUSE__DESTINATION: {versions}", hint)
        with destination_errors(settings, state):
            if isinstance(client, FilesystemClient):
                path = f"{client.bucket_path.rstrip('/')}/{settings.destination_dataset}"
                yield ParquetStore(client.fs_client, path, client.config.is_local_filesystem)
            else:
                yield database


def _execute(
    client: SqlClient, changes: Sequence[str], check: Callable[[], None] = lambda: None
) -> None:
    """Executes statements, then a check, all or none where the destination has transactions for tables."""
    with (
        client.begin_transaction()
        if client.capabilities.supports_ddl_transactions
        else nullcontext()
    ):
        for statement in changes:
            client.execute_sql(statement)
        check()


class _TriedError(Exception):
    """Rolls back what was tried."""


class _OtherCopyError(Exception):
    """The destination is not as the last copy left it."""


class _Database:
    """The datasets of a copy: one for each schema of the warehouse, and one that rows are loaded into.

    Attributes:
        prefix: of the datasets' names.
        staging: the quoted name of the dataset that rows are loaded into.
        kind: of the destination.
        quoted: quotes a name.
        has_keys, has_comments: a DuckLake has no constraints; BigQuery writes both in a way of its own.
        text_type: of texts.
        is_postgres: rows are replaced in place, and a lock keeps other runs away.
        name_max: the longest name of a table or column, in bytes.
    """

    def __init__(
        self, settings: WarehouseSettings, folder: Path, *, may_import: bool = True
    ) -> None:
        import dlt

        self.prefix = settings.destination_dataset
        name = f"{self.prefix}{_STAGING}"
        self.pipeline = dlt.pipeline(
            "orderbridge",
            pipelines_dir=str(folder),
            destination=dlt_destination(settings.destination or "", may_import=may_import),
            dataset_name=name,
        )
        self.kind = str(self.pipeline.destination.destination_type).rpartition(".")[2]
        self.quoted: Callable[[str], str] = (
            self.pipeline.destination.capabilities().escape_identifier
        )
        self.staging, self.is_postgres = self.quoted(name), self.kind == "postgres"
        self.has_keys, self.has_comments = (
            self.kind not in ("ducklake", "bigquery"),
            self.kind != "bigquery",
        )
        self.text_type = "STRING" if self.kind == "bigquery" else "VARCHAR"
        self.name_max = self.pipeline.destination.capabilities().max_identifier_length

    def client(self) -> SqlClient:
        """A new connection."""
        return self.pipeline.sql_client()

    def dataset(self, schema: str) -> str:
        """The quoted name of the dataset of a schema."""
        return self.quoted(f"{self.prefix}_{schema}")

    def last_copy(
        self, schema: str, tables: Sequence[str] = (), source: DataSource | None = None
    ) -> tuple[list[str], str | None]:
        """What a dataset holds of this project; nothing where it does not exist.

        Args:
            schema: of the warehouse.
            tables: to be copied.
            source: whose data is to be copied; None: not compared.

        Returns:
            Its tables; the id of the copy, where that was made with notes.

        Raises:
            UsageError: a table to be copied has the name of one that others made, or the dataset has only tables of
                others, or those of another source.
        """
        name, mark, copy_id = f"{self.prefix}_{schema}", f"{self.dataset(schema)}.{MARK}", None
        hint = "Name another prefix in WAREHOUSE__DESTINATION_DATASET."
        with self.client() as client:
            with client.with_alternative_dataset_name(name):
                if not client.has_dataset():
                    return [], None
            # BigQuery keeps one in each dataset, where its data lie; another one shows nothing of it, and no error
            of_dataset = f"{self.dataset(schema)}.INFORMATION_SCHEMA.TABLES"
            listed = of_dataset if self.kind == "bigquery" else "information_schema.tables"
            sql = f"SELECT table_name FROM {listed} WHERE table_schema = %s"
            existing = {str(table) for (table,) in client.execute_sql(sql, name) or ()}
            if not existing:
                return [], None
            if MARK not in existing:
                raise UsageError(
                    f"the dataset {name} holds tables that orderbridge did not create: nothing was touched",
                    hint,
                )
            marks = (
                client.execute_sql(
                    f"SELECT {', '.join(('table_name', *SOURCE_COLUMNS))} FROM {mark}"
                )
                or ()
            )
            if self.is_postgres:  # an earlier version made a table without the column
                ((copy_id,),) = client.execute_sql(
                    f"SELECT max(to_jsonb(m) ->> 'copy_id') FROM {mark} m"
                )
        own = [str(table) for table, *_ in marks if table in existing]
        if foreign := sorted((existing - set(own)).intersection(tables)):
            raise UsageError(
                f"{name}.{foreign[0]} was not created by orderbridge: nothing was touched", hint
            )
        differences = (
            stored_source(*marks[0][1:]).differences(source) if marks and source is not None else []
        )
        if differences:
            raise UsageError(
                f"the dataset {name} holds another source's data: {'; '.join(differences)}", hint
            )
        return own, copy_id

    def replace(self, warehouse: duckdb.DuckDBPyConnection, notes: CopyNotes | None = None) -> None:
        """Loads what changed into the staging dataset, then changes the tables of the last copy, all at once.

        Args:
            warehouse: the published one.
            notes: of the last copy; None: all rows are sent.

        Raises:
            UsageError: see `last_copy`.
            PlatformError: rows are missing after they were loaded.
            _OtherCopyError: tables are not as the last copy left them: all rows have to be sent.
        """
        source, tables, own = (
            read_source(warehouse),
            dict[str, TableChanges](),
            dict[str, list[str]](),
        )
        with (
            exclusive_client(self.client(), self.prefix)
            if self.is_postgres
            else nullcontext() as locked
        ):
            for schema in SCHEMAS:
                names = table_names(warehouse, schema)
                copied = {name: self.copied(name) for name in names}
                own[schema], copy_id = self.last_copy(schema, list(copied.values()), source)
                for name in names:
                    held = copy_id if copied[name] in own[schema] else None
                    tables[f"t{len(tables)}"] = (
                        TableChanges(schema, name)
                        if notes is None
                        else notes.changes(warehouse, schema, name, held)
                    )
            self.load(warehouse, tables)
            with self.client() if locked is None else nullcontext(locked) as client:
                facts = ", ".join(map(_text, (*astuple(source), notes.copy_id if notes else None)))
                statements = [
                    *self.swap(client, tables, own, facts),
                    *self.comments(warehouse, tables.values()),
                ]
                _execute(
                    client,
                    statements,
                    partial(self.check_merged, client, warehouse, tables.values()),
                )
            self.drop_staging()

    def copied(self, name: str) -> str:
        """The name that a table or column of the warehouse has in the copy; names are ASCII letters alone."""
        return shorten(name, self.name_max)

    def target(self, table: TableChanges) -> str:
        """The quoted name of a table of the copy."""
        return f"{self.dataset(table.schema)}.{self.quoted(self.copied(table.name))}"

    def load(
        self, warehouse: duckdb.DuckDBPyConnection, tables: Mapping[str, TableChanges]
    ) -> None:
        """Loads the rows to be sent into the staging dataset, into tables by their number.

        Raises:
            PlatformError: some are not there then.
        """
        import dlt

        self.drop_staging()
        sent = {number: table for number, table in tables.items() if table.is_sent}
        rows = [
            dlt.resource(self.rows(warehouse, table), name=number, write_disposition="replace")
            for number, table in sent.items()
        ]
        if sent:  # the CSV loader for Postgres reads empty texts as null
            self.pipeline.run(
                rows, loader_file_format="insert_values" if self.is_postgres else "parquet"
            )
        with self.client() as client:
            for number, table in sent.items():
                ((expected,),) = table.rows(warehouse).aggregate("count(*)").fetchall()
                ((count,),) = client.execute_sql(
                    f"SELECT count(*) FROM {self.staging}.{self.quoted(number)}"
                )
                if count != expected:
                    raise PlatformError(
                        f"{self.target(table)}: {count} of {expected} rows are in staging: no table was replaced",
                        f"Run again when no other run is copying to the same datasets. {PUBLISHED}",
                    )

    def rows(self, warehouse: duckdb.DuckDBPyConnection, changes: TableChanges) -> Iterator[Any]:
        """The rows to send as Arrow tables, with the names of the copy.

        The first may be empty: a table without rows has its columns there too.
        """
        cursor = warehouse.cursor()
        cursor.execute("SET TimeZone = 'UTC'")
        reader = changes.rows(cursor).to_arrow_reader(ROWS_PER_BATCH)
        names = [self.copied(name) for name in reader.schema.names]
        yield reader.schema.empty_table().rename_columns(names)
        for batch in reader:
            yield batch.rename_columns(names)

    def swap(
        self,
        client: SqlClient,
        tables: Mapping[str, TableChanges],
        own: Mapping[str, Sequence[str]],
        facts: str,
    ) -> Iterator[str]:
        """The statements that make the tables of the copy those of the warehouse, from what is in staging.

        Args:
            client: of the database.
            tables: to be copied, by their number.
            own: the tables of the last copy, by schema.
            facts: of this copy, in SQL: its source, its id.
        """
        new = table_columns(client, self.staging) if self.is_postgres else {}
        for schema in dict.fromkeys(table.schema for table in tables.values()):
            copied = {
                self.copied(table.name): number
                for number, table in tables.items()
                if table.schema == schema
            }
            target = self.dataset(schema)
            old = table_columns(client, target) if self.is_postgres else {}
            yield f"CREATE SCHEMA IF NOT EXISTS {target}"
            for name in dict.fromkeys(
                [*(name for name in own[schema] if name not in copied or name not in old), MARK]
            ):
                yield f"DROP TABLE IF EXISTS {target}.{self.quoted(name)}"
            for name, number in copied.items():
                staged = f"{self.staging}.{self.quoted(number)}"
                yield from self._swap_table(
                    tables[number], staged, old.get(name, {}), new.get(number, {})
                )
            columns = ", ".join(
                f"{name} {self.text_type}" for name in ("table_name", *SOURCE_COLUMNS, "copy_id")
            )
            yield f"CREATE TABLE {target}.{MARK} ({columns})"
            marks = ", ".join(f"({_text(name)}, {facts})" for name in copied)
            yield f"INSERT INTO {target}.{MARK} VALUES {marks}"

    def _swap_table(
        self, table: TableChanges, staged: str, old: ColumnTypes, new: ColumnTypes
    ) -> Iterator[str]:
        """Those of one table, from its columns in the copy and in staging: none where it is not there, or unknown."""
        target, changed = (
            self.target(table),
            [name for name, kind in old.items() if new.get(name) != kind],
        )
        if (
            table.changed is not None
            and new
            and {**new, REMOVED: "boolean"} != {**old, REMOVED: "boolean"}
        ):
            raise _OtherCopyError
        if not self.is_postgres:
            yield f"CREATE TABLE {target} AS SELECT * FROM {staged}"
        else:
            if (
                not old
            ):  # the default privileges of a schema are those of tables that are created in it
                yield f"CREATE TABLE {target} (LIKE {staged} INCLUDING ALL)"
            yield from update_table(target, staged, table, old or new, new)
        key = primary_keys(table.schema, table.name) if self.has_keys else ()
        if key and (not old or (new and set(map(unquoted, changed)) & set(key))):
            yield f"ALTER TABLE {target} ADD PRIMARY KEY ({', '.join(map(self.quoted, key))})"

    def comments(
        self, warehouse: duckdb.DuckDBPyConnection, tables: Iterable[TableChanges]
    ) -> Iterator[str]:
        """The statements that describe the tables of a copy and their columns."""
        for table in tables if self.has_comments else ():
            if description := table_description(table.schema, table.name):
                yield f"COMMENT ON TABLE {self.target(table)} IS {_text(description)}"
            for column, text in column_comments(warehouse, table.schema, table.name).items():
                name = self.copied(column)
                source = "" if name == column else f" ({column} in the warehouse)"
                place = f"{self.target(table)}.{self.quoted(name)}"
                yield f"COMMENT ON COLUMN {place} IS {_text(text + source)}"

    def check_merged(
        self,
        client: SqlClient,
        warehouse: duckdb.DuckDBPyConnection,
        tables: Iterable[TableChanges],
    ) -> None:
        """Compares the number of rows in tables that were merged with the warehouse's. Raises _OtherCopyError."""
        for table in tables:
            if table.changed is not None and table.is_sent:
                ((expected,),) = warehouse.execute(
                    f"SELECT count(*) FROM {table.quoted}"
                ).fetchall()
                ((count,),) = client.execute_sql(f"SELECT count(*) FROM {self.target(table)}")
                if count != expected:
                    raise _OtherCopyError

    def drop_staging(self) -> None:
        """Removes the staging dataset, also what a killed run left: version 0.2 had one for each schema.

        Those of 0.2 are left where another project has datasets with that prefix: one may be its own.
        """

        def exists(name: str) -> bool:
            with client.with_alternative_dataset_name(name):
                return bool(client.has_dataset())

        with self.client() as client:
            for prefix in (self.prefix, *(f"{self.prefix}_{schema}" for schema in SCHEMAS)):
                name = f"{prefix}{_STAGING}"
                if exists(name) and (
                    prefix == self.prefix or not any(exists(f"{prefix}_{one}") for one in SCHEMAS)
                ):
                    with client.with_alternative_dataset_name(name):
                        client.drop_dataset()


def _text(value: str | None) -> str:
    return "NULL" if value is None else sql_text(value)
