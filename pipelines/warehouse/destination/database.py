"""The datasets of a copy in a database: what changed is loaded into a staging dataset, then all tables are replaced.

In: the published warehouse. Out: datasets `<prefix>_raw`, `<prefix>_reconciled` and `<prefix>_ops`. The tables are
replaced in one transaction, where the destination has transactions for tables, so that a reader sees the old or the new
version. In Postgres what changed is sent (`changes`), and tables stay: so do grants and other people's views. The table
`_orderbridge` in each dataset lists the tables that this project made: no other table is ever touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import duckdb

from orderbridge.pipelines.warehouse.bi.descriptions import (
    column_comments,
    primary_keys,
    table_description,
)
from orderbridge.pipelines.warehouse.build import SCHEMAS
from orderbridge.pipelines.warehouse.destination.changes import REMOVED, CopyNotes, TableChanges
from orderbridge.pipelines.warehouse.destination.errors import PUBLISHED
from orderbridge.pipelines.warehouse.destination.names import dlt_destination
from orderbridge.pipelines.warehouse.destination.postgres import (
    ColumnTypes,
    SqlClient,
    exclusive_client,
    table_columns,
    unquoted,
    update_table,
)
from orderbridge.pipelines.warehouse.source import SOURCE_COLUMNS, read_source, stored_source
from orderbridge.pipelines.warehouse.sql import sql_text, table_names
from orderbridge.sources.decode.table_schema import shorten
from orderbridge.sources.errors import PlatformError, UsageError
from orderbridge.sources.settings import DataSource, WarehouseSettings

ROWS_PER_BATCH: Final = 100_000
MARK: Final = "_orderbridge"
"""The table that lists, in each dataset, the tables of this project, and whose data they hold."""
_STAGING: Final = "_orderbridge_staging"
_OTHER_PREFIX: Final = "Name another prefix in WAREHOUSE__DESTINATION_DATASET."


class OtherCopyError(Exception):
    """The destination is not as the last copy left it."""


class Database:
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
        self.pipeline.config.restore_from_destination = False  # staging is made anew
        self.kind = str(self.pipeline.destination.destination_type).rpartition(".")[2]
        capabilities = self.pipeline.destination.capabilities()
        self.quoted: Callable[[str], str] = capabilities.escape_identifier
        self.name_max = capabilities.max_identifier_length
        self.staging = self.quoted(name)
        self.is_postgres = self.kind == "postgres"
        self.has_keys = self.kind not in ("ducklake", "bigquery")
        self.has_comments = self.kind != "bigquery"
        self.text_type = "STRING" if self.kind == "bigquery" else "VARCHAR"

    def client(self) -> SqlClient:
        """A new connection."""
        return self.pipeline.sql_client()

    def credentials(self) -> Any:  # noqa: ANN401 # of dlt, which does not type its parts
        """The credentials in dlt's settings of the destination."""
        return self.pipeline.destination_client().config.credentials

    def duckdb_file(self) -> Path | None:
        """The file of a DuckDB destination; None for another one."""
        if self.kind != "duckdb":
            return None
        return Path(str(getattr(self.credentials(), "database", "")))

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
        name = f"{self.prefix}_{schema}"
        with self.client() as client:
            existing = self._existing(client, schema)
            if not existing:
                return [], None
            if MARK not in existing:
                raise UsageError(
                    f"the dataset {name} holds tables that orderbridge did not create: nothing was touched",
                    _OTHER_PREFIX,
                )
            mark = f"{self.dataset(schema)}.{MARK}"
            columns = ", ".join(("table_name", *SOURCE_COLUMNS))
            marks = client.execute_sql(f"SELECT {columns} FROM {mark}") or ()
            copy_id = None
            if self.is_postgres:  # an earlier version made a table without the column
                ((copy_id,),) = client.execute_sql(
                    f"SELECT max(to_jsonb(m) ->> 'copy_id') FROM {mark} m"
                )
        own = [str(table) for table, *_ in marks if table in existing]
        foreign = sorted((existing - set(own)).intersection(tables))
        if foreign:
            raise UsageError(
                f"{name}.{foreign[0]} was not created by orderbridge: nothing was touched",
                _OTHER_PREFIX,
            )
        if marks and source is not None:
            _, *stored = marks[0]
            differences = stored_source(*stored).differences(source)
            if differences:
                raise UsageError(
                    f"the dataset {name} holds another source's data: {'; '.join(differences)}",
                    _OTHER_PREFIX,
                )
        return own, copy_id

    def _existing(self, client: SqlClient, schema: str) -> set[str]:
        """The names of all tables in a dataset; none where it does not exist."""
        name = f"{self.prefix}_{schema}"
        if not _has_dataset(client, name):
            return set()
        # BigQuery keeps one in each dataset, where its data lie; another one shows nothing of it, and no error
        of_dataset = f"{self.dataset(schema)}.INFORMATION_SCHEMA.TABLES"
        listed = of_dataset if self.kind == "bigquery" else "information_schema.tables"
        sql = f"SELECT table_name FROM {listed} WHERE table_schema = %s"
        return {str(table) for (table,) in client.execute_sql(sql, name) or ()}

    def replace(self, warehouse: duckdb.DuckDBPyConnection, notes: CopyNotes | None = None) -> None:
        """Loads what changed into the staging dataset, then changes the tables of the last copy, all at once.

        Args:
            warehouse: the published one.
            notes: of the last copy; None: all rows are sent.

        Raises:
            UsageError: see `last_copy`.
            PlatformError: rows are missing after they were loaded.
            OtherCopyError: tables are not as the last copy left them: all rows have to be sent.
        """
        source = read_source(warehouse)
        tables: dict[str, TableChanges] = {}
        own: dict[str, list[str]] = {}
        with self._open_client() as open_client:
            for schema in SCHEMAS:
                names = table_names(warehouse, schema)
                copied = {name: self.copied(name) for name in names}
                own[schema], copy_id = self.last_copy(schema, list(copied.values()), source)
                for name in names:
                    changes = TableChanges(schema, name)
                    if notes is not None:
                        held = copy_id if copied[name] in own[schema] else None
                        changes = notes.changes(warehouse, schema, name, held)
                    tables[f"t{len(tables)}"] = changes
            self.load(warehouse, tables)
            facts = ", ".join(map(_text, (*astuple(source), notes.copy_id if notes else None)))
            with self.client() if open_client is None else nullcontext(open_client) as client:
                statements = [
                    *self.swap(client, tables, own, facts),
                    *self.comments(warehouse, tables.values()),
                ]
                check = partial(self.check_merged, client, warehouse, tables.values())
                execute(client, statements, check)
            self.drop_staging()

    def _open_client(self) -> AbstractContextManager[SqlClient | None]:
        """A connection that is open during the whole copy, where one is needed.

        In Postgres it keeps other runs away. A DuckDB file would be opened, and written to the disk, at each step.
        """
        if self.is_postgres:
            return exclusive_client(self.client(), self.prefix)
        return self.client() if self.kind == "duckdb" else nullcontext()

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
        if sent:
            # The CSV loader for Postgres reads empty texts as null.
            file_format: Literal["insert_values", "parquet"] = (
                "insert_values" if self.is_postgres else "parquet"
            )
            self.pipeline.run(rows, loader_file_format=file_format)
        with self.client() as client:
            for number, table in sent.items():
                ((expected,),) = table.rows(warehouse).aggregate("count(*)").fetchall()
                staged = f"{self.staging}.{self.quoted(number)}"
                ((count,),) = client.execute_sql(f"SELECT count(*) FROM {staged}")
                if count != expected:
                    raise PlatformError(
                        f"{self.target(table)}: {count} of {expected} rows are in staging: no table was replaced",
                        f"Run again when no other run is copying to the same datasets. {PUBLISHED}",
                    )

    def rows(self, warehouse: duckdb.DuckDBPyConnection, changes: TableChanges) -> Iterator[Any]:
        """The rows to send as Arrow tables, with the names of the copy; an empty one where there are none."""
        cursor = warehouse.cursor()
        cursor.execute("SET TimeZone = 'UTC'")
        reader = changes.rows(cursor).to_arrow_reader(ROWS_PER_BATCH)
        names = [self.copied(name) for name in reader.schema.names]
        batch = None
        for batch in reader:
            yield batch.rename_columns(names)
        if batch is None:  # a table without rows has its columns in the copy too
            yield reader.schema.empty_table().rename_columns(names)

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
            numbers = {
                self.copied(table.name): number
                for number, table in tables.items()
                if table.schema == schema
            }
            target = self.dataset(schema)
            old = table_columns(client, target) if self.is_postgres else {}
            yield f"CREATE SCHEMA IF NOT EXISTS {target}"
            dropped = [name for name in own[schema] if name not in numbers or name not in old]
            for name in dict.fromkeys([*dropped, MARK]):
                yield f"DROP TABLE IF EXISTS {target}.{self.quoted(name)}"
            for name, number in numbers.items():
                staged = f"{self.staging}.{self.quoted(number)}"
                old_columns, new_columns = old.get(name, {}), new.get(number, {})
                yield from self._swap_table(tables[number], staged, old_columns, new_columns)
            yield from self._mark(target, numbers, facts)

    def _mark(self, target: str, names: Iterable[str], facts: str) -> Iterator[str]:
        """The statements that list the tables of a dataset in a table of their own."""
        columns = ("table_name", *SOURCE_COLUMNS, "copy_id")
        types = ", ".join(f"{name} {self.text_type}" for name in columns)
        yield f"CREATE TABLE {target}.{MARK} ({types})"
        marks = ", ".join(f"({_text(name)}, {facts})" for name in names)
        yield f"INSERT INTO {target}.{MARK} VALUES {marks}"

    def _swap_table(
        self, table: TableChanges, staged: str, old: ColumnTypes, new: ColumnTypes
    ) -> Iterator[str]:
        """The statements that replace one table, by its columns in the copy and in staging.

        These are empty where the table is not there, or where the database does not show them.
        """
        target = self.target(table)
        if not self.is_postgres:
            yield f"CREATE TABLE {target} AS SELECT * FROM {staged}"
        else:
            is_merged = table.changed is not None
            if is_merged and new and {**new, REMOVED: "boolean"} != {**old, REMOVED: "boolean"}:
                raise OtherCopyError
            if not old:
                # The default privileges of a schema are those of tables that are created in it.
                yield f"CREATE TABLE {target} (LIKE {staged} INCLUDING ALL)"
            yield from update_table(target, staged, table, old or new, new)
        key = primary_keys(table.schema, table.name) if self.has_keys else ()
        if key and (not old or _is_key_changed(key, old, new)):
            yield f"ALTER TABLE {target} ADD PRIMARY KEY ({', '.join(map(self.quoted, key))})"

    def comments(
        self, warehouse: duckdb.DuckDBPyConnection, tables: Iterable[TableChanges]
    ) -> Iterator[str]:
        """The statements that describe the tables of a copy and their columns."""
        if not self.has_comments:
            return
        comments = column_comments(warehouse)
        for table in tables:
            description = table_description(table.schema, table.name)
            if description:
                yield f"COMMENT ON TABLE {self.target(table)} IS {_text(description)}"
            for column, text in comments.get((table.schema, table.name), {}).items():
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
        """Compares the number of rows in tables that were merged with the warehouse's. Raises OtherCopyError."""
        for table in tables:
            if table.changed is None or not table.is_sent:
                continue
            counted = warehouse.execute(f"SELECT count(*) FROM {table.quoted}")
            ((expected,),) = counted.fetchall()
            ((count,),) = client.execute_sql(f"SELECT count(*) FROM {self.target(table)}")
            if count != expected:
                raise OtherCopyError

    def drop_staging(self) -> None:
        """Removes the staging dataset, also what a killed run left: version 0.2 had one for each schema.

        Those of 0.2 are left where another project has datasets with that prefix: one may be its own.
        """
        with self.client() as client:
            own = f"{self.prefix}{_STAGING}"
            if _has_dataset(client, own):
                _drop_dataset(client, own)
            for schema in SCHEMAS:
                prefix = f"{self.prefix}_{schema}"
                staging = f"{prefix}{_STAGING}"
                if _has_dataset(client, staging) and not any(
                    _has_dataset(client, f"{prefix}_{one}") for one in SCHEMAS
                ):
                    _drop_dataset(client, staging)


def _has_dataset(client: SqlClient, name: str) -> bool:
    with client.with_alternative_dataset_name(name):
        return bool(client.has_dataset())


def _drop_dataset(client: SqlClient, name: str) -> None:
    with client.with_alternative_dataset_name(name):
        client.drop_dataset()


def execute(
    client: SqlClient, changes: Sequence[str], check: Callable[[], None] = lambda: None
) -> None:
    """Executes statements, then a check, all or none where the destination has transactions for tables."""
    has_transactions = client.capabilities.supports_ddl_transactions
    with client.begin_transaction() if has_transactions else nullcontext():
        for statement in changes:
            client.execute_sql(statement)
        check()


def _is_key_changed(key: Iterable[str], old: ColumnTypes, new: ColumnTypes) -> bool:
    """Whether a column of the key has another type in staging: it is made anew, without the key."""
    if not new:
        return False
    changed = [unquoted(name) for name, kind in old.items() if new.get(name) != kind]
    return not set(changed).isdisjoint(key)


def _text(value: str | None) -> str:
    return "NULL" if value is None else sql_text(value)
