"""Lines of shops whose truth is known: what each line comes to, top products, and a total that is their sum."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from types import ModuleType

import pytest

from orderbridge.pipelines.reconcile.reconcile import reconcile
from tests.pipelines.bridge import Bridge, bridge
from tests.shops import bikestores, chinook, shopify
from tests.shops.world import Shop

_LINES = """
    SELECT order_id, sum(line_amount) FROM reconciled.order_lines GROUP BY 1"""


def play(platform: Bridge, shop: Shop) -> None:
    """Serves a shop's lists in place of those of the sandbox, and pulls them."""
    state = platform.platform.state
    for name, rows in (("customers", shop.customers), ("orders", shop.orders)):
        for identifier in state.ids(name):
            state.remove(name, identifier)
        for row in rows:
            state.add(name, {"id": row.get(shop.answers.key), **row} if name == "orders" else row)
    platform.pull()


@pytest.mark.parametrize(
    ("module", "answers", "asked"),
    [
        (bikestores, {"ORDER_TOTAL": "sum_of_lines"}, {"reconcile.order_line_discount_unit": "fraction"}),
        (chinook, {}, {}),
        (shopify, {"ORDER_LINE_PRODUCT": "sku"}, {}),
    ],
)  # fmt: skip
def test_lines_and_totals_are_those_of_the_shop(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    answers: dict[str, str],
    asked: dict[str, str],
) -> None:
    shop: Shop = module.shop()
    for name, value in answers.items():
        monkeypatch.setenv(f"RECONCILE__{name}", value)
    with bridge(tmp_path, orders=1, customers=1) as platform:
        play(platform, shop)
        reconcile()
        assumed = dict(platform.rows("SELECT question, value FROM reconciled.meanings"))
        assert {name: assumed[name] for name in asked} == asked
        lines = dict(platform.rows(_LINES))
        totals = dict(platform.rows("SELECT order_id, total FROM reconciled.orders"))
        wrong: list[str] = []
        for order in shop.truth:
            expected = sum((line.revenue for line in order.lines), Decimal(0))
            if abs((lines.get(order.key) or 0) - expected) > shop.near:
                wrong.append(f"lines of {order.key}: {lines.get(order.key)}, not {expected}")
            if abs((totals[order.key] or 0) - order.total) > shop.near:
                wrong.append(f"{order.key}: {totals[order.key]}, not {order.total}")
        assert wrong == []
