"""A few seeds of each campaign; that their judges see broken code is tested by `make soak` (judges.py)."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pytest

from orderbridge.sources.extract import walk as walks
from tests.postgres import is_available
from tests.soak.campaigns import run_seed
from tests.soak.fortnight import fortnight_seed
from tests.soak.new_rows import new_rows_seed
from tests.soak.nights import nights_seed
from tests.soak.shops import shops_seed
from tests.soak.walks import Outcome


@pytest.mark.parametrize(
    ("campaign", "seeds", "at_least", "names"),
    [
        ("pull", 30, 5, ("complete", "unproven", "stops", "faults")),
        ("platforms", 30, 7, ("complete", "unproven")),
    ],
)
def test_no_seed_of_a_campaign_has_a_problem(
    campaign: str, seeds: int, at_least: int, names: tuple[str, ...]
) -> None:
    outcomes = [run_seed(campaign, seed) for seed in range(seeds)]
    assert [problem for outcome in outcomes for problem in outcome.problems] == []
    counts = sum((Counter(outcome.counts) for outcome in outcomes), Counter[str]())
    assert min(counts[name] for name in names) >= at_least, counts
    assert run_seed(campaign, 7) == outcomes[7], "a seed cannot be run again"


def test_a_few_days_of_nightly_imports_leave_the_platform_as_the_erp_is() -> None:
    outcomes = [fortnight_seed(seed, days=3) for seed in (1, 6, 8)]
    assert [problem for outcome in outcomes for problem in outcome.problems] == []
    odd = ("deleted", "imports elsewhere", "codes without zeros")
    for name in ("plans deleted", "customers", "crashes", *odd):
        assert any(outcome.counts[name] for outcome in outcomes), outcomes


def test_drifting_orders_are_the_tables_of_each_night_and_every_loss_is_announced() -> None:
    outcome = nights_seed(45, 5)
    assert outcome.problems == []
    assert (
        min(
            outcome.counts[name]
            for name in ("odd_value", "form_changed", "values_gone", "accepted")
        )
        > 0
    )


@pytest.mark.skipif(not is_available(), reason="no Postgres that can be started here")
def test_the_copy_of_each_night_is_the_warehouse_by_table_and_value() -> None:
    outcome = nights_seed(45, 2, is_copied=True)
    assert outcome.problems == []
    assert outcome.counts["copies"] == 2


def test_new_orders_in_another_form_are_announced_and_quiet_nights_are_not() -> None:
    outcome = new_rows_seed(11)
    assert outcome.problems == []
    assert outcome.counts["quiet nights"] > 0
    assert outcome.counts["accepted"] > 0


def test_shops_of_mixed_traits_are_right_once_what_is_asked_is_answered() -> None:
    outcomes = [shops_seed(seed) for seed in (127, 209, 402)]
    assert [problem for outcome in outcomes for problem in outcome.problems] == []
    assert all(outcome.counts["answers"] for outcome in outcomes)


def test_a_campaign_goes_on_after_an_exception() -> None:
    with mock.patch.object(walks._ListWalk, "run", side_effect=ZeroDivisionError("bug")):
        assert run_seed("pull", 3) == Outcome({}, ["ZeroDivisionError: bug"])
