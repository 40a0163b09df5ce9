"""Push: sends the operations of a plan, each exactly once; run again, it continues (docs/exactly-once.md).

In: a plan folder and options. Out: the ledger, the results, and a `PushResult`. Results are written however the push
ends, with the lines confirmed, rejected, in doubt and not sent at that moment.
"""

from __future__ import annotations

import logging
import math
import shutil
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Final

from orderbridge.pipelines.ledger.hosts import check_host
from orderbridge.pipelines.ledger.lock import ledger_lock
from orderbridge.pipelines.ledger.model import FINAL_STATES, LedgerRow
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import file_sha256
from orderbridge.pipelines.push import checks, results
from orderbridge.pipelines.push.eligibility import (
    Eligibility,
    Withheld,
    assess_creates,
    assess_updates,
    ended,
)
from orderbridge.pipelines.push.identity import check_platform, key_digest
from orderbridge.pipelines.push.listing import walk_folder
from orderbridge.pipelines.push.lookups import intact_plan
from orderbridge.pipelines.push.model import (
    PushDependencies,
    PushHooks,
    PushOptions,
    PushResult,
)
from orderbridge.pipelines.push.outcome import is_refusal
from orderbridge.pipelines.push.pace import Pace
from orderbridge.pipelines.push.passwords import PASSWORDS_FILE, body_encoder, remove_unsent
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.resolutions import answer_changes
from orderbridge.pipelines.push.rules import SETTLE_S, PushRules, check_settle_s, settle_time_s
from orderbridge.pipelines.push.send import (
    RATE_MIN,
    SendLoop,
    SendResult,
    SendTask,
    recover,
)
from orderbridge.pipelines.warehouse.answers.reviews import read_reviews
from orderbridge.sources.command_line import typed_command
from orderbridge.sources.errors import AccessError, PlatformError, Stopped, UsageError
from orderbridge.sources.http.client import Client
from orderbridge.sources.kinds import KINDS, additive_fields, increment_fields
from orderbridge.sources.settings import (
    LegacySettings,
    check_before_writes,
    http_settings,
    ledger_path,
    reconcile_settings,
)

log = logging.getLogger("orderbridge.push")
PROBES_MAX: Final = 3
"""After too many doubts in a row, what was never sent is tried at this many other places of the plan before the push
ends: the records may be the cause, and not the platform. Not for what only a person settles."""
RELIST_S: Final = 300.0
"""Seconds of sending after which the list of customers is read again: another project may create them too."""
ROUNDS_MAX: Final = 3
"""How often one push sends a repeatable operation."""
CONCURRENCY: Final = {"POST": 1, "PATCH": 4}


def push(
    folder: Path,
    options: PushOptions,
    hooks: PushHooks | None = None,
    dependencies: PushDependencies | None = None,
) -> PushResult:
    """Sends the operations of the plan in a folder (`orderbridge push`).

    Raises:
        UsageError, AccessError, PlatformError, LockedError: before anything was sent; the results are unchanged.
        BridgeError: the results do not add up.
    """
    hooks, dependencies = hooks or PushHooks(), dependencies or PushDependencies()
    if options.rate is not None and not options.rate >= RATE_MIN:
        message = f"--rate {options.rate:g} is less than one request in {1 / RATE_MIN:.0f} seconds"
        raise UsageError(
            message, f"Give that or more: {typed_command('--rate', f'{RATE_MIN:.4f}')}"
        )
    plan, legacy, public_v1 = checks.open_plan(folder)
    check_before_writes(plan.folder)
    check_settle_s(options.settle_s, legacy)
    checks.check_agreement(plan, options)
    result = PushResult(plan)
    if public_v1 is not None:
        result.observed.add(("whoami_names", checks.check_whoami(plan, public_v1, hooks.stop)))
    path = ledger_path()
    if (changed := checks.changes_since(plan, legacy)) is not None:
        with Ledger.open(path, readonly=True) as ledger:
            if ledger.pushes(plan.manifest.plan_id) is None:
                raise changed
    with ledger_lock(path), Ledger.open(path, read=dependencies.read_clock) as ledger:
        results.check_writable(plan.folder)
        results.check_ledger(plan, path, ledger.pushes(plan.manifest.plan_id))
        ledger.check_newest()
        ledger.check_home()
        check_host(legacy, ledger)
        checks.check_current(plan, ledger)
        plan_ledger = PlanLedger.record(ledger, plan, ledger.clock.now())
        results.count_push(plan.folder, plan_ledger)
        with dependencies.client(legacy, hooks.stop) as client:
            return _PushRun(
                result, plan_ledger, options, hooks, dependencies, legacy, client, changed
            ).run()


def _not_created(ledger: PlanLedger) -> set[int]:
    """The operations of a plan that certainly did not happen, and were not rejected."""
    return {row.id for row in ledger.rows("planned", "abandoned") if row.doubt_at is None}


@dataclass
class _PushRun:
    """One push in progress, with the ledger locked."""

    result: PushResult
    ledger: PlanLedger
    options: PushOptions
    hooks: PushHooks
    dependencies: PushDependencies
    legacy: LegacySettings
    client: Client
    changed: UsageError | None = None

    def __post_init__(self) -> None:
        self.plan = self.result.plan
        options = self.options
        manifest = self.plan.manifest
        self.kind = KINDS[self.plan.kind]
        has_ended = self.ledger.counts().keys() <= set(FINAL_STATES)
        self.has_open = not has_ended or self._may_look_up()
        self.rules = PushRules(
            settle_s=settle_time_s(options.settle_s, self.client) if self.has_open else SETTLE_S,
            resend=options.resend or self.legacy.environment == "sandbox",
            accept_unproven=options.accept_unproven,
            additive=additive_fields(manifest.semantics) | additive_fields(self.legacy.semantics),
            increments=increment_fields(manifest.semantics),
            wall_time=self.ledger.ledger.clock.wall_time,
            country=reconcile_settings().country,
            changed=self.changed.message if self.changed is not None else "",
            answered=options.not_landed,
            reviews=cache(read_reviews),
        )
        self.eligibility = Eligibility()
        self.assessed_at = self.ledger.now()
        self.relist_at = math.inf

    def run(self) -> PushResult:
        """Rounds of assessing and sending, then the results."""
        deadline_s = self.dependencies.deadline_s or http_settings().timeout_s
        recover(self.ledger.ledger, self.ledger.host, deadline_s)
        self.ledger.commit(
            answer_changes(self.plan, self.ledger, self.rules, self.options), self.ledger.now()
        )
        try:
            if self.has_open:
                check_platform(self.client, self.legacy, self.ledger.ledger)
            self._rounds()
        except (Stopped, KeyboardInterrupt):
            self.result.stopped = True
        except (AccessError, PlatformError, UsageError) as error:
            self.result.error = error
        with self.hooks.defer_signals():
            return self._conclude()

    def _may_look_up(self) -> bool:
        """Whether creates of other plans may be looked up."""
        ledger = self.ledger
        return self.kind.is_listed and bool(PlanLedger.all_unsettled(ledger.ledger, ledger.host))

    def _conclude(self) -> PushResult:
        """Writes the results, whatever ended the rounds."""
        result = self.result
        shutil.rmtree(walk_folder(), ignore_errors=True)
        if self.kind.is_update:
            self._end_doubts()
        result.stopped = result.stopped or self.hooks.stop.is_set()
        result.error = result.error or self.eligibility.unproven
        settle_times = map(self.ledger.ledger.clock.wall_time, self._settle_times())
        result.settles_at = min(settle_times, default=None)
        result.states = self.ledger.counts()
        if result.sent and result.error is None:
            self.ledger.ledger.keep_key(
                self.ledger.host, key_digest(self.legacy, self.ledger.ledger)
            )
        try:
            results.count_push(self.plan.folder, self.ledger, self.rules.settle_s)
            remove_unsent(self.plan, _not_created(self.ledger))
            result.earlier_passwords = self._earlier_passwords()
        except UsageError as error:
            result.error = result.error or error
        writer = results.ResultsWriter(
            self.plan, self.ledger, self.eligibility.withheld, self.rules
        )
        result.lines = writer.write()
        result.actions = writer.actions
        return result

    def _rounds(self) -> None:
        """Assesses and sends, until another round would send nothing more."""
        round_number = 0
        while True:
            round_number += 1
            self._assess()
            sent = self._send_and_end()
            if sent.error is not None:
                raise sent.error
            if self.hooks.stop.is_set() or sent.broke:
                return
            has_repeats = sent.in_doubt > 0 and self.kind.is_update
            if has_repeats and round_number < ROUNDS_MAX:
                continue  # repeatable updates are sent again at once
            if self._is_list_old() and self.ledger.ids("planned") - set(self.eligibility.withheld):
                continue
            settle_times = self._settle_times()
            if not self.options.wait or not settle_times:
                return
            self._wait_until(max(settle_times))

    def _assess(self) -> None:
        """Decides what may be sent now."""
        self.assessed_at = self.ledger.now()
        if self.kind.is_listed:
            self._assess_creates()
        else:
            self._end_doubts()
            self.eligibility = assess_updates(self.plan, self.ledger, self.rules)

    def _send_and_end(self) -> SendResult:
        """Sends what may be sent, and ends what no repetition would send."""
        with self.hooks.defer_signals():
            sent = self._send()
        self.eligibility.withheld |= sent.withheld
        ends = ended(self.eligibility.withheld, self.ledger.ids("planned"))
        self.ledger.commit(ends, self.ledger.now())
        self.result.broke = sent.broke
        return sent

    def _wait_until(self, at: float) -> None:
        """Waits until a ledger time, or until a person stops the push."""
        while not self.hooks.stop.is_set():
            left = at - self.ledger.now()
            if left <= 0:
                return
            self.hooks.stop.wait(min(left, 1.0))

    def _assess_creates(self) -> None:
        """Reads the list, and again in later rounds; where that fails then, what was proven absent is sent on."""
        before = self.eligibility
        read = self.dependencies.list_reader(
            self.client, self.legacy, self.hooks.on_page, self.result.observed
        )
        try:
            self.eligibility = assess_creates(self.plan, self.ledger, self.rules, read, before)
        except PlatformError as error:
            if not before.absent:
                raise
            log.warning("the list of customers could not be read again: %s", error.message)
            self.eligibility = replace(before, resend=set())
        read_at = self.ledger.now()
        self.relist_at = read_at + max(RELIST_S, read_at - self.assessed_at)

    def _end_doubts(self) -> None:
        """Ends the doubts of all plans about updates that others have overwritten, or whose record is refused since."""
        for plan in PlanLedger.all_unsettled(self.ledger.ledger, self.ledger.host):
            plan.commit(plan.ends(self.rules.additive), plan.now())

    def _is_list_old(self) -> bool:
        """Whether customers may be on the platform by now that were not when their list was read."""
        return self.ledger.now() >= self.relist_at

    def _settle_times(self) -> list[float]:
        """When each create in doubt can be looked up, of those that could not be at the last assessment."""
        if not self.kind.is_listed:
            return []
        times = [self.rules.settles_at(row) for row in self.ledger.rows("in_doubt")]
        return [at for at in times if at > self.assessed_at]

    def _earlier_passwords(self) -> list[Path]:
        """The passwords of customers that killed pushes of other plans have created, which nobody was shown."""
        if not self.kind.has_login:
            return []
        found = []
        ledger = self.ledger.ledger
        for plan_id, folder in ledger.killed_pushes(self.ledger.host, self.kind.name).items():
            plan = intact_plan(plan_id, folder) if plan_id != self.ledger.plan_id else None
            if plan is None:
                continue
            try:
                has_some = remove_unsent(plan, _not_created(PlanLedger(ledger, plan_id)))
            except UsageError:  # a person has changed that file: it is theirs, and named
                has_some = True
            if has_some:
                found.append(plan.folder / PASSWORDS_FILE)
        return found

    def _refused_paths(self) -> set[str]:
        """The records of updates that were refused, where a repeat decides: what cannot be repeated waits for it."""
        if not self.kind.is_update:
            return set()
        return {
            row.path
            for row in self.ledger.rows("in_doubt")
            if is_refusal(row.status) and not self.rules.additive & set(row.fields)
        }

    def _without_password(self, to_send: Set[int]) -> set[int]:
        """The operations whose password is in an input that was changed or is missing."""
        source = self.plan.manifest.input
        if not (
            self.changed
            and self.kind.has_login
            and to_send
            and file_sha256(Path(source.path)) != source.sha256
        ):
            return set()
        return {op.id for op in self.plan.operations(to_send) if op.password == "input"}  # noqa: S105

    def _send(self) -> SendResult:
        """One round of sending."""
        to_send = self._operations_to_send()
        if not to_send or self.hooks.stop.is_set():
            return SendResult()
        repeats = {row.id: row for row in self.ledger.rows("in_doubt") if row.id in to_send}
        refused = self._refused_paths()
        undecided = {row.id for row in self.ledger.undecided_updates(refused)}
        waiting = undecided - set(repeats)
        loop = self._send_loop(to_send, refused)
        fresh = [to_send - set(repeats) - waiting]
        probes = 0
        while True:
            result = loop.run(self._tasks(fresh, repeats, waiting & to_send))
            sendable = to_send - set(result.withheld) - waiting
            left = sorted(self.ledger.ids("planned") & sendable)
            probes = 1 if result.went_well else probes + 1
            is_probed_further = result.broke and left and probes <= PROBES_MAX
            if not is_probed_further or not (self.kind.is_listed or self.kind.is_update):
                return result
            at = len(left) * probes // (PROBES_MAX + 1)
            fresh = [set(left[at:]), set(left[:at])]
            loop = replace(loop, pace=self._pace(), is_probe=True)

    def _operations_to_send(self) -> set[int]:
        """What this round sends; an operation whose password cannot be read any more is withheld."""
        withheld = self.eligibility.withheld
        to_send = (self.ledger.ids("planned") | self.eligibility.resend) - set(withheld)
        lacking = self._without_password(to_send)
        if lacking:
            words = f"its password is in the input, and {self.rules.changed}"
            withheld |= dict.fromkeys(lacking, Withheld("blocked", words, "plan_again"))
        return to_send - lacking

    def _tasks(
        self, fresh: list[set[int]], repeats: dict[int, LedgerRow], waiting: set[int]
    ) -> Iterator[SendTask]:
        """What was never sent, in this order of its parts, what is repeated, and what waits for a repeat.

        Each repeat that becomes a task is taken out of `repeats`: it is sent once a round.
        """
        for part in (*fresh, set(repeats)):
            yield from self._tasks_of(part, repeats)
        yield from self._tasks_of(waiting & self.ledger.ids("planned"), repeats)

    def _tasks_of(self, part: set[int], repeats: dict[int, LedgerRow]) -> Iterator[SendTask]:
        if not part:
            return
        for op in self.plan.operations(part):
            if self._is_list_old():
                return  # the next round sends the rest
            yield SendTask(op, self.rules.is_repeatable(op), repeats.pop(op.id, None))

    def _send_loop(self, to_send: Set[int], refused: set[str]) -> SendLoop:
        """The loop that sends these operations; it shows how many have ended."""
        has_login = self.kind.has_login
        attempted = {row.id for row in self.ledger.rows() if row.attempts} if has_login else set()
        total = self.result.sent + len(to_send)

        def on_end(count: int) -> None:
            self.result.sent += count
            self.hooks.on_operation(self.result.sent, total)

        loop = SendLoop(
            ledger=self.ledger,
            client=self.client,
            pace=self._pace(),
            body=body_encoder(
                self.plan,
                to_send,
                attempted,
                self.dependencies.read_passwords,
                self.options.language,
            ),
            rules=self.rules,
            on_end=on_end,
            on_message=partial(results.add_message, self.plan.folder),
            concurrency=self.options.concurrency or CONCURRENCY[self.kind.operation.verb],
            grace_s=self.dependencies.grace_s,
            stop=self.hooks.stop,
            uptime=lambda: self.dependencies.read_clock().uptime,
            observed=self.result.observed,
            refused=refused,
        )
        self.hooks.on_operation(self.result.sent, total)
        return loop

    def _pace(self) -> Pace:
        return Pace(self.options.rate, self.dependencies.policy, self.hooks.stop)
