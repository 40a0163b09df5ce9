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

from pipelines.ledger.clock import ClockReading
from pipelines.ledger.model import LedgerRow
from pipelines.ledger.store import Ledger
from pipelines.plan.model import Plan, PlannedOperation
from pipelines.push import checks, run
from pipelines.push.listing import CustomerListing, Key
from pipelines.push.model import PushDependencies, PushOptions, PushResult
from pipelines.push.plan_ledger import PlanLedger
from pipelines.push.run import push
from sandbox.config import SandboxConfig
from sandbox.state import State
from sources.errors import BridgeError, HttpRejected, Unreachable
from sources.http.exchange import WriteOutcome
from sources.http.retries import RetryPolicy
from sources.kinds import KINDS, KindName
from sources.settings import LegacySettings, ReconcileSettings, Secret
from tests.pipelines.push.plans import LOST, Answering, customer, listed, patch, results, subcategory, write_plan

HOST: Final = "http://127.0.0.1:9"
SETTLE_S: Final = 900.0
LATE_S: Final = 600.0
"""A write lands within this time after its connection broke, if ever; less than what a push waits."""
MEMORY: Final = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where each wait for the disk is none: what a crash of the machine would do is not simulated."""
FAULTS: Final = (
    "lost_answer", "applied_5xx", "late", "never", "html", "cut_body", "refused", "busy", "no_connection", "no_access",
    "crash_before", "crash_after", "crash_late",
)  # fmt: skip
_ERROR: Final = Unreachable("simulated")
UNAPPLIED: Final = {
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
            if fault in ("late", "crash_late"):
                self.late.append((self.now + self.draw.uniform(0.0, LATE_S), lambda: self.apply(path, body)))
            else:
                self.apply(path, body)
            if fault in ("crash_late", "crash_after"):
                raise Crash
            return LOST if fault == "late" else APPLIED.get(fault)

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
    found = [record for record in world.state.records("customers") if complete or world.draw.random() < 0.5]
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
    legacy = LegacySettings(base_url=HOST, api_key=Secret("key"), environment="sandbox", login_mode="email")
    reconcile = ReconcileSettings()
    with (
        mock.patch.object(checks, "legacy_settings", constant(legacy)),
        mock.patch.object(checks, "is_set", constant(False)),
        mock.patch.object(run, "ledger_path", constant(ledger)),
        mock.patch.object(checks, "ledger_path", constant(ledger)),
        mock.patch.object(run, "reconcile_settings", constant(reconcile)),
    ):
        yield


def drawn_plans(draw: random.Random, kind: KindName) -> list[list[PlannedOperation]]:
    """Two plans whose customers or variants overlap; each operation bears a mark of its own."""
    plans = []
    for number in (1, 2):
        operations: list[PlannedOperation] = []
        count = draw.randint(2, 9)
        for place in range(1, count + 1):
            mark = 1000 * number + place
            if kind == "customers":
                person = place if number == 1 else place + draw.choice((0, 0, 100))
                body = {"phone": str(mark), "erpCode": f"E{person}", "email": f"e{person}@example.test"}
                operations.append(customer(place, password=draw.choice(("stored", "mailed")), **body))
            elif kind == "subcategories":
                operations.append(subcategory(place, description=str(mark)))
            else:
                variant = draw.randint(1, 3) if number == 2 else (place + 1) // 2
                adds = draw.random() < 0.3
                fields: dict[str, Any] = {"stock": mark} if adds else {"sku": str(mark), "weight": mark}
                operations.append(patch(place, variant, repeatable=not adds, **fields))
        plans.append(operations)
    return plans


@dataclass
class Run:
    """One seed."""

    seed: int
    folder: Path
    pushes: int = 0
    codes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.kind: KindName = self.draw.choice(("customers", "customers", "variants", "variants", "subcategories"))
        if self.draw.random() < 0.5:
            faults = dict.fromkeys(FAULTS, self.draw.choice((0.02, 0.05)))
        else:
            rate = self.draw.choice((0.1, 0.2, 0.4))
            faults = dict.fromkeys(self.draw.sample(FAULTS, self.draw.randint(0, 3)), rate)
        adds = {"stock_semantics": "increment", "price_semantics": "increment"}
        config = SandboxConfig(customers=2, orders=0, promotions=0, price_lists=1, readings=adds)
        self.world = World(self.draw, {**faults, "crash_commit": 0.02, "unproven": 0.1}, State(config))
        self.plans = [
            write_plan(self.folder / f"plan-{number}", HOST, operations, self.kind)
            for number, operations in enumerate(drawn_plans(self.draw, self.kind), 1)
        ]
        self.opened = {path: Plan(path) for path in self.plans}
        self.operations = {path: list(plan.operations()) for path, plan in self.opened.items()}

    @property
    def counts(self) -> dict[str, int]:
        """Pushes, how they ended, and the faults that they met."""
        met = self.world.faults
        crashes = sum(met[name] for name in met if name.startswith("crash"))
        return {"pushes": self.pushes, **self.codes, "crashes": crashes, "faults": met.total() - crashes}

    def rows(self, plan: Path) -> list[tuple[PlannedOperation, LedgerRow]]:
        with Ledger.open(self.folder / "ledger.sqlite", readonly=True) as ledger:
            return self._rows(ledger, plan)

    def _rows(self, ledger: Ledger, plan: Path) -> list[tuple[PlannedOperation, LedgerRow]]:
        plan_id = self.opened[plan].manifest.plan_id
        if ledger.pushes(plan_id) is None:
            return []
        return list(zip(self.operations[plan], PlanLedger(ledger, plan_id).rows(), strict=True))

    def push(self, plan: Path, **said: Any) -> PushResult | None:
        """One push; None where it crashed."""
        world = self.world
        means = PushDependencies(
            client=lambda settings, stop: Answering(world.answer),
            read_customers=lambda keys: look(world, keys),
            read_clock=lambda: ClockReading(world.now, "boot", world.now),
            policy=RetryPolicy(base_s=0.0, cap_s=0.0),
            deadline_s=120.0,
            grace_s=5.0,
        )
        self.pushes += 1
        concurrency = self.draw.choice((1, 1, 3)) if self.kind == "variants" else None
        asked = PushOptions(agreed=True, settle_s=SETTLE_S, concurrency=concurrency, **said)
        try:
            with crashing(world), reported(self.folder / "ledger.sqlite"):
                pushed = push(plan, asked, dependencies=means)
        except Crash:
            return None
        self.codes[f"exit {pushed.exit_code:d}"] += 1
        return pushed

    def answers(self, plan: Path) -> dict[str, frozenset[int]]:
        """What a person says who has looked: of what can be looked for no more, and of no create of a customer."""
        landed: set[int] = set()
        not_landed: set[int] = set()
        for operation, row in self.rows(plan):
            settled = (row.doubt_at or 0.0) + SETTLE_S <= self.world.now
            if row.state == "in_doubt" and settled and not operation.repeatable and self.kind != "customers":
                happened = self.world.applied[marker(operation.path, operation.body)] > 0
                (landed if happened else not_landed).add(row.id)
        return {"landed": frozenset(landed), "not_landed": frozenset(not_landed)}

    def go(self) -> None:
        """Pushes with faults, then without, until nothing changes; the truth is looked at after each."""
        for _ in range(self.draw.randint(2, 8)):
            plan = self.draw.choice(self.plans)
            said = self.answers(plan) if self.draw.random() < 0.5 else {}
            self.look_at(plan, self.push(plan, **said))
            self.world.pass_time(self.draw.choice((0.0, 5.0, 60.0, 300.0, 1000.0)))
        self.world.rates = {}
        for _ in range(4):
            for plan in self.plans:
                self.world.pass_time(SETTLE_S + 121.0)
                pushed = self.push(plan, **self.answers(plan))
                self.look_at(plan, pushed)
            if all(row.state in ENDED for plan in self.plans for _, row in self.rows(plan)):
                break
        for plan in self.plans:
            left = {row.state for _, row in self.rows(plan)} - ENDED
            if left - {"planned"}:
                raise Wrong(f"seed {self.seed}: {left} never ends")

    def look_at(self, plan: Path, pushed: PushResult | None) -> None:
        """Holds the truth against all that is believed."""
        world, seed = self.world, self.seed
        with Ledger.open(self.folder / "ledger.sqlite", readonly=True) as ledger:
            rows = {path: self._rows(ledger, path) for path in self.plans}
            confirmed = ledger.confirmed(HOST).to_pylist() if not world.late else []
        for path in self.plans:
            for operation, row in rows[path]:
                mark = marker(operation.path, operation.body)
                times = world.applied[mark]
                if times > 1 and not (operation.method == "PATCH" and operation.repeatable):
                    raise Wrong(f"seed {seed}: {mark} was applied {times} times")
                if row.state == "confirmed" and not times:
                    raise Wrong(f"seed {seed}: {mark} is confirmed, and was never applied")
                if row.state in ("rejected", "planned") and times:
                    raise Wrong(f"seed {seed}: {mark} is {row.state}, and was applied")
        codes = Counter(body["erpCode"] for body in world.state.customer_inputs)
        if codes and max(codes.values()) > 1:
            raise Wrong(f"seed {seed}: a customer is there twice")
        self._look_at_values(confirmed)
        if pushed is not None:
            self._look_at_results(plan, pushed, rows[plan])

    def _look_at_values(self, rows: list[dict[str, Any]]) -> None:
        """What the ledger takes for confirmed stands on the platform; stock, that a repeat adds to, is counted."""
        for row in rows:
            product, number = map(int, row["path"].split("/")[2::2])
            variant = self.world.state.variants[product, number]
            stands = variant.fields[row["field"]]
            if row["field"] != "stock" and msgspec.json.decode(row["value"]) != stands:
                raise Wrong(f"seed {self.seed}: {row['field']} is {stands}, the ledger says {row['value']}")

    def _look_at_results(self, plan: Path, pushed: PushResult, rows: list[tuple[PlannedOperation, LedgerRow]]) -> None:
        reported = self.opened[plan].manifest
        found = results(plan)
        if sum(map(len, found.values())) != reported.lines:
            raise Wrong(f"seed {self.seed}: the results do not add up")
        by_operation = {int(row["operation"]): name for name, rows in found.items() for row in rows}
        files = {"confirmed": "confirmed", "rejected": "rejected", "planned": "unsent"}
        for operation, row in rows:
            file = "unsent" if row.state == "abandoned" and row.doubt_at is None else files.get(row.state, "in_doubt")
            if by_operation[operation.id] != file:
                raise Wrong(f"seed {self.seed}: the results of operation {operation.id} are not its state")
        doubts = any(row.state in ("in_doubt", "conflict") for _, row in rows)
        if doubts and pushed.exit_code not in (3, 4, 6, 7):
            raise Wrong(f"seed {self.seed}: doubts remain, and the exit code is {pushed.exit_code}")


def simulate(seed: int) -> Run:
    """One seed. Raises Wrong where anything is not as it must be."""
    with tempfile.TemporaryDirectory(prefix="push-simulation-", dir=MEMORY) as folder:
        made = Run(seed, Path(folder))
        try:
            made.go()
        except BridgeError as error:
            raise Wrong(f"seed {seed}: {type(error).__name__}: {error}") from error
        return made
