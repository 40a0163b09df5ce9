from __future__ import annotations

import time
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orderbridge.transforms.chance import LEVEL, Share, chance_of_fall, has_fallen


def exactly(now: Share, before: Share) -> Fraction:
    """The same sum in whole numbers."""
    hits, others = now.hits + before.hits, now.rows + before.rows - now.hits - before.hits
    ways = sum(
        comb(hits, n) * comb(others, now.rows - n)
        for n in range(now.hits + 1)
        if now.rows - n <= others
    )
    return Fraction(ways, comb(hits + others, now.rows))


@pytest.mark.parametrize(
    ("now", "before", "chance"),
    [
        ((0, 3), (3, 3), 1 / 20),  # the three of six that are without: 1 of 20 samples
        ((1, 12), (9, 12), 0.001379728),  # the dieters of the textbooks: 1 and 9 of 12
        ((0, 1), (2000, 2000), 1 / 2001),
        ((0, 3), (2000, 2000), 1 / comb(2003, 3)),
        ((30, 30), (2000, 2000), 1),
        ((0, 0), (5, 5), 1),
        ((0, 5), (0, 0), 1),
    ],
)
def test_the_chance_of_a_fall_is_that_of_fishers_exact_test(
    now: tuple[int, int], before: tuple[int, int], chance: float
) -> None:
    assert chance_of_fall(Share(*now), Share(*before)) == pytest.approx(chance, rel=1e-3)


shares = st.integers(0, 60).flatmap(
    lambda rows: st.builds(Share, st.integers(0, rows), st.just(rows))
)


@given(shares, shares)
def test_the_sum_in_logarithms_is_the_sum_in_whole_numbers(now: Share, before: Share) -> None:
    assert chance_of_fall(now, before) == pytest.approx(float(exactly(now, before)), rel=1e-9)


@pytest.mark.parametrize(
    ("now", "before", "is_change"),
    [
        ((0, 30), (2000, 2000), True),
        ((0, 30), (30, 30), True),
        ((0, 3), (2000, 2000), True),
        ((0, 1), (20_000, 20_000), False),  # one order proves nothing
        ((0, 2), (20, 20), False),
        ((0, 3), (1900, 2000), False),  # a value in 95 %: three without are no news
        ((0, 6), (1900, 2000), True),
        ((25, 30), (1960, 2000), False),
        ((0, 30), (100, 2000), False),
        ((30, 30), (1000, 2000), False),  # more than before is no fall
        ((0, 30), (0, 0), False),  # nothing to compare with
    ],
)
def test_a_share_has_fallen_where_chance_does_not_explain_it(
    now: tuple[int, int], before: tuple[int, int], is_change: bool
) -> None:
    assert has_fallen(Share(*now), Share(*before)) is is_change


@pytest.mark.parametrize("part", [0.02, 0.3, 0.5, 0.95])
@pytest.mark.parametrize("rows", [3, 30, 300])
def test_a_year_of_a_hundred_columns_has_less_than_one_false_alarm(part: float, rows: int) -> None:
    """Exactly, not by trying: the chance of each number of hits, and whether it would be an alarm."""
    before = Share(round(2000 * part), 2000)
    false = sum(
        comb(rows, hits) * part**hits * (1 - part) ** (rows - hits)
        for hits in range(rows + 1)
        if has_fallen(Share(hits, rows), before)
    )
    assert false * 365 * 100 * 10 < 1
    assert false <= 10 * LEVEL  # the earlier share is itself known from a sample only


def test_millions_of_rows_are_judged_at_once() -> None:
    begin = time.perf_counter()
    assert has_fallen(Share(4_900_000, 5_000_000), Share(9_950_000, 10_000_000))
    assert not has_fallen(Share(2_499_000, 5_000_000), Share(5_000_000, 10_000_000))
    assert time.perf_counter() - begin < 1
