"""Variants of the ERP are held against what was last confirmed, field by field."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd

from transforms.erp.variants import CONFIRMED, ERP_VARIANTS, VARIANT_LINES, variants
from transforms.frames import TEXT, frame

EARLY, LATE = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 2, 12, 0, 0, 999_999, tzinfo=UTC)
FIELDS = ("erpCode", "sku", "price", "stock")


def lines(*rows: dict[str, Any]) -> pd.DataFrame:
    known = ({"_line": n, "product_id": "7", "variant_id": str(n - 1), **row} for n, row in enumerate(rows, 2))
    return frame(VARIANT_LINES | dict.fromkeys(FIELDS, TEXT), known)


def confirmed(*rows: tuple[str, str, str], at: datetime = EARLY, plan: str = "p1") -> pd.DataFrame:
    return frame(
        CONFIRMED,
        [
            {"product_id": "7", "variant_id": v, "field": f, "value": value, "confirmed_at": at, "plan_id": plan}
            for v, f, value in rows
        ],
    )


def reported(made: pd.DataFrame, *names: str) -> list[tuple[Any, ...]]:
    rows = made[list(names)].itertuples(index=False)
    return [tuple(None if pd.isna(value) else value for value in row) for row in rows]


def test_each_line_is_the_same_different_or_never_sent() -> None:
    erp = lines(
        {"erpCode": '"00038"', "sku": '"a\\"b"', "price": "10.50"},
        {"erpCode": '"00039"', "price": "10.50"},
        {"erpCode": '"00040"', "price": "1", "stock": "3"},
        {"erpCode": '"00041"'},
        {},
    )
    known = pd.concat(
        [
            confirmed(("1", "erpCode", '"00038"'), ("1", "sku", '"a\\"b"'), ("2", "erpCode", '"39"')),
            confirmed(("1", "price", "10.5"), ("3", "price", "2"), ("9", "price", "1"), at=LATE, plan="p2"),
        ]
    )
    made = variants(erp, known)
    assert list(made) == list(ERP_VARIANTS)
    first = "last confirmed 2026-03-01T12:00:00Z in plan p1"
    second = "last confirmed 2026-03-02T12:00:00Z in plan p2"
    assert reported(made, "line", "variant_id", "erp_code", "sku", "status", "evidence") == [
        (2, "1", "00038", 'a"b', "same", second),
        (3, "2", "00039", None, "differs", f"{first}; other: erpCode; never sent: price"),
        (4, "3", "00040", None, "differs", f"{second}; other: price; never sent: erpCode, stock"),
        (5, "4", "00041", None, "never_sent", "never sent: erpCode"),
        (6, "5", None, None, "never_sent", ""),
    ]


def test_what_is_in_doubt_was_sent() -> None:
    erp = lines({"sku": '"a"'}, {"sku": '"a"', "price": "1", "stock": "2"}, {"stock": "2"})
    doubtful = frame(CONFIRMED, [{"product_id": "7", "variant_id": v, "field": "sku"} for v in "123"])
    made = variants(erp, pd.concat([doubtful, confirmed(("2", "price", "1"))]))
    since = "last confirmed 2026-03-01T12:00:00Z in plan p1; "
    assert reported(made, "status", "evidence") == [
        ("differs", "in doubt: sku"),
        ("differs", f"{since}in doubt: sku; never sent: stock"),
        ("never_sent", "never sent: stock"),
    ]


def test_without_a_ledger_everything_is_never_sent() -> None:
    made = variants(lines({"sku": '"a"'}, {"sku": '"b"'}), frame(CONFIRMED))
    assert reported(made, "status") == [("never_sent",), ("never_sent",)]
    assert reported(variants(lines(), frame(CONFIRMED)), "status") == []


def test_a_line_twice_is_two_rows_and_the_order_of_rows_changes_nothing() -> None:
    erp = lines({"sku": '"a"'}, {"sku": '"a"', "variant_id": "1"}, {"sku": '"c"'})
    known = confirmed(("1", "sku", '"a"'), ("3", "sku", '"d"'))
    made = variants(erp, known)
    assert reported(made, "line", "status") == [(2, "same"), (3, "same"), (4, "differs")]
    pd.testing.assert_frame_equal(variants(erp.iloc[::-1], known.iloc[::-1]), made)


def test_ids_are_not_run_together() -> None:
    erp = lines({"product_id": "71", "variant_id": "2", "sku": '"a"'})
    known = confirmed(("12", "sku", '"a"'))
    assert reported(variants(erp, known), "status") == [("never_sent",)]
