"""Damaged files are read equal or refused with the line, never silently wrong.

Seeds: ORDERBRIDGE_SOAK_SEEDS (default 100 pairs of damages); ORDERBRIDGE_SOAK_FIRST is the first.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

from tests.sources.files.polluted import DAMAGES, HARMLESS, damaged, silent_errors, with_damages

SEEDS = int(os.environ.get("ORDERBRIDGE_SOAK_SEEDS", "100"))
FIRST = int(os.environ.get("ORDERBRIDGE_SOAK_FIRST", "0"))


def test_no_damage_is_silent(tmp_path: Path) -> None:
    for name in DAMAGES:
        for seed in range(4):
            assert silent_errors(with_damages(f"alone {seed}", [name]), tmp_path)[0] == [], (name, seed)
    for number in range(FIRST, FIRST + SEEDS):
        document, names = damaged(number, 2)
        assert silent_errors(document, tmp_path)[0] == [], (names, number)


def test_what_costs_no_row_is_read_whole(tmp_path: Path) -> None:
    """Titles, notes, totals and the like: at most 3 % of the files may be refused or have a row rejected."""
    costly = []
    for seed in range(FIRST, FIRST + SEEDS):
        names = random.Random(seed).sample(HARMLESS, seed % 3)
        cost = silent_errors(with_damages(f"whole {seed}", names), tmp_path)[1]
        costly += [f"seed {seed}, {names}: {cost}"] if cost else []
    assert 100 * len(costly) <= 3 * SEEDS, costly
