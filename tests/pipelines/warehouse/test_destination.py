"""The copy of what is published in another destination of dlt's: one table of behaviours for all kinds."""

from __future__ import annotations

import json
import lzma
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest
import sqlglot
from fsspec.implementations.memory import MemoryFileSystem  # type: ignore[import-untyped] # it ships no types
from sqlglot import exp

from orderbridge.pipelines.pull.check import check
from orderbridge.pipelines.reconcile.reconcile import reconcile
from orderbridge.pipelines.warehouse import extras
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.destination import names
from orderbridge.pipelines.warehouse.destination.copy import (
    check_destination,
    connect_destination,
    create_views,
)
from orderbridge.pipelines.warehouse.destination.database import Database
from orderbridge.pipelines.warehouse.destination.errors import destination_errors
from orderbridge.pipelines.warehouse.destination.files import POINTER, ParquetStore
from orderbridge.sources.errors import PlatformError, UsageError
from orderbridge.sources.settings import WarehouseSettings, warehouse_settings
from tests.pipelines.bridge import Bridge
from tests.pipelines.warehouse.destinations import Destination, DuckdbFile, ParquetFiles, Shop
from tests.postgres import PASSWORD

WITHOUT_SERVER = pytest.mark.parametrize("destination", ["duckdb", "filesystem"], indirect=True)
TABLES = pytest.mark.parametrize("destination", ["duckdb"], indirect=True)
FILES = pytest.mark.parametrize("destination", ["filesystem"], indirect=True)
POSTGRES = WarehouseSettings(path=Path("/nowhere"), destination="postgres")


def full(*arguments: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_copy_holds_what_is_published_and_one_that_fails_leaves_what_is_there(
    tmp_path: Path, shop: Shop, destination: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert connect_destination(shop.settings).startswith(f"{destination.name}, ")
    assert not isinstance(destination, DuckdbFile) or not destination.file.exists(), (
        "a check makes no file"
    )
    shop.copy()
    version = (
        destination.pointer()["version"]
        if isinstance(destination, ParquetFiles)
        else "2 of 3 exist"
    )
    assert connect_destination(shop.settings).endswith(version)
    before = destination.contents()
    assert before == shop.contents()
    assert destination.first_name() == "its first name"
    with pytest.raises(
        UsageError, match=r"another source's data: legacy host one\.example, not two\.example"
    ):
        Shop(tmp_path / "other", destination.settings, "two.example").copy()
    shop.change(
        """UPDATE raw.customers SET first_name = 'Otra', _run_id = 'r2' WHERE id = 'c1';
        DELETE FROM raw.orders WHERE id = 'o1'; DELETE FROM raw.orders__lines WHERE order_id IN ('o1', 'o2');
        INSERT INTO raw.promotions VALUES ('p1', NULL); DROP TABLE ops.runs;
        CREATE TABLE reconciled.customers AS SELECT 'c1' AS customer_id"""
    )
    with monkeypatch.context() as patch:
        patch.setattr(Database, "check_merged", full)  # after the last statement
        patch.setattr(ParquetStore, "_point", full)
        with pytest.raises(PlatformError, match="No space left on device") as error:
            shop.copy()
    assert "The DuckDB file is published." in error.value.hint
    assert destination.contents() == before
    shop.copy()
    assert destination.contents() == shop.contents()


class BigQuery:
    """Takes the place of dlt's client of BigQuery, in which each dataset lists its own tables alone."""

    capabilities = SimpleNamespace(supports_ddl_transactions=False)

    def __init__(self, *tables: str) -> None:
        self.tables, self.name, self.sent = tables, "", list[str]()

    @contextmanager
    def with_alternative_dataset_name(self, name: str) -> Iterator[None]:
        self.name = name
        yield

    def has_dataset(self) -> bool:
        return self.name == "orderbridge_raw"

    def execute_sql(self, sql: str, *values: str) -> list[tuple[str, ...]]:
        self.sent.append(sql)
        is_listed = re.fullmatch(
            r"SELECT table_name FROM `orderbridge_raw`\.INFORMATION_SCHEMA\.TABLES WHERE .*%s", sql
        )
        return (
            [(table,) for table in self.tables]
            if is_listed and values == ("orderbridge_raw",)
            else []
        )


@FILES
def test_bigquery_lists_the_tables_of_a_dataset_where_it_lies_and_gets_its_own_sql(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("load", "drop_staging"):
        monkeypatch.setattr(Database, name, lambda *_: None)
    database, client = (
        Database(WarehouseSettings(path=shop.path, destination="bigquery"), tmp_path),
        BigQuery(),
    )
    with open_warehouse(shop.path) as warehouse:
        monkeypatch.setattr(Database, "client", lambda _: nullcontext(BigQuery("theirs")))
        with pytest.raises(
            UsageError, match="orderbridge_raw holds tables that orderbridge did not create"
        ):
            database.replace(warehouse)
        monkeypatch.setattr(Database, "client", lambda _: nullcontext(client))
        database.replace(warehouse)
    trees = [sqlglot.parse_one(sql.replace("%s", "''"), dialect="bigquery") for sql in client.sent]
    # what is no SQL of BigQuery
    assert not [tree for tree in trees if isinstance(tree, exp.Command)]
    made = {f"{table.db}.{table.name}" for tree in trees for table in tree.find_all(exp.Table)}
    assert {"orderbridge_raw.customers", "orderbridge_ops._orderbridge"} <= made
    assert not [
        sql
        for sql in client.sent
        if "VARCHAR" in sql or "PRIMARY KEY" in sql or sql.startswith("COMMENT")
    ]


@WITHOUT_SERVER
def test_what_others_made_is_refused_and_left_alone(shop: Shop, destination: Destination) -> None:
    def theirs() -> object:
        if isinstance(destination, ParquetFiles):
            return [(path.name, path.read_text()) for path in destination.copy.iterdir()]
        sql = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema LIKE 'orderbridge%'"
        return destination.rows(sql), destination.rows("SELECT * FROM orderbridge_raw.orders")

    if isinstance(destination, ParquetFiles):
        destination.copy.mkdir(parents=True)
        (destination.copy / "theirs.csv").write_text("theirs")
    else:
        destination.rows(
            "CREATE SCHEMA orderbridge_raw; CREATE TABLE orderbridge_raw.orders AS SELECT 'theirs' AS mine"
        )
    before = theirs()
    for use in (shop.copy, lambda: connect_destination(shop.settings)):
        with pytest.raises(
            UsageError, match=r"holds (tables|files) that orderbridge did not create"
        ) as error:
            use()
        assert "WAREHOUSE__DESTINATION_DATASET" in error.value.hint
    assert theirs() == before


@TABLES
def test_what_killed_copies_left_is_removed_and_what_may_be_of_others_is_not(
    shop: Shop, destination: Destination
) -> None:
    left = [f"two{part}_orderbridge_staging" for part in ("", "_raw", "_reconciled", "_ops")]
    for name in (*left, "two_ops_raw"):
        destination.rows(f"CREATE SCHEMA {name}; CREATE TABLE {name}.t0 (a INTEGER)")
    os.environ |= {
        "NORMALIZE__PARQUET_NORMALIZER__ADD_DLT_ID": "true", "DEV_MODE": "true", "DATASET_NAME": "other",
        "SCHEMA__NAMING": "sql_ci_v1",
    }  # fmt: skip
    shop.copy(destination_dataset="two")
    found = {
        name for (name,) in destination.rows("SELECT schema_name FROM information_schema.schemata")
    }
    assert found & {*left, "two_ops_raw"} == {left[-1], "two_ops_raw"}
    assert destination.contents("two") == shop.contents()


def test_a_destination_that_dlt_does_not_know_is_refused_before_a_run(published: Bridge) -> None:
    before, asked = published.path.read_bytes(), len(published.platform.state.log)
    os.environ["WAREHOUSE__DESTINATION"] = "nosuchdest"
    for command in (published.pull, reconcile):
        with pytest.raises(UsageError, match="nosuchdest"):
            command()
    assert (published.path.read_bytes(), len(published.platform.state.log)) == (before, asked)


@pytest.mark.parametrize(
    "setting", ["WAREHOUSE__DESTINATION", "DESTINATION__POSTGRES__DESTINATION_TYPE"]
)
@pytest.mark.parametrize("value", ["planted.Thing", "destination"])
def test_a_new_project_imports_no_module_that_a_setting_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: str
) -> None:
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAREHOUSE__DESTINATION", "postgres")
    monkeypatch.setenv("DESTINATION__DESTINATION__DESTINATION_CALLABLE", "planted.thing")
    monkeypatch.setenv(setting, value)
    with pytest.raises(UsageError, match="has no destination"):
        check_destination(warehouse_settings())


def test_nights_to_an_own_module_go_on_with_one_line_and_check_calls_it_wrong(
    published: Bridge,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "our_own.py").write_text("from dlt.destinations import duckdb as Copies")
    monkeypatch.syspath_prepend(tmp_path)
    copied = tmp_path / "copy.duckdb"
    monkeypatch.setenv("WAREHOUSE__DESTINATION", "our_own.Copies")
    monkeypatch.setenv("DESTINATION__DUCKDB__CREDENTIALS", str(copied))
    for runs in (2, 3):
        names.warn.cache_clear()
        caplog.clear()
        assert published.pull("price_lists").exit_code == 0
        (line,) = [line for line in caplog.messages if "The next version refuses" in line]
        assert line.startswith("WAREHOUSE__DESTINATION: dlt has no destination 'our_own.Copies'")
        with duckdb.connect(str(copied)) as copy:
            assert copy.execute("SELECT count(*) FROM orderbridge_ops.runs").fetchone() == (runs,)
    caplog.clear()
    (found,) = [result for result in check(threading.Event()) if result.what == "destination"]
    assert found.exit_code == 2
    assert "our_own.Copies" in found.message
    assert caplog.messages == []


def test_a_destination_may_have_a_name_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESTINATION__COPIES__DESTINATION_TYPE", "duckdb")
    monkeypatch.setenv("DESTINATION__COPIES__CREDENTIALS", str(tmp_path / "copy.duckdb"))
    for name in ("copies", "dlt.destinations.duckdb"):
        settings = WarehouseSettings(path=tmp_path / "w.duckdb", destination=name)
        assert Database(settings, tmp_path / "dlt").kind == "duckdb"
    settings = WarehouseSettings(path=tmp_path / "w.duckdb", destination="copies")
    assert "copy.duckdb" in connect_destination(settings)


@FILES
def test_one_version_before_it_is_kept(shop: Shop, destination: ParquetFiles) -> None:
    versions = list[str]()
    destination.copy.mkdir(parents=True)
    # of a first copy that was killed
    (destination.copy / f"{POINTER}.new").write_text('{"version": "2026')
    for _ in range(3):
        shop.copy()
        versions.append(destination.pointer()["version"])
        assert destination.versions() == versions[-2:]
    assert sorted(path.name for path in destination.copy.iterdir() if path.is_file()) == [POINTER]
    entry = destination.pointer()["tables"]["raw.customers"]
    assert (entry["rows"], entry["primary_key"]) == (5, ["id"])


@FILES
def test_files_and_folders_are_on_disk_before_the_pointer_names_them(
    shop: Shop, destination: ParquetFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy, synced = destination.copy, []
    for module in ("orderbridge.sources.disk", "orderbridge.pipelines.warehouse.destination.files"):
        monkeypatch.setattr(
            f"{module}.sync", lambda path: synced.append((path, (copy / POINTER).exists()))
        )
    shop.copy()
    version = copy / destination.pointer()["version"]
    files = {copy / entry["path"] for entry in destination.pointer()["tables"].values()}
    before = {path for path, is_pointed in synced if not is_pointed}
    assert before >= {
        *files,
        version / "raw",
        version / "ops",
        version,
        copy,
        copy.parent,
        copy / f"{POINTER}.new",
    }
    assert (copy, True) in synced


@FILES
def test_a_damaged_pointer_is_named_and_nothing_is_touched(
    shop: Shop, destination: ParquetFiles
) -> None:
    destination.copy.mkdir(parents=True)
    for content in (
        b"",
        b"[]",
        b'{"version": "1"}',
        b"\xff",
        b'{"version": 1, "source": {"new": "fact"}}',
    ):
        (destination.copy / POINTER).write_bytes(content)
        with pytest.raises(UsageError, match=r"bucket/orderbridge/current\.json is damaged"):
            shop.copy()
        assert [path.name for path in destination.copy.iterdir()] == [POINTER]


@FILES
def test_a_version_of_another_run_or_of_a_clock_that_was_set_back_stays(
    shop: Shop, destination: ParquetFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.copy()
    write, pointer, theirs = (
        ParquetStore._write,
        destination.copy / POINTER,
        "20260101T000000000000Z",
    )
    old = destination.pointer()["version"]
    ahead = f"2099{old[4:]}"
    (destination.copy / old).rename(destination.copy / ahead)
    pointer.write_text(pointer.read_text("utf-8").replace(old, ahead))
    for _ in range(2):
        shop.copy()
        assert destination.contents() == shop.contents()
    assert destination.versions()[-1] == ahead

    def overtaken(self: ParquetStore, *arguments: Any) -> dict[str, Any]:
        pointer.write_text(json.dumps(destination.pointer() | {"version": theirs}))
        return write(self, *arguments)

    monkeypatch.setattr(ParquetStore, "_write", overtaken)
    with pytest.raises(PlatformError, match="another run copied to the folder"):
        shop.copy()
    assert destination.pointer()["version"] == theirs


@FILES
def test_a_bucket_that_is_missing_is_named_by_check_and_never_made(
    shop: Shop, destination: ParquetFiles
) -> None:
    destination.configure(BUCKET_URL="memory://lake/shop")
    store = MemoryFileSystem()  # as an object store, it has folders in the names of files only
    for use in (shop.copy, lambda: connect_destination(shop.settings)):
        with pytest.raises(PlatformError, match="filesystem could not be used: FileNotFoundError"):
            use()
    assert not store.exists("lake")
    store.mkdir("lake")
    try:
        shop.copy()
        content = json.loads(store.cat_file(f"lake/shop/orderbridge/{POINTER}"))
        held = {name: entry["rows"] for name, entry in content["tables"].items()}
        assert held == {name: len(rows) for name, rows in shop.contents().items()}
        with pytest.raises(UsageError, match="filesystem holds files, which have no views"):
            create_views(shop.settings)
    finally:
        store.rm("lake", recursive=True)


def test_credentials_that_are_not_whole_are_refused_without_their_secret() -> None:
    name = "DESTINATION__POSTGRES__CREDENTIALS"
    os.environ |= {
        f"{name}__HOST": "127.0.0.1",
        f"{name}__USERNAME": "loader",
        f"{name}__DATABASE": "shop",
    }
    for credentials, reason in (
        ({}, "lack `password`"),
        ({name: f"postgresql://loader:{PASSWORD}"}, "postgresql://***@"),
    ):
        os.environ |= credentials
        with pytest.raises(UsageError, match="dlt cannot use 'postgres'") as error:
            check_destination(POSTGRES)
        assert (reason in str(error.value), PASSWORD in str(error.value)) == (True, False)


def test_what_is_missing_is_shown_as_the_destination_names_it() -> None:
    for name, example in (
        ("postgres", 'credentials = "postgresql://…"'),
        ("filesystem", 'bucket_url = "s3://…"'),
    ):
        settings = WarehouseSettings(path=Path("/nowhere"), destination=name)
        with pytest.raises(UsageError, match=f"dlt cannot use '{name}'") as error:
            check_destination(settings)
        assert f"set what it needs ({example})" in error.value.hint


def named(name: str, text: str, *bases: type[Exception]) -> Exception:
    """An error of dlt or of a driver, which quotes a statement or a key."""
    error: Exception = type(name, bases or (Exception,), {})(text)
    return error


def test_the_reason_of_an_error_has_no_credentials_and_no_values() -> None:
    integrity = type(named("IntegrityError", ""))
    for error, words in (
        (
            ConnectionError("no route: postgresql://ana:s3cret/x@db/shop"),
            r"Error: no route: postgresql://\*\*\*@db",
        ),
        (ConnectionError("PASSWORD = s3cret/x host=db"), r"PASSWORD = \*\*\* host=db"),
        (OSError("relation is locked\nDETAIL:  by s3cret"), "OSError: relation is locked$"),
        (
            named("UniqueViolation", "Key (id)=(s3cret) already exists", integrity),
            "could not be used: UniqueViolation$",
        ),
        (
            OSError("Failed. The actual reason given is: IO Error: Could not set lock"),
            "used: IO Error: .* lock$",
        ),
        (
            named("JobFailedError", "INSERT INTO t VALUES ('s3cret')"),
            "could not be used: JobFailedError$",
        ),
    ):
        with pytest.raises(PlatformError) as caught, destination_errors(POSTGRES):
            raise RuntimeError("of dlt") from error
        assert re.search(words, caught.value.message)
        assert "s3cret" not in str(caught.value)


@pytest.mark.skipif(duckdb.__version__.startswith("2."), reason="DuckDB 2 opens its own files")
def test_a_copy_in_a_file_of_a_newer_duckdb_is_named_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "copy.duckdb"
    packed = Path(__file__).with_name("copy_by_duckdb_2.xz").read_bytes()
    file.write_bytes(lzma.decompress(packed))
    os.environ["DESTINATION__DUCKDB__CREDENTIALS"] = str(file)
    hint = r"Move the file away, .*; or use DuckDB 2: make -C \S+ setup EXTRAS=duckdb2$"
    with pytest.raises(PlatformError, match=hint):
        connect_destination(WarehouseSettings(path=tmp_path / "w.duckdb", destination="duckdb"))


def test_a_missing_driver_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in sys.modules if one.startswith("dlt.destinations.impl.postgres")]:
        monkeypatch.delitem(sys.modules, name)  # they have imported the driver
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    os.environ["DESTINATION__POSTGRES__CREDENTIALS"] = "postgresql://loader:x@127.0.0.1:9/shop"
    with pytest.raises(UsageError, match=r"make -C \S+ setup EXTRAS=postgres$"):
        check_destination(POSTGRES)
    monkeypatch.setattr(extras, "_CHECKOUT", tmp_path)
    command = f"{sys.executable} -m pip install 'dlt[postgres]'"
    assert extras.install_command("postgres", "dlt[postgres]") == command
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    command = f"uv pip install --python {sys.executable} 'dlt[postgres]'"
    assert extras.install_command("postgres", "dlt[postgres]") == command


def test_a_duckdb_without_what_a_ducklake_needs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(duckdb.DuckDBPyRelation, "fetchone", raising=False)
    monkeypatch.setenv("DESTINATION__DUCKLAKE__CREDENTIALS__CATALOG", "duckdb:///catalog.duckdb")
    monkeypatch.setenv("DESTINATION__DUCKLAKE__CREDENTIALS__STORAGE__BUCKET_URL", "file:///lake")
    with pytest.raises(UsageError, match="cannot write to a DuckLake with duckdb"):
        check_destination(WarehouseSettings(path=Path("/nowhere"), destination="ducklake"))


@TABLES
def test_what_a_killed_copy_leaves_lies_in_the_project_and_the_next_run_removes_it(
    shop: Shop, destination: Destination, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*arguments: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def found() -> set[str]:
        return {path.name for path in shop.path.parent.iterdir()}

    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    before = found()
    with monkeypatch.context() as patch:
        patch.setattr(Database, "swap", killed)
        process = multiprocessing.get_context("fork").Process(target=shop.copy, daemon=True)
        process.start()
        process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert not list(temporary.iterdir())
    assert found() - before == {f".build-{shop.path.name}"}
    assert not (shop.path.parent / ".build-warehouse.duckdb").stat().st_mode & 0o077
    shop.copy()
    assert found() == before
    assert destination.contents() == shop.contents()
