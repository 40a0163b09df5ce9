"""Push: a plan's operations, each sent as often as it should be; run again, it goes on where it was (design §8).

In: a plan's folder and what was asked. Out: the ledger, the results, and a `PushResult`. Every way out writes the
results: they say what is confirmed, refused, in doubt and not sent at that moment.
"""

from __future__ import annotations

import shutil
import threading
from collections import defaultdict
from collections.abc import Iterator, Set
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from pipelines.ledger.store import Ledger, body_hash, hashed
from pipelines.plan.model import RESULTS_FOLDER, Plan, PlannedOperation
from pipelines.push import checks, passwords, results
from pipelines.push.eligibility import Rules, Standing, in_the_way, manual_resolutions, stand
from pipelines.push.listing import Key, Listing, keys_of, read
from pipelines.push.model import MEANS, SETTLE_S, Gently, PushDependencies, PushOptions, PushResult, Watch
from pipelines.push.pace import Pace
from pipelines.push.plan_ledger import PlanLedger, Recorded, UnsettledUpdate
from pipelines.push.send import Sender, SendLoop, Sent, Work
from pipelines.warehouse.lock import run_lock
from sources.disk import disk_errors
from sources.errors import AccessError, PlatformError, Stopped, UsageError
from sources.extract.result import Progress, no_progress
from sources.http.client import Client
from sources.kinds import KINDS, additive_fields, increment_fields
from sources.settings import LegacySettings, ledger_path

ROUNDS_MAX: Final = 3
"""How often in one push a repeatable operation is sent."""
CONCURRENCY: Final = {"POST": 1, "PATCH": 4}


def push(
    folder: Path,
    asked: PushOptions,
    stop: threading.Event | None = None,
    watch: Watch = lambda done, total: None,
    progress: Progress = no_progress,
    gently: Gently = nullcontext,
    means: PushDependencies = MEANS,
) -> PushResult:
    """Sends what a plan says (design §5, `orderbridge push`).

    Args:
        folder: of the plan.
        asked: what is asked for.
        stop: once set, nothing more is begun.
        watch: called as operations end.
        progress: called after each page where the customers are read.
        gently: keeps a signal from breaking in; it sets `stop`.
        means: what it works with.

    Raises:
        UsageError, AccessError, PlatformError, LockedError: before anything was sent; the results are as they were.
        BridgeError: the results do not add up.
    """
    stop = stop or threading.Event()
    plan, legacy, public_v1 = checks.checked(folder)
    if asked.settle_s < SETTLE_S and legacy.environment != "sandbox":
        raise UsageError(f"--settle is less than {SETTLE_S / 60:.0f} minutes", "That is for a sandbox only.")
    checks.check_agreed(plan, asked.confirm, asked.agreed)
    seen = [("whoami_names", checks.check_whoami(public_v1, stop))] if public_v1 is not None else []
    path = ledger_path()
    with held(path), Ledger.open(path) as ledger:
        if (plan.folder / RESULTS_FOLDER).exists() and not ledger.has(plan.manifest.plan_id):
            raise UsageError(
                f"this plan was pushed before, and {path} knows nothing of it",
                "Name its ledger in LEDGER__PATH, or put back a copy: without it, all would be sent again.",
            )
        results.prepare(plan.folder)
        book = PlanLedger.recorded(ledger, plan, recorded(plan), means.clock())
        results.check_ledger(plan, book)
        with means.client(legacy, stop) as client:
            pushed = _Push(plan, book, asked, legacy, client, path, stop, watch, progress, gently, means).run()
    pushed.observed = [*seen, *pushed.observed]
    return pushed


@contextmanager
def held(ledger: Path) -> Iterator[None]:
    """Keeps other pushes out of this ledger. Raises LockedError, UsageError."""
    hint = "Name a file in LEDGER__PATH that can be written."
    with disk_errors(ledger.parent, hint):
        ledger.parent.mkdir(parents=True, exist_ok=True)
    with run_lock(ledger.with_name(f".{ledger.name}.lock"), "push", hint):
        yield


def recorded(plan: Plan) -> Iterator[Recorded]:
    """A plan's operations as the ledger keeps them: nothing of a body but the names of a variant's fields."""
    told = plan.manifest
    for operation in plan.operations():
        keys: tuple[bytes, ...] = ()
        if KINDS[told.kind].is_listed:
            keys = tuple(hashed(told.host, name, value) for name, value in keys_of(operation.keys))
        elif operation.method == "POST":
            keys = (bytes.fromhex(body_hash(operation.path, operation.body)),)
        fields = tuple(operation.body) if operation.method == "PATCH" else ()
        yield Recorded(operation.id, operation.method, operation.path, keys, fields)


class _Push:
    """One push under way, the ledger held."""

    def __init__(
        self,
        plan: Plan,
        book: PlanLedger,
        asked: PushOptions,
        legacy: LegacySettings,
        client: Client,
        ledger: Path,
        stop: threading.Event,
        watch: Watch,
        progress: Progress,
        gently: Gently,
        means: PushDependencies,
    ) -> None:
        self.plan, self.book, self.asked, self.legacy = plan, book, asked, legacy
        self.client, self.stop, self.watch, self.progress, self.means = client, stop, watch, progress, means
        self.gently = gently
        self.folder = ledger.with_name(f".{ledger.name}.walk")
        added, self.changes = additive_fields(legacy.semantics), increment_fields(legacy.semantics)
        sandbox = legacy.environment == "sandbox"
        self.rules = Rules(asked.settle_s, asked.resend or sandbox, asked.accept_unproven, added, self.changes)
        self.unquiet: dict[str, list[UnsettledUpdate]] = defaultdict(list)
        self.pushed = PushResult(plan)
        self.standing = Standing()
        self.stood_at = means.clock()
        self.ended = 0
        self.observed: set[tuple[str, str]] = set()

    def run(self) -> PushResult:
        """Rounds of settling and sending, then the results."""
        pushed, clock = self.pushed, self.means.clock
        self.book.recover(self.means.deadline_s, clock())
        self._take_told()
        try:
            self._rounds()
        except (Stopped, KeyboardInterrupt):
            pushed.stopped = True
        except (AccessError, PlatformError, UsageError) as error:
            pushed.error = error
        with self.gently():
            return self._concluded()

    def _concluded(self) -> PushResult:
        """The results: whatever ended the rounds."""
        pushed = self.pushed
        shutil.rmtree(self.folder, ignore_errors=True)
        pushed.stopped = pushed.stopped or self.stop.is_set()
        pushed.error = pushed.error or self.standing.unproven
        pushed.settles_at = min(self._unsettled(), default=None)
        pushed.states = self.book.counts()
        pushed.observed = sorted(self.observed)
        try:
            passwords.forget(self.plan, self.book.ids("planned"))
        except UsageError as error:
            pushed.error = pushed.error or error
        pushed.lines = results.write(self.plan, self.book, self.standing.held, self.rules)
        return pushed

    def _rounds(self) -> None:
        round_number = 0
        while True:
            round_number += 1
            self.stood_at = self.means.clock()
            self.standing = stand(self.plan, self.book, self.rules, self._look, self.means.clock)
            with self.gently():
                sent = self._send()
            self.standing.held |= {number: ("blocked", reason) for number, reason in sent.held.items()}
            self.pushed.broke = sent.broke
            self.observed |= sent.observed
            if sent.error is not None:
                raise sent.error
            if self.stop.is_set() or sent.broke:
                return
            if sent.in_doubt and KINDS[self.plan.kind].is_update and round_number < ROUNDS_MAX:
                continue  # what may be repeated is repeated at once
            unsettled = self._unsettled()
            if not self.asked.wait or not unsettled:
                return
            self._wait_until(max(unsettled))

    def _unsettled(self) -> list[float]:
        """When each create in doubt can be looked for, of those that could not be when it was last looked."""
        if not KINDS[self.plan.kind].is_listed:
            return []
        settled = [(row.doubt_at or 0.0) + self.rules.settle_s for row in self.book.rows("in_doubt")]
        return [at for at in settled if at > self.stood_at]

    def _wait_until(self, at: float) -> None:
        while (left := at - self.means.clock()) > 0 and not self.stop.is_set():
            self.stop.wait(min(left, 1.0))

    def _look(self, keys: Set[Key]) -> Listing:
        if self.means.look is not None:
            return self.means.look(keys)
        return read(self.client, self.folder, keys, self.legacy.page_limit, self.progress, self.observed)

    def _take_told(self) -> None:
        """What a person says of operations in doubt. One that landed leaves its values as if the platform said so."""
        asked = self.asked
        changes = manual_resolutions(
            self.book, self.rules, self.means.clock(), asked.landed, asked.not_landed, asked.abandon
        )
        if asked.landed and KINDS[self.plan.kind].is_update:
            values = {op.id: self._values(op) for op in self.plan.operations() if op.id in asked.landed}
            changes = [replace(c, values=values[c.id]) if c.to == "confirmed" else c for c in changes]
        self.book.commit(changes, self.means.clock())

    def _values(self, operation: PlannedOperation) -> dict[str, str | None]:
        """What stands on the platform after a variant update; of a field whose values are changes, nobody knows."""
        if operation.method != "PATCH":
            return {}
        return {
            name: None if name in self.changes else msgspec.json.encode(value).decode()
            for name, value in operation.body.items()
        }

    def _send(self) -> Sent:
        """One round of sending."""
        standing, kind = self.standing, KINDS[self.plan.kind]
        planned = self.book.ids("planned") - set(standing.held)
        again = {number: clear for number, clear in standing.again.items() if number not in standing.held}
        wanted = planned | set(again)
        if not wanted or self.stop.is_set():
            return Sent()
        known = passwords.opened(self.plan, wanted, self.means.reader)
        self.unquiet.clear()
        if kind.is_update:
            for other in self.book.unquiet(self.means.clock() - self.rules.settle_s):
                self.unquiet[other.path].append(other)
        concurrency = self.asked.concurrency or CONCURRENCY[kind.operation.verb]
        total = self.ended + len(wanted)
        self.watch(self.ended, total)

        def ended(count: int) -> None:
            self.ended += count
            self.watch(self.ended, total)

        works = (
            Work(
                operation,
                self.rules.repeatable(operation),
                doubted=not again.get(operation.id, True),
                clear=again.get(operation.id, False),
            )
            for operation in self.plan.operations()
            if operation.id in wanted
        )
        sender: Sender = self.client
        return SendLoop(
            self.book,
            sender,
            Pace(self.asked.rate, self.means.policy, self.stop),
            body=known.body,
            values=self._values,
            in_the_way=lambda operation: in_the_way(operation, self.plan.manifest.plan_id, self.unquiet),
            doubted=self._doubted,
            concurrency=concurrency,
            grace_s=self.means.grace_s,
            stop=self.stop,
            clock=self.means.clock,
            progress=ended,
        ).run(works)

    def _doubted(self, operation: PlannedOperation) -> None:
        """From now on it stands in the way of others on the same fields."""
        if operation.method == "PATCH":
            told = self.plan.manifest
            other = UnsettledUpdate(
                told.plan_id, operation.id, operation.path, frozenset(operation.body), True, self.means.clock()
            )
            self.unquiet[operation.path].append(other)
