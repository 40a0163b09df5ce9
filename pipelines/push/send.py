"""The send loop: the intent to disk, the request, then its outcome to disk.

In: tasks, in order. Out: their new states in the ledger, and why the loop ended early, if it did. Only the calling
thread uses the ledger; worker threads send. Each commit contains the outcomes received and the next intents: many
operations share one sync of the disk. Workers wake the calling thread when it has something to decide or to send next,
not after each response, since threads that wake each other cost more than the ledger.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from time import monotonic
from typing import Final, NamedTuple

from orderbridge.pipelines.ledger.model import LedgerRow, StateChange
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import PlannedOperation
from orderbridge.pipelines.push.eligibility import UnsettledUpdates, Withheld
from orderbridge.pipelines.push.outcome import (
    classify,
    is_plain_success,
    is_refusal,
    may_have_happened,
)
from orderbridge.pipelines.push.pace import WAIT_STEP_S, Pace
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.rules import PushRules
from orderbridge.sources.errors import BridgeError, Stopped, Unreachable
from orderbridge.sources.http.client import Client
from orderbridge.sources.http.exchange import WriteOutcome

DOUBTS_MAX: Final = 5
"""Outcomes in doubt in a row after which nothing more is sent: the cause is not a single request."""
INTENTS_AHEAD: Final = 16
"""Intents of repeatable operations committed ahead, per worker: a crash costs a harmless repeat."""
INTENT_MAX_AGE_S: Final = 300.0
"""An intent that is older when its turn comes is committed again: what the ledger has as the time of a request is never
much earlier than the request, however slow the queue is and however long the machine slept."""
RATE_MIN: Final = 2 / INTENT_MAX_AGE_S
"""Requests per second at which a single intent surely gets its turn in time."""
_EARLIER_ATTEMPT: Final = "an earlier attempt may have arrived"
WAITING_MAX: Final = 100
"""Operations waiting for another one on the same target; no more are read while this many wait."""


def recover(ledger: Ledger, host: str, deadline_s: float) -> None:
    """Puts in doubt what killed pushes, of any plan of a host, left in flight. `deadline_s`: of a request."""
    for plan in PlanLedger.all_unsettled(ledger, host):
        plan.recover(INTENT_MAX_AGE_S + deadline_s, ledger.clock.now())


class SendTask(NamedTuple):
    """One operation to send.

    Attributes:
        is_repeatable: sending it twice has the same effect as sending it once: an attempt in doubt may have happened.
            Anything else is repeated only if it certainly did not.
        earlier: of a repeat, what became of the attempts before.
    """

    operation: PlannedOperation
    is_repeatable: bool
    earlier: LedgerRow | None = None

    def had_status(self, status: int | None) -> bool:
        """Whether the attempt before had this status."""
        return self.earlier is not None and self.earlier.status == status

    def was_only_refused(self) -> bool:
        """Whether all that may have arrived before is one request, and it was refused."""
        earlier = self.earlier
        return earlier is not None and earlier.has_one_arrival and is_refusal(earlier.status)


class CompletedTask(NamedTuple):
    """A task that a worker is done with.

    Attributes:
        outcome: None if the request was not started, because its intent is too old, or the loop ends.
        can_continue: False if the response means that the push must end.
        error: an exception to raise in the loop.
    """

    task: SendTask
    outcome: WriteOutcome | None
    can_continue: bool = True
    error: BaseException | None = None


@dataclass(slots=True)
class SendResult:
    """Result of a round of sending.

    Attributes:
        in_doubt: how many operations are in doubt now, and were not for the same reason before.
        withheld: operations that were not sent, with the reason.
        broke: whether too many doubts in a row ended it.
        went_well: whether any response to the last loop was certain.
    """

    in_doubt: int = 0
    withheld: dict[int, Withheld] = field(default_factory=dict)
    error: BridgeError | None = None
    broke: bool = False
    went_well: bool = False


@dataclass(kw_only=True, eq=False)
class SendLoop:
    """Sends operations.

    Attributes:
        is_probe: the loop before ended with too many doubts in a row: a doubt ends this one before anything went well.
        pace: the gate before each request.
        body: bytes of an operation, including its password; called after its intent is on disk.
        rules: what a confirmed operation leaves, and how long a doubt blocks others on the same fields.
        on_end: called with the number of operations that ended.
        on_message: called with an operation and the platform's words about it, which are in no ledger and no log.
        concurrency: requests at once.
        grace_s: seconds allowed for requests in flight after a stop.
        stop: set when a person stops the push.
        uptime: seconds, time asleep included.
        observed: gets (what, value) of responses that the ledger does not record because they concern all operations.
        result: of the round, which this loop adds to.
        refused: targets that the platform refuses, which a repeat has not confirmed: nothing else is sent to them that
            could not be repeated.
    """

    ledger: PlanLedger
    client: Client
    pace: Pace
    rules: PushRules
    body: Callable[[PlannedOperation], bytes]
    on_end: Callable[[int], None]
    on_message: Callable[[int, str], None]
    concurrency: int
    grace_s: float
    stop: threading.Event
    uptime: Callable[[], float]
    observed: set[tuple[str, str]] = field(default_factory=set)
    result: SendResult = field(default_factory=SendResult)
    refused: set[str] = field(default_factory=set)
    is_probe: bool = False

    def __post_init__(self) -> None:
        self._tasks: SimpleQueue[tuple[SendTask, float] | None] = SimpleQueue()
        self._completed: deque[CompletedTask] = deque()
        self._wake = threading.Event()
        self._queued_min = self.concurrency * INTENTS_AHEAD // 2
        self._in_flight: dict[int, SendTask] = {}
        self._targets: set[str] = set()
        self._next: deque[SendTask] = deque()
        self._doubts_in_row = DOUBTS_MAX - 1 if self.is_probe else 0
        self._ended = 0
        self.result.broke = self.result.went_well = False
        self._unsettled = UnsettledUpdates(self.ledger, self.rules)

    def run(self, tasks: Iterator[SendTask]) -> SendResult:
        """Sends until nothing is left or something ends it. Operations not sent stay as they were.

        Raises:
            UsageError: the ledger cannot be written. Operations in flight will be in doubt at the next push.
        """
        threads = [
            threading.Thread(target=self._work, name=f"send-{number}", daemon=True)
            for number in range(self.concurrency)
        ]
        for thread in threads:
            thread.start()
        try:
            self._loop(tasks)
        except BaseException:
            self.pace.halted.set()
            self.client.close()
            raise
        finally:
            for _ in threads:
                self._tasks.put(None)
            for thread in threads:
                thread.join(self.grace_s)
        return self.result

    def _loop(self, tasks: Iterator[SendTask]) -> None:
        changes: list[StateChange] = []
        while True:
            intents = self._intents(tasks)
            in_flight = [
                StateChange(task.operation.id, "in_flight", clear=not task.is_repeatable)
                for task in intents
            ]
            intended_at = self.uptime()
            self.ledger.commit([*changes, *in_flight], self.ledger.now())
            for task in intents:
                self._tasks.put((task, intended_at))
            if not self._in_flight:
                return
            completed_tasks = self._receive()
            now = self.ledger.now()
            changes = [self._change(completed, now) for completed in completed_tasks]
            changes += self._refused_with(changes, completed_tasks)
            self.on_end(self._ended)
            self._ended = 0

    def _intents(self, tasks: Iterator[SendTask]) -> list[SendTask]:
        """The next tasks, as many as may be in flight."""
        intents: list[SendTask] = []
        waiting: deque[SendTask] = deque()
        while not (self.stop.is_set() or self.pace.halted.is_set()):
            task = self._next.popleft() if self._next else next(tasks, None)
            if task is None:
                break
            if len(self._in_flight) >= self._in_flight_max(task):
                self._next.appendleft(task)
                break
            target = task.operation.target
            if target in self._targets:
                waiting.append(task)
                if len(waiting) >= WAITING_MAX:
                    break
                continue
            if target in self.refused and not task.is_repeatable:
                continue  # it stays planned until the repeat decides
            conflict = self._unsettled.conflict(task.operation)
            if conflict is not None:
                self.result.withheld[task.operation.id] = conflict
                continue
            self._in_flight[task.operation.id] = task
            self._targets.add(target)
            intents.append(task)
        self._next.extendleft(reversed(waiting))
        return intents

    def _in_flight_max(self, task: SendTask) -> int:
        """How many may be in flight, so that each gets its turn in half the age allowed for an intent."""
        limit = self.concurrency * (INTENTS_AHEAD if task.is_repeatable else 1)
        gap_s = self.pace.gap_s
        if not gap_s:
            return limit
        in_time = max(1, int(INTENT_MAX_AGE_S / 2 / gap_s))
        return min(limit, in_time)

    def _receive(self) -> list[CompletedTask]:
        """Waits until a worker wakes this thread, or a moment, and takes all completed tasks; at least one."""
        close_at: float | None = None
        while True:
            self._wake.wait(WAIT_STEP_S)
            self._wake.clear()
            if self._completed:
                return [self._completed.popleft() for _ in range(len(self._completed))]
            if self.stop.is_set():
                close_at = close_at or monotonic() + self.grace_s
                if monotonic() > close_at:
                    self.client.close()  # requests in flight end now, in doubt

    def _change(self, completed: CompletedTask, now: float) -> StateChange:
        """The change of state that an outcome makes; also what it means for the tasks that follow."""
        if completed.error is not None:
            raise completed.error
        task = completed.task
        outcome = completed.outcome
        operation = task.operation
        change = self._classified(task, outcome, now)
        if outcome is not None and outcome.message and change.to != "confirmed":
            self.on_message(operation.id, outcome.message)
        del self._in_flight[operation.id]
        self._targets.discard(operation.target)
        if outcome is None or self._react(completed, outcome, change):
            self._next.appendleft(task)
            return change
        self._ended += change.to != "planned"
        if change.to == "confirmed":
            self.refused.discard(operation.target)
            return change._replace(values=self.rules.confirmed_values(operation))
        if change.to == "in_doubt":
            self._note_doubt(task, outcome)
        if change.to == "rejected":
            return _rejected(task, change)
        return change

    def _classified(self, task: SendTask, outcome: WriteOutcome | None, now: float) -> StateChange:
        """The change that the outcome makes by itself; an attempt that did not happen leaves what was known before."""
        earlier = task.earlier
        is_doubted = task.is_repeatable and earlier is not None
        decisive_status = self._decisive_status(task, now)
        change = classify(task.operation, outcome, is_doubted, now, decisive_status)
        if earlier is not None and is_doubted and not may_have_happened(outcome):
            return _as_before(change, earlier)
        return change

    def _note_doubt(self, task: SendTask, outcome: WriteOutcome) -> None:
        """What an outcome in doubt means for the operations that follow."""
        is_lost = outcome.status is None  # which says nothing about the record, however often
        self.result.in_doubt += is_lost or not task.had_status(outcome.status)
        self._unsettled.add(task.operation)
        if task.is_repeatable and is_refusal(outcome.status):
            self.refused.add(task.operation.target)

    def _decisive_status(self, task: SendTask, now: float) -> int | None:
        """The status of the attempt before, if the same refusal ends the update: nothing may still arrive."""
        if task.earlier is None:
            return None
        is_settled = task.was_only_refused() or self.rules.settles_at(task.earlier) <= now
        return task.earlier.status if is_settled else None

    def _refused_with(
        self, changes: Sequence[StateChange], completed_tasks: Sequence[CompletedTask]
    ) -> list[StateChange]:
        """Rejects, unsent, what cannot be repeated of records whose other update was refused twice.

        One that was sent, and refused with the same status, did not happen either.
        """
        refused: dict[str, tuple[StateChange, str]] = {}
        for change, completed in zip(changes, completed_tasks, strict=True):
            if change.to == "rejected" and completed.task.earlier is not None:
                message = completed.outcome.message if completed.outcome is not None else ""
                refused[completed.task.operation.path] = change, message
        if not refused:
            return []
        rejected: list[StateChange] = []
        for row in self.ledger.undecided_updates(refused):
            change, message = refused[row.path]
            is_refused_too = row.state == "planned" or row.status == change.status
            if not is_refused_too or not self.rules.additive & set(row.fields):
                continue
            if message:
                self.on_message(row.id, message)
            words = change.words if row.attempts else f"not sent: {change.words}"
            rejected.append(change._replace(id=row.id, words=words, clear=True))
        self._ended += len(rejected)
        return rejected

    def _react(self, completed: CompletedTask, outcome: WriteOutcome, change: StateChange) -> bool:
        """Ends the loop, slows it down or lets it continue. Returns whether the loop sends the operation again."""
        self._observe(outcome)
        if not completed.can_continue:
            error = outcome.error or Unreachable("no request gets through")
            self.result.error = self.result.error or error
            return False
        if _is_setback(outcome):
            return True
        if change.to == "in_doubt":
            self._count_doubt(completed.task, outcome)
        else:
            self.result.went_well = True
            self._doubts_in_row = 0
            self.pace.reset()
        return False

    def _observe(self, outcome: WriteOutcome) -> None:
        """Notes what the interface does not show: how a rate is limited, how a key is refused."""
        if outcome.status == 429:
            self.observed.add(("rate_limit", "legacy: 429 received"))
        elif outcome.status in (401, 403):
            code = outcome.error.code if outcome.error is not None else ""
            seen = f"status {outcome.status}, code {code or 'none'}"
            self.observed.add(("legacy_auth_failure", seen))

    def _count_doubt(self, task: SendTask, outcome: WriteOutcome) -> None:
        """Ends the loop after too many doubts in a row."""
        says_nothing_new = task.had_status(outcome.status)
        is_decided_soon = task.is_repeatable and is_refusal(outcome.status)
        if not says_nothing_new and not is_decided_soon:
            self._doubts_in_row += 1
        if self._doubts_in_row >= DOUBTS_MAX:
            self.result.broke = True
            self.pace.halted.set()

    def _work(self) -> None:
        """A worker: sends the tasks of the queue, each in its turn."""
        while (queued := self._tasks.get()) is not None:
            task, intended_at = queued
            completed = CompletedTask(task, None)
            try:
                started_at = self.pace.wait(partial(self._is_expired, intended_at))
                if started_at is not None:
                    operation = task.operation
                    outcome = self.client.send(
                        operation.method, operation.path, self.body(operation)
                    )
                    completed = CompletedTask(
                        task, outcome, self._can_continue(outcome, started_at)
                    )
            except Stopped:
                pass  # before anything was sent
            except BaseException as error:  # raised again by the loop
                completed = CompletedTask(task, None, error=error)
            self._completed.append(completed)
            is_routine = (
                completed.outcome is not None
                and task.is_repeatable
                and is_plain_success(completed.outcome)
            )
            if not is_routine or self._tasks.qsize() < self._queued_min:
                self._wake.set()

    def _is_expired(self, intended_at: float) -> bool:
        return self.uptime() - intended_at > INTENT_MAX_AGE_S

    def _can_continue(self, outcome: WriteOutcome, started_at: float) -> bool:
        """Delays or halts all workers at once if the response concerns more than its operation."""
        is_delayed = _is_setback(outcome) and self.pace.set_back(started_at, outcome.retry_after_s)
        can_continue = is_delayed or not (_is_setback(outcome) or outcome.status in (401, 403))
        if not can_continue:
            self.pace.halted.set()
        return can_continue


def _as_before(change: StateChange, earlier: LedgerRow) -> StateChange:
    """What the ledger keeps of an attempt that certainly did not happen: what it knew before."""
    return change._replace(
        status=earlier.status,
        code=earlier.code,
        request_id=earlier.request_id,
        words=earlier.words,
        sent_at=earlier.sent_at,
    )


def _rejected(task: SendTask, change: StateChange) -> StateChange:
    """A rejection, and what it says of the attempts before: whether one may have arrived."""
    if task.earlier is None:
        return change
    if task.was_only_refused():
        return change._replace(clear=True)
    return change._replace(words=f"{change.words}; {_EARLIER_ATTEMPT}")


def _is_setback(outcome: WriteOutcome) -> bool:
    """Busy, or no connection: it certainly did not happen, and is sent again."""
    return outcome.state == "not_sent" or outcome.status == 429
