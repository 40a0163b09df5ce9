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
FORMER_ERRORS = """
20104 second_table missing_delimiter repeated_header
21105 text_after_a_quote quoted_wrongly_header
31393 trailing_delimiter_everywhere backslash_escapes broken_row
40010 two_stray_quotes
301248 space_before_quotes no_header
733351 quoted_lines lone_return_in_a_cell trailing_delimiter_everywhere
720381 rule_below_the_header short_header trailing_delimiter_everywhere
900243 blank_lines apostrophe_before_digits two_stray_quotes
100331 doubled_stray_quotes no_header
7000119 missing_delimiter totals table_amid_the_rows
73 table_amid_the_rows extra_delimiter
712344 short_header trailing_delimiter_everywhere quote_inside_a_cell
"""


def test_no_damage_is_silent(tmp_path: Path) -> None:
    former = [line.split() for line in FORMER_ERRORS.split("\n")[1:-1]]
    for seed, *names in [*former, *([f"alone {seed}", name] for name in DAMAGES for seed in range(4))]:
        assert silent_errors(with_damages(seed, names), tmp_path)[0] == [], (seed, names)
    for number in range(FIRST, FIRST + SEEDS):
        document, name = damaged(number, 2)
        assert silent_errors(document, tmp_path)[0] == [], f"seed {number}, {name}"


def test_what_costs_no_row_is_read_whole(tmp_path: Path) -> None:
    """Titles, notes, totals and the like: at most 3 % of the files may be refused or have a row rejected."""
    costly = []
    for seed in range(FIRST, FIRST + SEEDS):
        names = random.Random(seed).sample(HARMLESS, seed % 3)
        cost = silent_errors(with_damages(f"whole {seed}", names), tmp_path)[1]
        costly += [f"seed {seed}, {names}: {cost}"] if cost else []
    assert 100 * len(costly) <= 3 * SEEDS, costly
