"""Each table of `reconciled` is compared row by row and column by column with plain Python over the raw rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from orderbridge.pipelines.reconcile import parts
from orderbridge.pipelines.reconcile.erp.files import ErpFiles
from orderbridge.pipelines.reconcile.reconcile import Reconciling
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.accepted import (
    Acceptance,
    accepted_file,
    write_acceptances,
)
from orderbridge.pipelines.warehouse.answers.reviews import write_reviews
from orderbridge.pipelines.warehouse.raw import merge
from tests.pipelines.reconcile import match_truth, run_truth, table_truth
from tests.pipelines.reconcile.raw_world import (
    ACCEPTED,
    ERP_FIELDS,
    ORDER_FIELDS,
    REFUSED,
    SEVERITIES,
    Night,
    RawWorld,
    Row,
)
from tests.pipelines.same_rows import check_same_rows, constant_columns

TRUTH = table_truth.TRUTH | run_truth.TRUTH | match_truth.TRUTH
NOT_COMPARED = {
    "reconciled.exceptions": {"detail", "subject"},
    "ops.past_findings": {"detail"},
    "ops.last_read": {"environment", "legacy_host", "public_v1_host"},
}
"""Words; and what is not of the lists."""
CONSTANT = {"ops.last_read": {"published", "cut"}, "reconciled.erp_differences": {"entity"}}
ERP_HEADER = (
    "erpCode", "loginCode", "email", "document number", "firstName", "lastName", "phone", "priceListId", "fiscalName",
    "fiscalAddress", "billing email",
)  # fmt: skip
PART_ROWS = 150
"""So many rows are worked on at once: most tables are made in several parts."""
Tables = Mapping[str, Sequence[Row]]
_KINDS = {
    bool: pa.bool_(),
    int: pa.int64(),
    str: pa.string(),
    date: pa.date32(),
    Decimal: pa.decimal128(38, 9),
    datetime: pa.timestamp("us", "UTC"),
}


@cache
def world() -> RawWorld:
    made = RawWorld(4)
    for night in made.nights[1:]:
        night.reviews = match_truth.decided(made.nights[:1])
    return made


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> list[Tables]:
    """The tables as the run of each night leaves them."""
    return [*made_nights(tmp_path_factory.mktemp("tables"))]


def made_nights(folder: Path) -> Iterator[Tables]:
    with pytest.MonkeyPatch.context() as patch, duckdb.connect(folder / "build.duckdb") as build:
        patch.setenv("DLT_PROJECT_DIR", str(folder))
        patch.setenv("RECONCILE__TIMEZONE", "America/Lima")
        patch.setattr(parts, "PART_ROWS", PART_ROWS)
        for name, value in ORDER_FIELDS.items():
            patch.setenv(f"RECONCILE__ORDER_{name.upper()}", value)
        _accept()
        build.execute("SET TimeZone = 'UTC'")
        merge.create_missing(build)
        ops.create_missing(build)
        for night in world().nights:
            _read(build, night)
            write_reviews(
                {f"{line} = {customer}": ("accept" if is_same else "reject", "")
                 for (line, customer), is_same in night.reviews.items()}, "ana"
            )  # fmt: skip
            files = ErpFiles(_erp_file(folder, night))
            Reconciling(files).build_tables(build, night.run_id, night.as_of)
            ops.insert(build, "runs", run_id=night.run_id, command="run", started_at=night.as_of)
            yield {name: _rows(build, name) for name in TRUTH}


def _accept() -> None:
    at = world().nights[0].as_of
    accepted = [Acceptance(rule, "ana", at, subject=subject) for rule, subject in ACCEPTED]
    judged = [Acceptance(rule, "ana", at, severity=of) for rule, of in SEVERITIES.items()]
    accepted_file().parent.mkdir()
    write_acceptances(accepted_file(), [*accepted, *judged])


def _erp_file(folder: Path, night: Night) -> Path | None:
    if night.erp is None:
        return None
    path = folder / "erp.csv"
    lines = [[one[name] or "" for name in ERP_FIELDS] for one in night.erp]
    refused = [[*lines[-1], "more"]] * REFUSED
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";").writerows([ERP_HEADER, *lines, *refused])
    return path


def _read(build: duckdb.DuckDBPyConnection, night: Night) -> None:
    """As a pull leaves the build."""
    for name, rows in night.tables.items():
        columns = {key: [row[key] for row in rows] for key in rows[0]}
        given = {
            key: next((one for one in of if one is not None), "") for key, of in columns.items()
        }
        table = pa.table(
            {key: pa.array(of, _KINDS[type(given[key])]) for key, of in columns.items()}
        )
        build.register("read", table)
        if name.startswith("orders"):  # whose fields are not shown
            build.execute(f"CREATE OR REPLACE TABLE raw.{name} AS FROM read")
        else:
            build.execute(f"DELETE FROM raw.{name}; INSERT INTO raw.{name} BY NAME FROM read")
        build.unregister("read")
    build.execute("DELETE FROM ops.coverage; DELETE FROM ops.quarantine")
    for name, rows in (("coverage", night.reads), ("quarantine", night.quarantined)):
        ops.insert(build, name, **{key: [row[key] for row in rows] for key in rows[0]})


def _rows(build: duckdb.DuckDBPyConnection, name: str) -> list[Row]:
    found = build.sql(f"FROM {name}")
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize("name", TRUTH)
def test_a_table_has_the_rows_that_plain_python_finds(nights: list[Tables], name: str) -> None:
    for number, tables in enumerate(nights):
        compare(name, number, tables)


def adjusted(row: Row) -> Row:
    """A line without a code of its own is named by a digest; the documents of a version have no sequence."""
    made = dict(row)
    if str(row.get("line_key")).startswith("keys "):
        made["line_key"] = "keys"
    if "documents" in row:
        made["documents"] = sorted(map(str, json.loads(row["documents"])))
    return made


def compare(name: str, number: int, tables: Tables) -> None:
    rows = [adjusted(row) for row in tables[name]]
    expected = [adjusted(row) for row in TRUTH[name](world().nights[: number + 1])]
    if not expected:
        assert rows == []
        return
    columns = [*expected[0]]
    assert {*columns} | NOT_COMPARED.get(name, set()) == {*rows[0]}
    check_same_rows(rows, expected, columns, f"night {number}")


@pytest.mark.parametrize("name", TRUTH)
def test_no_column_of_a_table_is_constant(name: str) -> None:
    rows = [
        row
        for number in range(1, len(world().nights) + 1)
        for row in TRUTH[name](world().nights[:number])
    ]
    assert constant_columns(rows) - CONSTANT.get(name, set()) == set()
