"""New and changed rows are judged by themselves: what is noticed, until when, and what is no news."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.accepted import Acceptance, Accepted
from orderbridge.pipelines.warehouse.raw import merge
from orderbridge.pipelines.warehouse.raw.load import CATALOG, LOADED
from orderbridge.pipelines.warehouse.raw.recent_rows import RecentRows, mark_recent_rows
from orderbridge.pipelines.warehouse.raw.recent_values import recent_losses
from orderbridge.sources.extract.result import ListResult
from tests.pipelines.bridge import bridge

Order = dict[str, object]
LINES = pa.schema({"order_id": pa.string(), "position": pa.int32(), "sku": pa.string()})


class Shop:
    """A warehouse of orders, each with a number, a total, a date of delivery and lines."""

    def __init__(self, orders: int = 300) -> None:
        self.build = duckdb.connect()
        merge.create_missing(self.build)
        ops.create_missing(self.build)
        self.build.execute(f"ATTACH ':memory:' AS {CATALOG}; CREATE SCHEMA {LOADED}")
        self.at = datetime(2026, 5, 1, tzinfo=UTC)
        self.orders: list[Order] = []
        self.lines: dict[str, list[str | None]] = {}
        self.entries: list[Acceptance] = []
        self.add(orders)

    def add(self, count: int, **fields: object) -> list[Order]:
        """New orders, of which each has a total and one line, and is delivered at once."""
        first = len(self.orders)
        new: list[Order] = [
            {"id": f"{n:05}", "number": n, "total": 5, "delivered": "x", **fields}
            for n in range(first, first + count)
        ]
        self.orders += new
        self.lines |= {str(one["id"]): ["sku"] for one in new}
        return new

    def night(self, *, judge: bool = True) -> list[str]:
        """A whole pull, and what is found afterwards."""
        self.at += timedelta(days=1)
        orders = pa.Table.from_pylist(self.orders, pa.schema({
            "id": pa.string(), "number": pa.int64(), "total": pa.int64(), "delivered": pa.string(),
        }))  # fmt: skip
        lines = pa.Table.from_pylist(
            [
                {"order_id": key, "position": n, "sku": sku}
                for key, skus in self.lines.items()
                for n, sku in enumerate(skus, 1)
            ],
            LINES,
        )
        for name, table in (("orders", orders), ("orders__lines", lines)):
            extra = table.append_column("_extra", pa.nulls(len(table), pa.string()))
            self.build.register("given", extra)
            self.build.execute(f'CREATE OR REPLACE TABLE {LOADED}."{name}" AS FROM given')
            self.build.unregister("given")
        files = {
            name: [(Path(name), len(table))]
            for name, table in (("orders", orders), ("orders__lines", lines))
        }
        walked = ListResult("orders", "complete", distinct=len(orders), files=files)
        walked.ended_at = self.at
        mark_recent_rows(self.build, walked, merge.compare(self.build, walked))
        merge.merge_list(self.build, walked, f"run {self.at}")
        return self.found() if judge else []

    def found(self) -> list[str]:
        """What is found of the new and changed rows; by hand, it may be asked for again."""
        newest = "SELECT id FROM raw.orders ORDER BY number DESC LIMIT 20"
        rows = RecentRows(self.build, "orders", f"run {self.at}", self.at)
        accepted = Accepted(self.entries, self.at + timedelta(hours=2))
        return [
            f"{rule} {place}: {text}" for rule, place, text in recent_losses(rows, accepted, newest)
        ]

    def accept(self, place: str, rule: str = "orders.values_gone") -> None:
        self.entries.append(Acceptance(rule, "ana", self.at + timedelta(hours=1), "right", place))


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    assert made.night() == []
    yield made
    made.build.close()


def gone(new: int, *, of: str = "new", before: str = "100% of 20") -> list[str]:
    text = f"0 of {new} {of} rows have a value, {before} before"
    return [f"values_gone orders: total: {text}"]


def test_what_thirty_new_orders_lack_is_noticed_that_night(shop: Shop) -> None:
    shop.add(30, total=None)
    assert shop.night() == gone(30)
    assert shop.found() == gone(30), "reconciled again without a pull"
    shop.add(30, total=None)
    assert shop.night() == gone(60)


def test_a_fall_stays_without_new_orders_and_beside_right_ones(shop: Shop) -> None:
    broken = shop.add(30, total=None)
    assert shop.night() == shop.night() == gone(30)
    for _ in range(3):
        shop.add(40)
        assert shop.night() == gone(30), "later orders do not make these right"
    for order in broken:
        order["total"] = 7
    assert shop.night() == [], "they have been corrected"


def test_an_accepted_fall_is_what_later_orders_are_compared_with(shop: Shop) -> None:
    shop.add(30, total=None)
    shop.night()
    shop.accept("orders: total")
    assert shop.found() == []
    for _ in range(3):
        shop.add(30, total=None)
        assert shop.night() == []
    shop.lines |= {str(one["id"]): [None] for one in shop.add(30, total=None)}
    (other,) = shop.night()
    assert other.startswith("values_gone orders__lines: sku: 0 of 30 new rows"), "only that"


def test_an_accepted_change_of_the_form_covers_what_it_emptied(shop: Shop) -> None:
    shop.add(30, total=None)
    shop.night()
    shop.accept("orders: total", "orders.form_changed")
    assert shop.found() == []


def test_three_orders_a_night_are_judged_together(shop: Shop) -> None:
    found: list[list[str]] = []
    for _ in range(5):
        shop.add(3, total=None)
        found.append(shop.night())
    assert found == [[], [], gone(9), gone(12), gone(15)]


@pytest.mark.parametrize("per_night", [5, 25])
def test_a_field_that_is_filled_later_is_no_news(per_night: int) -> None:
    shop = Shop()
    shop.add(per_night, delivered=None)  # the newest are not delivered yet
    assert shop.night() == []
    for night in range(21):
        is_weekday = night % 7 < 5
        if is_weekday:
            for order in shop.orders:
                order["delivered"] = "x"
        shop.add(per_night // 5, delivered=None)
        shop.add(per_night * 4 // 5, delivered="x" if is_weekday else None)
        assert shop.night() == [], night


def test_what_few_lines_have_is_no_news_in_new_orders(shop: Shop) -> None:
    without: list[str | None] = [None]
    for night in range(6):
        skus: list[str | None] = ["sku"] if night < 5 else without
        new = shop.add(30)
        shop.lines |= {str(one["id"]): skus if n % 5 else without for n, one in enumerate(new)}
        assert shop.night() == [], night


def test_changed_orders_that_lose_a_value_are_noticed_beside_new_ones(shop: Shop) -> None:
    for night in range(3):
        shop.add(25)
        for order in shop.orders[night * 30 :][:30]:
            order["delivered"] = f"{night}"
        assert shop.night() == [], "nothing is lost: the first changes are those to compare with"
    for order in shop.orders[100:130]:
        order["total"] = None
    assert shop.night() == gone(30, of="changed", before="100% of 90")


def test_a_warehouse_without_a_history_of_new_rows_has_no_alarm(shop: Shop) -> None:
    shop.add(30, total=None)
    assert shop.night() != []
    shop.build.execute("DELETE FROM ops.recent_shares; DELETE FROM ops.recent_rows")
    shop.add(30, total=None)
    assert shop.night() == [], "the first night of a version that looks at them"
    shop.add(30, total=None)
    assert shop.night() == [], "they are as new ones were then"
    shop.lines |= {str(one["id"]): [] for one in shop.add(30, total=None)}
    assert shop.night() == [
        "values_gone orders__lines: 0 of 30 new rows have a value, 100% of 80 before"
    ]


def test_half_a_list_of_new_rows_is_judged_with_all_rows_only(shop: Shop) -> None:
    shop.add(301, total=None)
    assert shop.night() == []
    assert shop.build.execute("SELECT count(*) FROM ops.recent_rows").fetchall() == [(0,)]


def test_an_order_counts_once_however_many_lines_it_has(shop: Shop) -> None:
    new = shop.add(20)
    shop.lines[str(new[0]["id"])] = [None] * 200
    assert shop.night() == []


def test_pulls_that_are_not_reconciled_are_judged_together(shop: Shop) -> None:
    shop.add(25)
    shop.night(judge=False)
    shop.add(25, total=None)
    assert shop.night() == [], "half of fifty is not far fewer"
    shop.add(25, total=None)
    fall = "values_gone orders: total: 0 of 25 new rows have a value, 64% of 70 before"
    assert shop.night() == shop.night() == [fall]


def test_numbers_that_are_zero_in_new_orders_are_noticed(shop: Shop) -> None:
    shop.add(30, total=0)
    text = "0 of 30 new rows have a value other than 0, 100% of 20 before"
    assert shop.night() == [f"values_gone orders: total: {text}"]


def test_customers_of_an_import_are_no_news_although_they_have_fewer_fields(tmp_path: Path) -> None:
    with bridge(tmp_path, customers=120, orders=3, promotions=1, price_lists=1) as made:
        assert made.command("run").code == 0
        for n in range(48):
            made.platform.state.add("customers", {"email": f"new{n}@example.com"})
        assert made.command("run").code == 0
        assert made.rows("SELECT detail FROM reconciled.exceptions WHERE severity = 'error'") == []
        assert made.one("SELECT count(*) FROM raw.customers") == 168
