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
SEEN: dict[str, range] = {
    "nothing is in the way": range(70, 270),
    "any page with 200 is believed": range(2, 202),
    "no key is claimed": range(82, 282),
    "what is in flight is taken for unsent": range(4, 204),
    "all updates are repeated": range(16, 216),
}
"""Seeds from the first that showed the break; where threads fall in otherwise, a later one does."""
SEEDS = sorted({*range(40), *(seed for seeds in SEEN.values() for seed in seeds[:5])})
"""`make soak CAMPAIGNS=push` runs any number of them."""


@pytest.mark.parametrize("part", range(4))
def test_no_crash_and_no_fault_makes_a_write_happen_twice_or_a_state_wrong(part: int) -> None:
    for seed in SEEDS[part::4]:
        simulate(seed)


@pytest.mark.parametrize("name", [*BREAKS, "nothing is waited for"])
def test_the_simulation_catches_what_is_broken_on_purpose(name: str) -> None:
    where, what, instead = BREAKS.get(name, (None, "", None))
    broken: AbstractContextManager[object] = mock.patch.object(where, what, instead) if where else nullcontext()
    settle_s = SETTLE_S if where else 0.0

    def wrong() -> Iterator[str]:
        for seed in SEEN.get(name, range(8, 208)):
            try:
                simulate(seed, settle_s)
            except Wrong as found:
                yield str(found)

    with broken:
        assert next(wrong(), None), "the judge did not see it"
