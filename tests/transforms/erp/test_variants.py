"""Variants of the ERP are held against what was last confirmed, field by field."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd

from orderbridge.transforms.erp.variants import CONFIRMED, ERP_VARIANTS, VARIANT_LINES, variants
from orderbridge.transforms.frames import TEXT, frame
from tests.transforms.rows import values

EARLY, LATE = (
    datetime(2026, 3, 1, 12, tzinfo=UTC),
    datetime(2026, 3, 2, 12, 0, 0, 999_999, tzinfo=UTC),
)
FIELDS = ("erpCode", "sku", "price", "stock")
FIRST, SECOND = (f"last confirmed 2026-03-0{day}T12:00:00Z in plan p{day}" for day in (1, 2))


def confirmed(
    *rows: tuple[Any, ...], at: datetime | None = EARLY, plan: str | None = "p1"
) -> pd.DataFrame:
    names = ("variant_id", "field", "value")
    known = {"product_id": "7", "confirmed_at": at, "plan_id": plan}
    return frame(CONFIRMED, [known | dict(zip(names, row, strict=False)) for row in rows])


def test_each_line_is_same_different_in_doubt_or_never_sent_in_any_order_of_rows() -> None:
    lines: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
        ({"erpCode": '"00038"', "sku": '"a\\"b"', "price": "10.50"}, ("00038", 'a"b', "same", SECOND)),
        ({"erpCode": '"00039"', "price": "10.50"},
         ("00039", None, "differs", f"{FIRST}; other: erpCode; never sent: price")),
        ({"erpCode": '"00040"', "price": "1", "stock": "3"},
         ("00040", None, "differs", f"{SECOND}; other: price; never sent: erpCode, stock")),
        ({"erpCode": '"00041"'}, ("00041", None, "never_sent", "never sent: erpCode")),
        ({}, (None, None, "never_sent", "")),
        ({"sku": '"a"'}, (None, "a", "differs", "in doubt: sku")),
        ({"sku": '"a"', "price": "1", "stock": "2"},
         (None, "a", "differs", f"{FIRST}; in doubt: sku; never sent: stock")),
        ({"stock": "2"}, (None, None, "never_sent", "never sent: stock")),
        ({"product_id": "71", "variant_id": "2", "sku": '"a"'}, (None, "a", "never_sent", "never sent: sku")),
        ({"variant_id": "1", "sku": '"a\\"b"'}, (None, 'a"b', "same", FIRST)),  # a line twice is two rows
    ]  # fmt: skip
    known = pd.concat(
        [
            confirmed(
                ("1", "erpCode", '"00038"'), ("1", "sku", '"a\\"b"'), ("2", "erpCode", '"39"')
            ),
            confirmed(
                ("1", "price", "10.5"),
                ("3", "price", "2"),
                ("99", "price", "1"),
                at=LATE,
                plan="p2",
            ),
            confirmed(*((one, "sku") for one in "678"), at=None, plan=None),
            confirmed(("7", "price", "1"), ("12", "sku", '"a"')),
        ]
    )
    rows = [
        {"_line": n, "product_id": "7", "variant_id": str(n - 1), **line}
        for n, (line, _) in enumerate(lines, 2)
    ]
    erp = frame(VARIANT_LINES | dict.fromkeys(FIELDS, TEXT), rows)
    made = variants(erp, known)
    assert list(made) == list(ERP_VARIANTS)
    found = values(made, "line", "erp_code", "sku", "status", "evidence")
    assert found == [(n, *expected) for n, (_, expected) in enumerate(lines, 2)]
    pd.testing.assert_frame_equal(variants(erp.iloc[::-1], known.iloc[::-1]), made)
    assert set(values(variants(erp, frame(CONFIRMED)), "status")) == {"never_sent"}
    assert values(variants(erp.iloc[:0], frame(CONFIRMED)), "status") == []


def test_a_file_of_ids_alone_has_nothing_that_was_sent() -> None:
    ids = frame(VARIANT_LINES, [{"_line": 2, "product_id": "7", "variant_id": "1"}])
    (row,) = values(variants(ids, confirmed(("1", "sku", '"a"'))), "status", "evidence")
    assert row == ("never_sent", "")
