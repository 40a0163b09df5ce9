"""Exports: the rows that the warehouse has, read by other programs, and nobody's data unless it is asked for."""

from __future__ import annotations

import csv
import stat
from decimal import Decimal
from pathlib import Path

import openpyxl
import pandas as pd
import pytest
import yaml

from orderbridge.pipelines.reporting.dbt_sources import write_dbt_sources
from orderbridge.pipelines.reporting.export import export, snapshot
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.sources.errors import UsageError
from tests.pipelines.reporting.page import personal


def rows_of(sql: str) -> list[tuple[object, ...]]:
    with open_warehouse() as warehouse:
        return warehouse.execute(sql).fetchall()


def test_each_kind_of_file_has_the_rows_of_the_view_and_is_private(
    warehouse: Path, tmp_path: Path
) -> None:
    sql = "SELECT order_id, currency, total FROM bi.orders ORDER BY order_id"
    expected = rows_of(sql)
    assert len(expected) > 10
    files = [tmp_path / f"orders.{ending}" for ending in ("csv", "xlsx", "parquet")]
    for file in files:
        assert export(sql, file).rows == len(expected)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with files[0].open(encoding="utf-8", newline="") as text:
        header, *rows = csv.reader(text)
    assert header == ["order_id", "currency", "total"]
    assert rows == [["" if cell is None else str(cell) for cell in row] for row in expected]
    (_, *cells) = openpyxl.load_workbook(files[1]).active.values
    amounts = [None if row[2] is None else Decimal(str(row[2])) for row in cells]
    assert amounts == [row[2] for row in expected]
    assert pd.read_parquet(files[2])["total"].tolist() == [row[2] for row in expected]


def test_personal_data_is_left_out_of_tables_and_selects_until_it_is_asked_for(
    warehouse: Path, tmp_path: Path
) -> None:
    everybody = personal(warehouse)
    assert everybody
    for table in ("raw.customers", "raw.orders", "reconciled.customers", "bi.customers"):
        file = tmp_path / f"{table}.csv"
        done = export(table, file)
        text = file.read_text("utf-8")
        assert done.left_out
        assert [value for value in everybody if value in text] == [], table
    with pytest.raises(UsageError, match="email") as error:
        export("SELECT email AS id FROM raw.customers", tmp_path / "mails.csv")
    assert "--personal" in str(error.value)
    export("SELECT email AS id FROM raw.customers", tmp_path / "mails.csv", has_personal=True)
    assert "@" in (tmp_path / "mails.csv").read_text("utf-8")


def test_a_failing_query_repeats_no_value_and_leaves_the_file_that_was_there(
    warehouse: Path, tmp_path: Path
) -> None:
    file = tmp_path / "kept.csv"
    file.write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="exists"):
        export("bi.orders", file)
    with pytest.raises(UsageError, match="ConversionException") as error:
        export("SELECT email::INT FROM raw.customers", file, has_personal=True, overwrite=True)
    assert "@" not in str(error.value)
    assert [path.read_text("utf-8") for path in tmp_path.glob("*kept.csv*")] == ["mine"]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("orders", "bi.orders"),
        ("DROP TABLE raw.orders", "one SELECT"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("SELECT * FROM read_csv('/etc/passwd')", "the query failed: PermissionException"),
        ("SELECT * FRO bi.orders", "Parser Error"),
    ],
)
def test_what_is_no_table_and_no_select_is_an_error_that_says_what_to_do(
    warehouse: Path, tmp_path: Path, what: str, words: str
) -> None:
    with pytest.raises(UsageError) as error:
        export(what, tmp_path / "x.csv", overwrite=True)
    assert words in str(error.value)
    assert not (tmp_path / "x.csv").exists()


def test_a_sheet_keeps_long_ids_nested_values_and_formulas_as_text(
    warehouse: Path, tmp_path: Path
) -> None:
    sql = """SELECT 12345678901234567890::HUGEINT AS big, 0.000000000000000123456::DECIMAL(38, 30) AS small,
        {'a': [1, 2]} AS nested, '=1+1' AS formula, 'NaN'::DOUBLE AS nan, TIMESTAMPTZ '2026-01-02 03:04:05+05' AS at"""
    export(sql, tmp_path / "odd.xlsx")
    _, row = openpyxl.load_workbook(tmp_path / "odd.xlsx").active.values
    big, small, nested, formula, nan, at = row
    assert (big, nested, formula) == ("12345678901234567890", '{"a":[1,2]}', "'=1+1")
    assert Decimal(str(small)) == Decimal("0.000000000000000123456")
    assert (nan, str(at)) == ("nan", "2026-01-01 22:04:05")


def test_a_formula_is_a_text_in_a_file_for_people_and_as_it_is_in_one_to_import(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT '=1+1' AS reference, 1.50 AS price UNION ALL SELECT '-x', NULL"
    export(sql, tmp_path / "odd.csv")
    assert (tmp_path / "odd.csv").read_text("utf-8").count("'") == 2
    (tmp_path / ".dlt").mkdir()
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "prices.sql"
    file.write_text(f"-- of both\n{sql};\n", "utf-8")
    done = snapshot(file)
    assert (done.rows, stat.S_IMODE(done.file.stat().st_mode)) == (2, 0o600)
    assert done.file.read_text("utf-8").split() == ["reference,price", "-x,", "=1+1,1.50"]
    file.write_text(
        "SELECT '-x' AS reference, NULL AS price UNION ALL SELECT '=1+1', 1.50", "utf-8"
    )
    assert snapshot(file).file == done.file
    for refused, words in (
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("DELETE FROM raw.orders", "one SELECT"),
        ("FROM read_text('/etc/hostname')", "PermissionException"),
    ):
        file.write_text(refused, "utf-8")
        with pytest.raises(UsageError, match=words):
            snapshot(file)
    assert list((tmp_path / "snapshots").iterdir()) == [Path.cwd() / done.file]


def test_a_dbt_project_gets_every_table_with_its_meaning_its_key_and_its_age(
    warehouse: Path, tmp_path: Path
) -> None:
    file, count = write_dbt_sources(tmp_path / "sources.yml")
    sources = yaml.safe_load(file.read_text("utf-8"))["sources"]
    tables = {(one["schema"], table["name"]): table for one in sources for table in one["tables"]}
    expected = rows_of(
        "SELECT table_schema, table_name FROM information_schema.tables"
        " WHERE table_schema IN ('raw', 'reconciled', 'bi')"
    )
    assert tables.keys() == set(expected)
    assert count == len(expected)
    assert {one["database"] for one in sources} == {"warehouse"}
    customers = tables["raw", "customers"]
    assert customers["config"]["loaded_at_field"] == "_last_seen_at"
    keys = {
        (*table, column["name"])
        for table, one in tables.items()
        for column in one["columns"]
        if "data_tests" in column
    }
    assert ("raw", "orders", "id") in keys
    assert ("reconciled", "orders", "order_id") in keys
    for schema, table, column in keys:
        distinct = f'SELECT count(*), count(DISTINCT "{column}") FROM {schema}."{table}"'
        assert len(set(rows_of(distinct)[0])) == 1
    write_dbt_sources(file)  # its own file is replaced
    file.write_text("version: 2\n", "utf-8")
    with pytest.raises(UsageError, match=r"exists and is not"):
        write_dbt_sources(file)
