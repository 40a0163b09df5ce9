"""Loaded rows become raw tables: types, times, what is held back, and how a merge is stopped."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest

from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.raw import merge
from orderbridge.pipelines.warehouse.raw.column_values import record_column_values
from orderbridge.pipelines.warehouse.raw.load import CATALOG, LOADED
from orderbridge.pipelines.warehouse.raw.merge import (
    MergeCounts,
    interruptible,
    merge_list,
)
from orderbridge.pipelines.warehouse.raw.shrinking import shrink_reason
from orderbridge.pipelines.warehouse.sql import columns_of
from orderbridge.sources.decode.rows import InvalidRow, quarantine
from orderbridge.sources.errors import BridgeError, Stopped
from orderbridge.sources.extract.result import ListResult, Verdict

ROW = quarantine((1, 1), b"{}", InvalidRow("id: expected an identifier, found nothing"), None)
LOST = "{} of {} known records are not in the list any more"


def test_a_list_that_lost_more_than_is_plausible_is_held_back() -> None:
    complete, unproven = (
        ListResult("customers", verdict, distinct=9) for verdict in ("complete", "unproven")
    )
    quarantined = ListResult("customers", distinct=1, quarantined=[ROW])
    for walked, missing, known, reason in (
        (complete, 0, 0, ""), (complete, 5, 40, ""), (complete, 6, 40, LOST.format(6, 40)),
        (complete, 20, 1000, ""), (complete, 21, 1000, LOST.format(21, 1000)),
        (complete, 1, 2, ""), (complete, 2, 3, f"{LOST.format(2, 3)} (more than half)"),
        (unproven, 20, 40, ""), (unproven, 21, 40, f"{LOST.format(21, 40)} (more than half)"),
        (ListResult("customers", "tail", distinct=9), 40, 40, ""),
        (ListResult("customers", "complete"), 2, 2, "the list is empty, and 2 records are known"),
        (ListResult("customers", quarantined=[ROW, ROW]), 2, 2, "all 1 rows were quarantined, and 2 records are known"),
        (quarantined, 2, 2, f"{LOST.format(2, 2)} (more than half), with 1 rows quarantined"),
    ):  # fmt: skip
        assert shrink_reason(walked, MergeCounts(9, 0, missing, known, 0)) == reason


@pytest.fixture
def build() -> Iterator[duckdb.DuckDBPyConnection]:
    """A build whose tables are empty."""
    with duckdb.connect() as build:
        merge.create_missing(build)
        build.execute(f"ATTACH ':memory:' AS {CATALOG}; CREATE SCHEMA {LOADED}")
        yield build


def orders(
    build: duckdb.DuckDBPyConnection, rows: str, lines: str, verdict: Verdict = "complete"
) -> ListResult:
    """A walk of orders with these rows and lines, in SQL."""
    for table, columns, values in (
        ("orders", "id, total", rows),
        ("orders__lines", "order_id, sku", lines),
    ):
        sql = f"SELECT *, NULL::VARCHAR AS _extra FROM (VALUES {values}) t({columns})"
        build.execute(f"CREATE OR REPLACE TABLE {LOADED}.{table} AS {sql}")
    files = {"orders": [(Path("orders"), 2)], "orders__lines": [(Path("lines"), 2)]}
    return ListResult(
        "orders", verdict=verdict, files=files, distinct=2, items=Counter(orders__lines=2)
    )


def test_a_number_among_texts_is_in_plain_form_and_old_values_stay_beside_it(
    build: duckdb.DuckDBPyConnection,
) -> None:
    cases: list[tuple[Any, str, str, str, tuple[Any, Any], str | None]] = [
        ("tail", "'about 12'", "10::DOUBLE", "VARCHAR", ("about 12", "10"), None),
        ("tail", "'about 12'", "-1.25e-7::DOUBLE", "VARCHAR", ("about 12", "-0.000000125"), None),
        ("tail", "0.1234567890625::DOUBLE", "true", "VARCHAR", ("0.1234567890625", "true"), None),
        ("tail", "-0.0::DOUBLE", "'x'", "VARCHAR", ("0", "x"), None),
        ("tail", "'nan'", "1.5::DOUBLE", "VARCHAR", ("nan", "1.5"), None),
        ("tail", "'2'", "1.5::DOUBLE", "DOUBLE", (2.0, 1.5), None),
        (
            "tail",
            "2::BIGINT",
            "1.5::DECIMAL(38,9)",
            "DECIMAL(38,9)",
            (Decimal(2), Decimal("1.5")),
            None,
        ),
        (
            "tail",
            "3.0000000000000004e-1",
            "2::DECIMAL(38,9)",
            "DECIMAL(38,9)",
            (Decimal("0.3"), Decimal(2)),
            "0.30000000000000004",
        ),
        *(
            (
                verdict,
                stored,
                "1.5::DECIMAL(38,9)",
                "DECIMAL(38,9)",
                (Decimal(number), Decimal("1.5")),
                beside,
            )
            for verdict in ("tail", "complete")
            for stored, number, beside in (
                ("'8.264462809917356'", "8.26446281", "8.264462809917356"),
                ("'-0.0000000005'", "-0.000000001", "-0.0000000005"),
                ("'-12.50'", "-12.5", None),
                ("8.264462809917356e0", "8.26446281", "8.264462809917356"),
                ("5.684341886080802e-14", "0", "5.684341886080802e-14"),
                ("123456789012345.12e0", "123456789012345.12", None),
            )
        ),
        ("tail", "'1e3'", "1.5::DECIMAL(38,9)", "VARCHAR", ("1e3", "1.5"), None),
        ("tail", "'about 12'", "1.50::DECIMAL(38,9)", "VARCHAR", ("about 12", "1.5"), None),
        ("tail", "2::DOUBLE", "3::BIGINT", "BIGINT", (2, 3), None),
        ("tail", "7::INTEGER", "9000000000::BIGINT", "BIGINT", (7, 9_000_000_000), None),
        ("tail", "'12'", "NULL::BIGINT", "VARCHAR", ("12", None), None),
        # after a whole read a column has the type of its rows
        (
            "complete",
            "'about 12'",
            "1.50::DECIMAL(38,9)",
            "DECIMAL(38,9)",
            (None, Decimal("1.5")),
            '"about 12"',
        ),
        (
            "complete",
            "'12.50'",
            "1.50::DECIMAL(38,9)",
            "DECIMAL(38,9)",
            (Decimal("12.5"), Decimal("1.5")),
            None,
        ),
        ("complete", "'007'", "1::BIGINT", "BIGINT", (None, 1), '"007"'),
        ("complete", "1.5::DECIMAL(38,9)", "true", "BOOLEAN", (None, True), '"1.5"'),
    ]
    for verdict, kept, loaded, kind, values, beside in cases:
        for row in (f"('1', {kept})", f"('2', {loaded})"):
            merge_list(build, orders(build, row, "('1', 'a')", verdict), "run")
        assert columns_of(build, "raw.orders")["total"] == kind
        rows = build.execute("SELECT total, _extra FROM raw.orders ORDER BY id").fetchall()
        assert rows == [(values[0], beside and f'{{"total":{beside}}}'), (values[1], None)]
        build.execute("DROP TABLE raw.orders; DROP TABLE raw.orders__lines")
        merge.create_missing(build)
    merge_list(build, orders(build, "('1', 'about 12')", "('1', 'a')"), "run")
    build.execute("""UPDATE raw.orders SET _extra = '{"gift":true}'""")
    merge_list(build, orders(build, "('2', 1.5::DECIMAL(38,9))", "('1', 'a')"), "run")
    extra = build.execute("SELECT _extra FROM raw.orders WHERE id = '1'").fetchall()
    assert extra == [('{"total":"about 12","gift":true}',)], (
        "an old value joins what its row has beside it"
    )
    build.execute("DELETE FROM raw.orders")
    merge_list(build, orders(build, "('1', 'about 12')", "('1', 'a')"), "run")
    build.execute("""UPDATE raw.orders SET _extra = '{"total":"of another field"}'""")
    merge_list(build, orders(build, "('2', 1.5::DECIMAL(38,9))", "('1', 'a')"), "run")
    ((text,),) = build.execute("SELECT _extra FROM raw.orders WHERE id = '1'").fetchall()
    assert json.loads(text) == {'["total"]': "about 12", "total": "of another field"}


def test_loaded_rows_that_are_not_in_their_raw_table_end_the_run(
    build: duckdb.DuckDBPyConnection,
) -> None:
    ops.create_missing(build)
    walked = orders(build, "('1', 5), ('2', 6)", "('1', 'a'), ('2', 'b')")
    merge_list(build, walked, "run")
    record_column_values(build, "run", walked.ended_at, [walked])
    totals = build.execute(
        "SELECT entity, measure, value FROM ops.control_totals ORDER BY ALL"
    ).fetchall()
    assert totals == [
        *(("raw.orders", what, 2) for what in ("loaded", "raw")),
        *(("raw.orders__lines", what, 2) for what in ("listed", "loaded", "raw")),
    ]
    build.execute("DELETE FROM raw.orders__lines WHERE order_id = '2'")
    with pytest.raises(
        BridgeError, match="orders__lines: 2 rows were loaded, 1 of them are in its raw table"
    ):
        record_column_values(build, "run", walked.ended_at, [walked])


def test_rows_of_child_tables_have_the_times_of_their_records(
    build: duckdb.DuckDBPyConnection,
) -> None:
    first = orders(build, "('a', 1), ('b', 2)", "('a', 'x'), ('b', 'y')")
    merge_list(build, first, "run 1")
    # of other types
    second = orders(build, "('b', 'about 2'), ('c', 'about 3')", "('b', 7), ('c', 8)")
    merge_list(build, second, "run 2")
    sql = (
        "SELECT {}, _run_id, _first_seen_at, _last_seen_at, _missing_since FROM raw.{} ORDER BY ALL"
    )
    one, two = first.ended_at, second.ended_at
    assert build.execute(sql.format("id, total", "orders")).fetchall() == [
        ("a", "1", "run 1", one, one, two),
        ("b", "about 2", "run 2", one, two, None),
        ("c", "about 3", "run 2", two, two, None),
    ]
    assert build.execute(sql.format("order_id, sku, _extra", "orders__lines")).fetchall() == [
        ("a", None, '{"sku":"x"}', "run 1", one, one, two),
        ("b", 7, None, "run 2", one, two, None),
        ("c", 8, None, "run 2", two, two, None),
    ]


def test_a_stop_ends_a_merge_under_way_and_none_begins_after_it(
    build: duckdb.DuckDBPyConnection,
) -> None:
    stop, is_running = threading.Event(), threading.Event()

    def endless() -> None:
        with interruptible(build, stop) as cursor:
            is_running.set()
            cursor.execute(
                "SELECT count(*) FROM range(1_000_000_000) a, range(1_000) b WHERE a.range * b.range = 7"
            )

    with ThreadPoolExecutor(1) as pool:
        merging = pool.submit(endless)
        assert is_running.wait(5)
        stop.set()
        with pytest.raises(Stopped):
            merging.result(timeout=60)
    with pytest.raises(Stopped), interruptible(build, stop):
        pytest.fail("it began")
    with pytest.raises(duckdb.InterruptException), interruptible(build, threading.Event()):
        raise duckdb.InterruptException("not by a stop")


def test_a_cursor_that_is_closed_meanwhile_is_not_interrupted() -> None:
    stop, is_interrupting, cursor = threading.Event(), threading.Event(), mock.MagicMock()
    cursor.cursor.return_value.__enter__.return_value = cursor

    def interrupt() -> None:
        is_interrupting.set()
        time.sleep(0.05)
        assert not cursor.cursor.return_value.__exit__.called

    cursor.interrupt.side_effect = interrupt
    with interruptible(cursor, stop):
        stop.set()
        assert is_interrupting.wait(5)


def test_after_a_clock_that_was_ahead_no_row_was_last_seen_before_it_was_first_seen(
    build: duckdb.DuckDBPyConnection,
) -> None:
    first = orders(build, "('a', 1), ('b', 2)", "('a', 'x'), ('b', 'y')")
    today = first.ended_at
    first.ended_at += timedelta(days=1)
    merge_list(build, first, "run 1")
    second = orders(build, "('b', 2), ('c', 3)", "('b', 'y'), ('c', 'z')")
    second.ended_at = today
    merge_list(build, second, "run 2")
    sql = "SELECT {}, _first_seen_at, _last_seen_at, _missing_since FROM raw.{} ORDER BY ALL"
    for table, key in (("orders", "id"), ("orders__lines", "order_id")):
        assert build.execute(sql.format(key, table)).fetchall() == [
            ("a", today, today, today),
            ("b", today, today, None),
            ("c", today, today, None),
        ]
    ops.create_missing(build)
    for run, at in (("run 1", first.ended_at), ("run 2", today)):
        ops.record_observations(build, run, at, [("rate_limit", "none")])
    observed = build.execute("SELECT first_seen_at, last_seen_at FROM ops.observations").fetchall()
    assert observed == [(today, today)]
