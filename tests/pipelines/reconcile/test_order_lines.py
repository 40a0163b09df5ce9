"""Lines of orders that are parts of another one, or no product: which of them count as pieces, products and amounts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.reconcile.reconcile import Reconciling
from tests.pipelines.bridge import Bridge, bridge

Line = dict[str, Any]
KINDS = "reconcile.order_line_kinds"


@contextmanager
def shop(folder: Path, lines: Sequence[Line], total: float, orders: int = 4) -> Iterator[Bridge]:
    """A platform with equal orders that have these lines, pulled and reconciled."""
    rows = []
    for n in range(1, orders + 1):
        names = {one["id"]: f"{n}-{one['id']}" for one in lines}
        items = [{**one, "id": names[one["id"]]} for one in lines]
        for item in items:
            if "parentId" in item:
                item["parentId"] = names.get(item["parentId"], item["parentId"])
        order = {"id": f"o{n}", "createdAt": f"2026-01-0{n}T10:00:00Z", "status": "paid"}
        rows.append({**order, "total": total, "items": items})
    records = folder / "records"
    records.mkdir()
    (records / "orders.json").write_text(json.dumps(rows), "utf-8")
    with bridge(folder, records=records, customers=1, promotions=1, price_lists=1) as made:
        assert pull(
            PullOptions(("customers", "orders"), command="run"), step=Reconciling()
        ).published
        yield made


def line(identifier: str, sku: str | None, quantity: int, amount: float, **more: Any) -> Line:
    return {
        "id": identifier,
        "sku": sku,
        "name": sku,
        "quantity": quantity,
        "total": amount,
        **more,
    }


def top_products(made: Bridge) -> dict[str, tuple[float, float]]:
    """Quantity and revenue by product."""
    rows = made.rows("SELECT product, quantity, revenue FROM bi.top_products ORDER BY 1")
    return {product: (float(quantity), float(revenue)) for product, quantity, revenue in rows}


def state(made: Bridge) -> list[tuple[str, str]]:
    return made.rows(f"SELECT state, value FROM reconciled.meanings WHERE question = '{KINDS}'")


def test_parts_whose_set_has_their_amount_count_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILE__ORDER_TOTAL", "sum_of_lines")
    parts = [
        line("a", "BOX", 1, 30),
        line("b", "CUP", 2, 20, parentId="a"),
        line("c", "JAR", 1, 10, parentId="a"),
        line("d", "CUP", 1, 10),
    ]
    with shop(tmp_path, parts, 40) as made:
        assert made.one("SELECT DISTINCT total FROM reconciled.orders") == 40
        assert top_products(made) == {"BOX": (4, 120), "CUP": (4, 40)}
        assert made.one("SELECT count(*) FROM reconciled.order_lines") == 16
        assert state(made) == [("assumed", "parent_id: *=part")]


def test_lines_below_another_with_an_amount_are_products_and_asked_about(
    tmp_path: Path,
) -> None:
    options = [line("a", "LAPTOP", 1, 900), line("b", "WARRANTY", 1, 90, parentId="a")]
    with shop(tmp_path, options, 990) as made:
        assert top_products(made) == {"LAPTOP": (4, 3600), "WARRANTY": (4, 360)}
        assert state(made) == [("assumed", "parent_id: *=product")]


def test_a_parent_that_is_no_line_of_the_order_says_nothing(tmp_path: Path) -> None:
    variants = [line("a", "CUP", 1, 5, parentId="catalogue"), line("b", "JAR", 1, 5)]
    with shop(tmp_path, variants, 10) as made:
        assert top_products(made) == {"CUP": (4, 20), "JAR": (4, 20)}
        assert state(made) == []


def test_discounts_and_notes_among_lines_count_in_the_sum_and_are_no_product(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILE__ORDER_TOTAL", "sum_of_lines")
    rows = [
        line("a", "CUP", 2, 20, type="product"),
        line("b", None, 1, -5, type="promotion"),
        {"id": "c", "type": "line_note"},
    ]
    with shop(tmp_path, rows, 15) as made:
        assert made.one("SELECT DISTINCT total FROM reconciled.orders") == 15
        assert top_products(made) == {"CUP": (8, 80)}


def test_an_answer_names_rows_of_any_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILE__ORDER_LINE_KINDS", "sku: ship=no_product")
    with shop(tmp_path, [line("a", "CUP", 1, 5), line("b", "SHIP", 1, 3)], 8) as made:
        assert top_products(made) == {"CUP": (4, 20)}
        assert state(made) == [("answered", "sku: ship=no_product")]


def test_a_word_that_a_kind_of_products_has_too_is_no_discount(tmp_path: Path) -> None:
    rows = [line("a", "BAG", 1, 5, type="Delivery bags"), line("b", "CUP", 1, 5, type="Line")]
    with shop(tmp_path, rows, 10) as made:
        assert len(top_products(made)) == 2
        assert state(made) == []


def test_what_has_negative_prices_alone_is_assumed_to_be_no_product(tmp_path: Path) -> None:
    """Vouchers, by their code or the kind of their lines; not the goods of a return, whose quantity is negative."""
    rows = [
        line("a", "CUP", 2, 20, price=10, type="goods"),
        line("b", "GIFT", 1, -5, price=-5, type="gift card"),
        line("c", "BAG", -1, -7, price=7, type="goods"),
        line("d", "VOUCHER", 1, -3, price=-3, type="goods"),
    ]
    with shop(tmp_path, rows, 5) as made:
        assert top_products(made) == {"CUP": (8, 80), "BAG": (-4, -28)}
        assert state(made) == [
            ("assumed", "type: gift card=no_product,type: goods=product,sku: VOUCHER=no_product")
        ]
        words = made.one(f"SELECT evidence FROM reconciled.meanings WHERE question = '{KINDS}'")
        assert "all of their prices are negative" in str(words)


def test_small_amounts_of_lines_that_are_no_products_do_not_hide_cents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILE__ORDER_TOTAL", "sum_of_lines")
    rows = [line("a", "CUP", 1, 1999, type="product")]
    rows += [line(one, "BOTTLE", 1, 25, type="deposit") for one in ("b", "c")]
    with shop(tmp_path, rows, 2049) as made:
        unit = "SELECT state FROM reconciled.meanings WHERE question = 'reconcile.order_total_unit'"
        assert made.one(unit) == "assumed", "in units or in cents is a question"
