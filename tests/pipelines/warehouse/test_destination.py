"""What is published is copied to another destination of dlt's, where one is named."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest

from pipelines.reconcile.reconcile import reconcile
from pipelines.warehouse import failure as failures
from sources.errors import PlatformError, UsageError
from tests.pipelines.bridge import bridge

PREFIX = "orderbridge_"


def tables(path: Path, prefix: str = "") -> dict[str, int]:
    """Rows of each table in the schemas of a warehouse, or of its copy."""
    with duckdb.connect(str(path), read_only=True) as connection:
        names = connection.execute(
            "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE schema_name IN ($1, $2, $3)",
            [f"{prefix}raw", f"{prefix}reconciled", f"{prefix}ops"],
        ).fetchall()
        rows = {name: len(connection.execute(f"FROM {name}").fetchall()) for (name,) in names}
        return {name.removeprefix(prefix): count for name, count in rows.items() if not name.endswith("._orderbridge")}


def test_a_destination_gets_what_is_published_and_loses_what_is_not(tmp_path: Path) -> None:
    other = tmp_path / "other.duckdb"
    os.environ |= {"WAREHOUSE__DESTINATION": "duckdb", "DESTINATION__DUCKDB__CREDENTIALS": str(other)}
    with bridge(tmp_path) as made:
        assert made.code() == 0
        assert tables(other, PREFIX) == tables(made.path)
        made.platform.state.change("customers", made.platform.state.ids("customers")[0], {"lastName": "Ñandú"})
        assert made.code("customers") == 0
        assert tables(other, PREFIX) == tables(made.path)
        with duckdb.connect(str(other), read_only=True) as connection:
            sql = "SELECT count(*) FROM orderbridge_raw.customers WHERE last_name = 'Ñandú'"
            assert connection.execute(sql).fetchall() == [(1,)]
        assert made.left() == ["warehouse.duckdb"]
        reconcile()
        assert "reconciled.customers" in tables(other, PREFIX)
        assert tables(other, PREFIX) == tables(made.path)


def test_settings_of_other_dlt_pipelines_do_not_change_the_copy(tmp_path: Path) -> None:
    other = tmp_path / "other.duckdb"
    os.environ |= {
        "WAREHOUSE__DESTINATION": "duckdb",
        "DESTINATION__DUCKDB__CREDENTIALS": str(other),
        "NORMALIZE__PARQUET_NORMALIZER__ADD_DLT_ID": "true",
        "NORMALIZE__PARQUET_NORMALIZER__ADD_DLT_LOAD_ID": "true",
        "DEV_MODE": "true",
        "DATASET_NAME": "other",
        "SCHEMA__NAMING": "sql_ci_v1",
    }
    with bridge(tmp_path, customers=2, orders=2) as made:
        assert made.code() == 0
        with duckdb.connect(str(other), read_only=True) as connection:
            sql = "SELECT column_name FROM duckdb_columns() WHERE schema_name = 'orderbridge_raw' AND table_name = $1"
            copied = {name for (name,) in connection.execute(sql, ["customers"]).fetchall()}
        sql = "SELECT column_name FROM duckdb_columns() WHERE schema_name = 'raw' AND table_name = $1"
        assert copied == {name for (name,) in made.rows(sql, "customers")}
        assert tables(other, PREFIX) == tables(made.path)


def test_credentials_for_every_destination_of_dlt_are_used(tmp_path: Path) -> None:
    other = tmp_path / "other.duckdb"
    os.environ |= {"WAREHOUSE__DESTINATION": "duckdb", "CREDENTIALS": str(other)}
    with bridge(tmp_path, customers=2, orders=2) as made:
        assert made.code("customers") == 0
        assert tables(other, PREFIX) == tables(made.path)


def test_a_destination_that_cannot_be_loaded_leaves_the_file_published(tmp_path: Path) -> None:
    missing = tmp_path / "no such folder" / "other.duckdb"
    os.environ |= {"WAREHOUSE__DESTINATION": "duckdb", "DESTINATION__DUCKDB__CREDENTIALS": str(missing)}
    with bridge(tmp_path) as made:
        with pytest.raises(PlatformError, match="the destination duckdb"):
            made.pull("customers")
        assert made.one("SELECT count(*) FROM raw.customers") == 40
        assert failures.read(made.path) is None
        note = failures.read(made.path, is_destination=True)
        assert note is not None
        assert (note["exit_code"], note["published"]) == (4, True)
        del os.environ["WAREHOUSE__DESTINATION"]
        made.pull("price_lists")
        assert failures.read(made.path, is_destination=True) == note
        os.environ |= {
            "WAREHOUSE__DESTINATION": "duckdb",
            "DESTINATION__DUCKDB__CREDENTIALS": str(tmp_path / "o.duckdb"),
        }
        made.pull("price_lists")
        assert failures.read(made.path, is_destination=True) is None


def test_a_destination_that_dlt_does_not_know_ends_the_run_before_its_first_request(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        made.pull()
        before, asked = made.path.read_bytes(), len(made.platform.state.log)
        os.environ["WAREHOUSE__DESTINATION"] = "nosuchdest"
        for command in (made.pull, reconcile):
            with pytest.raises(UsageError, match="nosuchdest"):
                command()
        assert (made.path.read_bytes(), len(made.platform.state.log)) == (before, asked)
