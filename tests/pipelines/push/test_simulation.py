"""Simulated pushes; the planted bugs that name this file are what the judge must see."""

from __future__ import annotations

import pytest

from tests.pipelines.push.simulation import simulate

SEEDS = sorted({*range(32), *(seed + more for seed in (4, 13, 16, 71, 82) for more in range(3))})
"""The first ones, and those that showed planted bugs; `make soak CAMPAIGNS=push` runs any number of them."""


@pytest.mark.parametrize("part", range(2))
def test_no_crash_and_no_fault_makes_a_write_happen_twice_or_a_state_wrong(part: int) -> None:
    for seed in SEEDS[part::2]:
        simulate(seed)
