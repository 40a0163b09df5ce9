"""Shops with their truth: what nobody has answered is in question or unknown, and after the answers all is right."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Final

import pytest

from tests import shops
from tests.shops.judge import judged
from tests.shops.owners import OWNERS
from tests.shops.world import Shop

NAMES: Final = tuple(OWNERS)
ANSWERS_MAX: Final = 8


def shop_of(name: str) -> Shop:
    shop: Shop = importlib.import_module(f"tests.shops.{name}").shop()
    return shop


def test_each_shop_has_an_owner_who_answers() -> None:
    modules = {module.name for module in pkgutil.iter_modules(shops.__path__)}
    others = {"judge", "mixed", "owners", "unseen", "world", "test_shops", "__main__"}
    assert modules - others == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_in_question_or_right_and_after_the_answers_all_are_right(
    name: str, tmp_path: Path
) -> None:
    made = judged(shop_of(name), OWNERS[name], tmp_path)
    silent = made.silently_wrong()
    assert not silent, silent
    assert len(made.given) <= ANSWERS_MAX, made.given
    assert not made.after.those("wrong", "unknown"), made.after.wrong
