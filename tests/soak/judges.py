"""Code that is broken on purpose, which the judges of the campaigns must catch: run by `make soak` before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from pipelines.import_file import run as importing
from pipelines.import_file.run import ImportOptions
from pipelines.ledger.model import StateChange
from pipelines.ledger.store import Ledger
from pipelines.mapping import Mapping
from pipelines.plan.model import Plan
from pipelines.plan.rejects import RejectsWriter
from pipelines.push.plan_ledger import PlanLedger
from pipelines.reconcile import odd_values
from pipelines.warehouse import build, merge
from pipelines.warehouse.accepted import Accepted
from sources import disk
from sources.decode import rows, schema_inference
from sources.decode.documented import decode
from sources.decode.rows import Decoded
from sources.extract import page_files
from sources.extract import walk as walks
from sources.extract.page_files import PageFiles
from tests.crashes.enumeration import pull_crashes, push_crashes
from tests.soak.fortnight import fortnight_seed
from tests.soak.nights import nights_seed
from tests.soak.platforms import platform_seed
from tests.soak.tails import tail_seed
from tests.soak.walks import Outcome, walk_seed

patch = mock.patch.object
Broken = Callable[[], Any]


def seeds(run: Callable[[int], Outcome], *numbers: int) -> Callable[[], bool]:
    return lambda: any(run(number).problems for number in numbers)


def _last_plan(options: ImportOptions) -> Plan | None:
    found = sorted(Path().glob(f"plan-{options.kind}-*"), key=lambda path: path.stat().st_mtime_ns)
    return Plan(found[-1]) if found else None


def _without_first(rows: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: islice(rows(self), 1, None)


def _lossy(record: Any, pages: Any) -> Decoded:
    decoded = decode(record, pages)
    return replace(decoded, tables={name: table.slice(1) for name, table in decoded.tables.items()})


def _doubled(write: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, later_keys: write(self, [])


def _merged_as_complete(merge_list: Callable[..., Any]) -> Callable[..., Any]:
    """What was read in part ends the records that it lacks."""
    return lambda build, walked, run_id: merge_list(build, replace(walked, verdict="complete"), run_id)


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
    with patch(disk, "sync"), patch(build, "move_file", lambda a, b: a.replace(b)):
        yield


AGREED: dict[str, Broken] = {
    "any two sweeps agree": lambda: patch(walks._ListWalk, "_is_agreed", lambda self, files: len(files) > 1),
    "the decoder loses a row": lambda: patch(page_files, "decode", _lossy),
    "a lone sweep proves a list": lambda: patch(walks._ListWalk, "_is_agreed", return_value=True),
}
JUDGES: dict[str, tuple[Callable[[], object], dict[str, Broken]]] = {
    "walks": (
        seeds(walk_seed, *reversed(range(60))),  # the last ones find more
        AGREED
        | {
            "sweeps are not merged": lambda: patch(PageFiles, "write", _doubled(PageFiles.write)),
            "numbers lose their digits": lambda: patch(rows, "canonical", lambda number: str(float(number))),
        },
    ),
    "platforms": (seeds(platform_seed, 900004), AGREED),
    "tails": (
        seeds(tail_seed, *range(8)),
        {"a partial read ends records": lambda: patch(merge, "merge_list", _merged_as_complete(merge.merge_list))},
    ),
    "fortnights": (
        lambda: any(fortnight_seed(seed, days=3).problems for seed in range(2, 9)),
        {
            "stock is sent when it was changed here": lambda: patch(Mapping, "always_sent", return_value=frozenset()),
            "a plan is continued although its file was overwritten": lambda: patch(
                importing, "_unfinished_plan", _last_plan
            ),
            "a rejected line is not in the workbook": lambda: patch(
                RejectsWriter, "rows", _without_first(RejectsWriter.rows)
            ),
            "mappings are not found again": lambda: patch(importing, "find_mapping", return_value=None),
        },
    ),
    "nights": (
        lambda: nights_seed(3, 6).problems,
        {
            "kinds are forgotten": lambda: patch(schema_inference.InferredNode, "keep"),
            "odd values are nothing": lambda: patch(schema_inference, "is_nothing", return_value=True),
            "objects are never lists": lambda: patch(schema_inference, "is_keyed", return_value=False),
            "alarms fall silent": lambda: patch(Accepted, "is_changed", return_value=True),
            "nobody counts the values": lambda: patch(odd_values, "gone_values", return_value=[]),
        },
    ),
}
CRASHES: dict[str, Broken] = {
    "commits are not synced": lambda: patch(Ledger, "open", _unsynced_ledger(Ledger.open)),
    "what is in flight is taken for unsent": lambda: patch(PlanLedger, "recover", _forgotten),
    "passwords are not synced": lambda: patch(disk, "sync"),
}


@pytest.mark.parametrize(("judge", "name"), [(judge, name) for judge, (_, broken) in JUDGES.items() for name in broken])
def test_a_judge_catches_broken_code(judge: str, name: str) -> None:
    finds, broken = JUDGES[judge]
    with broken[name]():
        assert finds()


@pytest.mark.parametrize("name", CRASHES)
def test_the_judge_of_crashed_pushes_catches_broken_code(name: str) -> None:
    assert push_crashes("customers", 1, CRASHES[name]).problems


def test_the_judge_of_crashed_pulls_catches_a_build_that_is_not_synced(tmp_path: Path) -> None:
    problems = pull_crashes(tmp_path, resumed=range(0), broken=_without_sync).problems
    assert any("a reader finds IOException" in problem for problem in problems)
    assert any(problem.startswith("point ") and "(end), lost" in problem for problem in problems)
