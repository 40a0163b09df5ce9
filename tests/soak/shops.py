"""Shops whose traits are mixed at random: what nobody has answered is not wrong, and what is asked makes it right.

A seed draws a shop, as `tests.shops.mixed` does. The first run is without an answer. Then its owner answers what is
asked, and nothing else, until nothing new is asked that the owner knows. A figure that rests on an assumption may be
wrong while the question is shown; customers, totals and quantities may not.
"""

from __future__ import annotations

from tests.shops.judge import judged
from tests.shops.mixed import mixed_shop
from tests.soak.walks import Outcome, folder_in_memory


def shops_seed(seed: int) -> Outcome:
    """The shop of a seed without answers, and with those of its owner."""
    shop, owner, traits = mixed_shop(seed)
    with folder_in_memory() as folder:
        made = judged(shop, owner, folder)
    problems = [
        f"{figure} is wrong without an answer: {orders[0]}"
        for figure, orders in made.silently_wrong().items()
    ]
    for figure, orders in made.after.wrong.items():
        problems.append(f"{figure} is wrong after the answers: {orders[0]}")
    for figure, count in made.after.those("unknown").items():
        problems.append(f"{figure} is unknown in {count} orders after the answers")
    counts = {
        "shops": 1,
        "answers": len(made.given),
        "figures in question": len(made.before.wrong),
        "figures unknown before the answers": len(made.before.those("unknown")),
    }
    named = f"{traits}; answered: {sorted(made.given)}"
    return Outcome(counts, [f"{problem}; {named}" for problem in problems])
