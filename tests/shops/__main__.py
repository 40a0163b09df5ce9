"""What the program makes of each shop: `python -m tests.shops [NAME …]`; `unseen.NAME` is one of the unseen shops.

A row is a shop: how many orders and of them which figures are wrong or unknown, without an answer and after those of
its owner. The command ends with 1 if one is wrong without a question about it, or after the answers.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.shops.judge import judged
from tests.shops.owners import OWNERS
from tests.shops.test_shops import shop_of
from tests.shops.unseen.owners import OWNERS as OWNERS_OF_UNSEEN


def main(names: Sequence[str]) -> int:
    logging.disable()
    problems = 0
    owners = {**OWNERS, **{f"unseen.{name}": owner for name, owner in OWNERS_OF_UNSEEN.items()}}
    for name in names or [*OWNERS]:
        with tempfile.TemporaryDirectory() as folder:
            shop = shop_of(name)
            made = judged(shop, owners[name], Path(folder))
        silent = made.silently_wrong()
        problems += bool(silent or made.after.wrong)
        sys.stdout.write(
            f"{name}: {len(shop.truth)} orders; without an answer wrong: {_shown(made.before.those('wrong'))}, "
            f"unknown: {_shown(made.before.those('unknown'))}; {len(made.given)} answers; "
            f"then wrong: {_shown(made.after.those('wrong'))}, unknown: {_shown(made.after.those('unknown'))}\n"
        )
        for figure, orders in (silent | made.after.wrong).items():
            sys.stdout.write(f"  {figure}: {orders[0]}\n")
        sys.stdout.flush()
    return int(problems > 0)


def _shown(figures: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in figures.items()) or "none"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
