"""The copy in a DuckLake: refused where dlt or DuckDB cannot do it, and done against a real one where they can.

The real one needs duckdb 1.5 and its extension `ducklake`, which comes from PyPI as `duckdb-extension-ducklake`:
`make ducklake` installs both into an environment of their own and runs this file there.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import duckdb
import pytest

from pipelines.reconcile.reconcile import reconcile
from sources.errors import ExitCode, UsageError
from tests.pipelines.bridge import Bridge, bridge
from tests.pipelines.warehouse.test_destination import tables

HAS_FETCHONE = hasattr(duckdb.DuckDBPyRelation, "fetchone")
EXTENSION = importlib.util.find_spec("duckdb_extension_ducklake")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))  # the folder of DuckDB's extensions
    os.environ |= {
        "WAREHOUSE__DESTINATION": "ducklake",
        "DESTINATION__DUCKLAKE__CREDENTIALS__DUCKLAKE_NAME": "shop",
        "DESTINATION__DUCKLAKE__CREDENTIALS__CATALOG": f"duckdb:///{tmp_path}/catalog.duckdb",
        "DESTINATION__DUCKLAKE__CREDENTIALS__STORAGE__BUCKET_URL": (tmp_path / "lake").as_uri(),
    }
    return tmp_path / "catalog.duckdb"


@pytest.mark.skipif(HAS_FETCHONE, reason="this duckdb is one that dlt can use for DuckLake")
def test_a_duckdb_that_dlt_cannot_use_for_ducklake_is_refused_first(fresh: Bridge, lake: Path) -> None:
    with pytest.raises(UsageError, match=rf"cannot write to a DuckLake with duckdb {duckdb.__version__}") as error:
        fresh.pull()
    assert "pip install 'duckdb>=1.5,<2'" in str(error.value)
    assert not fresh.platform.state.log
    assert not lake.exists()


def test_a_missing_extension_is_named_with_its_reason(
    fresh: Bridge, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Offline:
        """A DuckDB without the extension, and without a network."""

        def __enter__(self) -> Offline:
            return self

        def __exit__(self, *_: object) -> None: ...

        def execute(self, statement: str) -> None:
            raise duckdb.IOException(f"{statement}: Failed to download extension\nmore lines")

    monkeypatch.setattr(duckdb.DuckDBPyRelation, "fetchone", None, raising=False)
    monkeypatch.setattr("pipelines.warehouse.destination_errors.duckdb.connect", Offline)
    with pytest.raises(UsageError, match=r"failed: INSTALL ducklake: Failed to download extension\n"):
        fresh.pull()
    assert not fresh.platform.state.log


@pytest.mark.skipif(not HAS_FETCHONE, reason=f"dlt cannot use duckdb {duckdb.__version__} for DuckLake: make ducklake")
@pytest.mark.skipif(EXTENSION is None, reason="duckdb-extension-ducklake is not installed: make ducklake")
def test_a_ducklake_holds_what_is_published(tmp_path: Path, fresh: Bridge, lake: Path) -> None:
    assert EXTENSION is not None
    assert EXTENSION.submodule_search_locations
    folder = Path(EXTENSION.submodule_search_locations[0], "extensions", f"v{duckdb.__version__}")
    with duckdb.connect() as connection:
        connection.execute(f"INSTALL '{folder / 'ducklake.duckdb_extension'}'")

    def copied() -> dict[str, int]:
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH 'ducklake:{lake}' AS shop")
            names = connection.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'shop' "
                "AND schema_name LIKE 'orderbridge%' AND table_name <> '_orderbridge'"
            ).fetchall()
            return {
                f"{schema.removeprefix('orderbridge_')}.{name}": len(
                    connection.execute(f"FROM shop.{schema}.{name}").fetchall()
                )
                for schema, name in names
            }

    assert fresh.code() == 0
    assert copied() == tables(fresh.path)
    fresh.platform.state.add("customers", {"erpCode": "NEW"})
    assert fresh.code() == 0
    assert reconcile().exit_code == ExitCode.DONE
    assert copied() == tables(fresh.path)
    assert copied()["raw.customers"] == 41
    assert list((tmp_path / "lake/orderbridge_raw/customers").glob("*.parquet"))
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH 'ducklake:{lake}' AS shop")
        comment = "SELECT comment FROM duckdb_columns() WHERE database_name = 'shop' AND table_name = 'customers' "
        where = "AND schema_name = 'orderbridge_raw' AND column_name = 'erp_code'"
        assert connection.execute(comment + where).fetchall() == [
            ("code of the record in the ERP; erpCode of GET /customers (code used by the integrator's ERP)",)
        ]
    with bridge(tmp_path / "other") as other, pytest.raises(UsageError, match="another source's data"):
        other.pull()
    assert copied() == tables(fresh.path)
