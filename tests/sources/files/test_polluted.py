"""Damaged files are read equal or refused with the line, never silently wrong.

Seeds: ORDERBRIDGE_SOAK_SEEDS (default 150 for single damages, and as many pairs); ORDERBRIDGE_SOAK_FIRST is the first.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.sources.files.polluted import DAMAGES, HARMLESS, cost, damaged, silent_errors, with_damages

SEEDS = int(os.environ.get("ORDERBRIDGE_SOAK_SEEDS", "150"))
FIRST = int(os.environ.get("ORDERBRIDGE_SOAK_FIRST", "0"))
FORMER_ERRORS = """
20104 second_table missing_delimiter repeated_header
20882 stray_opening_quote second_table repeated_header
21105 text_after_a_quote quoted_wrongly_header
31393 trailing_delimiter_everywhere backslash_escapes broken_row
40010 two_stray_quotes
91150 truncated short_header trailing_delimiter_everywhere
91329 totals truncated missing_delimiter
301248 space_before_quotes no_header
400810 quoted_lines comment_lines first_table
602778 table_beside quoted_lines first_table
301727 second_table tab_in_a_cell blank_lines
733351 quoted_lines lone_return_in_a_cell trailing_delimiter_everywhere
742600 title quoted_lines trailing_delimiter_everywhere
720381 rule_below_the_header short_header trailing_delimiter_everywhere
900243 blank_lines apostrophe_before_digits two_stray_quotes
100331 doubled_stray_quotes no_header
104551 no_header broken_last_row header_that_lacks_a_delimiter
200178 subtotals trailing_delimiter_everywhere table_in_another_order
300699 doubled_stray_quotes padding quoted_lines
301498 backslash_escapes second_table_of_equal_length subtotals
6000059 curly_closing_quote table_amid_the_rows lone_return_in_a_cell
7000119 missing_delimiter totals table_amid_the_rows
793 table_amid_the_rows byte_order_mark_in_the_middle
73 table_amid_the_rows extra_delimiter
1014 blank_lines comment_lines titles_of_pages
712344 short_header trailing_delimiter_everywhere quote_inside_a_cell
"""


@pytest.mark.parametrize("count", [1, 2])
def test_no_damage_is_silent(tmp_path: Path, count: int) -> None:
    for seed in range(FIRST, FIRST + SEEDS):
        document, name = damaged(seed, count)
        assert silent_errors(document, tmp_path)[0] == [], f"seed {seed}, {name}"


def test_each_damage_alone_and_those_that_were_once_read_wrongly_are_not_silent(tmp_path: Path) -> None:
    former = [line.split() for line in FORMER_ERRORS.split("\n")[1:-1]]
    for seed, *names in [*former, *([f"alone {seed}", name] for name in DAMAGES for seed in range(4))]:
        assert silent_errors(with_damages(seed, names), tmp_path)[0] == [], (seed, names)


def test_what_costs_no_row_is_read_whole(tmp_path: Path) -> None:
    """Titles, notes, totals and the like: at most 3 % of the files may be refused or have a row rejected."""
    costly = []
    for seed in range(FIRST, FIRST + SEEDS):
        names = random.Random(seed).sample(HARMLESS, seed % 3)
        reason = cost(with_damages(f"whole {seed}", names), tmp_path)
        costly += [f"seed {seed}, {names}: {reason}"] if reason else []
    assert 100 * len(costly) <= 3 * SEEDS, costly
