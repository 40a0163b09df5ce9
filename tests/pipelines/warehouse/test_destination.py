"""The copy of what is published in another destination of dlt's: one table of behaviours for all kinds."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import duckdb
import pytest

from pipelines.reconcile.reconcile import reconcile
from pipelines.warehouse import failure as failures
from pipelines.warehouse.destination import _Database, check_destination, connect_destination
from pipelines.warehouse.destination_errors import destination_errors
from pipelines.warehouse.destination_files import ParquetStore
from sources.errors import PlatformError, UsageError
from sources.settings import WarehouseSettings
from tests.pipelines.bridge import Bridge
from tests.pipelines.warehouse.destinations import Destination, DuckdbFile, ParquetFiles, Postgres, Shop, contents_of
from tests.postgres import PASSWORD

WITHOUT_SERVER = pytest.mark.parametrize("destination", ["duckdb", "filesystem"], indirect=True)


def test_a_copy_holds_what_is_published_and_loses_what_is_not_and_check_names_it(
    shop: Shop, destination: Destination
) -> None:
    is_files = isinstance(destination, ParquetFiles)
    place = f"{destination.copy}: " if isinstance(destination, ParquetFiles) else "datasets orderbridge_*: "
    none = "no copy yet" if is_files else "0 of 3 exist"
    assert connect_destination(shop.settings) == f"{destination.name}, {place}{none}"
    shop.copy()
    version = destination.pointer()["version"] if isinstance(destination, ParquetFiles) else "2 of 3 exist"
    assert connect_destination(shop.settings) == f"{destination.name}, {place}{version}"
    assert destination.contents() == shop.contents()
    assert destination.first_name() == "its first name"
    shop.change(
        """UPDATE raw.customers SET first_name = 'Otra', _run_id = 'r2' WHERE id = 'c1';
        DELETE FROM raw.orders WHERE id = 'o1'; DELETE FROM raw.orders__lines WHERE order_id IN ('o1', 'o2');
        INSERT INTO raw.promotions VALUES ('p1', NULL); DROP TABLE ops.runs;
        CREATE TABLE reconciled.customers AS SELECT 'c1' AS customer_id"""
    )
    shop.copy()
    assert destination.contents() == shop.contents()


@WITHOUT_SERVER
def test_two_organizations_lie_next_to_each_other_and_never_in_one_place(
    tmp_path: Path, shop: Shop, destination: Destination
) -> None:
    other = Shop(tmp_path / "other", destination.settings, "two.example")
    shop.copy()
    with pytest.raises(UsageError, match=r"another source's data: legacy host one\.example, not two\.example"):
        other.copy()
    other.copy(destination_dataset="two")
    assert destination.contents() == shop.contents()
    assert destination.contents("two") == other.contents()


@WITHOUT_SERVER
def test_what_others_made_is_refused_and_left_alone(shop: Shop, destination: Destination) -> None:
    words = destination.add_foreign()
    before = destination.foreign()
    for use in (shop.copy, lambda: connect_destination(shop.settings)):
        with pytest.raises(UsageError, match=words) as error:
            use()
        assert "WAREHOUSE__DESTINATION_DATASET" in error.value.hint
    assert destination.foreign() == before


@WITHOUT_SERVER
def test_a_copy_that_fails_leaves_the_version_before(
    shop: Shop, destination: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    shop.copy()
    before = destination.contents()
    shop.change("DELETE FROM raw.orders; INSERT INTO ops.runs VALUES ('r2')")
    with monkeypatch.context() as patch:
        patch.setattr(_Database, "check_merged", full)  # after the last statement
        patch.setattr(ParquetStore, "_point", full)
        with pytest.raises(PlatformError, match="No space left on device") as error:
            shop.copy()
    assert "The DuckDB file is published." in error.value.hint
    assert destination.contents() == before
    shop.copy()
    assert destination.contents() == shop.contents()


@pytest.mark.parametrize("destination", ["filesystem", "postgres"], indirect=True)
def test_a_reader_sees_one_version(shop: Shop, destination: Destination) -> None:
    shop.copy()
    stop, seen, failed = threading.Event(), set[tuple[int, ...]](), list[BaseException]()

    def counts() -> tuple[int, ...]:
        if isinstance(destination, Postgres):
            sql = "SELECT (SELECT count(*) FROM orderbridge_raw.customers), (SELECT count(*) FROM orderbridge_ops.runs)"
            return destination.rows(sql)[0]
        held = destination.contents()
        return len(held["raw.customers"]), len(held["ops.runs"])

    def poll() -> None:
        try:
            while not stop.wait(0.002):
                seen.add(counts())
        except BaseException as error:
            failed.append(error)

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        for number in range(2):
            shop.change(f"DELETE FROM raw.customers WHERE id = 'c{number}'; INSERT INTO ops.runs VALUES ('n{number}')")
            shop.copy()
    finally:
        stop.set()
        reader.join()
    assert not failed
    assert (5, 1) in seen
    assert seen <= {(5, 1), (4, 2), (3, 3)}


def test_the_copy_of_a_run_is_a_state_of_its_own(published: Bridge, tmp_path: Path) -> None:
    """Settings of other dlt pipelines change nothing in it, and credentials for every destination are used."""
    copy = DuckdbFile(tmp_path, "duckdb")
    os.environ |= {
        "WAREHOUSE__DESTINATION": "duckdb",
        "CREDENTIALS": str(tmp_path / "no such folder" / "other.duckdb"),
        "NORMALIZE__PARQUET_NORMALIZER__ADD_DLT_ID": "true",
        "DEV_MODE": "true",
        "DATASET_NAME": "other",
        "SCHEMA__NAMING": "sql_ci_v1",
    }
    with pytest.raises(PlatformError, match="the destination duckdb"):
        published.pull("price_lists")
    assert published.one("SELECT count(*) FROM ops.runs") == 2
    assert failures.read(published.path) is None
    note = failures.read(published.path, is_destination=True)
    assert note is not None
    assert (note["exit_code"], note["published"]) == (4, True)
    del os.environ["WAREHOUSE__DESTINATION"]
    published.pull("price_lists")
    assert failures.read(published.path, is_destination=True) == note
    os.environ |= {"WAREHOUSE__DESTINATION": "duckdb", "CREDENTIALS": str(copy.file)}
    assert published.code("price_lists") == 0
    assert failures.read(published.path, is_destination=True) is None
    assert copy.contents() == contents_of(published.rows, "")
    assert published.left() == ["warehouse.duckdb"]


def test_a_destination_that_dlt_does_not_know_ends_the_run_before_its_first_request(published: Bridge) -> None:
    before, asked = published.path.read_bytes(), len(published.platform.state.log)
    os.environ["WAREHOUSE__DESTINATION"] = "nosuchdest"
    for command in (published.pull, reconcile):
        with pytest.raises(UsageError, match="nosuchdest"):
            command()
    assert (published.path.read_bytes(), len(published.platform.state.log)) == (before, asked)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "DESTINATION__POSTGRES__CREDENTIALS__PASSWORD"),
        ({"DESTINATION__POSTGRES__CREDENTIALS": f"postgresql://loader:{PASSWORD}"}, "postgresql://***@"),
    ],
)
def test_credentials_that_are_not_whole_are_refused_without_their_secret(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], reason: str
) -> None:
    parts = {"HOST": "127.0.0.1", "USERNAME": "loader", "DATABASE": "shop"}
    for name, value in {f"DESTINATION__POSTGRES__CREDENTIALS__{part}": text for part, text in parts.items()}.items():
        monkeypatch.setenv(name, value)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="dlt cannot use 'postgres'") as error:
        check_destination(WarehouseSettings(path=Path("/nowhere"), destination="postgres"))
    assert reason in str(error.value)
    assert PASSWORD not in str(error.value)


class JobFailedError(Exception):
    """Of dlt: it quotes the statement, which has rows."""


class IntegrityError(Exception):
    """Of a driver."""


class UniqueViolation(IntegrityError):
    """It quotes the key."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            ConnectionError("no route: postgresql://ana:s3cret/x@db/shop"),
            r"ConnectionError: no route: postgresql://\*\*\*@db",
        ),
        (ConnectionError("PASSWORD = s3cret/x host=db"), r"PASSWORD = \*\*\* host=db"),
        (OSError("relation is locked\nDETAIL:  by s3cret"), "OSError: relation is locked$"),
        (UniqueViolation("Key (id)=(s3cret) already exists"), "could not be used: UniqueViolation$"),
        (JobFailedError("INSERT INTO t VALUES ('s3cret')"), "could not be used: JobFailedError$"),
    ],
)
def test_the_reason_of_an_error_has_no_credentials_and_no_values(error: Exception, words: str) -> None:
    wrapped = RuntimeError("of dlt")
    wrapped.__cause__ = error
    settings = WarehouseSettings(path=Path("/nowhere"), destination="postgres")
    with pytest.raises(PlatformError) as caught, destination_errors(settings):
        raise wrapped
    assert re.search(words, caught.value.message)
    assert "s3cret" not in str(caught.value)


def test_a_duckdb_without_what_a_ducklake_needs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(duckdb.DuckDBPyRelation, "fetchone", raising=False)
    monkeypatch.setenv("DESTINATION__DUCKLAKE__CREDENTIALS__CATALOG", "duckdb:///catalog.duckdb")
    monkeypatch.setenv("DESTINATION__DUCKLAKE__CREDENTIALS__STORAGE__BUCKET_URL", "file:///lake")
    words = f"cannot write to a DuckLake with duckdb {duckdb.__version__}\n  Install duckdb 1.5: "
    with pytest.raises(UsageError, match=words):
        check_destination(WarehouseSettings(path=Path("/nowhere"), destination="ducklake"))
