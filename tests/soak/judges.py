"""Code that is broken on purpose, which the judges of the campaigns must catch: run by `make soak` before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from orderbridge.pipelines.import_file import run as importing
from orderbridge.pipelines.import_file.run import ImportOptions
from orderbridge.pipelines.ledger.model import StateChange
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.mapping import Mapping
from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.push import eligibility, lookups, outcome
from orderbridge.pipelines.push.lookups import Doubt
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.reconcile import entities, odd_values
from orderbridge.pipelines.warehouse import build
from orderbridge.pipelines.warehouse.answers.accepted import Accepted
from orderbridge.pipelines.warehouse.destination import changes
from orderbridge.pipelines.warehouse.raw import recent_rows
from orderbridge.sources import disk
from orderbridge.sources.decode import rows, schema_inference, values
from orderbridge.sources.decode.documented import decode
from orderbridge.sources.decode.rows import Decoded
from orderbridge.sources.decode.schema_inference import InferredNode
from orderbridge.sources.extract import batches, proof
from orderbridge.sources.extract.sweep_rows import SweepRows
from orderbridge.sources.http import client as clients
from orderbridge.sources.http import retries
from orderbridge.sources.http.client import Client
from orderbridge.sources.http.retries import retry_after_s, retry_delay_s
from orderbridge.sources.http.waiting import ReadPace, WaitNotices
from orderbridge.transforms import chance
from tests.crashes.pull import pull_crashes
from tests.crashes.push import push_crashes
from tests.soak import nights
from tests.soak.fortnight import fortnight_seed
from tests.soak.new_rows import new_rows_seed
from tests.soak.nights import nights_seed
from tests.soak.platforms import platform_seed
from tests.soak.walks import walk_seed

patch = mock.patch.object
Broken = Callable[[], Any]
write, open_ledger = SweepRows.write, Ledger.open


def _last_plan(options: ImportOptions) -> Plan | None:
    found = sorted(Path().glob(f"plan-{options.kind}-*"), key=lambda path: path.stat().st_mtime_ns)
    return Plan(found[-1]) if found else None


def _own_doubts(*given: Any) -> list[Doubt]:
    return [
        replace(doubt, is_orphan=doubt.operation is None) for doubt in lookups.doubts_of(*given)
    ]


def _lossy(record: Any, pages: Any) -> Decoded:
    decoded = decode(record, pages)
    return replace(decoded, tables={name: table.slice(1) for name, table in decoded.tables.items()})


def _unsynced_ledger(path: Path, **more: Any) -> Ledger:
    ledger = open_ledger(path, **more)
    ledger.connection.execute("PRAGMA synchronous = NORMAL")
    return ledger


def _forgotten(self: PlanLedger, deadline_s: float, now: float) -> None:
    self.commit([StateChange(row.id, "planned") for row in self.rows("in_flight")], now)


@property  # type: ignore[misc] # it takes the place of one
def _is_list_of_several(node: InferredNode) -> bool:
    """As in version 0.3."""
    singles = node.counts[values.Count.LIST_OF_ONE]
    several = node._lists - singles
    return several > 0 and several >= schema_inference.LIST_SHARE * (node._lists + node._objects)


SPELT = (6, 18, 42, 50)
"""Seeds of `fortnights` whose platform spells codes in its own way, and customers log in with them."""
OVERWRITTEN = (15, 35, 39)
"""Those in which a file is overwritten while a create of it is in doubt, and nothing else ends the doubt."""
LONG_LIST = 11
"""A seed of `new_rows` in which thirty of a thousand orders are new, and in the end accepted."""
CORRECTED = 9
"""The same, but that the orders are corrected in the end."""
AGREED: dict[str, Broken] = {
    "any two sweeps agree": lambda: patch(
        proof.Proof, "_is_agreed", lambda self: len(self.rows) > 1
    ),
    "the decoder loses a row": lambda: patch(batches, "decode", _lossy),
    "a lone sweep proves a list": lambda: patch(proof.Proof, "_is_agreed", return_value=True),
}


def _eight_attempts(failure: Any, attempts: int, *more: Any, **options: Any) -> float | None:
    return None if attempts >= 8 else retry_delay_s(failure, attempts, *more, **options)


def _no_times(header: str | None, now: datetime) -> float | None:
    return (
        retry_after_s(header, now) if (header or "").isdigit() and len(header or "") < 9 else None
    )


IMPATIENT: dict[str, Broken] = {
    "a read has eight attempts": lambda: patch(clients, "retry_delay_s", _eight_attempts),
    "a read has two minutes": lambda: patch(clients, "time_budget_s", return_value=120.0),
    "delays do not grow": lambda: patch(retries, "delay_s", return_value=0.5),
    "whoever answers is the platform": lambda: patch(Client, "_is_foreign", return_value=False),
    "no other status passes": lambda: patch(retries, "RETRIED_WITH_A_PROVEN_KEY", ()),
    "a time in Retry-After is a number of seconds": lambda: patch(retries, "EPOCH_FROM_S", 10**13),
    "a time in Retry-After is ignored": lambda: patch(clients, "retry_after_s", _no_times),
    "a 429 sets no pace": lambda: patch(ReadPace, "answered"),
    "waits are silent": lambda: patch(WaitNotices, "_is_due", return_value=False),
}
JUDGES: dict[Callable[[], object], dict[str, Broken]] = {
    lambda: any(
        walk_seed(seed).problems for seed in reversed(range(60))
    ): AGREED  # the last ones find more
    | {
        "sweeps are not merged": lambda: patch(
            SweepRows, "write", lambda self, later_keys: write(self, [])
        ),
        "numbers lose their digits": lambda: patch(
            rows, "canonical", lambda number: str(float(number))
        ),
    },
    lambda: platform_seed(900004).problems: AGREED,
    lambda: any(platform_seed(seed).problems for seed in range(60)): IMPATIENT
    | {"arrays of one are objects": lambda: patch(InferredNode, "_is_list", _is_list_of_several)},
    lambda: any(fortnight_seed(seed, days=3).problems for seed in range(2, 9)): {
        "stock is sent when it was changed here": lambda: patch(
            Mapping, "always_sent", return_value=frozenset()
        ),
        "a plan is continued although its file was overwritten": lambda: patch(
            importing, "_unfinished_plan", _last_plan
        ),
        "mappings are not found again": lambda: patch(importing, "find_mapping", return_value=None),
    },
    lambda: any(fortnight_seed(seed, days=4).problems for seed in SPELT): {
        "what was deleted is created again": lambda: patch(PlanLedger, "claimed", return_value={}),
        "another name is another platform": lambda: patch(
            Ledger, "undecided_hosts", return_value={}
        ),
        "a record that is gone stays in doubt": lambda: patch(
            outcome, "is_refusal", return_value=False
        ),
    },
    lambda: any(fortnight_seed(seed, days=4).problems for seed in OVERWRITTEN): {
        "doubts of overwritten files stay open": lambda: patch(
            eligibility, "doubts_of", _own_doubts
        ),
    },
    lambda: nights_seed(45, 5).problems: {
        "kinds are forgotten": lambda: patch(schema_inference.InferredNode, "keep"),
        "odd values are nothing": lambda: patch(schema_inference, "is_nothing", return_value=True),
        "objects are never lists": lambda: patch(schema_inference, "is_keyed", return_value=False),
        "alarms fall silent": lambda: patch(Accepted, "is_changed", return_value=True),
        "nobody counts the values": lambda: patch(odd_values, "gone_values", return_value=[]),
        "lists of one are objects": lambda: patch(
            schema_inference.InferredNode, "_is_list", property(lambda self: False)
        ),
        "the exact text of a number is lost": lambda: patch(
            values, "round_decimal", lambda value: Decimal(round(value))
        ),
    },
    lambda: nights_seed(45, 2, is_copied=True).problems: {
        "changed rows are not copied": lambda: patch(
            changes, "_CHANGED", f"{changes._CHANGED} LIMIT 0"
        ),
    },
    lambda: new_rows_seed(LONG_LIST, form="the lines are wrapped").problems: {
        "new rows are not marked": lambda: patch(nights, "mark_recent_rows"),
        "chance explains everything": lambda: patch(recent_rows, "has_fallen", return_value=False),
        "only all rows are counted": lambda: patch(
            odd_values, "recent_losses", return_value=iter([])
        ),
        "a fall ends with the next batch": lambda: patch(
            recent_rows, "_again", lambda fall, now: replace(fall, before=None)
        ),
    },
    lambda: new_rows_seed(CORRECTED, form="the lines are wrapped").problems: {
        "a fall never ends": lambda: patch(recent_rows, "_again", lambda fall, now: fall),
    },
    lambda: new_rows_seed(LONG_LIST, form="the status is an object").problems: {
        "forms of new rows are not counted": lambda: patch(
            odd_values, "_forms", return_value=iter([])
        ),
        "acceptances are not heeded": lambda: patch(Accepted, "is_changed", return_value=False),
    },
    lambda: new_rows_seed(LONG_LIST, form="the customers are others").problems: {
        "customers of new rows are not counted": lambda: patch(
            entities, "fewer_known_customers", return_value=iter([])
        ),
    },
    lambda: new_rows_seed(100, nights=25).problems: {
        "what is rare once in twenty is an alarm": lambda: patch(chance, "LEVEL", 0.05),
    },
}
CRASHES: dict[str, Broken] = {
    "commits are not synced": lambda: patch(Ledger, "open", _unsynced_ledger),
    "what is in flight is taken for unsent": lambda: patch(PlanLedger, "recover", _forgotten),
    "passwords are not synced": lambda: patch(disk, "sync"),
}


@pytest.mark.parametrize(
    ("finds", "broken"),
    [pytest.param(finds, ways[name], id=name) for finds, ways in JUDGES.items() for name in ways],
)
def test_a_judge_catches_broken_code(finds: Callable[[], object], broken: Broken) -> None:
    with broken():
        assert finds()


@pytest.mark.parametrize("name", CRASHES)
def test_the_judge_of_crashed_pushes_catches_broken_code(name: str) -> None:
    with CRASHES[name]():
        assert push_crashes("customers", 1).problems


def test_the_judge_of_crashed_pulls_catches_a_build_that_is_not_synced(tmp_path: Path) -> None:
    with patch(disk, "sync"), patch(build, "move_file", lambda a, b: a.replace(b)):
        problems = pull_crashes(tmp_path, resumed=range(0)).problems
    assert any("a reader finds IOException" in problem for problem in problems)
    assert any(problem.startswith("point ") and "(end), lost" in problem for problem in problems)
