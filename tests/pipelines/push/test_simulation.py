"""Simulated pushes; and code that is broken on purpose, which the same judge must catch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest import mock

import pytest

from pipelines.ledger.model import StateChange
from pipelines.push import eligibility, outcome
from pipelines.push.plan_ledger import PlanLedger
from tests.pipelines.push.simulation import SETTLE_S, Wrong, simulate


def _taken_for_unsent(self: PlanLedger, deadline_s: float, now: float) -> None:
    self.commit([StateChange(row.id, "planned") for row in self.rows("in_flight")], now)


BREAKS: dict[str, tuple[Any, str, Any]] = {
    "nothing is in the way": (eligibility.UnsettledUpdates, "conflict", lambda *_: None),
    "any page with 200 is believed": (outcome, "_doubt_about", lambda *_: None),
    "no key is claimed": (PlanLedger, "claimed", lambda *_: {}),
    "what is in flight is taken for unsent": (PlanLedger, "recover", _taken_for_unsent),
    "all updates are repeated": (
        eligibility.PushRules,
        "is_repeatable",
        lambda _, op: op.method == "PATCH",
    ),
}
SEEN = {
    "nothing is in the way": 71,
    "any page with 200 is believed": 13,
    "no key is claimed": 82,
    "what is in flight is taken for unsent": 4,
    "all updates are repeated": 16,
    "nothing is waited for": 49,
}
"""The first seed that showed the break; where threads fall in otherwise, a later one does."""
SEEDS = sorted({*range(32), *(seed + more for seed in SEEN.values() for more in range(3))})
"""`make soak CAMPAIGNS=push` runs any number of them."""


@pytest.mark.parametrize("part", range(2))
def test_no_crash_and_no_fault_makes_a_write_happen_twice_or_a_state_wrong(part: int) -> None:
    for seed in SEEDS[part::2]:
        simulate(seed)


@pytest.mark.parametrize("name", SEEN)
def test_the_simulation_catches_what_is_broken_on_purpose(name: str) -> None:
    where, what, instead = BREAKS.get(name, (None, "", None))
    broken: AbstractContextManager[object] = mock.patch.object(where, what, instead) if where else nullcontext()
    settle_s = SETTLE_S if where else 0.0

    def wrong() -> Iterator[str]:
        for seed in range(SEEN[name], SEEN[name] + 200):
            try:
                simulate(seed, settle_s)
            except Wrong as found:
                yield str(found)

    with broken:
        assert next(wrong(), None), "the judge did not see it"
