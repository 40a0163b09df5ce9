"""Where orders lack the field that identifies them, the fields that could are asked about, with counts and examples."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from orderbridge.pipelines.reconcile.reconcile import reconcile
from tests.pipelines.bridge import Bridge, Done, bridge

KEY = "sources.public_v1.order_key"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bridge]:
    with bridge(tmp_path, readings={"order_key": "uuid"}) as made:
        (made.folder / ".dlt").mkdir()
        monkeypatch.setenv("DLT_PROJECT_DIR", str(made.folder))
        yield made


def run(made: Bridge, line: str, **more: str) -> Done:
    return made.command(*shlex.split(line), DLT_PROJECT_DIR=str(made.folder), **more)


def test_orders_without_an_id_ask_for_their_key_and_use_it_from_the_next_run(
    shop: Bridge,
) -> None:
    assert shop.code("customers", "orders") == 5
    assert shop.one("SELECT count(*) FROM raw.orders") == 0
    reconcile()
    counted = "SELECT DISTINCT order_count, unknown_because FROM bi.customers"
    assert shop.rows(counted) == [(None, "orders: all 30 rows were quarantined")]
    listed = run(shop, "questions").out
    assert f"open          {KEY}  " in listed
    shown = run(shop, f"questions {KEY}").out
    assert "30 of 30 orders have no id, and are quarantined" in shown
    assert "each of 30 quarantined orders has its own value" in shown
    assert f"to answer: orderbridge answer {KEY} uuid" in shown
    assert "@" not in shown
    assert run(shop, f"answer {KEY} uuid").code == 0
    assert shop.code("customers", "orders") == 0
    assert shop.one("SELECT count(*) FROM raw.orders") == 30
    assert KEY not in run(shop, "questions").out


def test_a_key_that_a_later_order_can_repeat_is_shown_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bridge(tmp_path, orders=0) as shop:
        monkeypatch.setenv("DLT_PROJECT_DIR", str(shop.folder))
        key = {"SOURCES__PUBLIC_V1__ORDER_KEY": "number"}
        assert shop.code("customers") == 0
        for n, (customer,) in enumerate(shop.rows("SELECT id FROM raw.customers"), start=10):
            at = f"2026-03-01T{n // 60:02d}:{n % 60:02d}:00Z"
            shop.platform.state.add(
                "orders", {"id": f"o-{n}", "customerId": customer, "createdAt": at}
            )
        assert run(shop, "pull customers orders", **key).code == 5
        shown = run(shop, f"questions {KEY}", **key).out
    assert "two orders can have the same" in shown
    assert "the id of a customer too" in shown
    assert "each of 40 quarantined orders has its own value, such as o-" in shown
    assert shown.count("to answer: ") == 1
    assert f"to answer: orderbridge answer {KEY} id\n" in shown


def test_a_key_that_all_orders_have_is_not_asked_about(published: Bridge) -> None:
    assert KEY not in run(published, "questions").out
