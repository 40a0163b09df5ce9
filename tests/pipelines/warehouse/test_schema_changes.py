"""New fields, changed types and new values of enumerations are reported once, by the pull that first saw them."""

from __future__ import annotations

from datetime import UTC, datetime

import duckdb

from orderbridge.pipelines.cli.status import lines
from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.reconcile.reconcile import Reconciling
from orderbridge.pipelines.reporting.status import read_status
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.raw.schema_changes import schema_changes
from tests.pipelines.bridge import Bridge


def changes(bridge: Bridge) -> list[str]:
    with open_warehouse(bridge.path) as warehouse:
        return [change.text for change in schema_changes(warehouse, datetime.now(UTC))]


def test_what_a_pull_sees_for_the_first_time_is_news_once_whatever_the_clock_said(
    reconciled: Bridge,
) -> None:
    assert changes(reconciled) == [], "a first read is no news"
    with duckdb.connect(str(reconciled.path)) as connection:
        for table, column in (
            ("runs", "run_id"),
            ("observations", "first_run_id"),
            ("coverage", "run_id"),
        ):
            connection.execute(f"UPDATE ops.{table} SET {column} = '2099' || substr({column}, 5)")
        connection.execute("UPDATE ops.runs SET ended_at = '2099-01-01 00:00:00Z'")
    state = reconciled.platform.state
    orders, lists = state.ids("orders"), state.ids("price_lists")
    for name, one, fields in (
        ("orders", orders[0], {"giftWrap": True, "number": 1.5, "Zone": "north"}),
        ("orders", orders[1], {"status": "RETURNED"}),
        ("orders", orders[2], {"status": "ana@example.com"}),
        ("price_lists", lists[0], {"adjustmentType": "FIXED_AMOUNT"}),
        ("price_lists", lists[1], {"adjustmentType": None}),
        (
            "customers",
            state.ids("customers")[0],
            {"loyaltyTier": "gold", "una persona@example.com": 1},
        ),
    ):
        state.change(name, one, fields)
    pull(PullOptions(command="run"), step=Reconciling())
    assert changes(reconciled) == [
        "price_lists: new value of price_lists.adjustment_type: FIXED_AMOUNT",
        "customers: new field loyaltyTier",
        "customers: new field (not shown)",
        "orders: the type of orders.number is now DECIMAL(38,9) (before: BIGINT)",
        "orders: new value of orders.order_status: RETURNED",
        "orders: new value of orders.order_status: (not shown)",
        "orders: new field orders.gift_wrap",
        "orders: new field orders.zone",
    ]
    status = read_status(1)
    assert "  schema: customers: new field loyaltyTier" in lines(status)
    found = status.as_dict()["schema_changes"]
    assert found[1] == {
        "resource": "customers", "kind": "new_field", "name": "loyaltyTier", "value": "", "previous": "",
        "text": "customers: new field loyaltyTier",
    }  # fmt: skip
    assert not [name for name in ("una persona", "ana@") if name in str(found)]
    state.change("orders", orders[3], {"zone": "south"})  # which differs in case only
    reconciled.pull("orders")
    assert changes(reconciled) == ["orders: new field orders.zone_2"]
    sql = "SELECT zone, zone_2 FROM raw.orders WHERE zone IS NOT NULL OR zone_2 IS NOT NULL ORDER BY zone"
    assert reconciled.rows(sql) == [("north", None), (None, "south")]


def test_the_type_before_is_that_seen_last_and_a_list_that_failed_is_not_observed() -> None:
    with duckdb.connect() as build:
        ops.create_missing(build)
        for night, run in enumerate(("r1", "r2", "r3"), 1):
            at = datetime(2026, 1, night, tzinfo=UTC)
            ops.insert(build, "runs", run_id=run, command="pull", ended_at=at)
            verdict = "incomplete" if run == "r1" else "complete"
            ops.insert(build, "coverage", run_id=run, resource="customers", verdict=verdict)
            kind = {"r1": "VARCHAR", "r2": "BIGINT", "r3": "DECIMAL(38,9)"}[run]
            ops.record_observations(build, run, at, [("orders.total: type of a field", kind)])
            if run == "r2":
                ops.record_observations(
                    build, run, at, [("customers: field not in the interface", "tier")]
                )
                assert schema_changes(build, at) == schema_changes(build, datetime.now(UTC))
                found = [change.text for change in schema_changes(build, at)]
                assert found == ["orders: the type of orders.total is now BIGINT (before: VARCHAR)"]
        found = [change.text for change in schema_changes(build, datetime.now(UTC))]
        assert found == ["orders: the type of orders.total is now DECIMAL(38,9) (before: BIGINT)"]
