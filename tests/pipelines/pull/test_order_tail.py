"""`pull --tail`: when the orders are continued, when they are read whole, and what neither may say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import duckdb
import pytest

from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.order_tail import OrderTail
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.pull.targets import Targets
from orderbridge.pipelines.pull.walking import ListWalks
from orderbridge.pipelines.reconcile.reconcile import Reconciling
from orderbridge.pipelines.reporting.notification import run_summary
from orderbridge.pipelines.reporting.status import read_status
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.build import Build
from orderbridge.pipelines.warehouse.raw import merge
from orderbridge.pipelines.warehouse.raw.load import CATALOG, LOADED
from orderbridge.sandbox.app import Platform
from orderbridge.sandbox.config import V1_KEY, SandboxConfig
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.errors import UsageError
from orderbridge.sources.extract.result import ListResult, no_progress
from orderbridge.sources.http.client import Client
from orderbridge.sources.settings import PublicV1Settings, Secret
from tests.pipelines.bridge import Bridge, pulled
from tests.soak.transport import SandboxTransport
from tests.soak.walks import inline

BEGIN = datetime(2026, 3, 2, 4, tzinfo=UTC)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)


@dataclass
class TailBench:
    """Pulls of orders, whole or tails, without sockets, dlt and a file: the walk, the decision and the merge are the
    real ones, the warehouse is in memory, and the clock is the test's."""

    platform: Platform
    folder: Path
    warehouse: duckdb.DuckDBPyConnection
    settings: PublicV1Settings
    organization: str | None = "org"
    now: datetime = BEGIN
    pulls: int = 0
    result: ListResult = field(default_factory=lambda: ListResult("orders"))
    """Of the last pull."""
    counts: merge.MergeCounts = field(init=False)

    @classmethod
    def of(cls, folder: Path, orders: int = 25, limit: int = 10, **config: Any) -> TailBench:
        amounts: dict[str, Any] = {
            "customers": 0,
            "promotions": 0,
            "price_lists": 0,
            "orders": orders,
        }
        warehouse = duckdb.connect()
        warehouse.execute("SET TimeZone = 'UTC'")
        warehouse.execute(f"ATTACH ':memory:' AS {CATALOG}; CREATE SCHEMA {LOADED}")
        merge.create_missing(warehouse)
        ops.create_missing(warehouse)
        settings = PublicV1Settings(
            base_url="http://127.0.0.1:9", api_key=Secret(V1_KEY), page_limit=limit
        )
        return cls(Platform(SandboxConfig(**amounts, **config)), folder, warehouse, settings)

    @property
    def state(self) -> Any:
        return self.platform.state

    def objection(self) -> str:
        """Why a tail would not start now."""
        orders = OrderTail(self.settings, is_wanted=True)
        orders.find_start(self.warehouse, self.now)
        return orders.objection(self.organization)

    def pull(self, *, tail: bool = True, after: timedelta = HOUR) -> ListResult:
        """A pull that ends so long after the last one. Publishes the orders."""
        self.now += after
        self.pulls += 1
        orders = OrderTail(self.settings, is_wanted=tail)
        orders.find_start(self.warehouse, self.now)
        build = Build(self.folder / f"{self.pulls}" / "warehouse.duckdb")
        walks = ListWalks(
            Targets(public_v1=self.settings), build, 6, no_progress, Event(), tail=orders
        )
        key, transport = self.settings.api_key.reveal(), SandboxTransport(self.platform)
        with Client("public_v1", self.settings.base_url, key, transport=transport) as client:
            self.result = walks._walk("orders", client, lambda: self.organization)
        self.result.started_at = self.now - timedelta(seconds=47)
        self.result.ended_at = self.now
        for table, files in self.result.files.items():
            paths = [str(path) for path, _ in files]
            self.warehouse.execute(
                f'CREATE OR REPLACE VIEW {LOADED}."{table}" AS FROM read_parquet({paths!r})'
            )
        self.counts, run_id = merge.compare(self.warehouse, self.result), f"run {self.pulls:03d}"
        orders.record(self.warehouse, run_id, self.result, self.counts, self.organization)
        merge.merge_list(self.warehouse, self.result, run_id)
        ops.record_coverage(self.warehouse, run_id, self.result, published=True)
        return self.result

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.warehouse.execute(sql).fetchall()

    def ids(self, where: str = "true") -> set[str]:
        return {key for (key,) in self.rows(f"SELECT id FROM raw.orders WHERE {where}")}

    def reason(self) -> str:
        """Why the last pull read the orders whole; empty where it did not say so."""
        return self.result.evidence[0].partition("read whole: ")[2]


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
    assert "order_sequence" not in {what for what, _ in result.observations}, (
        "only a whole read shows that"
    )
    assert bench.ids() == {*before, gone}
    assert bench.ids("_missing_since IS NOT NULL OR status = 'CHANGED'") == set()
    assert bench.ids("_run_id = 'run 002'") == {*bench.state.ids("orders")[-21:]}
    assert bench.rows("SELECT count(DISTINCT order_id) FROM raw.orders__lines") == [(31,)]
    read = ops.last_reads(bench.warehouse)["orders"]
    assert (read.run_id, read.verdict, read.rows) == ("run 001", "complete", 25), "the proof"
    assert (read.tail_run_id, read.tail_ended_at) == ("run 002", bench.now)
    assert bench.pull(tail=False).verdict == "complete"
    assert (bench.ids("_missing_since IS NOT NULL"), bench.ids("status = 'CHANGED'")) == (
        {gone},
        {changed},
    )
    read = ops.last_reads(bench.warehouse)["orders"]
    assert (read.run_id, read.rows, read.tail_run_id, read.tail_ended_at) == (
        "run 003",
        30,
        None,
        None,
    )


def test_the_interval_is_counted_from_the_last_whole_read(bench: TailBench) -> None:
    assert [bench.pull(after=2 * DAY).verdict for _ in range(4)] == [
        "tail",
        "tail",
        "tail",
        "complete",
    ]
    assert bench.reason() == "the last whole read ended at 2026-03-02 05:00 UTC"
    assert bench.pull(after=2 * DAY).verdict == "tail"
    bench.settings = replace(bench.settings, whole_read_days=1)
    assert bench.pull().verdict == "complete"
    assert bench.pull(after=DAY - SECOND).verdict == "tail"
    assert bench.pull(after=SECOND).verdict == "complete"
    assert bench.pull(after=-SECOND).verdict == "complete", "the clock went back"


CURSOR = "UPDATE ops.order_cursor SET"


def test_a_cursor_belongs_to_host_environment_organization_and_page_limit(bench: TailBench) -> None:
    cases: list[tuple[dict[str, Any], str | None, str, str]] = [
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
    ]
    settings = bench.settings
    for changed, bench.organization, sql, reason in cases:
        bench.settings = replace(settings, **changed)
        bench.warehouse.begin()
        bench.warehouse.execute(sql or "SELECT 1")
        assert reason in bench.objection()
        bench.warehouse.rollback()
    bench.settings, bench.organization = settings, "org"
    assert bench.objection() == ""
    few = TailBench.of(bench.folder, orders=9, limit=3)
    few.pull(tail=False)
    assert "nothing shows where" in few.objection(), "eight steps in one direction may be chance"


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


@pytest.mark.parametrize(
    ("reading", "reason"), [("newest_first", "not listed last"), ("unordered", "nothing shows")]
)
def test_a_list_without_its_new_orders_last_is_read_whole(
    tmp_path: Path, reading: str, reason: str
) -> None:
    bench = TailBench.of(tmp_path, readings={"order_sequence": reading})
    for number in range(4):
        assert bench.pull(tail=number > 0).verdict == "complete"
        expected = ("", reason, "not listed last", "not listed last")[number]
        assert expected in bench.reason()
        assert bench.ids() == {*bench.state.ids("orders")}
        bench.state.grow("orders", 6)


def test_orders_without_times_are_continued_once_new_ones_were_seen_to_be_last(
    tmp_path: Path,
) -> None:
    bench = TailBench.of(tmp_path, orders=0)

    def add(count: int, *place: int) -> None:
        for _ in range(count):
            bench.state.add("orders", {"status": "NEW"}, *place)

    add(25)
    verdicts = []
    for new in (3, 7, 7, 0):
        verdicts.append(bench.pull().verdict)
        add(new)
    # three could be the last ones by chance
    assert verdicts == [
        "complete",
        "complete",
        "complete",
        "tail",
    ]
    bench.organization = "other"
    bench.pull(tail=False)
    assert "nothing shows where" in bench.objection(), (
        "where another organization's orders were is no proof"
    )
    add(1, 41)
    add(11)
    bench.pull(tail=False)
    assert "not listed last" in bench.objection(), (
        "one of the new orders is before the last known one"
    )


@pytest.mark.parametrize("customers", [100, 3])
def test_times_that_contradict_the_count_of_new_orders_end_no_whole_reads(
    tmp_path: Path, customers: int
) -> None:
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
    filled: dict[str, Any] = {
        "total": 10.5,
        "number": 3,
        "flag": True,
        "customer": {"id": 5},
        "lines": [{"sku": "a"}],
    }
    empty: dict[str, Any] = {
        "total": None,
        "number": None,
        "flag": None,
        "customer": {},
        "lines": [],
    }
    _grow(bench, 1, 20, **filled)
    _grow(bench, 2, 15, **empty if is_null_before else filled | {"total": 10})
    bench.pull(tail=False)
    columns = sorted(bench.rows("DESCRIBE raw.orders"))
    _grow(bench, 3, 5, **empty, note=None)
    assert bench.pull().verdict == "tail"
    assert (bench.counts.new, bench.counts.changed) == (5, 0)
    assert sorted(bench.rows("DESCRIBE raw.orders")) == columns
    _grow(bench, 4, 15, **filled, note="x")
    assert bench.pull().verdict == "tail"
    known = 35 if is_null_before else 50
    assert bench.rows("SELECT count(customer__id), count(note) FROM raw.orders") == [(known, 15)]
    assert bench.rows("SELECT count(*) FROM raw.orders__lines") == [(known,)]
    bench.state.change("orders", bench.state.ids("orders")[-1], {"total": 11})
    bench.pull()
    assert bench.counts.changed == 1


def test_a_tail_from_the_pull_to_status_and_notification(tmp_path: Path) -> None:
    reconciling = Reconciling()
    with pulled(tmp_path, orders=50, customers=5) as made:
        made.platform.state.grow("orders", 7)
        result = pull(PullOptions(tail=True, command="run"), step=reconciling)
        assert (result.exit_code, made.left()) == (0, [made.path.name])
        counts = {walk.resource: result.counts(walk) for walk in result.lists}
        verdicts = {name: count["verdict"] for name, count in counts.items()}
        assert verdicts == dict.fromkeys(RECORDS, "complete") | {"orders": "tail"}
        assert counts["orders"]["missing"] is None
        assert made.one("SELECT count(*) FROM reconciled.orders") == 57
        assert "orders: 37 recent only, 7 new" in run_summary(result, reconciling.result)["text"]
        (orders,) = (
            one for one in read_status(1).as_dict()["lists"] if one["resource"] == "orders"
        )
        assert (orders["verdict"], orders["rows"]) == ("complete", 50)
        assert (orders["age_h"], orders["tail_age_h"]) == pytest.approx((0, 0), abs=0.1)
        assert made.one("SELECT verdict FROM bi.lists WHERE resource = 'orders'") == "complete"
        assert made.pull(refresh=("orders",), tail=True).lists[0].verdict == "complete"


def test_a_tail_that_cannot_be_is_refused_before_a_request(fresh: Bridge) -> None:
    with pytest.raises(UsageError, match="orders, which are not among"):
        fresh.pull("customers", tail=True)
    with pytest.raises(UsageError, match="excludes --require-complete"):
        fresh.pull(tail=True, require_complete=True)
    assert fresh.platform.state.requests == 0
