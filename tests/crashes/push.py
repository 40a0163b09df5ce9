"""Pushes that end at each of their points, and are pushed again until nothing is left to do.

A plan of customers with stored passwords, and one of variant updates that add. The judge: each customer was created
once, with the password that `passwords.csv` has; each update was applied once; the results add up.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Container, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from orderbridge.pipelines.ledger.clock import ClockReading
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import Plan, PlannedOperation
from orderbridge.pipelines.push.listing import CustomerListing, Key
from orderbridge.pipelines.push.model import PushDependencies, PushOptions, PushResult
from orderbridge.pipelines.push.passwords import PASSWORDS_FILE
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.run import push
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.http.retries import RetryPolicy
from orderbridge.sources.kinds import KindName
from tests.crashes.recorder import Enumeration, Point, Recorder
from tests.pipelines.push.plans import Answering, customer, listed, patch, results, write_plan
from tests.pipelines.push.simulation import HOST, MEMORY, SETTLE_S, reported
from tests.spreadsheet import spreadsheet_rows

ROUNDS: Final = 3
"""Pushes after a crash: one recovers what was in flight, one settles the doubts, one finds nothing to do."""


@dataclass
class World:
    now: float = 1_800_000_000.0
    created: list[dict[str, Any]] = field(default_factory=list)
    applied: Counter[str] = field(default_factory=Counter)

    def apply(self, path: str, body: dict[str, Any]) -> None:
        self.now += 1.0
        if path == "/customers":
            self.created.append(body)
        self.applied[marker(path, body)] += 1

    def listing(self, keys: Container[Key]) -> CustomerListing:
        return listed(
            (body | {"id": str(number)} for number, body in enumerate(self.created, 1)), keys
        )


def marker(path: str, body: dict[str, Any]) -> str:
    return f"{path}:{body.get('erpCode') or body.get('stock')}"


def operations(kind: KindName, count: int) -> list[PlannedOperation]:
    """Customers with stored passwords, or updates of stock that add."""
    if kind == "customers":
        return [customer(number) for number in range(1, count + 1)]
    return [
        patch(number, number, repeatable=False, stock=10 + number) for number in range(1, count + 1)
    ]


def _push(
    root: Path, plan: Path, world: World, point: Callable[[str], None], **answers: Any
) -> PushResult:
    def answer(_: int, path: str, body: bytes) -> None:
        """Applies a write, with a point before and after it."""
        point(path)
        world.apply(path, json.loads(body))
        point(f"response to {path}")

    dependencies = PushDependencies(
        client=lambda settings, stop: Answering(answer),
        read_customers=world.listing,
        read_clock=lambda: ClockReading(world.now, "boot", world.now),
        policy=RetryPolicy(base_s=0.0, cap_s=0.0),
        deadline_s=120.0,
        grace_s=5.0,
    )
    options = PushOptions(agreed=True, settle_s=SETTLE_S, concurrency=1, **answers)
    with reported(root / "ledger.sqlite"):
        return push(plan, options, dependencies=dependencies)


class PushCrashes:
    """A recorded push."""

    def __init__(self, folder: Path, kind: KindName, count: int) -> None:
        self.kind, self.count, self.root = kind, count, folder / "root"
        self.root.mkdir()
        self.plan = write_plan(self.root / "plan", HOST, operations(kind, count), kind)
        world = World()
        recorder = Recorder(self.root, folder / "attic", observe=lambda: deepcopy(world))
        with recorder.recording():
            _push(self.root, self.plan, world, recorder.point)
        self.points = recorder.points

    def judge(self, point: Point, variant: str) -> list[str]:
        """What is wrong after a crash at a point and further pushes."""
        point.states[variant].restore(self.root)
        world: World = deepcopy(point.world)
        try:
            for _ in range(ROUNDS):
                world.now += SETTLE_S + 121.0
                _push(self.root, self.plan, world, lambda _: None, **self._answers(world))
        except BridgeError as error:
            return [f"{type(error).__name__}: {error}"]
        return [*self._wrong_writes(world), *self._wrong_results()]

    def _rows(self) -> list[tuple[PlannedOperation, str, int]]:
        plan = Plan(self.plan)
        with Ledger.open(self.root / "ledger.sqlite", readonly=True) as ledger:
            if ledger.pushes(plan.manifest.plan_id) is None:
                return []
            rows = PlanLedger(ledger, plan.manifest.plan_id).rows()
            return [
                (operation, row.state, row.id)
                for operation, row in zip(plan.operations(), rows, strict=True)
            ]

    def _answers(self, world: World) -> dict[str, frozenset[int]]:
        doubts = [
            (number, world.applied[marker(operation.path, operation.body)])
            for operation, state, number in self._rows()
            if state == "in_doubt" and self.kind != "customers"
        ]
        return {
            "landed": frozenset(number for number, times in doubts if times),
            "not_landed": frozenset(number for number, times in doubts if not times),
        }

    def _wrong_writes(self, world: World) -> Iterator[str]:
        for operation, state, number in self._rows():
            times = world.applied[marker(operation.path, operation.body)]
            if times != 1:
                yield f"operation {number} was applied {times} times"
            if state != "confirmed":
                yield f"operation {number} is {state} in the end"
        if self.kind != "customers":
            return
        path = self.plan / PASSWORDS_FILE
        rows = spreadsheet_rows(path) if path.exists() else ()
        stored = {row["erpCode"]: row["password"] for row in rows}
        for body in world.created:
            if stored.get(body["erpCode"]) != body["password"]:
                yield f"the password of {body['erpCode']} is not in {PASSWORDS_FILE}"

    def _wrong_results(self) -> Iterator[str]:
        counts = {name: len(rows) for name, rows in results(self.plan).items()}
        if counts != {"confirmed": self.count, "rejected": 0, "in_doubt": 0, "unsent": 0}:
            yield f"the results are {counts}"


def push_crashes(kind: KindName, count: int) -> Enumeration:
    """Every crash of a push of so many operations, resumed to its end."""
    with tempfile.TemporaryDirectory(prefix="push-crashes-", dir=MEMORY) as folder:
        crashes = PushCrashes(Path(folder), kind, count)
        return Enumeration.of(
            crashes.points,
            lambda point, variant: (point.states[variant].digest, repr(point.world)),
            crashes.judge,
        )
