"""Shops whose orders nearly all have one line: no line is left out, nor in a warehouse that version 0.3 made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pytest

from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.reconcile.reconcile import Reconciling
from orderbridge.sources.decode.schema_inference import LIST_SHARE, InferredNode
from orderbridge.sources.decode.values import Count
from tests.pipelines.bridge import Bridge, bridge

ORDERS = 100
LINES = "SELECT count(*), count(DISTINCT order_id) FROM reconciled.order_lines"
FOUND = "SELECT rule, detail FROM reconciled.exceptions WHERE entity = 'orders' AND rule <> 'cancelled_unknown'"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Bridge]:
    with bridge(tmp_path, customers=10, orders=0, promotions=1, price_lists=1, others=1) as made:
        yield made


def stock(shop: Bridge, several: int, **changed: Any) -> int:
    """Gives the shop its orders, so many of which have two lines. Returns the number of lines."""
    for n in range(ORDERS):
        lines = [
            {"sku": f"S{n}-{k}", "quantity": 1, "price": 2.5} for k in range(1 + (n < several))
        ]
        order = {"id": f"o{n:03d}", "items": lines, "total": 2.5 * len(lines)}
        shop.platform.state.add("orders", {**order, **changed.get(f"o{n}", {})})
    return ORDERS + several


def run() -> PullResult:
    return pull(PullOptions(("customers", "orders"), command="run"), step=Reconciling())


def run_as_version_0_3(shop: Bridge) -> PullResult:
    """A run in which arrays of one count as objects, and what it keeps has no count of them."""

    def is_list(node: InferredNode) -> bool:
        listed = node._lists - node.counts[Count.LIST_OF_ONE]
        singles = node.counts[Count.LIST_OF_ONE] + node._objects
        return listed > 0 and listed >= LIST_SHARE * (listed + singles)

    with mock.patch.object(InferredNode, "_is_list", property(is_list)):
        result = run()
    with duckdb.connect(str(shop.path)) as file:
        for name in ("objects", "arrays"):
            file.execute(f"ALTER TABLE ops.field_kinds DROP COLUMN {name}")
    return result


@pytest.mark.parametrize("several", [0, 4])
def test_every_line_is_there_however_few_orders_have_two(shop: Bridge, several: int) -> None:
    lines = stock(shop, several)
    assert run().exit_code == 0
    assert shop.rows(LINES) == [(lines, ORDERS)]
    assert [rule for rule, _ in shop.rows(FOUND) if rule in ("odd_value", "form_changed")] == []


def test_a_rare_list_that_its_only_orders_lose_is_no_alarm(shop: Bridge) -> None:
    stock(shop, 0, o7={"refunds": [{"amount": 2.5, "reason": "broken"}]})
    assert run().exit_code == 0
    shop.platform.state.change("orders", "o007", {"refunds": []})
    assert run().exit_code == 0
    assert shop.rows("SELECT count(*) FROM raw.orders__refunds") == [(0,)]


@pytest.mark.parametrize(("several", "code"), [(4, 0), (9, 9)])
def test_a_warehouse_that_held_lines_as_objects_has_all_after_one_run_and_says_so(
    shop: Bridge, several: int, code: int
) -> None:
    lines, state = stock(shop, several), shop.platform.state
    assert run_as_version_0_3(shop).exit_code == code
    assert shop.rows(LINES) == [(0, 0)]
    for gone in ("o000", "o050"):  # one with two lines, which are in `_extra` alone
        state.remove("orders", gone)
    assert run().exit_code == 0
    assert shop.rows(LINES) == [(lines, ORDERS)]
    recovered = ("list_recovered", "orders: items: object is table now")
    assert recovered in shop.rows(FOUND)
    assert shop.rows("SELECT count(items__sku), count(_extra) FROM raw.orders") == [(0, 0)]
    assert run().exit_code == 0
    assert shop.rows(LINES) == [(lines, ORDERS)]


def test_a_list_that_values_do_not_prove_is_declared_with_the_file_of_schema(
    shop: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DLT_PROJECT_DIR", str(shop.folder))
    lines = stock(shop, 4, o99={"items": {"sku": "S99", "quantity": 1, "price": 2.5}})
    assert run_as_version_0_3(shop).exit_code == 0
    shop.platform.state.remove("orders", "o001")
    assert run().exit_code == 0
    assert shop.rows(LINES) == [(0, 0)], "an object shows that the arrays may be wrapped objects"
    assert shop.command("schema", "orders", "--write", DLT_PROJECT_DIR=str(shop.folder)).code == 0
    file = shop.folder / ".dlt/orders.toml"
    text = file.read_text("utf-8")
    assert "values, 99.0% arrays, 1.0% objects; since" in text
    file.write_text(text.replace('# "items" = "object"', '"items" = "table"'), "utf-8")
    assert run().exit_code == 0
    assert shop.rows(LINES) == [(lines, ORDERS)]
