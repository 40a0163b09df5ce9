"""After its owner has answered, a shop's figures are the truth; before that, no customer, day or total is wrong.

Beside each shop stands what cannot be answered yet: these figures may differ, and a test fails once they do not.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests import shops
from tests.shops.judge import judged
from tests.shops.owners import OWNERS
from tests.shops.world import Shop

NAMES: Final = tuple(OWNERS)
NEVER_WRONG: Final = frozenset({"customer", "day", "total", "quantities"})
IN_UTC: Final = frozenset({"magento", "odoo"})
"""Their times have no offset: until somebody answers, they are read by the shop's clock, and are in question."""
UNANSWERABLE: Final[Mapping[str, frozenset[str]]] = {
    # an item of a set has a row of its own and one of the set
    "magento": frozenset({"lines"}),
    # customer and product are arrays of id and name
    "odoo": frozenset({"customer", "products"}),
    # the total is the sum of the payments; each row is one piece, and several are the line of the truth
    "olist": frozenset({"total", "lines"}),
    # a voucher is a row of the lines
    "shopware": frozenset({"lines"}),
}


def shop_of(name: str) -> Shop:
    shop: Shop = importlib.import_module(f"tests.shops.{name}").shop()
    return shop


def test_each_shop_has_an_owner_who_answers() -> None:
    modules = {module.name for module in pkgutil.iter_modules(shops.__path__)}
    assert modules - {"judge", "mixed", "owners", "world", "test_shops"} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_nobody_has_answered_is_unknown_rather_than_wrong(name: str, tmp_path: Path) -> None:
    verdicts = judged(shop_of(name), tmp_path, {})
    in_question = {"day"} if name in IN_UTC else set[str]()
    assert set(verdicts.wrong) & NEVER_WRONG == in_question, verdicts.wrong


@pytest.mark.parametrize("name", NAMES)
def test_after_the_answers_each_figure_is_that_of_the_truth(name: str, tmp_path: Path) -> None:
    verdicts = judged(shop_of(name), tmp_path, OWNERS[name])
    assert set(verdicts.those("wrong", "unknown")) == UNANSWERABLE.get(name, frozenset())
