"""Price lists know the root of their chain, or that it is broken."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from pandas.testing import assert_frame_equal

from orderbridge.transforms.frames import frame
from orderbridge.transforms.price_lists import (
    CUSTOMER_PRICE_LISTS,
    RAW_PRICE_LISTS,
    price_lists,
)
from tests.transforms.rows import values

GONE = datetime(2026, 2, 1, tzinfo=UTC)
NOBODY = frame(CUSTOMER_PRICE_LISTS)


def row(list_id: str | None, source: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": list_id, "name": f"List {list_id}", "source_price_list_id": source, **fields}


def chains(*rows: dict[str, Any]) -> tuple[dict[str, tuple[Any, ...]], list[Any]]:
    """Status, root and depth by id; ids and rules of the findings."""
    made, findings = price_lists(frame(RAW_PRICE_LISTS, rows), NOBODY)
    found = values(made, "price_list_id", "chain_status", "root_price_list_id", "depth")
    return {one: tuple(chain) for one, *chain in found}, values(findings, "entity_id", "rule")


def test_chains_are_followed_to_their_root_a_source_that_is_not_listed_or_a_circle() -> None:
    found, rules = chains(
        *(
            row(one, source)
            for one, source in (("1", None), ("2", "1"), ("3", "2"), ("4", "3.0"), ("5", " "))
        ),
        *(row(one, source) for one, source in (("a1", "a9"), ("a2", "a1"), ("a3", "a4"))),
        *(row(one, source, _missing_since=GONE) for one, source in (("a4", None), ("a5", "a4"))),
        *(row(f"b{n}", f"b{source}") for n, source in enumerate((1, 3, 4, 2, 4), 1)),
    )
    assert found == {
        "1": ("root", "1", 0), "2": ("linked", "1", 1), "3": ("linked", "1", 2), "4": ("linked", "1", 3),
        "5": ("root", "5", 0), **dict.fromkeys(("a1", "a2", "a3"), ("orphan", None, None)), "a4": ("root", "a4", 0),
        "a5": ("linked", "a4", 1), **dict.fromkeys(("b1", "b2", "b3", "b4", "b5"), ("cycle", None, None)),
    }  # fmt: skip
    orphans = [("a2", "chain_orphaned"), ("a1", "source_not_listed"), ("a3", "source_not_listed")]
    assert rules == [*((f"b{n}", "chain_cycle") for n in range(1, 6)), *orphans]


def test_a_source_that_was_not_read_breaks_the_chain_only_where_that_is_proven() -> None:
    rows = [
        row("1", "9"),
        row("2", "1"),
        row("3", "4"),
        row("4", _missing_since=GONE),
        row("5", "5"),
        row("6"),
    ]
    gap = "price_lists: unproven"
    made, findings = price_lists(frame(RAW_PRICE_LISTS, rows), NOBODY, gap)
    assert made["chain_status"].to_list() == [
        "unknown",
        "unknown",
        "unknown",
        "root",
        "cycle",
        "root",
    ]
    assert made["root_price_list_id"].isna().to_list() == [True, True, True, False, True, False]
    assert values(findings, "entity_id", "rule", "severity", "detail") == [
        ("5", "chain_cycle", "error", "sourcePriceListId"),
        (
            None,
            "sources_unproven",
            "warning",
            "sourcePriceListId of 3 price lists: price_lists: unproven",
        ),
    ]


def test_no_row_is_lost_and_the_order_of_rows_and_columns_changes_nothing() -> None:
    chance, ids = random.Random(1), list(map(str, range(60)))
    for _ in range(5):
        raw = frame(RAW_PRICE_LISTS, [row(one, chance.choice([*ids, "", None])) for one in ids])
        shuffled = raw.take(chance.sample(range(60), 60))[chance.sample(list(raw), len(list(raw)))]
        made = price_lists(raw, NOBODY)
        assert len(made[0]) == len(raw)
        for one, other in zip(made, price_lists(shuffled, NOBODY), strict=True):
            assert_frame_equal(one, other)


def test_a_chain_through_every_list_is_followed() -> None:
    rows = [row(f"{n:05d}", f"{n - 1:05d}" if n else None) for n in range(10_000)]
    assert price_lists(frame(RAW_PRICE_LISTS, rows), NOBODY)[0]["depth"].tolist() == list(
        range(10_000)
    )
