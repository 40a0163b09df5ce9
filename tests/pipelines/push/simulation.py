"""Pushes against a simulated platform and clock; `make soak CAMPAIGNS=push` runs any number of seeds.

Each seed draws two plans that overlap, faults of every kind, crashes at any moment, writes that land late, a person who
answers for what is in doubt. After each push, and at the end, the truth is held against the ledger and the results:
nothing is applied more often than it should be, nothing confirmed is missing, nothing else is believed that is not so.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest import mock

import msgspec

from orderbridge.pipelines.ledger.clock import ClockReading
from orderbridge.pipelines.ledger.model import LedgerRow
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import Plan, PlannedOperation
from orderbridge.pipelines.push import checks, run
from orderbridge.pipelines.push.listing import CustomerListing, Key
from orderbridge.pipelines.push.model import PushDependencies, PushOptions, PushResult
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.run import push
from orderbridge.sandbox.config import SandboxConfig
from orderbridge.sandbox.state import State
from orderbridge.sources.errors import BridgeError, HttpRejected, Unreachable
from orderbridge.sources.http.exchange import WriteOutcome
from orderbridge.sources.http.retries import RetryPolicy
from orderbridge.sources.kinds import KINDS, KindName
from orderbridge.sources.settings import LegacySettings, ReconcileSettings, Secret
from tests.pipelines.push.plans import (
    LOST,
    Answering,
    customer,
    listed,
    patch,
    results,
    subcategory,
    write_plan,
)

HOST: Final = "http://127.0.0.1:9"
SETTLE_S: Final = 900.0
LATE_S: Final = 600.0
"""A write lands within this time after its connection broke, if ever; less than what a push waits."""
MEMORY: Final = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where each wait for the disk is none: what a crash of the machine would do is not simulated."""
FAULTS: Final = (
    "lost_answer", "applied_5xx", "late", "never", "html", "cut_body", "refused", "busy", "no_connection", "no_access",
    "crash_before", "crash_after", "crash_late", "foreign_4xx",
)  # fmt: skip
_ERROR: Final = Unreachable("simulated")
FOREIGN_4XX: Final = WriteOutcome("in_doubt", 404, error=HttpRejected("simulated", status=404))
UNAPPLIED: Final = {
    "foreign_4xx": FOREIGN_4XX,
    "never": LOST,
    "html": WriteOutcome("answered", 200, b"<html>"),
    "refused": WriteOutcome("answered", 400, error=HttpRejected("simulated", status=400)),
    "busy": WriteOutcome("answered", 429, error=_ERROR, retry_after_s=0.0),
    "no_connection": WriteOutcome("not_sent", error=_ERROR),
    "no_access": WriteOutcome("answered", 401, error=_ERROR),
}
APPLIED: Final = {
    "lost_answer": LOST,
    "applied_5xx": WriteOutcome("in_doubt", 502, error=_ERROR),
    "cut_body": WriteOutcome("answered", 201, b'{"id":'),
}
ENDED: Final = {"confirmed", "rejected", "conflict", "abandoned"}


class Crash(BaseException):
    """The process ends here."""


class Wrong(AssertionError):
    """What must never be."""


@dataclass
class World:
    """The platform and the time."""

    draw: random.Random
    rates: dict[str, float]
    state: State
    now: float = 1_800_000_000.0
    late: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    applied: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    deleted: set[str] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def pass_time(self, seconds: float) -> None:
        """Lets time pass; what lands late lands in its order."""
        with self.lock:
            until = self.now + seconds
            for at, land in sorted(self.late, key=lambda pair: pair[0]):
                if at <= until:
                    land()
            self.late = [pair for pair in self.late if pair[0] > until]
            self.now = until

    def hits(self, name: str) -> bool:
        is_hit = self.draw.random() < self.rates.get(name, 0.0)
        self.faults[name] += is_hit
        return is_hit

    def answer(self, _: int, path: str, content: bytes) -> WriteOutcome | None:
        """The answer of the platform to a write."""
        with self.lock:
            self.pass_time(self.draw.uniform(0.05, 1.0))
            fault = next((name for name in FAULTS if self.hits(name)), "")
            body = msgspec.json.decode(content)
            if fault == "crash_before":
                raise Crash
            if fault in UNAPPLIED:
                return UNAPPLIED[fault]
            if path in self.deleted:
                return FOREIGN_4XX
            if fault in ("late", "crash_late"):
                self.late.append(
                    (self.now + self.draw.uniform(0.0, LATE_S), lambda: self.apply(path, body))
                )
            else:
                self.apply(path, body)
            if fault in ("crash_late", "crash_after"):
                raise Crash
            return LOST if fault == "late" else APPLIED.get(fault)

    def dependencies(self) -> PushDependencies:
        """Of a push to this platform at this time."""
        return PushDependencies(
            client=lambda settings, stop: Answering(
                self.answer, lambda: self.state.records("customers")
            ),
            read_customers=lambda keys: look(self, keys),
            read_clock=lambda: ClockReading(self.now, "boot", self.now),
            policy=RetryPolicy(base_s=0.0, cap_s=0.0),
            deadline_s=120.0,
            grace_s=5.0,
        )

    def apply(self, path: str, body: dict[str, Any]) -> None:
        self.applied[marker(path, body)] += 1
        parts = path.strip("/").split("/")
        if parts[0] == "customers":
            self.state.create(KINDS["customers"].operation, {}, body)
        elif parts[0] == "products":
            ids = {"productId": int(parts[1]), "variantId": int(parts[3])}
            self.state.update(KINDS["variants"].operation, ids, body)
        else:
            self.state.create(KINDS["subcategories"].operation, {"categoryId": parts[1]}, body)


def marker(path: str, body: dict[str, Any]) -> str:
    """What an operation is known by: each has a text or number of its own."""
    own = body.get("phone") or body.get("description") or body.get("sku") or body.get("stock")
    return f"{path}:{own}"


def look(world: World, keys: Container[Key]) -> CustomerListing:
    """What a walk finds: all there is, or, unproven, a part of it."""
    world.pass_time(world.draw.uniform(0.1, 20.0))
    if world.hits("crash_before"):
        raise Crash
    if world.hits("no_connection"):
        raise Unreachable("simulated")
    complete = not world.hits("unproven")
    found = [
        record
        for record in world.state.records("customers")
        if complete or world.draw.random() < 0.5
    ]
    return listed(found, keys, is_whole=complete)


@contextmanager
def crashing(world: World) -> Iterator[None]:
    """Commits before or after which the process ends."""
    transaction = Ledger.transaction

    @contextmanager
    def cut(self: Ledger) -> Iterator[Any]:
        if world.hits("crash_commit"):
            raise Crash
        with transaction(self) as connection:
            yield connection
        if world.hits("crash_commit"):
            raise Crash

    with mock.patch.object(Ledger, "transaction", cut):
        yield


def constant(value: Any) -> Callable[..., Any]:
    """A function that returns a value; a mock with a return value takes far longer to make."""
    return lambda *_: value


@contextmanager
def reported(ledger: Path) -> Iterator[None]:
    """The settings, without the files that they are read from: that would take longer than all the rest."""
    legacy = LegacySettings(
        base_url=HOST, api_key=Secret("key"), environment="sandbox", login_mode="email"
    )
    reconcile = ReconcileSettings()
    with (
        mock.patch.object(checks, "legacy_settings", constant(legacy)),
        mock.patch.object(checks, "is_set", constant(False)),
        mock.patch.object(checks, "ledger_path", constant(ledger)),
        mock.patch.object(run, "ledger_path", constant(ledger)),
        mock.patch.object(run, "reconcile_settings", constant(reconcile)),
    ):
        yield


def drawn_plans(draw: random.Random, kind: KindName) -> list[list[PlannedOperation]]:
    """Two plans whose customers or variants overlap; each operation bears a mark of its own."""

    def operation(number: int, place: int) -> PlannedOperation:
        mark = 1000 * number + place
        if kind == "subcategories":
            return subcategory(place, description=str(mark))
        if kind == "customers":
            person = place if number == 1 else place + draw.choice((0, 0, 100))
            body = {"phone": str(mark), "erpCode": f"E{person}", "email": f"e{person}@example.test"}
            return customer(place, password=draw.choice(("stored", "mailed")), **body)
        variant = draw.randint(1, 3) if number == 2 else (place + 1) // 2
        adds = draw.random() < 0.3
        fields: dict[str, Any] = {"stock": mark} if adds else {"sku": str(mark), "weight": mark}
        return patch(place, variant, repeatable=not adds, **fields)

    return [
        [operation(number, place) for place in range(1, draw.randint(2, 9) + 1)]
        for number in (1, 2)
    ]


@dataclass
class Run:
    """One seed."""

    seed: int
    folder: Path
    counts: Counter[str] = field(default_factory=Counter)
    """Pushes, how they ended, and the faults that they met."""

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.kind: KindName = self.draw.choice(
            ("customers", "customers", "variants", "variants", "subcategories")
        )
        if self.draw.random() < 0.5:
            faults = dict.fromkeys(FAULTS, self.draw.choice((0.02, 0.05)))
        else:
            rate = self.draw.choice((0.1, 0.2, 0.4))
            faults = dict.fromkeys(self.draw.sample(FAULTS, self.draw.randint(0, 3)), rate)
        adds = {"stock_semantics": "increment", "price_semantics": "increment"}
        config = SandboxConfig(customers=2, orders=0, promotions=0, price_lists=1, readings=adds)
        self.world = World(
            self.draw, {**faults, "crash_commit": 0.02, "unproven": 0.1}, State(config)
        )
        self.plans = [
            Plan(write_plan(self.folder / f"plan-{number}", HOST, operations, self.kind))
            for number, operations in enumerate(drawn_plans(self.draw, self.kind), 1)
        ]

        self.operations = {plan.manifest.plan_id: list(plan.operations()) for plan in self.plans}

    def rows(self, *plans: Plan) -> list[tuple[PlannedOperation, LedgerRow]]:
        """What the ledger knows of the operations of these plans."""
        with Ledger.open(self.folder / "ledger.sqlite", readonly=True) as ledger:
            known = [
                key for plan in plans if ledger.pushes(key := plan.manifest.plan_id) is not None
            ]
            return [
                pair
                for key in known
                for pair in zip(self.operations[key], PlanLedger(ledger, key).rows(), strict=True)
            ]

    def push(self, plan: Plan, **said: Any) -> PushResult | None:
        """One push; None where it crashed."""
        self.counts["pushes"] += 1
        concurrency = self.draw.choice((1, 1, 3)) if self.kind == "variants" else None
        asked = PushOptions(agreed=True, settle_s=SETTLE_S, concurrency=concurrency, **said)
        try:
            with crashing(self.world), reported(self.folder / "ledger.sqlite"):
                pushed = push(plan.folder, asked, dependencies=self.world.dependencies())
        except Crash:
            return None
        self.counts[f"exit {pushed.exit_code:d}"] += 1
        return pushed

    def answers(self, plan: Plan) -> dict[str, frozenset[int]]:
        """What a person says who has looked: of what can be looked for no more, and of no create of a customer."""
        said: dict[bool, set[int]] = {True: set(), False: set()}
        given_up: set[int] = set()
        for operation, row in self.rows(plan):
            settled = (row.doubt_at or 0.0) + SETTLE_S <= self.world.now
            if (
                row.state == "in_doubt"
                and settled
                and not operation.repeatable
                and self.kind != "customers"
            ):
                is_applied = self.world.applied[marker(operation.path, operation.body)] > 0
                if operation.path in self.world.deleted and not is_applied:
                    given_up.add(row.id)
                else:
                    said[is_applied].add(row.id)
        return {
            "landed": frozenset(said[True]),
            "not_landed": frozenset(said[False]),
            "abandon": frozenset(given_up),
        }

    def go(self) -> None:
        """Pushes with faults, then without, until nothing changes; the truth is looked at after each."""
        for _ in range(self.draw.randint(2, 8)):
            plan = self.draw.choice(self.plans)
            said = self.answers(plan) if self.draw.random() < 0.5 else {}
            self.look_at(plan, self.push(plan, **said))
            self.world.pass_time(self.draw.choice((0.0, 5.0, 60.0, 300.0, 1000.0)))
            if self.kind == "variants" and self.draw.random() < 0.2:
                paths = {one.path for of_plan in self.operations.values() for one in of_plan}
                self.world.deleted.add(self.draw.choice(sorted(paths)))
        self.world.rates = {}
        for _ in range(4):
            for plan in self.plans:
                self.world.pass_time(SETTLE_S + 121.0)
                self.look_at(plan, self.push(plan, **self.answers(plan)))
            left = {row.state for _, row in self.rows(*self.plans)} - ENDED
            if not left:
                break
        self.must(not left, f"{left} never ends")
        for name, count in self.world.faults.items():
            self.counts["crashes" if name.startswith("crash") else "faults"] += count

    def must(self, is_right: bool, words: str) -> None:
        if not is_right:
            raise Wrong(f"seed {self.seed}: {words}")

    def look_at(self, plan: Plan, pushed: PushResult | None) -> None:
        """Holds the truth against all that is believed."""
        world = self.world
        for operation, row in self.rows(*self.plans):
            mark = marker(operation.path, operation.body)
            times = world.applied[mark]
            may_repeat = operation.method == "PATCH" and operation.repeatable
            self.must(times <= 1 or may_repeat, f"{mark} was applied {times} times")
            self.must(
                row.state != "confirmed" or times > 0, f"{mark} is confirmed, and was never applied"
            )
            is_lost_before = may_repeat and row.state == "rejected" and row.doubt_at is not None
            self.must(
                row.state not in ("rejected", "planned") or not times or is_lost_before,
                f"{mark} is {row.state}, and was applied",
            )
        codes = Counter(body["erpCode"] for body in world.state.customer_inputs)
        self.must(max(codes.values(), default=0) <= 1, "a customer is there twice")
        if not world.late:
            self._look_at_values()
        if pushed is not None:
            self._look_at_results(plan, pushed)

    def _look_at_values(self) -> None:
        """What the ledger takes for confirmed stands on the platform; stock, that a repeat adds to, is counted."""
        with Ledger.open(self.folder / "ledger.sqlite", readonly=True) as ledger:
            confirmed = ledger.confirmed(HOST).to_pylist()
        for row in confirmed:
            product, number = map(int, row["path"].split("/")[2::2])
            stands = self.world.state.variants[product, number].fields[row["field"]]
            is_right = row["field"] == "stock" or msgspec.json.decode(row["value"]) == stands
            self.must(is_right, f"{row['field']} is {stands}, the ledger says {row['value']}")

    def _look_at_results(self, plan: Plan, pushed: PushResult) -> None:
        found, rows = results(plan.folder), self.rows(plan)
        self.must(sum(map(len, found.values())) == plan.manifest.lines, "the results do not add up")
        by_operation = {int(row["operation"]): name for name, rows in found.items() for row in rows}
        files = {"confirmed": "confirmed", "rejected": "rejected", "planned": "unsent"}
        for operation, row in rows:
            file = (
                "unsent"
                if row.state == "abandoned" and row.doubt_at is None
                else files.get(row.state, "in_doubt")
            )
            is_right = by_operation[operation.id] == file
            self.must(is_right, f"the results of operation {operation.id} are not its state")
        doubts = any(row.state in ("in_doubt", "conflict") for _, row in rows)
        is_right = not doubts or pushed.exit_code in (3, 4, 6, 7)
        self.must(is_right, f"doubts remain, and the exit code is {pushed.exit_code}")


def simulate(seed: int) -> Run:
    """One seed. Raises Wrong where anything is not as it must be."""
    with tempfile.TemporaryDirectory(prefix="push-simulation-", dir=MEMORY) as folder:
        made = Run(seed, Path(folder))
        try:
            made.go()
        except BridgeError as error:
            raise Wrong(f"seed {seed}: {type(error).__name__}: {error}") from error
        return made
