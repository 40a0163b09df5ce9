"""Shops whose traits are mixed at random: what nobody has answered is not wrong, and what is asked makes it right.

A seed draws a shop, as `tests.shops.mixed` does. The first run is without an answer. Then its owner answers what is
asked, and nothing else, until nothing new is asked that the owner knows. A figure that rests on an assumption may be
wrong while the question is shown; customers, totals and quantities may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orderbridge.pipelines.reconcile.reconcile import reconcile
from tests.pipelines.bridge import Bridge
from tests.shops.judge import answers, compared, pulled
from tests.shops.mixed import BY_EMAIL, mixed_shop
from tests.soak.walks import Outcome, folder_in_memory

ROUNDS_MAX: Final = 4
_ASKED: Final = """
    SELECT question FROM reconciled.meanings WHERE state IN ('open', 'assumed', 'contradicted')"""
_OF_STATUS: Final = ("order_status", "order_statuses", "order_total", "order_total_unit")
"""An order is refunded if all of its total went back."""
_RESTS_ON: Final[Mapping[str, tuple[str, ...]]] = {
    "customer": (),
    "total": (),
    "quantities": (),
    "day": ("order_ordered_at", "order_clock", "date_order"),
    "status": _OF_STATUS,
    "is_sale": _OF_STATUS,
    "lines": ("order_lines",),
    "revenue of lines": ("order_line_discount_unit", "order_line_total", "order_line_unit_price"),
    "products": ("order_line_product",),
}
"""The questions that a figure may rest on while it is wrong."""


def shops_seed(seed: int) -> Outcome:
    """The shop of a seed without answers, and with those of its owner."""
    shop, owner, traits = mixed_shop(seed)
    with folder_in_memory() as folder, pulled(shop, folder, {}) as made:
        asked = _asked(made)
        before = compared(shop, made)
        problems = [
            f"{figure} is wrong without an answer: {orders[0]}"
            for figure, orders in before.wrong.items()
            if asked.isdisjoint(_RESTS_ON[figure])
        ]
        given: dict[str, str] = {}
        for _ in range(ROUNDS_MAX):
            more = {name: owner[name] for name in asked if name in owner and name not in given}
            if not more:
                break
            given |= more
            with answers(given):
                reconcile()
            asked = _asked(made)
        after = compared(shop, made)
    for figure, orders in after.wrong.items():
        problems.append(f"{figure} is wrong after the answers: {orders[0]}")
    for figure, count in after.those("unknown").items():
        if figure != "customer" or traits["customer"] != BY_EMAIL:
            problems.append(f"{figure} is unknown in {count} orders after the answers")
    counts = {
        "shops": 1,
        "answers": len(given),
        "figures in question": len(before.wrong),
        "figures unknown before the answers": len(before.those("unknown")),
    }
    named = f"{traits}; answered: {sorted(given)}"
    return Outcome(counts, [f"{problem}; {named}" for problem in problems])


def _asked(made: Bridge) -> set[str]:
    """The questions of the last run, as the settings below `reconcile.` are called."""
    return {name.removeprefix("reconcile.") for (name,) in made.rows(_ASKED)}
