"""Tables that are merged at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.warehouse import merge, ops
from pipelines.warehouse.column_values import record_column_values
from pipelines.warehouse.load import CATALOG, LOADED
from pipelines.warehouse.merge import TableMerges
from sources.errors import BridgeError, Stopped
from sources.extract.result import ListResult, Verdict


def lists(rows: int) -> list[ListResult]:
    """Two lists whose build has one table of each."""
    results = [ListResult("price_lists"), ListResult("orders")]
    for result in results:
        result.distinct = rows
    return results


@pytest.fixture
def merges() -> Iterator[TableMerges]:
    """Into a build whose tables are empty."""
    with duckdb.connect() as build:
        merge.create_missing(build)
        build.execute(f"ATTACH ':memory:' AS {CATALOG}; CREATE SCHEMA {LOADED}")
        yield TableMerges(build, threading.Event())


def run_until_interrupted(build: duckdb.DuckDBPyConnection, ended: list[type[BaseException]]) -> None:
    """A query that would take hours; notes how it ended."""
    try:
        build.execute("SELECT count(*) FROM range(1_000_000_000) a, range(1_000) b WHERE a.range * b.range = 7")
    except duckdb.Error as error:
        ended.append(type(error))
        raise


def test_lists_are_merged_at_the_same_time(monkeypatch: pytest.MonkeyPatch, merges: TableMerges) -> None:
    both = threading.Barrier(2, timeout=60)
    monkeypatch.setattr(merge, "merge_table", lambda *_: both.wait())
    merges.merge_all(lists(250_000), "run")


def orders(build: duckdb.DuckDBPyConnection, rows: str, lines: str, verdict: Verdict = "complete") -> ListResult:
    """A walk of orders with these rows and lines, in SQL."""
    for table, columns, values in (("orders", "id, total", rows), ("orders__lines", "order_id, sku", lines)):
        sql = f"SELECT *, NULL::VARCHAR AS _extra FROM (VALUES {values}) t({columns})"
        build.execute(f"CREATE OR REPLACE TABLE {LOADED}.{table} AS {sql}")
    files = {"orders": [(Path("orders"), 2)], "orders__lines": [(Path("lines"), 2)]}
    return ListResult("orders", verdict=verdict, files=files, distinct=2)


@pytest.mark.parametrize(
    ("kept", "loaded", "kind", "values"),
    [
        ("'about 12'", "10::DOUBLE", "VARCHAR", ("about 12", "10")),
        ("10::DOUBLE", "'about 12'", "VARCHAR", ("10", "about 12")),
        ("'about 12'", "-1.25e-7::DOUBLE", "VARCHAR", ("about 12", "-0.000000125")),
        ("0.1234567890625::DOUBLE", "true", "VARCHAR", ("0.1234567890625", "true")),
        ("-0.0::DOUBLE", "'x'", "VARCHAR", ("0", "x")),
        ("'nan'", "1.5::DOUBLE", "VARCHAR", ("nan", "1.5")),
        ("'-inf'", "1.5::DOUBLE", "VARCHAR", ("-inf", "1.5")),
        ("'2'", "1.5::DOUBLE", "DOUBLE", (2.0, 1.5)),
        ("2::BIGINT", "1.5::DECIMAL(38,9)", "DECIMAL(38,9)", (Decimal(2), Decimal("1.5"))),
        ("1.5::DECIMAL(38,9)", "2::BIGINT", "DECIMAL(38,9)", (Decimal("1.5"), Decimal(2))),
        ("0.30000000000000004::DOUBLE", "2::DECIMAL(38,9)", "DECIMAL(38,9)", (Decimal("0.3"), Decimal(2))),
        ("'about 12'", "1.50::DECIMAL(38,9)", "VARCHAR", ("about 12", "1.5")),
        ("2::DOUBLE", "3::BIGINT", "BIGINT", (2, 3)),
    ],
)
def test_a_number_in_a_column_of_texts_is_in_plain_form(
    merges: TableMerges, kept: str, loaded: str, kind: str, values: tuple[object, ...]
) -> None:
    for row in (f"('1', {kept})", f"('2', {loaded})"):
        merges.merge_all([orders(merges.build, row, "('1', 'a')", "tail")], "run")
    assert merge.columns_of(merges.build, "raw.orders")["total"] == kind
    rows = merges.build.execute("SELECT total FROM raw.orders ORDER BY id").fetchall()
    assert tuple(value for (value,) in rows) == values


@pytest.mark.parametrize(
    ("kept", "loaded", "kind", "held", "beside"),
    [
        ("'about 12'", "1.50::DECIMAL(38,9)", "DECIMAL(38,9)", None, '{"total":"about 12"}'),
        ("'12.50'", "1.50::DECIMAL(38,9)", "DECIMAL(38,9)", Decimal("12.5"), None),
        ("'007'", "1::BIGINT", "BIGINT", None, '{"total":"007"}'),
        ("'12'", "1::BIGINT", "BIGINT", 12, None),
        ("1.5::DECIMAL(38,9)", "true", "BOOLEAN", None, '{"total":"1.5"}'),
        ("'about 12'", "'x'", "VARCHAR", "about 12", None),
    ],
)
def test_after_a_whole_read_a_column_has_the_type_of_its_rows_and_old_values_stay_beside_it(
    merges: TableMerges, kept: str, loaded: str, kind: str, held: object, beside: str | None
) -> None:
    for row in (f"('1', {kept})", f"('2', {loaded})"):
        merges.merge_all([orders(merges.build, row, "('1', 'a')")], "run")
    assert merge.columns_of(merges.build, "raw.orders")["total"] == kind
    assert merges.build.execute("SELECT total, _extra FROM raw.orders WHERE id = '1'").fetchall() == [(held, beside)]


def test_loaded_rows_that_are_not_in_their_raw_table_end_the_run(merges: TableMerges) -> None:
    ops.create_missing(merges.build)
    walked = orders(merges.build, "('1', 5), ('2', 6)", "('1', 'a'), ('2', 'b')")
    merges.merge_all([walked], "run")
    record_column_values(merges.build, "run", walked.ended_at, walked)
    totals = merges.build.execute("SELECT entity, measure, value FROM ops.control_totals ORDER BY ALL").fetchall()
    assert totals == [(f"raw.{one}", what, 2) for one in ("orders", "orders__lines") for what in ("loaded", "raw")]
    merges.build.execute("DELETE FROM raw.orders__lines WHERE order_id = '2'")
    with pytest.raises(BridgeError, match="orders__lines: 2 rows were loaded, 1 of them are in its raw table"):
        record_column_values(merges.build, "run", walked.ended_at, walked)


def test_child_tables_merged_at_the_same_time_take_over_the_times_of_their_records(
    monkeypatch: pytest.MonkeyPatch, merges: TableMerges
) -> None:
    build, merge_table = merges.build, merge.merge_table

    def after_the_records(cursor: duckdb.DuckDBPyConnection, walked: ListResult, table: str, run_id: str) -> None:
        sql = "SELECT count(*) FROM raw.orders WHERE _run_id = $1"
        while table != "orders" and build.cursor().execute(sql, [run_id]).fetchall() == [(0,)]:
            time.sleep(0.01)
        merge_table(cursor, walked, table, run_id)

    monkeypatch.setattr(merge, "merge_table", after_the_records)
    first = orders(build, "('a', 1), ('b', 2)", "('a', 'x'), ('b', 'y')")
    merges.merge_all([first], "run 1")
    second = orders(build, "('b', 'about 2'), ('c', 'about 3')", "('b', 7), ('c', 8)")  # of other types
    merges.merge_all([second], "run 2")
    sql = "SELECT {}, _run_id, _first_seen_at, _last_seen_at, _missing_since FROM raw.{} ORDER BY ALL"
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


def test_long_lists_are_merged_table_by_table(monkeypatch: pytest.MonkeyPatch, merges: TableMerges) -> None:
    merging = threading.Lock()
    merged = []

    def alone(_: duckdb.DuckDBPyConnection, walked: ListResult, *__: object) -> None:
        assert merging.acquire(blocking=False)
        time.sleep(0.02)
        merging.release()
        merged.append(walked.resource)

    monkeypatch.setattr(merge, "merge_table", alone)
    merges.merge_all(lists(250_001), "run")
    merges.merge_all([], "run")
    assert merged == ["price_lists", "orders"]


def test_a_merge_that_fails_ends_the_others(monkeypatch: pytest.MonkeyPatch, merges: TableMerges) -> None:
    ended: list[type[BaseException]] = []
    is_running = threading.Event()

    def fails(build: duckdb.DuckDBPyConnection, walked: ListResult, *_: object) -> None:
        if walked.resource == "price_lists":
            assert is_running.wait(5)
            raise duckdb.IOException("the disk is full")
        is_running.set()
        run_until_interrupted(build, ended)

    monkeypatch.setattr(merge, "merge_table", fails)
    with pytest.raises(duckdb.IOException, match="the disk is full"):
        merges.merge_all(lists(1), "run")
    assert ended == [duckdb.InterruptException]


@pytest.mark.parametrize("rows", [1, 250_001], ids=["at once", "table by table"])
def test_a_stop_ends_merges_under_way(monkeypatch: pytest.MonkeyPatch, merges: TableMerges, rows: int) -> None:
    ended: list[type[BaseException]] = []
    is_running = threading.Event()

    def runs(build: duckdb.DuckDBPyConnection, *_: object) -> None:
        is_running.set()
        run_until_interrupted(build, ended)

    monkeypatch.setattr(merge, "merge_table", runs)
    with ThreadPoolExecutor(1) as pool:
        merging = pool.submit(merges.merge_all, lists(rows), "run")
        assert is_running.wait(5)
        merges.stop.set()
        with pytest.raises(Stopped):
            merging.result(timeout=60)
    assert set(ended) == {duckdb.InterruptException}
    monkeypatch.setattr(merge, "merge_table", lambda *_: None)
    with pytest.raises(Stopped):
        merges.merge_all(lists(rows), "run")


def test_a_cursor_that_is_closed_meanwhile_is_not_interrupted() -> None:
    is_interrupting = threading.Event()

    class Cursor:
        """A cursor whose interruption takes a while."""

        is_closed = False

        def __enter__(self) -> Cursor:
            return self

        def __exit__(self, *_: object) -> None:
            self.is_closed = True

        def interrupt(self) -> None:
            is_interrupting.set()
            time.sleep(0.05)
            if self.is_closed:
                raise duckdb.ConnectionException("Connection already closed!")

    class Connection:
        """A build."""

        def cursor(self) -> Cursor:
            return Cursor()

    merges = TableMerges(Connection(), threading.Event())  # type: ignore[arg-type]
    with merges.cursor():
        merges.stop.set()
        assert is_interrupting.wait(5)


def test_an_interruption_without_a_stop_is_not_taken_for_one(merges: TableMerges) -> None:
    with pytest.raises(duckdb.InterruptException), merges.cursor():
        raise duckdb.InterruptException("Interrupted!")


def test_a_thread_that_cannot_be_started_ends_the_merges(monkeypatch: pytest.MonkeyPatch, merges: TableMerges) -> None:
    ended: list[type[BaseException]] = []
    is_running = threading.Event()

    class Exhausted(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **_: Any) -> Any:
            if is_running.is_set():
                raise RuntimeError("can't start new thread")
            first = super().submit(*arguments)
            assert is_running.wait(5)
            return first

    def runs(build: duckdb.DuckDBPyConnection, *_: object) -> None:
        is_running.set()
        run_until_interrupted(build, ended)

    monkeypatch.setattr(merge, "ThreadPoolExecutor", Exhausted)
    monkeypatch.setattr(merge, "merge_table", runs)
    with pytest.raises(RuntimeError, match="new thread"):
        merges.merge_all(lists(1), "run")
    assert ended == [duckdb.InterruptException]


def test_after_a_merge_that_fails_none_begins(monkeypatch: pytest.MonkeyPatch, merges: TableMerges) -> None:
    merged = []

    def fails(_: duckdb.DuckDBPyConnection, walked: ListResult, *__: object) -> None:
        merged.append(walked.resource)
        time.sleep(0.02)
        raise duckdb.IOException("the disk is full")

    monkeypatch.setattr(merge, "merge_table", fails)
    with pytest.raises(duckdb.IOException, match="the disk is full"):
        merges.merge_all(lists(250_001), "run")
    assert merged == ["price_lists"]


def test_tables_that_run_out_of_memory_together_are_merged_alone(
    monkeypatch: pytest.MonkeyPatch, merges: TableMerges
) -> None:
    merged: list[tuple[str, bool]] = []

    def runs_out(_: duckdb.DuckDBPyConnection, walked: ListResult, *__: object) -> None:
        is_alone = threading.current_thread() is threading.main_thread()
        merged.append((walked.resource, is_alone))
        if walked.resource == "price_lists" and not is_alone:
            raise duckdb.OutOfMemoryException("no memory")

    monkeypatch.setattr(merge, "merge_table", runs_out)
    merges.merge_all(lists(1), "run")
    assert sorted(merged) == [("orders", False), ("price_lists", False), ("price_lists", True)]

    def runs_out_alone(*_: object) -> None:
        raise duckdb.OutOfMemoryException("no memory")

    monkeypatch.setattr(merge, "merge_table", runs_out_alone)
    with pytest.raises(duckdb.OutOfMemoryException):
        merges.merge_all(lists(250_001), "run")
