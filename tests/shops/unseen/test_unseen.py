"""Shops that the program never read while it was made: what it makes of them, with every difference that is known.

A figure here is a number of orders (of months, of products) that differ from the truth. The test fails if one appears,
grows, shrinks or is gone: whoever made the program better lowers the figure, and whoever made it worse sees it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.shops import unseen
from tests.shops.judge import judged
from tests.shops.test_shops import ANSWERS_MAX, shop_of
from tests.shops.unseen.owners import OWNERS

Figures = Mapping[str, int]


@dataclass(frozen=True)
class Known:
    """What is known to differ.

    Attributes:
        silent: wrong without an answer, while nothing that the figure rests on is asked.
        wrong, unknown: after the answers of the owner.
    """

    silent: Figures = field(default_factory=dict)
    wrong: Figures = field(default_factory=dict)
    unknown: Figures = field(default_factory=dict)


KNOWN: Final[Mapping[str, Known]] = {
    "opencart": Known(),
    "nopcommerce": Known(),
    "square": Known(),
    "squarespace": Known(),
    "mercadolibre": Known(),
    "sapb1": Known(),
    "commercetools": Known(),
    "baeckerei": Known(),
}


def test_each_unseen_shop_has_an_owner_and_its_known_differences() -> None:
    modules = {module.name for module in pkgutil.iter_modules(unseen.__path__)}
    assert modules - {"owners", "test_unseen"} == set(OWNERS) == set(KNOWN)


@pytest.mark.parametrize("name", tuple(OWNERS))
def test_an_unseen_shop_differs_from_its_truth_in_what_is_known_and_in_nothing_else(
    name: str, tmp_path: Path
) -> None:
    made = judged(shop_of(f"unseen.{name}"), OWNERS[name], tmp_path)
    silent = {figure: len(orders) for figure, orders in made.silently_wrong().items()}
    found = Known(silent, made.after.those("wrong"), made.after.those("unknown"))
    assert found == KNOWN[name], made.after.wrong
    assert len(made.given) <= ANSWERS_MAX, made.given
