"""Where orders lack the field that identifies them, the fields that could are asked about, with counts and examples."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipelines.bridge import Bridge, Done, bridge

KEY = "sources.public_v1.order_key"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bridge]:
    with bridge(tmp_path, readings={"order_key": "uuid"}) as made:
        (made.folder / ".dlt").mkdir()
        monkeypatch.setenv("DLT_PROJECT_DIR", str(made.folder))
        yield made


def run(made: Bridge, line: str) -> Done:
    return made.command(*shlex.split(line), DLT_PROJECT_DIR=str(made.folder))


def test_orders_without_an_id_ask_for_their_key_and_are_read_by_it_from_the_next_run(
    shop: Bridge,
) -> None:
    assert shop.code("customers", "orders") == 5
    assert shop.one("SELECT count(*) FROM raw.orders") == 0
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


def test_a_key_that_all_orders_have_is_not_asked_about(published: Bridge) -> None:
    assert KEY not in run(published, "questions").out
