"""What a stock or price that is sent does is asked once the platform has confirmed one, with examples to look up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from orderbridge.sources.settings import legacy_settings, read_answers
from tests.pipelines.push.plans import Place, patch, place

STOCK = "sources.legacy.stock_semantics"
PRICE = "sources.legacy.price_semantics"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Place]:
    with place(tmp_path) as made:
        yield made


def test_what_a_stock_does_is_asked_with_examples_once_one_is_confirmed(shop: Place) -> None:
    assert STOCK not in run(shop, "questions")
    operations = [patch(n, n, stock=n * 10, repeatable=False) for n in range(1, 6)]
    assert shop.code(shop.plan(operations)) == 0
    listed = run(shop, "questions")
    assert f"open          {STOCK}  5 variants have a confirmed stock\n" in listed
    assert PRICE not in listed
    shown = run(shop, "questions", STOCK)
    examples = re.findall(r"([0-9]+) to /products/1/variants/([0-9]+) on ", shown)
    assert len(examples) == 3
    assert all(int(stock) == int(variant) * 10 for stock, variant in examples)
    assert f"to answer: orderbridge answer {STOCK} increment" in shown
    run(shop, "answer", "--proposed")
    assert legacy_settings().semantics["stock"] == "unknown", "nothing is proposed for a write"
    run(shop, "answer", STOCK, "set", "--who", "ana")
    stored = read_answers().answers[STOCK]
    assert (stored.value, stored.by) == ("set", "ana")
    assert legacy_settings().semantics == {"stock": "set", "price": "unknown"}
    assert STOCK not in run(shop, "questions")


def run(made: Place, *arguments: str) -> str:
    done = made.command(*arguments)
    assert (done.code, done.err) == (0, "")
    return done.out
