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


def tables(path: Path) -> dict[str, int]:
    with duckdb.connect(str(path), read_only=True) as connection:
        names = connection.execute(
            "SELECT schema_name || '.' || table_name FROM duckdb_tables() "
            "WHERE schema_name IN ('raw', 'reconciled', 'ops')"
        ).fetchall()
        return {name: len(connection.execute(f"FROM {name}").fetchall()) for (name,) in names if "._dlt" not in name}


def test_a_destination_gets_what_is_published_and_loses_what_is_not(tmp_path: Path) -> None:
    other = tmp_path / "other.duckdb"
    os.environ |= {"WAREHOUSE__DESTINATION": "duckdb", "DESTINATION__DUCKDB__CREDENTIALS": str(other)}
    with bridge(tmp_path) as made:
        assert made.code() == 0
        assert tables(other) == tables(made.path)
        made.platform.state.change("customers", made.platform.state.ids("customers")[0], {"lastName": "Ñandú"})
        assert made.code() == 0
        assert tables(other) == tables(made.path)
        with duckdb.connect(str(other), read_only=True) as connection:
            sql = "SELECT count(*) FROM raw.customers WHERE last_name = 'Ñandú'"
            assert connection.execute(sql).fetchall() == [(1,)]
        assert made.left() == ["warehouse.duckdb"]
        reconcile()
        assert "reconciled.customers" in tables(other)
        assert tables(other) == tables(made.path)


def test_a_destination_that_cannot_be_loaded_leaves_the_file_published(tmp_path: Path) -> None:
    missing = tmp_path / "no such folder" / "other.duckdb"
    os.environ |= {"WAREHOUSE__DESTINATION": "duckdb", "DESTINATION__DUCKDB__CREDENTIALS": str(missing)}
    with bridge(tmp_path) as made:
        with pytest.raises(PlatformError, match="the destination duckdb"):
            made.pull()
        assert made.one("SELECT count(*) FROM raw.customers") == 40
        told = failures.read(made.path)
        assert told is not None
        assert (told["exit_code"], told["published"]) == (4, True)
        del os.environ["WAREHOUSE__DESTINATION"]
        made.pull()
        assert failures.read(made.path) is None


def test_a_destination_that_dlt_does_not_know_ends_the_run_before_its_first_request(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        made.pull()
        before, asked = made.path.read_bytes(), len(made.platform.state.log)
        os.environ["WAREHOUSE__DESTINATION"] = "nosuchdest"
        for command in (made.pull, reconcile):
            with pytest.raises(UsageError, match="nosuchdest"):
                command()
        assert (made.path.read_bytes(), len(made.platform.state.log)) == (before, asked)
