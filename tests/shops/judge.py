"""What the program makes of a shop, beside the truth: each figure of each order is right, unknown or wrong.

A figure that rests on an assumption may be wrong while the question is shown. Its owner answers what is asked, and
nothing else.
"""

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
from orderbridge.pipelines.reconcile.reconcile import Reconciling, reconcile
from tests.pipelines.bridge import Bridge, bridge
from tests.shops.world import Order, Shop

ORDERS = """
    SELECT order_id, customer_id, customer_status, ordered_date, total, status_class, is_sale, order_status
    FROM reconciled.orders
"""
LINES = """
    SELECT order_id, product, product_name, quantity, line_total FROM bi.order_lines ORDER BY order_id, line_number"""
MONTHS = """
    SELECT strftime(month, '%Y-%m') AS month, currency, revenue, unknown_orders FROM bi.revenue_by_month"""
PRODUCTS = """
    SELECT product, product_name, currency, quantity, revenue,
        unknown_orders + unpriced_lines + uncounted_lines AS not_known
    FROM bi.top_products"""
ASKED = """
    SELECT question FROM reconciled.meanings WHERE state IN ('open', 'assumed', 'contradicted')"""
ROUNDS_MAX = 4
"""So many times at most an answer brings on another question."""
_OF_STATUS = ("order_status", "order_statuses", "order_total", "order_total_unit")
"""An order is refunded if all of its total went back."""
_OF_DAY = ("order_ordered_at", "order_clock", "date_order")
_OF_ROWS = ("order_lines", "order_line_kinds")
_OF_LINES = (
    "order_line_kinds",
    "order_line_discount_unit",
    "order_line_total",
    "order_line_unit_price",
)
RESTS_ON: Mapping[str, tuple[str, ...]] = {
    "customer": (),
    "total": (),
    "quantities": (),
    "day": _OF_DAY,
    "status": _OF_STATUS,
    "is_sale": _OF_STATUS,
    "lines": (*_OF_ROWS, "order_line_quantity"),
    "revenue of lines": _OF_LINES,
    "products": ("order_line_product",),
    "revenue by month": (*_OF_DAY, *_OF_STATUS, "order_currency"),
    "top products": (*_OF_STATUS, *_OF_LINES, "order_currency"),
}
"""The questions that a figure may rest on while it is wrong."""
LEAST = Decimal("0.005")
"""Amounts of lines are compared within half a cent, or what the shop says."""


@dataclass
class Verdicts:
    """How many orders have a figure right, unknown or wrong; `wrong` names some."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def add(self, figure: str, key: str, got: object, want: object, is_right: bool) -> None:
        verdict = "right" if is_right else "unknown" if got is None else "wrong"
        self.counts.setdefault(figure, Counter())[verdict] += 1
        if verdict == "wrong":
            self.wrong.setdefault(figure, []).append(f"{key}: {got}, not {want}")

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


@dataclass
class Judged:
    """A shop without an answer, and with those of its owner.

    Attributes:
        before, after: the verdicts without an answer, and with them.
        first: what was asked without an answer, as the settings below `reconcile.` are called.
        given: the answers.
    """

    before: Verdicts
    after: Verdicts
    first: set[str]
    given: dict[str, str]

    def silently_wrong(self) -> dict[str, list[str]]:
        """The figures that are wrong without an answer, while none of the questions that they rest on is asked."""
        wrong = self.before.wrong
        return {name: wrong[name] for name in wrong if self.first.isdisjoint(RESTS_ON[name])}


def judged(shop: Shop, owner: Mapping[str, str], folder: Path) -> Judged:
    """Reads the shop; then its owner answers what is asked, until nothing new is asked that the owner knows."""
    with pulled(shop, folder, {}) as made:
        asked = first = _asked(made)
        before = compared(shop, made)
        given: dict[str, str] = {}
        for _ in range(ROUNDS_MAX):
            more = {name: owner[name] for name in asked if name in owner and name not in given}
            if not more:
                break
            given |= more
            with answers(given):
                reconcile()
            asked = _asked(made)
        return Judged(before, compared(shop, made), first, given)


def _asked(made: Bridge) -> set[str]:
    return {name.removeprefix("reconcile.") for (name,) in made.rows(ASKED)}


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
    _compare_months(verdicts, shop, made.dicts(MONTHS))
    _compare_products(verdicts, shop, made.dicts(PRODUCTS))
    return verdicts


def _compare_order(verdicts: Verdicts, shop: Shop, truth: Order, order: Mapping[str, Any]) -> None:
    customer = order["customer_id"] if order["customer_status"] == "matched" else None
    wanted = None if truth.customer_id is None else str(truth.customer_id)
    verdicts.add("customer", truth.key, customer, wanted, customer == wanted)
    day = order["ordered_date"]
    verdicts.add("day", truth.key, day, truth.day, day == truth.day)
    total = order["total"]
    is_near = total is not None and abs(total - truth.total) <= shop.near
    verdicts.add("total", truth.key, total, truth.total, is_near)
    status = None if order["status_class"] == "unknown" else order["status_class"]
    verdicts.add("status", truth.key, status, truth.status, status == truth.status)
    is_sale = truth.status == "sale"
    verdicts.add("is_sale", truth.key, order["is_sale"], is_sale, order["is_sale"] == is_sale)


def _compare_lines(
    verdicts: Verdicts, shop: Shop, truth: Order, lines: list[dict[str, Any]]
) -> None:
    if shop.answers.lines is not None and shop.answers.lines.quantity is None:
        lines = _of_products(lines)
    number = len(lines) or None
    expected_number = len(truth.lines) or None
    verdicts.add("lines", truth.key, number, expected_number, number == expected_number)
    if number is None or number != expected_number:
        return
    pieces = _known(line["quantity"] for line in lines)
    wanted = sorted(line.quantity for line in truth.lines)
    verdicts.add("quantities", truth.key, pieces, wanted, pieces == wanted)
    revenue = _known(line["line_total"] for line in lines)
    expected = sorted(line.revenue for line in truth.lines)
    near = max(shop.near, LEAST)
    is_right = revenue is not None and all(
        abs(one - other) <= near for one, other in zip(revenue, expected, strict=True)
    )
    verdicts.add("revenue of lines", truth.key, revenue, expected, is_right)
    products = _known(line["product"] for line in lines)
    expected_products = sorted(line.product for line in truth.lines)
    names = _known(line["product_name"] for line in lines)
    # an id of the product in place of its code names it as well
    is_named = names == sorted(line.name for line in truth.lines)
    is_same = products == expected_products or is_named
    verdicts.add("products", truth.key, products or names, expected_products, is_same)


def _of_products(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one piece as lines: those of the same product are one; as they are where one is not known."""
    made: dict[str, dict[str, Any]] = {}
    for line in lines:
        if None in (line["product"], line["quantity"], line["line_total"]):
            return lines
        of_product = made.setdefault(line["product"], {**line, "quantity": 0, "line_total": 0})
        of_product["quantity"] += line["quantity"]
        of_product["line_total"] += line["line_total"]
    return [*made.values()]


def _compare_months(verdicts: Verdicts, shop: Shop, months: list[dict[str, Any]]) -> None:
    """The revenue of each month and currency; unknown while orders of an unknown status stand beside it."""
    found = {(row["month"], row["currency"]): row for row in months}
    has_currency = any(row["currency"] for row in months)
    sold = Counter(f"{one.day:%Y-%m}" for one in shop.truth if one.status == "sale" and one.day)
    for (month, currency), want in shop.revenue_by_month().items():
        row = found.get((month, currency if has_currency else None), {})
        revenue = None if row.get("unknown_orders") else row.get("revenue")
        near = max(shop.near, LEAST) * sold[month]
        is_right = revenue is not None and abs(revenue - want) <= near
        verdicts.add("revenue by month", month, revenue, want, is_right)


def _compare_products(verdicts: Verdicts, shop: Shop, products: list[dict[str, Any]]) -> None:
    """Quantity and revenue of the products that sold best; one that has no id or code goes by its name."""
    found = {(row["product_name"], row["currency"]): row for row in products}
    found |= {(row["product"], row["currency"]): row for row in products}
    has_currency = any(row["currency"] for row in products)
    names = {line.product: line.name for order in shop.truth for line in order.lines}
    sold = Counter(line.product for order in shop.truth for line in order.lines)
    for product, currency, quantity, revenue in shop.top_products():
        of = currency if has_currency else None
        row = found.get((product, of)) or found.get((names[product], of), {})
        got = None
        if not row.get("not_known") and row.get("revenue") is not None:
            got = (row["quantity"], row["revenue"])
        near = max(shop.near, LEAST) * sold[product]
        is_right = got is not None and got[0] == quantity and abs(got[1] - revenue) <= near
        verdicts.add("top products", product, got, (quantity, revenue), is_right)


def _known(values: Iterable[Any]) -> list[Any] | None:
    """The values in order; None if one is not known."""
    known: list[Any] = []
    for value in values:
        if value is None:
            return None
        known.append(value)
    return sorted(known)
