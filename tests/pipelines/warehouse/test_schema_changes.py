"""New fields, changed types and new values of enumerations are reported once, by the pull that first saw them."""

from __future__ import annotations

from datetime import UTC, datetime

import duckdb

from pipelines.cli.status import lines
from pipelines.reconcile.reconcile import reconcile
from pipelines.reporting.report import report
from pipelines.reporting.status import read_status
from pipelines.warehouse.build import open_warehouse
from pipelines.warehouse.schema_changes import schema_changes
from tests.pipelines.bridge import Bridge


def changes(bridge: Bridge) -> list[str]:
    with open_warehouse(bridge.path) as warehouse:
        return [change.text for change in schema_changes(warehouse, datetime.now(UTC))]


def test_what_a_pull_sees_for_the_first_time_is_news_once(reconciled: Bridge) -> None:
    assert changes(reconciled) == []
    state = reconciled.platform.state
    orders, lists = state.ids("orders"), state.ids("price_lists")
    state.change("orders", orders[0], {"giftWrap": True, "number": 1.5})
    state.change("orders", orders[1], {"status": "RETURNED"})
    state.change("orders", orders[2], {"status": "ana@example.com"})
    state.change("price_lists", lists[0], {"adjustmentType": "FIXED_AMOUNT"})
    state.change("price_lists", lists[1], {"adjustmentType": None})
    state.change("customers", state.ids("customers")[0], {"loyaltyTier": "gold", "una persona@example.com": 1})
    reconciled.pull()
    reconcile()
    assert changes(reconciled) == [
        "price_lists: new value of price_lists.adjustment_type: FIXED_AMOUNT",
        "customers: new field loyaltyTier",
        "customers: new field (not shown)",
        "orders: the type of orders.number is now DECIMAL(38,9) (before: BIGINT)",
        "orders: new value of orders.order_status: RETURNED",
        "orders: new value of orders.order_status: (not shown)",
        "orders: new field orders.gift_wrap",
    ]
    status = read_status()
    assert "  schema: customers: new field loyaltyTier" in lines(status)
    assert status.as_dict()["schema_changes"][1] == {
        "resource": "customers", "kind": "new_field", "name": "loyaltyTier", "value": "", "previous": "",
        "text": "customers: new field loyaltyTier",
    }  # fmt: skip
    assert not [name for name in ("una persona", "ana@") if name in str(status.as_dict())]
    page = reconciled.folder / "report.html"
    report(page)
    assert "<li>orders: new field orders.gift_wrap</li>" in page.read_text("utf-8")
    assert "una persona" not in page.read_text("utf-8")
    reconciled.pull()
    assert changes(reconciled) == []


def test_columns_keep_their_fields_when_one_comes_that_differs_in_case_only(published: Bridge) -> None:
    state = published.platform.state
    first, second = state.ids("orders")[:2]
    state.change("orders", first, {"Zone": "north"})
    published.pull("orders")
    state.change("orders", second, {"zone": "south"})
    published.pull("orders")
    sql = "SELECT zone, zone_2 FROM raw.orders WHERE id IN ($1, $2) ORDER BY id = $2"
    assert published.rows(sql, first, second) == [("north", None), (None, "south")]


def test_what_is_new_is_news_after_a_pull_with_a_wrong_clock_too_and_a_first_read_is_none(fresh: Bridge) -> None:
    published = fresh
    published.pull("customers")
    published.pull()
    assert changes(published) == []
    with duckdb.connect(str(published.path)) as connection:
        for table, column in (("runs", "run_id"), ("observations", "first_run_id"), ("coverage", "run_id")):
            connection.execute(f"UPDATE ops.{table} SET {column} = '2099' || substr({column}, 5)")
        connection.execute("UPDATE ops.runs SET ended_at = '2099-01-01 00:00Z'")
    state = published.platform.state
    state.change("orders", state.ids("orders")[0], {"giftWrap": True})
    published.pull("orders")
    assert changes(published) == ["orders: new field orders.gift_wrap"]
