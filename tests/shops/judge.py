"""What the program makes of a shop, beside the truth: each figure of each order is right, unknown or wrong."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.reconcile.reconcile import Reconciling
from tests.pipelines.bridge import Bridge, bridge
from tests.shops.world import Order, Shop

ORDERS = """
    SELECT order_id, customer_id, customer_status, ordered_date, total, status_class, is_sale, order_status
    FROM reconciled.orders
"""
LINES = """
    SELECT order_id, product, product_name, quantity, line_total FROM bi.order_lines ORDER BY order_id, line_number"""
LEAST = Decimal("0.005")
"""Amounts of lines are compared within half a cent, or what the shop says."""


@dataclass
class Verdicts:
    """How many orders have a figure right, unknown or wrong; `wrong` names some."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def add(self, figure: str, order: Order, got: object, want: object, is_right: bool) -> None:
        verdict = "right" if is_right else "unknown" if got is None else "wrong"
        self.counts.setdefault(figure, Counter())[verdict] += 1
        if verdict == "wrong":
            self.wrong.setdefault(figure, []).append(f"{order.key}: {got}, not {want}")

    def those(self, *verdicts: str) -> dict[str, int]:
        """The figures that have one of these verdicts, with the number of orders."""
        sums = {name: sum(count[one] for one in verdicts) for name, count in self.counts.items()}
        return {name: number for name, number in sums.items() if number}


@contextmanager
def pulled(shop: Shop, folder: Path, answered: Mapping[str, str]) -> Iterator[Bridge]:
    """Serves the shop, and reads it with these settings."""
    records = folder / "records"
    records.mkdir()
    (records / "orders.json").write_text(json.dumps(shop.orders), "utf-8")
    (records / "customers.json").write_text(json.dumps(shop.customers), "utf-8")
    env = {
        "RECONCILE__TIMEZONE": shop.zone,
        "SOURCES__PUBLIC_V1__ORDER_KEY": shop.answers.key,
        "DLT_PROJECT_DIR": str(folder / "warehouse"),
    }
    (folder / "warehouse" / ".dlt").mkdir(parents=True)
    with (
        answers(answered),
        mock.patch.dict(os.environ, env),
        bridge(folder, page_limit=100, records=records, promotions=1, price_lists=1) as made,
    ):
        assert pull(
            PullOptions(("customers", "orders"), command="run"), step=Reconciling()
        ).published
        yield made


@contextmanager
def answers(answered: Mapping[str, str]) -> Iterator[None]:
    """Settings below `reconcile.`, while the block runs."""
    named = {
        f"RECONCILE__{name.upper().replace('.', '__')}": value for name, value in answered.items()
    }
    with mock.patch.dict(os.environ, named):
        yield


def judged(shop: Shop, folder: Path, answered: Mapping[str, str]) -> Verdicts:
    """Reads the shop with these settings, and compares each order with its truth."""
    with pulled(shop, folder, answered) as made:
        return compared(shop, made)


def compared(shop: Shop, made: Bridge) -> Verdicts:
    """What a warehouse has of the shop, beside the truth."""
    found = {row["order_id"]: row for row in made.dicts(ORDERS)}
    lines: dict[str, list[dict[str, Any]]] = {}
    for line in made.dicts(LINES):
        lines.setdefault(line["order_id"], []).append(line)
    verdicts = Verdicts()
    for truth in shop.truth:
        order = found[truth.key]
        _compare_order(verdicts, shop, truth, order)
        _compare_lines(verdicts, shop, truth, lines.get(truth.key, []))
    return verdicts


def _compare_order(verdicts: Verdicts, shop: Shop, truth: Order, order: Mapping[str, Any]) -> None:
    customer = order["customer_id"] if order["customer_status"] == "matched" else None
    wanted = None if truth.customer_id is None else str(truth.customer_id)
    verdicts.add("customer", truth, customer, wanted, customer == wanted)
    day = order["ordered_date"]
    verdicts.add("day", truth, day, truth.day, day == truth.day)
    total = order["total"]
    is_near = total is not None and abs(total - truth.total) <= shop.near
    verdicts.add("total", truth, total, truth.total, is_near)
    status = None if order["status_class"] == "unknown" else order["status_class"]
    verdicts.add("status", truth, status, truth.status, status == truth.status)
    is_sale = truth.status == "sale"
    verdicts.add("is_sale", truth, order["is_sale"], is_sale, order["is_sale"] == is_sale)


def _compare_lines(
    verdicts: Verdicts, shop: Shop, truth: Order, lines: list[dict[str, Any]]
) -> None:
    number = len(lines) or None
    expected_number = len(truth.lines) or None
    verdicts.add("lines", truth, number, expected_number, number == expected_number)
    if number is None or number != expected_number:
        return
    pieces = _known(line["quantity"] for line in lines)
    wanted = sorted(line.quantity for line in truth.lines)
    verdicts.add("quantities", truth, pieces, wanted, pieces == wanted)
    revenue = _known(line["line_total"] for line in lines)
    expected = sorted(line.revenue for line in truth.lines)
    near = max(shop.near, LEAST)
    is_right = revenue is not None and all(
        abs(one - other) <= near for one, other in zip(revenue, expected, strict=True)
    )
    verdicts.add("revenue of lines", truth, revenue, expected, is_right)
    products = _known(line["product"] for line in lines)
    named = sorted(line.product for line in truth.lines)
    if products is None:  # they go by their names
        products = _known(line["product_name"] for line in lines)
        named = sorted(line.name for line in truth.lines)
    verdicts.add("products", truth, products, named, products == named)


def _known(values: Iterable[Any]) -> list[Any] | None:
    """The values in order; None if one is not known."""
    known: list[Any] = []
    for value in values:
        if value is None:
            return None
        known.append(value)
    return sorted(known)
