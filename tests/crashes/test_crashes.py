"""Crashes at every point of a push and of a pull."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderbridge.sources.kinds import KindName
from tests.crashes.pull import pull_crashes
from tests.crashes.push import push_crashes


@pytest.mark.parametrize("kind", ["customers", "variants"])
def test_a_crash_at_any_point_of_a_push_costs_no_write_and_doubles_none(kind: KindName) -> None:
    enumeration = push_crashes(kind, 2)
    assert enumeration.problems == []
    assert enumeration.points >= 20
    assert enumeration.states >= 30


def test_a_crash_at_any_point_of_a_pull_leaves_one_version_whole(tmp_path: Path) -> None:
    enumeration = pull_crashes(tmp_path, resumed=range(15, 16))
    assert enumeration.problems == []
    assert enumeration.points >= 30
