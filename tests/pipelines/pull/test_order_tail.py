"""`pull --tail`: when the orders are continued, when they are read whole, and what neither may say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli.status import lines
from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from pipelines.reconcile.reconcile import Reconciling
from pipelines.reporting.notification import run_summary
from pipelines.reporting.report import report
from pipelines.reporting.status import read_status
from pipelines.warehouse import coverage, ops
from sources.contract import RECORDS
from sources.errors import UsageError
from tests.pipelines.bridge import bridge
from tests.pipelines.pull.tails import HOUR, TailBench
from tests.soak.walks import inline

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _fast() -> Iterator[None]:
    with inline():
        yield


@pytest.fixture
def bench(tmp_path: Path) -> TailBench:
    """Has read 25 orders whole, listed by their time; 6 orders since."""
    bench = TailBench.of(tmp_path)
    assert bench.pull(tail=False).verdict == "complete"
    bench.state.grow("orders", 6)
    return bench


def test_a_tail_adds_new_orders_and_says_nothing_of_older_ones(bench: TailBench) -> None:
    _, changed, gone, *_ = before = bench.state.ids("orders")
    bench.state.change("orders", changed, {"status": "CHANGED"})
    bench.state.remove("orders", gone)
    result = bench.pull()
    assert (result.verdict, result.total("rows")) == ("tail", 21)
    assert bench.ids() == {*before, gone}
    assert bench.ids("_missing_since IS NOT NULL OR status = 'CHANGED'") == set()
    assert bench.ids("_run_id = 'run 002'") == {*bench.state.ids("orders")[-21:]}
    assert bench.rows("SELECT count(DISTINCT order_id) FROM raw.orders__lines") == [(31,)]
    read = ops.last_reads(bench.warehouse)["orders"]
    assert (read.run_id, read.verdict, read.rows) == ("run 001", "complete", 25), "the proof"
    assert (read.tail_run_id, read.tail_ended_at) == ("run 002", bench.now)
    assert bench.pull(tail=False).verdict == "complete"
    assert (bench.ids("_missing_since IS NOT NULL"), bench.ids("status = 'CHANGED'")) == ({gone}, {changed})
    read = ops.last_reads(bench.warehouse)["orders"]
    assert (read.run_id, read.rows, read.tail_run_id, read.tail_ended_at) == ("run 003", 30, None, None)


def test_the_interval_is_counted_from_the_last_whole_read(bench: TailBench) -> None:
    assert [bench.pull(after=2 * DAY).verdict for _ in range(4)] == ["tail", "tail", "tail", "complete"]
    assert bench.reason() == "the last whole read ended at 2026-03-02 05:00 UTC"
    assert bench.pull(after=2 * DAY).verdict == "tail"
    bench.configure(whole_read_days=1)
    assert bench.pull().verdict == "complete"
    assert bench.pull(after=DAY - HOUR).verdict == "tail"
    assert bench.pull(after=HOUR).verdict == "complete"
    assert bench.pull(after=-HOUR).verdict == "complete", "the clock went back"


CURSOR = "UPDATE ops.order_cursor SET"


@pytest.mark.parametrize(
    ("setting", "organization", "sql", "reason"),
    [
        ({"base_url": "http://127.0.0.1:10"}, "org", "", "another base url"),
        ({"page_limit": 11}, "org", "", "another page limit"),
        ({"order_key": "number"}, "org", "", "another order key"),
        ({}, "other", "", "another organization"),
        ({}, None, "", "not known now"),
        ({}, None, f"{CURSOR} organization = NULL", "not known now"),  # the key may be another one
        ({}, "org", f"{CURSOR} organization = NULL", "saved cursor is not known"),
        ({}, "org", f"{CURSOR} environment = 'production'", "another environment"),
        ({}, "org", f"{CURSOR} is_newest_last = NULL", "nothing shows where"),
        ({}, "org", "DELETE FROM ops.order_cursor", "no whole read"),
        ({}, "org", "DROP TABLE ops.order_cursor", "no whole read"),
        ({}, "org", "DELETE FROM ops.coverage", "no whole read"),
    ],
)
def test_a_cursor_belongs_to_host_environment_organization_and_page_limit(
    bench: TailBench, setting: dict[str, Any], organization: str | None, sql: str, reason: str
) -> None:
    bench.configure(**setting)
    bench.organization = organization
    bench.warehouse.execute(sql or "SELECT 1")
    requests = bench.state.requests
    assert reason in bench.objection()
    assert bench.state.requests == requests


def test_orders_are_read_whole_where_a_row_of_a_tail_is_quarantined(bench: TailBench) -> None:
    bench.state.add("orders", {"note": "x\u0000y"})
    for tail in (True, False):
        result = bench.pull(tail=tail)
        assert (result.verdict, len(result.quarantined)) == ("unproven", 1)
        read = ops.last_reads(bench.warehouse)["orders"]
        assert (read.verdict, read.quarantined_rows, read.tail_run_id) == ("unproven", 1, None)
    bench.state.grow("orders", 24)
    assert bench.pull().verdict == "unproven"
    assert bench.pull().verdict == "tail"  # after the row
    assert ops.last_reads(bench.warehouse)["orders"].quarantined_rows == 1


def test_a_cursor_that_does_not_continue_is_followed_by_a_whole_read(tmp_path: Path) -> None:
    bench = TailBench.of(tmp_path, readings={"cursor_reuse": "skips"})
    bench.pull(tail=False)
    bench.state.grow("orders", 12)
    result = bench.pull()
    assert (result.verdict, "saved cursor" in bench.reason()) == ("complete", True)
    assert {what for what, _ in result.observations} >= {"cursor_reuse", "order_sequence"}


@pytest.mark.parametrize(("reading", "reason"), [("newest_first", "not listed last"), ("unordered", "nothing shows")])
def test_a_list_without_its_new_orders_last_is_read_whole(tmp_path: Path, reading: str, reason: str) -> None:
    bench = TailBench.of(tmp_path, readings={"order_sequence": reading})
    for number in range(4):
        assert bench.pull(tail=number > 0).verdict == "complete"
        expected = ("", reason, "not listed last", "not listed last")[number]
        assert expected in bench.reason()
        assert bench.ids() == {*bench.state.ids("orders")}
        bench.state.grow("orders", 6)


def test_orders_without_times_are_continued_once_new_ones_were_seen_to_be_last(tmp_path: Path) -> None:
    bench = TailBench.of(tmp_path, orders=0)

    def add(count: int) -> None:
        for _ in range(count):
            bench.state.add("orders", {"status": "NEW"})

    add(25)
    verdicts = []
    for new in (3, 7, 7, 0):
        verdicts.append(bench.pull().verdict)
        add(new)
    assert verdicts == ["complete", "complete", "complete", "tail"]  # three could be the last ones by chance
    bench.organization = "other"
    bench.pull(tail=False)
    assert "nothing shows where" in bench.objection(), "where another organization's orders were is no proof"


@pytest.mark.parametrize("customers", [100, 3])
def test_times_that_contradict_the_count_of_new_orders_end_no_whole_reads(tmp_path: Path, customers: int) -> None:
    bench = TailBench.of(tmp_path, orders=0, limit=100)
    for customer in range(customers):
        _grow(bench, 1, 300 // customers, customer=customer)
    bench.pull(tail=False)
    _grow(bench, 2, 5, customer=customers)
    assert bench.pull().verdict == "complete"
    bench.state.drift("orders", 2, removes=False)  # an order of a known customer
    assert bench.pull().verdict == "complete"
    assert bench.ids() == {*bench.state.ids("orders")}


def _grow(bench: TailBench, day: int, count: int, **fields: object) -> None:
    for number in range(count):
        bench.state.add("orders", {"createdAt": f"2026-01-{day:02d}T00:00:{number:02d}Z", **fields})


@pytest.mark.parametrize("is_null_before", [False, True])
def test_nulls_empty_lists_and_amounts_without_decimals_in_a_tail_change_no_column(
    tmp_path: Path, is_null_before: bool
) -> None:
    bench = TailBench.of(tmp_path, orders=0)
    filled: dict[str, Any] = {"total": 10.5, "number": 3, "flag": True, "customer": {"id": 5}, "lines": [{"sku": "a"}]}
    empty: dict[str, Any] = {"total": None, "number": None, "flag": None, "customer": {}, "lines": []}
    _grow(bench, 1, 20, **filled)
    _grow(bench, 2, 15, **empty if is_null_before else filled | {"total": 10})
    bench.pull(tail=False)
    columns = sorted(bench.rows("DESCRIBE raw.orders"))
    _grow(bench, 3, 5, **empty, note=None)
    assert bench.pull().verdict == "tail"
    assert (bench.counts[-1].new, bench.counts[-1].changed) == (5, 0)
    assert sorted(bench.rows("DESCRIBE raw.orders")) == columns
    _grow(bench, 4, 15, **filled, note="x")
    assert bench.pull().verdict == "tail"
    known = 35 if is_null_before else 50
    assert bench.rows("SELECT count(customer__id), count(note) FROM raw.orders") == [(known, 15)]
    assert bench.rows("SELECT count(*) FROM raw.orders__lines") == [(known,)]
    bench.state.change("orders", bench.state.ids("orders")[-1], {"total": 11})
    bench.pull()
    assert bench.counts[-1].changed == 1


def test_a_tail_makes_the_customers_list_older_than_the_orders(bench: TailBench) -> None:
    bench.rows(
        """INSERT INTO ops.coverage BY NAME SELECT 'run 001' AS run_id, 'customers' AS resource, 'complete' AS verdict,
        started_at, ended_at, true AS published FROM ops.coverage"""
    )

    def gap() -> str:
        return coverage.coverage_gap(bench.warehouse, ops.last_reads(bench.warehouse), "customers", "orders")

    assert gap() == ""
    assert bench.pull(after=2 * HOUR).verdict == "tail"
    assert "older than the orders" in gap()


def test_a_tail_from_the_pull_to_status_report_and_notification(tmp_path: Path) -> None:
    with bridge(tmp_path, orders=50, customers=5) as made:
        assert made.code() == 0
        made.platform.state.grow("orders", 7)
        reconciling = Reconciling()
        result = pull(PullOptions(tail=True, command="run"), step=reconciling)
        assert (result.exit_code, result.published) == (0, True)
        verdicts = {walk.resource: walk.verdict for walk in result.lists}
        assert verdicts == dict.fromkeys(RECORDS, "complete") | {"orders": "tail"}
        assert made.one("SELECT count(*) FROM reconciled.orders") == 57
        assert made.left() == [made.path.name]
        assert [result.counts(walk)["missing"] for walk in result.lists if walk.verdict == "tail"] == [None]
        summary = run_summary(result, reconciling.result)
        assert "orders: 37 tail, 7 new" in summary["text"]
        orders = read_status(1).as_dict()["lists"][3]
        assert (orders["verdict"], orders["rows"]) == ("complete", 50)
        assert (orders["age_h"], orders["tail_age_h"]) == pytest.approx((0, 0), abs=0.1)
        assert re.search(r"complete  \d+ min old, tail \d+ min old", "\n".join(lines(read_status())))
        report(tmp_path / "report.html")
        assert "New orders were read until 20" in (tmp_path / "report.html").read_text("utf-8")
        assert made.one("SELECT verdict FROM bi.lists WHERE resource = 'orders'") == "complete"


def test_a_tail_that_cannot_be_is_refused_before_a_request(tmp_path: Path) -> None:
    with bridge(tmp_path, orders=1, customers=1) as made:
        with pytest.raises(UsageError, match="orders, which are not among"):
            pull(PullOptions(("customers",), tail=True))
        with pytest.raises(UsageError, match="excludes --require-complete"):
            pull(PullOptions(tail=True, require_complete=True))
        assert made.platform.state.requests == 0
