"""Damaged files are read equal or refused, never silently wrong: each damage alone, and many pairs."""

from __future__ import annotations

import random
from itertools import combinations
from pathlib import Path

from tests.sources.files.polluted import DAMAGES, HARMLESS, silent_errors


def test_no_damage_is_silent(tmp_path: Path) -> None:
    pairs = random.Random(1).sample([*combinations(DAMAGES, 2)], 150)
    for variation, names in enumerate([*((name,) for name in DAMAGES for _ in range(4)), *pairs]):
        assert silent_errors(names, tmp_path, variation)[0] == [], (names, variation)


def test_what_costs_no_row_is_read_whole(tmp_path: Path) -> None:
    for variation, names in enumerate(combinations(HARMLESS, 2)):
        assert silent_errors(names, tmp_path, variation) == ([], ""), (names, variation)
