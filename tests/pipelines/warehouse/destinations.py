"""Destinations for the tests of the copy: a small warehouse, and what each kind of destination holds of it."""

from __future__ import annotations

import importlib.util
import json
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import tests.fast_dlt  # noqa: F401 # makes dlt faster
from pipelines.cli.process import prepare_environment
from pipelines.warehouse.destination import copy_to_destination
from pipelines.warehouse.destination_files import POINTER
from sources.settings import WarehouseSettings, load_dlt
from tests.postgres import PASSWORD, connect

Rows = list[dict[str, str]]
STAMPS = "'r1' AS _run_id, TIMESTAMPTZ '2026-01-01 03:00:00.123456Z' AS _last_seen_at"
TABLES = f"""
    CREATE SCHEMA raw; CREATE SCHEMA reconciled; CREATE SCHEMA ops;
    CREATE TABLE ops.warehouse AS SELECT '{{host}}' AS legacy_host, NULL::VARCHAR AS public_v1_host,
        'sandbox' AS environment, 'org' AS organization;
    CREATE TABLE ops.runs AS SELECT 'r1' AS run_id;
    CREATE TABLE raw.customers AS SELECT 'c' || i AS id, 'Ñandú ' || i AS first_name, '' AS email,
        if(i = 1, NULL, DATE '1999-12-31') AS birthdate, NULL::VARCHAR AS "order",
        {STAMPS} FROM range(5) t(i);
    CREATE TABLE raw.orders AS SELECT 'o' || i AS id, i AS number, i + 0.25::DECIMAL(38, 9) AS total, i > 2 AS is_paid,
        {STAMPS} FROM range(6) t(i);
    CREATE TABLE raw.orders__lines AS SELECT id AS order_id, p AS position, 'it''s' AS sku, _run_id, _last_seen_at
        FROM raw.orders, range(2) t(p);
    CREATE TABLE raw.promotions (id VARCHAR, name VARCHAR);
    COMMENT ON COLUMN raw.customers.first_name IS 'its first name'"""


class Shop:
    """A published warehouse with a few rows.

    Attributes:
        path: of the file.
        settings: with the destination of its copies.
    """

    def __init__(self, folder: Path, settings: WarehouseSettings, host: str = "one.example") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "warehouse.duckdb"
        self.settings = replace(settings, path=self.path)
        self.change(TABLES.format(host=host))

    def change(self, sql: str) -> None:
        with duckdb.connect(str(self.path)) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(sql)

    def copy(self, **settings: Any) -> bool:
        """What the end of a run does."""
        return copy_to_destination(self.path, replace(self.settings, **settings))

    def contents(self) -> dict[str, Rows]:
        with duckdb.connect(str(self.path), read_only=True) as connection:
            return contents_of(connection, "")


def contents_of(connection: duckdb.DuckDBPyConnection, prefix: str, catalog: str = "%") -> dict[str, Rows]:
    sql = """SELECT schema_name, table_name FROM duckdb_tables() WHERE table_name <> '_orderbridge'
        AND list_contains(['raw', 'reconciled', 'ops'], replace(schema_name, $1, '')) AND database_name LIKE $2"""
    made = {}
    for schema, table in connection.execute(sql, [prefix, catalog]).fetchall():
        if schema.startswith(prefix):
            where = f"{catalog}.{schema}.{table}" if catalog != "%" else f"{schema}.{table}"
            rows = connection.sql(f"FROM {where}").to_arrow_table().to_pylist()
            made[f"{schema.removeprefix(prefix)}.{table}"] = plain(rows)
    return made


def plain(rows: list[dict[str, Any]]) -> Rows:
    """Rows to compare, in an order of their own: times in UTC, decimals without zeros at the end."""
    return sorted(
        ({name: _text(value) for name, value in row.items()} for row in rows), key=lambda row: sorted(row.items())
    )


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value.normalize()) if isinstance(value, Decimal) else str(value)


@dataclass
class Destination(ABC):
    """A destination for the copies of a test."""

    folder: Path
    name: str

    @property
    def settings(self) -> WarehouseSettings:
        return WarehouseSettings(path=Path("/nowhere"), destination=self.name)

    def configure(self, **settings: str) -> None:
        prefix = f"DESTINATION__{self.name.upper()}__"
        os.environ |= {f"{prefix}{key}": value for key, value in settings.items()}

    @abstractmethod
    def start(self) -> None:
        """Makes it ready, and names it in dlt's settings. Skips the test where it cannot be had here."""

    @abstractmethod
    def contents(self, prefix: str = "orderbridge") -> dict[str, Rows]:
        """The tables of the copy."""

    @abstractmethod
    def add_foreign(self) -> str:
        """Makes something of others in the place of the copy. Returns the words in which it is refused."""

    @abstractmethod
    def foreign(self) -> object:
        """What others have in the place of the copy."""

    @abstractmethod
    def first_name(self) -> str:
        """The description of `raw.customers.first_name`."""


class DuckdbFile(Destination):
    @property
    def file(self) -> Path:
        return self.folder / "other.duckdb"

    def start(self) -> None:
        self.configure(CREDENTIALS=str(self.file))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.file)) as connection:
            return connection.execute(sql).fetchall()

    def contents(self, prefix: str = "orderbridge") -> dict[str, Rows]:
        with duckdb.connect(str(self.file)) as connection:
            return contents_of(connection, f"{prefix}_")

    def add_foreign(self) -> str:
        self.rows("CREATE SCHEMA orderbridge_raw; CREATE TABLE orderbridge_raw.orders AS SELECT 'theirs' AS mine")
        return "orderbridge_raw holds tables that orderbridge did not create"

    def foreign(self) -> object:
        sql = "SELECT schema_name, table_name FROM duckdb_tables() WHERE schema_name LIKE 'orderbridge%'"
        return self.rows(sql), self.rows("FROM orderbridge_raw.orders")

    def first_name(self) -> str:
        ((text,),) = self.rows(
            "SELECT comment FROM duckdb_columns() WHERE schema_name = 'orderbridge_raw' AND column_name = 'first_name'"
        )
        return str(text)


class DuckLake(DuckdbFile):
    """Needs duckdb 1.5 and its extension, from PyPI: `make ducklake`."""

    EXTENSION = importlib.util.find_spec("duckdb_extension_ducklake")

    def start(self) -> None:
        if self.EXTENSION is None or not hasattr(duckdb.DuckDBPyRelation, "fetchone"):
            pytest.skip("dlt cannot use this duckdb for a DuckLake, or its extension is not installed: make ducklake")
        os.environ["HOME"] = str(self.folder)  # the folder of DuckDB's extensions
        (place,) = self.EXTENSION.submodule_search_locations or [""]
        with duckdb.connect() as connection:
            file = Path(place, "extensions", f"v{duckdb.__version__}", "ducklake.duckdb_extension")
            connection.execute(f"INSTALL '{file}'")
        self.configure(
            CREDENTIALS__DUCKLAKE_NAME="shop",
            CREDENTIALS__CATALOG=f"duckdb:///{self.folder}/catalog.duckdb",
            CREDENTIALS__STORAGE__BUCKET_URL=(self.folder / "lake").as_uri(),
        )

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH 'ducklake:{self.folder}/catalog.duckdb' AS shop; USE shop")
            return connection.execute(sql).fetchall()

    def contents(self, prefix: str = "orderbridge") -> dict[str, Rows]:
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH 'ducklake:{self.folder}/catalog.duckdb' AS shop")
            return contents_of(connection, f"{prefix}_", "shop")


class ParquetFiles(Destination):
    @property
    def copy(self) -> Path:
        """The folder of the copy."""
        return self.folder / "bucket/orderbridge"

    def start(self) -> None:
        self.configure(BUCKET_URL=(self.folder / "bucket").as_uri())

    def pointer(self, prefix: str = "orderbridge") -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "bucket" / prefix / POINTER).read_text("utf-8"))
        return content

    def contents(self, prefix: str = "orderbridge") -> dict[str, Rows]:
        tables = self.pointer(prefix)["tables"]
        folder = self.folder / "bucket" / prefix
        return {name: plain(pq.read_table(folder / entry["path"]).to_pylist()) for name, entry in tables.items()}

    def versions(self) -> list[str]:
        return sorted(path.name for path in self.copy.iterdir() if path.is_dir())

    def add_foreign(self) -> str:
        self.copy.mkdir(parents=True)
        (self.copy / "theirs.csv").write_text("theirs")
        return "holds files that orderbridge did not create"

    def foreign(self) -> object:
        return [path.name for path in self.copy.iterdir()], (self.copy / "theirs.csv").read_text()

    def first_name(self) -> str:
        schema = pq.read_schema(self.copy / self.pointer()["tables"]["raw.customers"]["path"])
        assert schema.field("id").metadata == {b"primary_key": b"true"}
        metadata: dict[bytes, bytes] = schema.field("first_name").metadata
        return metadata[b"description"].decode()


@dataclass
class Postgres(Destination):
    """A database of its own in a server."""

    port: int = 0

    @property
    def url(self) -> str:
        return f"postgresql://loader:{PASSWORD}@127.0.0.1:{self.port}/{self.database}"

    @property
    def database(self) -> str:
        return f"test_{abs(hash(str(self.folder)))}"

    def start(self) -> None:
        self.run("postgres", f"CREATE DATABASE {self.database}")
        self.configure(CREDENTIALS=self.url)

    def run(self, database: str, sql: str) -> list[tuple[Any, ...]]:
        connection = connect(self.port, database)
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall()) if cursor.description else []
        finally:
            connection.close()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.run(self.database, sql)

    def contents(self, prefix: str = "orderbridge") -> dict[str, Rows]:
        sql = """SELECT table_schema, table_name, array_agg(column_name::text) FROM information_schema.columns
            WHERE table_schema IN ('{0}_raw', '{0}_reconciled', '{0}_ops') AND table_name <> '_orderbridge'
            GROUP BY 1, 2"""
        made = {}
        for schema, table, names in self.rows(sql.format(prefix)):
            quoted = ", ".join(f'"{name}"' for name in names)
            rows = [dict(zip(names, row, strict=True)) for row in self.rows(f"SELECT {quoted} FROM {schema}.{table}")]
            made[f"{schema.removeprefix(f'{prefix}_')}.{table}"] = plain(rows)
        return made

    def add_foreign(self) -> str:
        self.rows("CREATE SCHEMA orderbridge_raw; CREATE TABLE orderbridge_raw.orders AS SELECT 'theirs' AS mine")
        return "orderbridge_raw holds tables that orderbridge did not create"

    def foreign(self) -> object:
        sql = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema LIKE 'orderbridge%'"
        return self.rows(sql), self.rows("SELECT * FROM orderbridge_raw.orders")

    def first_name(self) -> str:
        assert self.keys("customers") == ["id"]
        column = "'orderbridge_raw.customers'::regclass"
        ((text,),) = self.rows(
            f"SELECT col_description({column}, attnum) FROM pg_attribute "
            f"WHERE attrelid = {column} AND attname = 'first_name'"
        )
        return str(text)

    def keys(self, table: str) -> list[str]:
        """The columns of a primary key."""
        sql = f"""SELECT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
            AND a.attnum = ANY (i.indkey) WHERE i.indrelid = 'orderbridge_raw.{table}'::regclass AND i.indisprimary"""
        return [name for (name,) in self.rows(sql)]


def begin(made: Destination, folder: Path) -> None:
    """Makes a destination ready, and dlt with this project's settings alone."""
    os.environ["DLT_PROJECT_DIR"] = str(folder)
    prepare_environment()
    load_dlt()
    made.start()
