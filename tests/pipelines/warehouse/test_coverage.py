"""A list that was not read whole is no evidence of absence: nothing is said not to be listed that may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from orderbridge.pipelines.cli.reconcile import match_lines
from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.reconcile.erp.files import ErpFiles
from orderbridge.pipelines.reconcile.reconcile import Reconciling
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.bi.views import statements
from orderbridge.pipelines.warehouse.ops import last_reads
from orderbridge.pipelines.warehouse.raw import coverage, merge
from orderbridge.sources.decode.rows import InvalidRow, quarantine
from orderbridge.sources.extract.result import ListResult, Verdict
from tests.pipelines.bridge import Bridge, bridge

BEGIN = datetime(2026, 3, 2, 4, tzinfo=UTC)
READ_AT = "those of 2026-03-0{} 04:00 UTC are older than the orders"
TRIED = f"the last read failed or was held back, and {READ_AT.format(2)}"
ROW = quarantine((3, 5), b"{}", InvalidRow("id: expected an identifier, found nothing"), None)
Read = tuple[str, str, Verdict, float]
"""Run, list, verdict and minutes since `BEGIN`; a run whose name ends with a minus has not published the list."""
CUSTOMERS: Read = ("r1", "customers", "complete", 0)


@pytest.fixture
def build() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as build:
        build.execute("SET TimeZone = 'UTC'")
        merge.create_missing(build)
        ops.create_missing(build)
        yield build


def record(build: duckdb.DuckDBPyConnection, *reads: Read) -> None:
    for run, name, verdict, minutes in reads:
        at = BEGIN + timedelta(minutes=minutes)
        rows = [ROW, ROW] if verdict == "unproven" else []
        began = at - timedelta(seconds=47)
        walked = ListResult(name, verdict, started_at=began, ended_at=at, quarantined=rows)
        if run.endswith("-"):
            walked.evidence.append("held back: it shrank")
        ops.record_coverage(build, run.strip("-"), walked, published=not run.endswith("-"))


def found_about(build: duckdb.DuckDBPyConnection, name: str) -> list[dict[str, Any]]:
    """The findings about a list, as rows."""
    frames = coverage.list_findings(build, last_reads(build), name)
    return [
        {str(key): value for key, value in row.items()}
        for frame in frames
        for row in frame.to_dict("records")
    ]


@pytest.mark.parametrize(
    ("reads", "gap", "is_reported"),
    [
        ([("r1", "customers", "unproven", 0)], "unproven, quarantined rows: 1", False),
        ([("r1-", "customers", "complete", 0)], "never read", False),
        ([CUSTOMERS, ("r1", "orders", "complete", 30)], "", False),
        ([CUSTOMERS, ("r1", "orders", "complete", 61)], READ_AT.format(2), False),
        ([CUSTOMERS, ("r2", "orders", "complete", 30)], "", True),
        (
            [CUSTOMERS, ("r2", "orders", "complete", 30), ("r2-", "customers", "unproven", 9)],
            TRIED,
            False,
        ),
        (
            [CUSTOMERS, ("r2-", "customers", "complete", 9), ("r2", "orders", "complete", 9)],
            TRIED,
            False,
        ),
        # a clock that was ahead
        (
            [("r1", "customers", "complete", 1440), ("r2", "orders", "complete", 9)],
            READ_AT.format(3),
            False,
        ),
        ([("r2", "orders", "complete", 9), ("r1", "customers", "complete", 1440)], "", False),
        (
            [CUSTOMERS, ("r1", "orders", "complete", 0), ("r2", "orders", "tail", 120)],
            READ_AT.format(2),
            False,
        ),
    ],
)
def test_a_list_proves_absence_if_read_whole_and_not_long_before_what_names_it(
    build: duckdb.DuckDBPyConnection, reads: list[Read], gap: str, is_reported: bool
) -> None:
    record(build, *reads)
    found = coverage.coverage_gap(build, last_reads(build), "customers", "orders")
    assert found == (gap and f"customers: {gap}")
    shortly = [
        one["detail"]
        for one in found_about(build, "orders")
        if one["rule"] == "customers_read_before"
    ]
    assert ["orders read 1800 s later" in detail for detail in shortly] == is_reported * [True]


def test_a_list_that_is_unproven_and_rows_with_the_id_of_another_are_findings(
    build: duckdb.DuckDBPyConnection,
) -> None:
    build.execute(
        "INSERT INTO raw.promotions BY NAME SELECT i::VARCHAR AS id, 'r1' AS _run_id, $1 AS _last_seen_at, "
        "if(i = 3, $1, NULL) AS _missing_since FROM range(4) t(i)",
        [BEGIN - timedelta(days=1)],
    )
    build.execute(
        "UPDATE raw.promotions SET _run_id = 'r2', _last_seen_at = $1 WHERE id = '0'", [BEGIN]
    )
    record(build, ("r1", "promotions", "complete", -1440))
    assert found_about(build, "promotions") == []
    record(build, ("r2", "promotions", "unproven", 0))
    (found,) = found_about(build, "promotions")
    words = "promotions: unproven, quarantined rows: 1; rows of earlier walks: 2"
    assert (found["entity"], found["rule"], found["detail"]) == ("promotions", "unproven", words)
    record(build, ("r1", "customers", "unproven", 0))
    invalid = quarantine((3, 5), b"{}", InvalidRow("email: expected string, found boolean"), "c7")
    same_id = replace(
        quarantine((4, 6), b"{}", InvalidRow("another row has this id"), "c8"), is_id_duplicate=True
    )
    walked = ListResult("customers", "unproven", quarantined=[invalid, same_id])
    ops.record_coverage(build, "r2", walked, published=True)
    unproven, duplicate = found_about(build, "customers")
    assert unproven["rule"] == "unproven"
    assert [duplicate[name] for name in ("entity_id", "rule", "detail")] == [
        "c8", "id_duplicate", "quarantined row: page 4, position 6"
    ]  # fmt: skip


def test_the_last_read_of_version_0_2_is_known_and_it_gets_what_it_lacks(
    build: duckdb.DuckDBPyConnection,
) -> None:
    with duckdb.connect() as empty:
        assert (last_reads(empty), ops.last_observed(empty, "orders_total_gap")) == ({}, None)
    record(
        build,
        ("r1", "orders", "complete", 0),
        ("r2-", "orders", "incomplete", 1),
        ("r3-", "orders", "unproven", 2),
    )
    before = last_reads(build)
    assert before["orders"].run_id == "r1"
    build.execute("""DROP VIEW ops.last_read; ALTER TABLE ops.coverage DROP COLUMN read_number;
        ALTER TABLE ops.order_fields DROP COLUMN notation; DROP TABLE ops.column_values""")
    assert last_reads(build) == before
    ops.create_missing(build)
    assert last_reads(build) == before
    numbers = build.execute(
        "SELECT run_id, published, read_number FROM ops.coverage ORDER BY rowid"
    ).fetchall()
    assert numbers == [("r1", True, 1), ("r2", False, 2), ("r3", False, 3)]
    assert build.execute("SELECT notation, recorded_at FROM ops.order_fields").fetchall() == []


def test_a_read_by_a_clock_that_was_wrong_is_not_the_last_one_for_ever(
    build: duckdb.DuckDBPyConnection,
) -> None:
    year = 365 * 1440
    record(build, ("2040", "orders", "complete", 14 * year), ("2026", "orders", "unproven", 0))
    record(build, ("2041", "orders", "tail", 15 * year), ("t", "orders", "tail", 9))
    read = last_reads(build)["orders"]
    assert (read.run_id, read.verdict, read.quarantined_rows, read.tail_run_id) == (
        "2026",
        "unproven",
        1,
        "t",
    )
    assert read.newest == ("t", BEGIN + timedelta(minutes=9))
    (view,) = (sql.partition(" AS\n")[2] for sql in statements() if "VIEW bi.lists" in sql)
    build.execute("CREATE SCHEMA bi")
    build.execute("CREATE TABLE bi.as_of AS SELECT 'UTC' AS time_zone")
    sql = f"SELECT run_id, tail_read_at FROM ({view}) WHERE resource = 'orders'"
    assert build.execute(sql).fetchall() == [("2026", read.tail_ended_at)]


def test_of_a_refused_row_nothing_is_said_that_its_absence_would_mean(
    fresh: Bridge, tmp_path: Path
) -> None:
    state = fresh.platform.state
    base, derived, further, *_ = state.ids("price_lists")
    buyer, refused, *_ = state.ids("customers")
    order, customer = state.ids("orders")[0], state.records("orders")[0]["customer"]
    export = tmp_path / "erp.csv"
    export.write_text(
        f"erpCode;Razón social\n{state.records('customers')[1]['erpCode']};Uno\nnobody;Dos\n",
        "utf-8",
    )
    for name, one, fields in (
        ("price_lists", base, {"adjustmentValue": "mucho", "sourcePriceListId": None}),
        ("price_lists", derived, {"sourcePriceListId": base}),
        ("price_lists", further, {"sourcePriceListId": derived}),
        ("customers", buyer, {"priceListId": int(base)}),
        ("customers", refused, {"birthdate": ["mañana"]}),
        ("orders", order, {"customer": {**customer, "id": int(refused)}}),
    ):
        state.change(name, one, fields)
    unread, lists = (
        f"{name}: unproven, quarantined rows: 1" for name in ("customers", "price_lists")
    )
    expected = {
        "price_lists.sources_unproven": f" price lists: {lists}",
        "customers.price_lists_unproven": f" customers: {lists}",
        "orders.customers_unproven": f"customer__id of 1 orders: {unread}",
        "erp_customers.customers_unproven": f"2 lines only in the ERP: {unread}",
        "customers.unproven": f"{unread}; rows of earlier walks: 0",
    }
    after = Reconciling(ErpFiles(customers=export))
    pull(PullOptions(command="run"), step=after)
    said = dict(fresh.rows("SELECT entity || '.' || rule, detail FROM reconciled.exceptions"))
    assert [name for name, words in expected.items() if not said[name].endswith(words)] == []
    rules = {"price_list_not_listed", "source_not_listed", "chain_orphaned", "customer_unknown"}
    assert not rules & {name.partition(".")[2] for name in said}
    for table, name, status, one in (
        ("customers", "customer_id", "price_list_status", buyer), ("orders", "order_id", "customer_status", order),
        ("price_lists", "price_list_id", "chain_status", further),
    ):  # fmt: skip
        assert (
            fresh.one(f"SELECT {status} FROM reconciled.{table} WHERE {name} = $1", one)
            == "unknown"
        )
    assert after.result is not None
    assert after.result.match is not None
    assert any("may still be on the platform" in line for line in match_lines(after.result.match))


def test_a_list_that_is_cut_is_an_error_until_somebody_accepts_it(tmp_path: Path) -> None:
    with bridge(tmp_path, faults={"ignored_query": 1.0}, promotions=45) as made:
        assert made.command("pull", "promotions").code == 0
        assert made.command("reconcile").code == 9
        (found,) = made.dicts("FROM reconciled.exceptions WHERE rule = 'cut'")
        read = made.one("SELECT count(*) FROM raw.promotions")
        assert (found["entity"], found["severity"]) == ("promotions", "error")
        assert found["detail"] == f"promotions: rows read: {read}, reported: 45"
        accepted = made.command("accept", "promotions.cut", "--why", "hidden records")
        assert (accepted.code, made.command("reconcile").code) == (0, 0)
        made.platform.set_faults({})
        assert (made.command("pull", "promotions").code, made.command("reconcile").code) == (0, 0)
        assert made.dicts("FROM reconciled.exceptions WHERE rule = 'cut'") == []
