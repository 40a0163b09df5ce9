"""Crashes at every point of a push and of a pull; and code that is broken on purpose, which the judges must catch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from pipelines.ledger.model import StateChange
from pipelines.ledger.store import Ledger
from pipelines.push.plan_ledger import PlanLedger
from pipelines.warehouse import build
from sources import disk
from sources.kinds import KindName
from tests.crashes.enumeration import pull_crashes, push_crashes


@pytest.mark.parametrize("kind", ["customers", "variants"])
def test_a_crash_at_any_point_of_a_push_costs_no_write_and_doubles_none(kind: KindName) -> None:
    enumeration = push_crashes(kind, 2)
    assert enumeration.problems == []
    assert enumeration.points >= 20
    assert enumeration.states >= 30


def _unsynced_ledger(opened: Callable[..., Ledger]) -> Callable[..., Ledger]:
    def open_(path: Path, **more: Any) -> Ledger:
        ledger = opened(path, **more)
        ledger.connection.execute("PRAGMA synchronous = NORMAL")
        return ledger

    return open_


def _forgotten(self: PlanLedger, deadline_s: float, now: float) -> None:
    self.commit([StateChange(row.id, "planned") for row in self.rows("in_flight")], now)


@contextmanager
def _without_sync() -> Iterator[None]:
    with mock.patch.object(disk, "sync"), mock.patch.object(build, "move_file", lambda a, b: a.replace(b)):
        yield


BROKEN_PUSHES: dict[str, Callable[[], Any]] = {
    "commits are not synced": lambda: mock.patch.object(Ledger, "open", _unsynced_ledger(Ledger.open)),
    "what is in flight is taken for unsent": lambda: mock.patch.object(PlanLedger, "recover", _forgotten),
    "passwords are not synced": lambda: mock.patch.object(disk, "sync"),
}


@pytest.mark.parametrize("name", BROKEN_PUSHES)
def test_the_judge_of_pushes_catches_broken_code(name: str) -> None:
    assert push_crashes("customers", 1, BROKEN_PUSHES[name]).problems


def test_a_crash_at_any_point_of_a_pull_leaves_one_version_whole(tmp_path: Path) -> None:
    enumeration = pull_crashes(tmp_path, resumed=range(15, 16))
    assert enumeration.problems == []
    assert enumeration.points >= 30


def test_the_judge_of_pulls_catches_a_build_that_is_not_synced(tmp_path: Path) -> None:
    problems = pull_crashes(tmp_path, resumed=range(0), broken=_without_sync).problems
    assert any("a reader finds IOException" in problem for problem in problems)
    assert any(problem.startswith("point ") and "(end), lost" in problem for problem in problems)
