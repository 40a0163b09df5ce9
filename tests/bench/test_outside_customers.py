"""The two lists of an outsider: what is measured with them is worth as much as their truth."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.bench.outside_customers import DIRT, FIRST, HELD_OUT, Population, Truth, make
from tests.bench.outside_match import Case, Found, Judged, _is_dirt

POPULATIONS = pytest.mark.parametrize("population", [FIRST, HELD_OUT], ids=lambda one: one.name)


@POPULATIONS
def test_a_seed_makes_the_same_lists_again_and_another_one_others(population: Population) -> None:
    assert make(7, 120, population) == make(7, 120, population)
    assert make(7, 120, population)[0] != make(8, 120, population)[0]


@POPULATIONS
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_truth_is_about_records_that_are_there_and_decides_each_pair_once(
    population: Population, seed: int
) -> None:
    platform, erp, truth = make(seed, 400, population)
    ids, codes = [str(row["id"]) for row in platform], [row["erpCode"] for row in erp]
    assert len(set(ids)) == len(ids)
    assert len(set(codes)) == len(codes)
    assert all(codes)
    for customer, code in [*truth.pairs, *truth.non_pairs]:
        assert customer in truth.platform_kinds.keys() & set(ids)
        assert code in truth.erp_kinds.keys() & set(codes)
    assert not truth.pairs.keys() & truth.non_pairs.keys()


@POPULATIONS
def test_lists_are_as_dirty_as_in_real_life(population: Population) -> None:
    platform, erp, truth = make(1, 2_500, population)
    for rows, at in ((platform, 0), (erp, 1)):
        in_both = len({pair[at] for pair in truth.pairs})
        assert in_both / len(rows) == pytest.approx(1 - population.one_sided, abs=0.05)
    kinds = [sum(map(_is_dirt, kinds)) for kinds in truth.pairs.values()]
    assert sum(number <= 2 for number in kinds) / len(kinds) > 0.7
    assert sum(number == 0 for number in kinds) / len(kinds) > 0.15


def test_the_first_population_has_every_kind_but_those_that_are_held_out() -> None:
    found: Counter[str] = Counter()
    for seed in (1, 2, 3):
        truth: Truth = make(seed, 2_500)[2]
        for kinds in (*truth.platform_kinds.values(), *truth.erp_kinds.values()):
            found.update(kinds)
    assert {kind for kind in DIRT if not found[kind]} == {
        kind for kind in DIRT if kind.startswith("held out:")
    }


def test_who_finds_all_pairs_and_no_other_has_missed_none() -> None:
    case = Case(*make(1, 200))
    judged = Judged(case, Found(set(case.truth.pairs), set(), {}, 0.0))
    assert (len(judged.right), judged.wrong, judged.missed) == (len(case.truth.pairs), set(), set())
