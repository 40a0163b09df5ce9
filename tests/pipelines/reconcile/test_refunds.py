"""What went back of an order: refunds in it with an amount, or with lines or payments that have one."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from orderbridge.pipelines.reconcile.reconcile import reconcile
from tests.pipelines.bridge import bridge

REFUNDED = "SELECT order_id, refunded, status_class FROM reconciled.orders ORDER BY order_id"
FINDINGS = "SELECT entity_id FROM reconciled.exceptions WHERE rule = 'refund_unknown' ORDER BY 1"


def refunded(
    folder: Path, refunds: dict[str, list[dict[str, Any]]]
) -> tuple[dict[str, tuple[Decimal | None, str]], list[str]]:
    """What went back of orders of 100, and their class, by id; and the orders with a finding."""
    records = folder / "records"
    records.mkdir()
    orders = [
        {
            "id": name,
            "createdAt": "2026-01-01T10:00:00Z",
            "status": "paid",
            "total": 100.5,
            "refunds": of_order,
        }
        for name, of_order in refunds.items()
    ]
    (records / "orders.json").write_text(json.dumps(orders), "utf-8")
    with bridge(folder, records=records, customers=2, promotions=1, price_lists=1) as platform:
        platform.pull()
        reconcile()
        found = {name: (back, of_class) for name, back, of_class in platform.rows(REFUNDED)}
        return found, [name for (name,) in platform.rows(FINDINGS)]


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        (
            {"refund_line_items": [{"quantity": 1, "subtotal": 40}, {"quantity": 2, "subtotal": 0.5}]},
            {"refund_line_items": [{"quantity": 1, "subtotal": 100.5}]},
        ),
        (
            {"items": [{"subtotal": 30}], "transactions": [{"kind": "refund", "amount": "40.50"}]},
            {"items": [{"subtotal": 90}], "transactions": [{"kind": "refund", "amount": "100.50"}]},
        ),
    ],
)  # fmt: skip
def test_refunds_have_an_amount_or_that_of_their_payments_or_lines(
    tmp_path: Path, part: dict[str, Any], whole: dict[str, Any]
) -> None:
    made = {"o1": [{"id": 1, **part}], "o2": [{"id": 2, **whole}], "o3": []}
    assert refunded(tmp_path, made) == (
        {
            "o1": (Decimal("40.5"), "sale"),
            "o2": (Decimal("100.5"), "refunded"),
            "o3": (None, "sale"),
        },
        [],
    )
