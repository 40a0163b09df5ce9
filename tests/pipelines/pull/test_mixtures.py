"""Faults and readings mixed at random: never a wrong `complete`. `make soak CAMPAIGNS=whole-pull` judges more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines.bridge import bridge
from tests.pipelines.pull.mixtures import judge, mixture, pulled, representative, wrongs


@pytest.mark.parametrize("seed", representative(200))
def test_mixed_at_random(tmp_path: Path, seed: int) -> None:
    assert judge(mixture(seed), tmp_path).problems == []


def test_the_judge_sees_a_wrong_complete(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        done, code = pulled(made, "customers")
        made.platform.state.change("customers", made.platform.state.ids("customers")[0], {"lastName": "otro"})
        assert list(wrongs(made, done, code, False)) == ["customers: complete, and the rows are not the platform's"]
