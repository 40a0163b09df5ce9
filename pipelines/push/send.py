"""The send loop: intents on disk, then bytes, then outcomes on disk.

In: operations to send, in order. Out: their new states in the ledger, and why the loop ended before its end, if it did.
This thread alone touches the ledger; workers send. Each commit holds the outcomes that came and the intents that go
next, so that many operations share one wait for the disk.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Final, Literal, NamedTuple, Protocol

from pipelines.plan.model import PlannedOperation
from pipelines.push.outcome import classify
from pipelines.push.pace import Pace
from pipelines.push.plan_ledger import PlanLedger, StateChange
from sources.errors import BridgeError, Stopped, Unreachable
from sources.http.responses import WriteOutcome

DOUBTS_MAX: Final = 5
"""Outcomes in doubt, one after the other, after which nothing more is sent: something is wrong beyond one request."""
AHEAD: Final = 8
"""Intents of repeatable operations per worker, on disk before they are needed: a crash costs a harmless repeat."""
WAITING_MAX: Final = 100
"""Operations that wait for another one of their target; no more are read while so many do."""
POLL_S: Final = 0.1


class Sender(Protocol):
    """What sends: the client of the legacy family."""

    def send(self, verb: Literal["POST", "PATCH"], path: str, json_body: bytes) -> WriteOutcome:
        """See `sources.http.client.Client.send`."""

    def close(self) -> None:
        """Ends what is under way."""


@dataclass(frozen=True, slots=True)
class Work:
    """One operation to send.

    Attributes:
        operation: as planned.
        repeatable: sending it twice does what sending it once does.
        doubted: an earlier attempt may have happened.
        clear: it was in doubt, and surely did not happen.
    """

    operation: PlannedOperation
    repeatable: bool
    doubted: bool = False
    clear: bool = False


@dataclass(slots=True)
class Sent:
    """How a round of sending went.

    Attributes:
        confirmed, rejected, in_doubt: how many operations became so.
        held: why operations were not sent.
        error: what ended it early. broke: too many doubts in a row.
        observed: (what, value) of answers that the ledger does not keep: they were about more than their operation.
    """

    confirmed: int = 0
    rejected: int = 0
    in_doubt: int = 0
    held: dict[int, str] = field(default_factory=dict)
    error: BridgeError | None = None
    broke: bool = False
    observed: set[tuple[str, str]] = field(default_factory=set)


class _Done(NamedTuple):
    work: Work
    outcome: WriteOutcome | None
    goes_on: bool
    failed: BaseException | None


class SendLoop:
    """Sends operations.

    Args:
        book: of the plan.
        client: sends.
        pace: the gate before each request.
        body: the bytes of an operation, password and all; asked for once its intent is on disk.
        values: what a confirmed operation leaves, see `Change.values`.
        in_the_way: why an operation must not be sent now, where another one may still land on the same fields.
        concurrency: requests at once.
        grace_s: how long what is under way may take once a person wants to end.
        stop: a person's wish to end.
        clock: epoch seconds.
        progress: called with the number of operations that ended since.
    """

    def __init__(
        self,
        book: PlanLedger,
        client: Sender,
        pace: Pace,
        *,
        body: Callable[[PlannedOperation], bytes],
        values: Callable[[PlannedOperation], dict[str, str | None]],
        in_the_way: Callable[[PlannedOperation], str | None],
        doubted: Callable[[PlannedOperation], None],
        concurrency: int,
        grace_s: float,
        stop: threading.Event,
        clock: Callable[[], float],
        progress: Callable[[int], None],
    ) -> None:
        self._book, self._client, self._pace = book, client, pace
        self._body, self._values, self._in_the_way, self._doubted = body, values, in_the_way, doubted
        self._concurrency, self._grace_s, self._stop = concurrency, grace_s, stop
        self._clock, self._progress = clock, progress
        self._todo: SimpleQueue[Work | None] = SimpleQueue()
        self._done: SimpleQueue[_Done] = SimpleQueue()
        self._flying: dict[int, Work] = {}
        self._targets: set[str] = set()
        self._next: deque[Work] = deque()
        self._waiting: dict[str, deque[Work]] = defaultdict(deque)
        self._doubts = 0
        self._sent = Sent()

    def run(self, works: Iterator[Work]) -> Sent:
        """Sends until nothing is left, or something ends it. What is left is as it was.

        Raises:
            UsageError: the disk refuses the ledger's commits. What is in flight is in doubt at the next push.
        """
        threads = [
            threading.Thread(target=self._work, name=f"send-{number}", daemon=True)
            for number in range(self._concurrency)
        ]
        for thread in threads:
            thread.start()
        try:
            self._loop(works)
        except BaseException:
            self._pace.halted.set()
            self._client.close()
            raise
        finally:
            for _ in threads:
                self._todo.put(None)
            for thread in threads:
                thread.join(self._grace_s)
        return self._sent

    def _loop(self, works: Iterator[Work]) -> None:
        changes: list[StateChange] = []
        while True:
            intents = self._intents(works)
            now = self._clock()
            self._book.commit(
                [*changes, *(StateChange(work.operation.id, "in_flight", clear=work.clear) for work in intents)], now
            )
            for work in intents:
                self._todo.put(work)
            if not self._flying:
                return
            changes = [self._settled(done) for done in self._came()]

    def _intents(self, works: Iterator[Work]) -> list[Work]:
        """What is sent next, as much as may be under way."""
        intents: list[Work] = []
        while not (self._stop.is_set() or self._pace.halted.is_set()):
            work = self._next.popleft() if self._next else next(works, None)
            if work is None:
                break
            most = self._concurrency * (AHEAD if work.repeatable else 1)
            if len(self._flying) >= most:
                self._next.appendleft(work)
                break
            target = work.operation.target
            if target in self._targets:
                self._waiting[target].append(work)
                if sum(map(len, self._waiting.values())) >= WAITING_MAX:
                    break
                continue
            reason = self._in_the_way(work.operation)
            if reason is not None:
                self._sent.held[work.operation.id] = reason
                continue
            self._flying[work.operation.id] = work
            self._targets.add(target)
            intents.append(work)
        return intents

    def _came(self) -> list[_Done]:
        """At least one outcome, and all others that came meanwhile."""
        until: float | None = None
        while True:
            try:
                came = [self._done.get(timeout=POLL_S)]
                break
            except Empty:
                if self._stop.is_set():
                    until = until or monotonic() + self._grace_s
                    if monotonic() > until:
                        self._client.close()  # what is under way ends now, in doubt
        while True:
            try:
                came.append(self._done.get_nowait())
            except Empty:
                return came

    def _settled(self, done: _Done) -> StateChange:
        """The change that an outcome makes, and what it means for those that follow."""
        if done.failed is not None:
            raise done.failed
        work, outcome, operation = done.work, done.outcome, done.work.operation
        change = classify(operation, outcome, work.doubted, self._clock())
        del self._flying[operation.id]
        self._targets.discard(operation.target)
        if operation.target in self._waiting:
            self._next.extendleft(reversed(self._waiting.pop(operation.target)))
        if outcome is not None and self._react(done, outcome, change):
            return change  # it goes again
        if change.to == "confirmed":
            self._sent.confirmed += 1
            change = StateChange(
                operation.id,
                "confirmed",
                change.status,
                remote_id=change.remote_id,
                values=self._values(operation),
            )
        elif change.to == "rejected":
            self._sent.rejected += 1
        elif change.to == "in_doubt":
            self._sent.in_doubt += 1
            self._doubted(operation)
        if change.to != "planned":
            self._progress(1)
        return change

    def _react(self, done: _Done, outcome: WriteOutcome, change: StateChange) -> bool:
        """Ends the loop, slows it down or lets it go on. Whether the operation is sent again, in this loop."""
        work = done.work
        if outcome.status == 429:
            self._sent.observed.add(("rate_limit", "legacy: 429 received"))
        elif outcome.status in (401, 403):
            code = outcome.error.code if outcome.error is not None else ""
            self._sent.observed.add(("legacy_auth_failure", f"status {outcome.status}, code {code or 'none'}"))
        if not done.goes_on:
            self._sent.error = self._sent.error or outcome.error or Unreachable("nothing gets through")
        elif _is_setback(outcome):
            self._next.appendleft(Work(work.operation, work.repeatable, work.doubted))
            return True
        elif change.to == "in_doubt":
            self._doubts += 1
            if self._doubts >= DOUBTS_MAX:
                self._sent.broke = True
                self._pace.halted.set()
        else:
            self._doubts = 0
            self._pace.got_through()
        return False

    def _work(self) -> None:
        """A worker: sends what it is given, once its turn has come."""
        while (work := self._todo.get()) is not None:
            passed_at = self._pace.passed()
            outcome, failed, goes_on = None, None, True
            try:
                if passed_at is not None:
                    operation = work.operation
                    outcome = self._client.send(operation.method, operation.path, self._body(operation))
                    goes_on = self._goes_on(outcome, passed_at)
            except Stopped:
                pass  # before anything was sent
            except BaseException as error:  # told to the loop, which raises it
                failed = error
            self._done.put(_Done(work, outcome, goes_on, failed))

    def _goes_on(self, outcome: WriteOutcome, passed_at: float) -> bool:
        """Holds up or halts all workers at once where the answer is about more than its operation."""
        if outcome.status in (401, 403):
            goes_on = False
        elif _is_setback(outcome):
            goes_on = self._pace.set_back(passed_at, outcome.retry_after_s)
        else:
            return True
        if not goes_on:
            self._pace.halted.set()
        return goes_on


def _is_setback(outcome: WriteOutcome) -> bool:
    """Busy, or no connection: it surely did not happen, and goes again."""
    return outcome.state == "not_sent" or outcome.status == 429
