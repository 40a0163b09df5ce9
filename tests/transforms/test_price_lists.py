"""Price lists know the root of their chain, or that it is broken."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pandas.testing import assert_frame_equal

from transforms.findings import FINDINGS
from transforms.frames import frame, to_arrow
from transforms.price_lists import CUSTOMER_PRICE_LISTS, PRICE_LISTS, RAW_PRICE_LISTS, price_lists

GONE = datetime(2026, 2, 1, tzinfo=UTC)
NOBODY = frame(CUSTOMER_PRICE_LISTS)


def row(list_id: str | None, source: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": list_id, "name": f"List {list_id}", "source_price_list_id": source, **fields}


def chains(*rows: dict[str, Any]) -> tuple[dict[str, tuple[str, str | None, int | None]], list[tuple[str, str]]]:
    """Status, root and depth by id; ids and rules of the findings."""
    made, findings = price_lists(frame(RAW_PRICE_LISTS, rows), NOBODY)
    chains_by_id = {
        one["price_list_id"]: (one["chain_status"], one["root_price_list_id"], one["depth"])
        for one in to_arrow(made, PRICE_LISTS).to_pylist()
    }
    return chains_by_id, list(findings[["entity_id", "rule"]].itertuples(index=False, name=None))


def test_a_price_list_has_the_declared_columns() -> None:
    raw = row("1", adjustment_type="NONE", adjustment_value=Decimal(0))
    made, findings = price_lists(frame(RAW_PRICE_LISTS, [raw]), NOBODY)
    chain = {"root_price_list_id": "1", "depth": 0, "chain_status": "root"}
    own = {"price_list_id": "1", "name": "List 1", "customer_count": 0, "is_missing": False}
    expected = {**own, **chain, "adjustment_type": "NONE", "adjustment_value": Decimal(0)}
    assert_frame_equal(made, frame(PRICE_LISTS, [expected]))
    assert_frame_equal(findings, frame(FINDINGS))


@pytest.mark.parametrize(
    ("rows", "expected", "rules"),
    [
        (
            [row("1"), row("2", "1"), row("3", "2"), row("4", "3.0"), row("5", " ")],
            {"1": ("root", "1", 0), "2": ("linked", "1", 1), "3": ("linked", "1", 2), "4": ("linked", "1", 3),
             "5": ("root", "5", 0)},
            [],
        ),
        (
            [row("1", "9"), row("2", "1"), row("3", "4"), row("4", _missing_since=GONE),
             row("5", "4", _missing_since=GONE)],
            {**dict.fromkeys("123", ("orphan", None, None)), "4": ("root", "4", 0), "5": ("linked", "4", 1)},
            [("2", "chain_orphaned"), ("1", "source_not_listed"), ("3", "source_not_listed")],
        ),
        (
            [row("1", "1"), row("2", "3"), row("3", "4"), row("4", "2"), row("5", "4"), row("6")],
            {**dict.fromkeys("12345", ("cycle", None, None)), "6": ("root", "6", 0)},
            [(one, "chain_cycle") for one in "12345"],
        ),
    ],
    ids=["to their root", "a source that is not listed", "circles and what leads into them"],
)  # fmt: skip
def test_chains_are_followed(
    rows: list[dict[str, Any]], expected: dict[str, Any], rules: list[tuple[str, str]]
) -> None:
    assert chains(*rows) == (expected, rules)


def test_a_source_that_was_not_read_breaks_the_chain_only_where_that_is_proven() -> None:
    rows = [row("1", "9"), row("2", "1"), row("3", "4"), row("4", _missing_since=GONE), row("5", "5"), row("6")]
    gap = "price_lists: unproven"
    made, findings = price_lists(frame(RAW_PRICE_LISTS, rows), NOBODY, gap)
    assert made["chain_status"].to_list() == ["unknown", "unknown", "unknown", "root", "cycle", "root"]
    assert made["root_price_list_id"].isna().to_list() == [True, True, True, False, True, False]
    rows = findings[["entity_id", "rule", "severity", "detail"]].fillna("").to_records(index=False).tolist()
    assert rows == [
        ("5", "chain_cycle", "error", "sourcePriceListId"),
        ("", "sources_unproven", "warning", "sourcePriceListId of 3 price lists: price_lists: unproven"),
    ]


def test_customers_that_are_listed_are_counted() -> None:
    used = [("1", "matched", False), ("1", "matched", True), ("1", "not_listed", False), (None, "default", False)]
    customers = frame(CUSTOMER_PRICE_LISTS, [dict(zip(CUSTOMER_PRICE_LISTS, one, strict=True)) for one in used])
    made, _ = price_lists(frame(RAW_PRICE_LISTS, [row("1"), row("2")]), customers)
    assert made["customer_count"].tolist() == [1, 0]


def test_ids_names_and_adjustments_that_contradict_are_found() -> None:
    _, findings = chains(
        row("1", name="A", adjustment_type="NONE", adjustment_value=Decimal(5)),
        row("1.0", name="A", adjustment_type="PERCENTAGE", adjustment_value=Decimal(5)),
        row("2", name=""),
        row("3", name="A", _missing_since=GONE),
    )
    assert findings == [
        ("1", "adjustment_contradicts"),
        ("1", "id_ambiguous"),
        ("1.0", "id_ambiguous"),
        ("1", "name_duplicate"),
        ("1.0", "name_duplicate"),
        ("2", "name_missing"),
    ]


def test_no_row_is_lost_and_the_order_of_rows_and_columns_changes_nothing() -> None:
    chance = random.Random(1)
    ids = list(map(str, range(60)))
    for _ in range(5):
        raw = frame(RAW_PRICE_LISTS, [row(one, chance.choice([*ids, "", None])) for one in ids])
        made, findings = price_lists(raw, NOBODY)
        assert len(made) == len(raw)
        shuffled = raw.take(chance.sample(range(60), 60))[chance.sample(list(raw), len(list(raw)))]
        for one, other in zip((made, findings), price_lists(shuffled, NOBODY), strict=True):
            assert_frame_equal(one, other)


def test_a_chain_through_every_list_is_followed() -> None:
    count = 10_000
    made, _ = price_lists(
        frame(RAW_PRICE_LISTS, [row(f"{n:05d}", f"{n - 1:05d}" if n else None) for n in range(count)]), NOBODY
    )
    assert made["depth"].tolist() == list(range(count))
