"""Tails: walks that continue where an earlier one ended, and every way in which they cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq
import pytest

from orderbridge.sandbox.app import Platform
from orderbridge.sandbox.config import V1_KEY, SandboxConfig
from orderbridge.sandbox.faults import Draw
from orderbridge.sandbox.messages import Call
from orderbridge.sources.errors import RateLimited
from orderbridge.sources.extract import page_files
from orderbridge.sources.extract.pages import PageBody
from orderbridge.sources.extract.result import ListResult, WalkOptions
from orderbridge.sources.extract.spool import SpoolFolder
from orderbridge.sources.extract.v1_pages import CursorPosition, TailMismatch, V1Cursor
from orderbridge.sources.extract.walk import walk
from orderbridge.sources.http.client import Client
from tests.soak.transport import SandboxTransport
from tests.soak.walks import inline
from tests.sources.platform import rows_of

LIMIT = 10


class Orders:
    """A platform without sockets, and walks over its orders."""

    def __init__(self, folder: Path, orders: int = 25, **readings: str) -> None:
        sizes = {"customers": 0, "promotions": 0, "price_lists": 0}
        self.platform = Platform(SandboxConfig(orders=orders, readings=readings, **sizes))  # type: ignore[arg-type]
        self.state, self.folder, self.walks, self.count = self.platform.state, folder, 0, orders

    def walk(self, start: CursorPosition | None = None) -> ListResult:
        self.walks += 1
        folder = self.folder / str(self.walks)
        transport = SandboxTransport(self.platform)
        with (
            inline(),
            Client("public_v1", "http://127.0.0.1:9", V1_KEY, transport=transport) as client,
        ):
            spools = SpoolFolder(folder / "spool", {"walk": self.walks})
            return walk("orders", client, folder / "files", spools, WalkOptions(LIMIT), start=start)

    def position(self) -> CursorPosition:
        result = self.walk()
        assert result.verdict == "complete"
        assert result.position is not None
        return result.position


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


def test_a_saved_cursor_that_the_platform_fails_at_is_given_up_soon(orders: Orders) -> None:
    start = orders.position()
    orders.platform.plan.rates = {"error_500": 1.0}
    before = orders.platform.state.requests
    with pytest.raises(TailMismatch, match="the saved cursor failed"):
        orders.walk(start)
    assert orders.platform.state.requests - before < 30


def test_a_limit_at_a_saved_cursor_ends_the_read_of_orders(orders: Orders) -> None:
    start = orders.position()
    orders.platform.plan.rates = {"rate_429": 1.0}
    assert isinstance(orders.walk(start).error, RateLimited)


def ids(result: ListResult) -> list[str]:
    return [row["id"] for row in rows_of(result, "orders")]


@pytest.mark.parametrize("new", [0, 5, 6, 31])
def test_a_tail_has_the_last_pages_again_and_what_follows_them(orders: Orders, new: int) -> None:
    start = orders.position()
    orders.state.grow("orders", new)
    orders.state.change("orders", orders.state.ids("orders")[24], {"status": "LATER"})
    result = orders.walk(start)
    assert (result.verdict, result.error) == ("tail", None)
    assert rows_of(result, "orders")[14]["status"] == "LATER"
    assert ids(result) == orders.state.ids("orders")[10:]
    assert f"its last 15 rows came again, then {new} more" in result.evidence[0]
    assert result.total("rows") == result.distinct == 15 + new
    assert result.observations["cursor_reuse", "continues"] == 1


@pytest.mark.parametrize("status", ["OTHER", None], ids=["another row", "the same row"])
def test_an_id_that_comes_twice_after_the_saved_cursor_is_noticed(
    orders: Orders, monkeypatch: pytest.MonkeyPatch, status: str | None
) -> None:
    start, parse = orders.position(), V1Cursor.parse
    orders.state.grow("orders", 3)

    def repeating(self: V1Cursor, body: bytes) -> PageBody:
        page = json.loads(body)
        if not page["hasMore"]:
            page["data"].append(page["data"][-1] | ({"status": status} if status else {}))
        return parse(self, json.dumps(page).encode())

    monkeypatch.setattr(V1Cursor, "parse", repeating)
    with pytest.raises(TailMismatch, match="ids occur twice"):
        orders.walk(start)


def quarantined(orders: Orders) -> None:
    orders.state.grow("orders", 1)
    orders.state.change("orders", orders.state.ids("orders")[-1], {"status": "\0"})


def committed_late(orders: Orders) -> None:
    orders.state.drift(
        "orders", orders.count - min(orders.position().rows, LIMIT) + 1, removes=False
    )


Change = Callable[[Orders], object]
MISMATCHES: dict[str, tuple[int, str, Change | int, str]] = {
    "the cursor is rejected": (25, "rejected", 20, "rejected the saved cursor"),
    "the cursor restarts": (25, "restarts", 20, "to other rows"),
    "the cursor skips to the end": (25, "skips", 0, "to fewer rows"),
    "a row is quarantined": (
        25,
        "continues",
        quarantined,
        "1 rows after the saved cursor were quarantined",
    ),
    **{
        f"committed late, {n}": (n, "continues", committed_late, "to other rows")
        for n in (21, 25, 29, 30, 31)
    },
    "repeated_cursor": (25, "continues", 20, "issued twice"),
    "restarting_cursor": (25, "continues", 20, "no new id"),
    "ignored_query": (25, "continues", 20, "to other rows"),
    "expired_cursor": (25, "continues", 20, "rejected the saved cursor"),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_a_tail_that_does_not_continue_is_noticed(tmp_path: Path, name: str) -> None:
    count, reading, change, message = MISMATCHES[name]
    orders = Orders(tmp_path, count, cursor_reuse=reading)
    start = orders.position()
    change(orders) if callable(change) else orders.state.grow("orders", change)
    if "_" in name:
        orders.platform.plan.rates = {name: 1.0}
    with pytest.raises(TailMismatch, match=message):
        orders.walk(start)


def test_a_tail_with_an_error_beside_its_rows_is_no_tail(orders: Orders) -> None:
    start = orders.position()
    words = "pages with an error beside their rows: 1"
    with (
        mock.patch.object(V1Cursor, "issues", return_value=[words]),
        pytest.raises(TailMismatch, match=words),
    ):
        orders.walk(start)


@pytest.mark.parametrize("count", [0, 1, LIMIT, LIMIT + 1, 21, 25, 29, 30, 31])
def test_a_tail_begins_with_one_to_two_pages_that_were_read_after_the_first(
    tmp_path: Path, count: int
) -> None:
    position = Orders(tmp_path, count).walk().position
    expected = {21: 11, 25: 15, 29: 19, 30: 10, 31: 11}
    assert (position.rows if position else None) == expected.get(count)


def test_a_field_of_an_abandoned_walk_is_not_in_the_next(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cursor expires, and the only order with a field is removed before the list is read again."""
    first, draw = orders.state.ids("orders")[0], orders.platform.plan.draw
    orders.state.change("orders", first, {"onlyOnce": 1})

    def removing(call: Call) -> Draw:
        drawn = draw(call)
        if drawn.disruption and first in orders.state.ids("orders"):
            orders.state.remove("orders", first)
        return drawn

    monkeypatch.setattr(page_files, "BATCH_PAGES", 1)  # decoded at once
    monkeypatch.setattr(orders.platform.plan, "draw", removing)
    orders.platform.plan.rates = {"expired_cursor": 1.0}
    result = orders.walk()
    assert (result.distinct, result.evidence[0]) == (
        24,
        "a cursor expired: started again from the first page",
    )
    assert "only_once" not in pq.read_schema(result.files["orders"][0][0]).names
    assert not [what for what, _ in result.observations if "only_once" in what]
