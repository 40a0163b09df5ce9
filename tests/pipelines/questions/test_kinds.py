"""Fields of two forms are asked about with what was counted; an answer is a line of `.dlt/orders.toml`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.reconcile.reconcile import Reconciling, reconcile
from orderbridge.pipelines.warehouse.raw.field_kinds import declared_kinds
from tests.pipelines.bridge import Bridge, Done, pulled

ITEMS = "kind:orders/items"
ITEM = {"sku": "S", "quantity": 1, "price": 2.5}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Bridge]:
    """A shop that was pulled and reconciled."""
    small = {"customers": 5, "orders": 0, "promotions": 1, "price_lists": 1, "others": 1}
    with pulled(tmp_path, reconcile, stock, **small) as made:
        yield made


def stock(made: Bridge) -> None:
    """Twenty orders with a list of lines, three with an object in its place, and one with a list of two."""
    (made.folder / ".dlt").mkdir()
    os.environ["DLT_PROJECT_DIR"] = str(made.folder)
    for n in range(20):
        items = ITEM if n < 3 else [ITEM] * (2 if n == 7 else 1)
        order = {"id": f"o{n:02d}", "items": items, "total": 2.5, "shipping": {"zip": "07001"}}
        made.platform.state.add("orders", order)


def pull_all() -> PullResult:
    return pull(PullOptions(("customers", "orders"), command="run"), step=Reconciling())


def run(made: Bridge, line: str) -> Done:
    return made.command(*shlex.split(line), DLT_PROJECT_DIR=str(made.folder))


def file_of(made: Bridge) -> Path:
    return made.folder / ".dlt/orders.toml"


def test_a_field_of_two_forms_is_asked_with_counts_and_examples(shop: Bridge) -> None:
    listed = run(shop, "questions").out
    (line,) = [line for line in listed.splitlines() if line.startswith(f"assumed       {ITEMS} ")]
    assert line.endswith("  table is used")
    shown = run(shop, f"questions {ITEMS}").out
    assert "17 lists counted in a read, several items in o07" in shown
    assert "3 objects counted in a read" in shown
    assert f"to answer: orderbridge answer {ITEMS} object" in shown
    assert "kind:orders/total" not in listed, "all its values agree"


def test_each_command_that_is_shown_declares_the_field_and_the_next_pull_uses_it(
    shop: Bridge,
) -> None:
    shown = run(shop, f"questions {ITEMS}").out
    prefix = "to answer: orderbridge "
    commands = [line.removeprefix(prefix) for line in shown.splitlines() if prefix in line]
    assert len(commands) == 3
    for command in commands:
        done = run(shop, f"{command} --who ana --why 'as the shop says'")
        assert (done.code, done.err) == (0, "")
        (declared,) = declared_kinds("orders").values()
        assert declared.kind == shlex.split(command)[-1]
    assert ITEMS not in run(shop, "questions").out
    assert "# ana, " in file_of(shop).read_text("utf-8")
    assert run(shop, f"answer {ITEMS} list").code == 0
    before = file_of(shop).read_bytes()
    assert pull_all().published
    assert file_of(shop).read_bytes() == before, "a run writes no answer"
    assert shop.one("SELECT count(items) FROM raw.orders") == 17


def test_a_field_that_is_not_asked_about_can_be_answered_and_withdrawn(shop: Bridge) -> None:
    place = "kind:orders/shipping.zip"
    shown = run(shop, f"questions {place}").out
    assert shown.startswith(f"{place}: decided by the values\n")
    assert run(shop, "schema orders --write").code == 0
    text = file_of(shop).read_text("utf-8")
    file_of(shop).write_text(f'{text}"total" = {{ kind = "decimal", name = "amount" }}\n', "utf-8")
    assert run(shop, f"answer {place} boolean").code == 0
    assert run(shop, "answer kind:orders/total text").code == 0
    declared = {path: (one.kind, one.name) for path, one in declared_kinds("orders").items()}
    assert declared == {'["shipping","zip"]': ("boolean", None), '["total"]': ("text", "amount")}
    assert file_of(shop).read_text("utf-8").count('"shipping.zip"') == 1
    assert run(shop, f"answer {place} --withdraw").code == 0
    assert run(shop, f"answer {place} --withdraw").code == 2
    assert [*declared_kinds("orders")] == ['["total"]']


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"answer {ITEMS} tables", f"orderbridge questions '{ITEMS}'"),
        ("answer kind:orders/item table", "orderbridge schema orders"),
        (f"answer {ITEMS} table --until 2999-01-01", "orderbridge answer QUESTION --withdraw"),
        ("questions kind:orders/item", f"Did you mean {ITEMS}?"),
    ],
)
def test_a_kind_that_is_not_possible_ends_with_2_and_a_command(
    shop: Bridge, line: str, words: str
) -> None:
    done = run(shop, line)
    assert (done.code, words in done.err) == (2, True), done.err
    assert not file_of(shop).exists()
