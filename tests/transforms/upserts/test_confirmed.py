from __future__ import annotations

from typing import Any

import pytest

from tests.transforms.upserts.test_decisions import texts
from transforms.frames import TEXT, frame
from transforms.upserts.confirmed import changed_fields, price_jumps

CONFIRMED = {"key": TEXT, "field": TEXT, "value": TEXT}
SMALL = '[{{"url":"u","order":{}}}]'
CHANGES: list[tuple[str, str | None, str | None, bool]] = [
    ("price", "18.0", "18", False),
    ("price", "18", "18.5", True),
    ("price", "18", None, False),
    ("price", None, "1", True),
    ("sku", '"00038"', '"00038"', False),
    ("sku", '"38"', '"00038"', True),
    ("images", SMALL.format("5e-7"), SMALL.format("0.0000005"), False),
    ("images", SMALL.format("5e-7"), SMALL.format("5E-7"), False),
    ("images", SMALL.format("5e-7"), SMALL.format("0.0000006"), True),
    ("order", "9007199254740993", "9007199254740992", True),  # one double
]


@pytest.mark.parametrize(("field", "before", "now", "is_changed"), CHANGES)
def test_a_field_is_sent_where_it_differs_from_the_last_confirmed(
    field: str, before: str | None, now: str | None, is_changed: bool
) -> None:
    others: list[dict[str, Any]] = [
        {"key": "2/2", "field": field, "value": "1"},
        {"key": "1/1", "field": "weight", "value": now},
    ]
    known = [*others, {"key": "1/1", "field": field, "value": before}] if before is not None else others
    made = changed_fields(texts(key=["0/0", "1/1"], **{field: [None, now]}), frame(CONFIRMED, known))
    assert made[field].tolist() == [False, is_changed]


def test_a_price_with_its_point_slipped_is_noticed_up_and_down() -> None:
    before = ["19.90", "19.90", "19.90", "19.90", "0", "1990"]
    now = ["1990", "1.99", "21.50", "19900.5", "5", "19.9"]
    known = [{"key": str(at), "field": "price", "value": value} for at, value in enumerate(before)]
    inputs = texts(key=list(map(str, range(6))), price=list(now))
    made = price_jumps(inputs, frame(CONFIRMED, known))
    assert list(zip(made["row"], made["power"], strict=True)) == [(0, 2), (1, -1), (3, 3), (5, -2)]
    assert made["before"].tolist()[0] == "19.90"
    assert price_jumps(inputs, frame(CONFIRMED)).empty
