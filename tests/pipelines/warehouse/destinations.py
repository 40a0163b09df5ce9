"""Destinations for the tests of the copy: a small warehouse, and what each kind of destination holds of it."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import tests.fast_dlt  # noqa: F401 # makes dlt faster
from orderbridge.pipelines.warehouse.destination.copy import copy_to_destination
from orderbridge.pipelines.warehouse.destination.files import POINTER
from orderbridge.sources.settings import WarehouseSettings
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
    """A published warehouse with a few rows."""

    def __init__(
        self, folder: Path, settings: WarehouseSettings, host: str = "one.example"
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "warehouse.duckdb"
        self.settings = replace(settings, path=self.path)
        self.change(TABLES.format(host=host))

    def change(self, sql: str) -> None:
        with duckdb.connect(str(self.path)) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute(sql)

    def copy(self, **settings: Any) -> None:
        """What the end of a run does."""
        copy_to_destination(self.path, replace(self.settings, **settings))

    def contents(self) -> dict[str, Rows]:
        with duckdb.connect(str(self.path), read_only=True):  # that the queries share
            return contents_of(self.rows, "")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.path), read_only=True) as connection:
            return connection.execute(sql).fetchall()


def contents_of(rows: Callable[[str], list[tuple[Any, ...]]], prefix: str) -> dict[str, Rows]:
    """The tables of a warehouse or of its copy, as `rows` reads them."""
    columns: dict[tuple[str, str], list[str]] = {}
    schemas = ", ".join(f"'{prefix}{name}'" for name in ("raw", "reconciled", "ops"))
    sql = f"""SELECT table_schema, table_name, column_name FROM information_schema.columns
        WHERE table_schema IN ({schemas}) AND table_name NOT IN ('_orderbridge', 'last_read')"""
    for schema, table, column in rows(sql):
        columns.setdefault((schema, table), []).append(column)
    made = {}
    for (schema, table), names in columns.items():
        quoted = ", ".join(f'"{name}"' for name in names)
        found = rows(f"SELECT {quoted} FROM {schema}.{table}")
        made[f"{schema.removeprefix(prefix)}.{table}"] = plain(
            [dict(zip(names, row, strict=True)) for row in found]
        )
    return made


def plain(rows: list[dict[str, Any]]) -> Rows:
    """Rows to compare, in an order of their own: times in UTC, decimals without zeros at the end."""

    def text(value: Any) -> str:
        if isinstance(value, datetime):
            return value.astimezone(UTC).isoformat()
        return str(value.normalize()) if isinstance(value, Decimal) else str(value)

    texts = ({name: text(value) for name, value in row.items()} for row in rows)
    return sorted(texts, key=lambda row: sorted(row.items()))


@dataclass
class Destination:
    """A destination for the copies of a test: this one has tables."""

    folder: Path
    name: str

    @property
    def settings(self) -> WarehouseSettings:
        return WarehouseSettings(path=Path("/nowhere"), destination=self.name)

    def configure(self, **settings: str) -> None:
        os.environ |= {
            f"DESTINATION__{self.name.upper()}__{key}": value for key, value in settings.items()
        }

    def start(self) -> None:
        """Makes it ready, and names it in dlt's settings. Skips the test where it cannot be had here."""
        raise NotImplementedError

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def contents(self, prefix: str = "orderbridge") -> dict[str, Rows]:
        """The tables of the copy."""
        return contents_of(self.rows, f"{prefix}_")

    def first_name(self) -> str:
        """The description of `raw.customers.first_name`."""
        where = "schema_name = 'orderbridge_raw' AND column_name = 'first_name'"
        ((text,),) = self.rows(f"SELECT comment FROM duckdb_columns() WHERE {where}")
        return str(text)


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
        with duckdb.connect(str(self.file)):  # that the queries share
            return super().contents(prefix)


class DuckLake(Destination):
    """Needs duckdb 1.5 and its extension, from PyPI: `make ducklake`."""

    EXTENSION = importlib.util.find_spec("duckdb_extension_ducklake")

    def start(self) -> None:
        if self.EXTENSION is None or not hasattr(duckdb.DuckDBPyRelation, "fetchone"):
            pytest.skip(
                "dlt cannot use this duckdb for a DuckLake, or its extension is not installed: make ducklake"
            )
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
            place = (
                f"'ducklake:{self.folder}/catalog.duckdb' AS shop (DATA_PATH '{self.folder}/lake/')"
            )
            connection.execute(f"ATTACH {place}; USE shop")
            return connection.execute(sql).fetchall()


class Postgres(Destination):
    """A database of its own in a server."""

    port = 0

    @property
    def database(self) -> str:
        return f"test_{abs(hash(str(self.folder)))}"

    @property
    def url(self) -> str:
        return f"postgresql://loader:{PASSWORD}@127.0.0.1:{self.port}/{self.database}"

    def start(self) -> None:
        self._run("postgres", f"CREATE DATABASE {self.database}")
        self.configure(CREDENTIALS=self.url)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._run(self.database, sql)

    def contents(self, prefix: str = "orderbridge") -> dict[str, Rows]:
        with closing(connect(self.port, self.database)) as connection:
            return contents_of(partial(fetched, connection), f"{prefix}_")

    def _run(self, database: str, sql: str) -> list[tuple[Any, ...]]:
        with closing(connect(self.port, database)) as connection:
            return fetched(connection, sql)

    def first_name(self) -> str:
        assert self.keys("customers") == ["id"]
        column = "'orderbridge_raw.customers'::regclass"
        where = f"attrelid = {column} AND attname = 'first_name'"
        ((text,),) = self.rows(
            f"SELECT col_description({column}, attnum) FROM pg_attribute WHERE {where}"
        )
        return str(text)

    def keys(self, table: str) -> list[str]:
        """The columns of a primary key."""
        sql = f"""SELECT a.attname::text FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
            AND a.attnum = ANY (i.indkey) WHERE i.indrelid = 'orderbridge_raw.{table}'::regclass AND i.indisprimary"""
        return [name for (name,) in self.rows(sql)]


def fetched(connection: Any, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query in Postgres; none of a statement that has none."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []


class ParquetFiles(Destination):
    @property
    def copy(self) -> Path:
        """The folder of the copy."""
        return self.folder / "bucket/orderbridge"

    def start(self) -> None:
        self.configure(BUCKET_URL=(self.folder / "bucket").as_uri())

    def pointer(self, prefix: str = "orderbridge") -> dict[str, Any]:
        content: dict[str, Any] = json.loads(
            (self.folder / "bucket" / prefix / POINTER).read_text("utf-8")
        )
        return content

    def contents(self, prefix: str = "orderbridge") -> dict[str, Rows]:
        tables, folder = self.pointer(prefix)["tables"], self.folder / "bucket" / prefix
        return {
            name: plain(pq.read_table(folder / entry["path"]).to_pylist())
            for name, entry in tables.items()
        }

    def versions(self) -> list[str]:
        return sorted(path.name for path in self.copy.iterdir() if path.is_dir())

    def first_name(self) -> str:
        schema = pq.read_schema(self.copy / self.pointer()["tables"]["raw.customers"]["path"])
        assert schema.field("id").metadata == {b"primary_key": b"true"}
        metadata: dict[bytes, bytes] = schema.field("first_name").metadata
        return metadata[b"description"].decode()


KINDS: dict[str, type[Destination]] = {
    "duckdb": DuckdbFile, "filesystem": ParquetFiles, "postgres": Postgres, "ducklake": DuckLake
}  # fmt: skip
