"""Settle: ends doubts without sending anything, with the plans or without them (`orderbridge settle`, `answer`).

In: the ledger, a fresh list of customers, answers of a person who has looked on the platform. Out: changes of state in
the ledger, results that are written again, and what remains in doubt with what to do about it. Neither an input nor a
mapping is needed, and a plan only to compare values.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from orderbridge.pipelines.ledger.lock import ledger_lock
from orderbridge.pipelines.ledger.model import State, StateChange
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.push.identity import check_platform
from orderbridge.pipelines.push.listing import CustomerListing, walk_folder
from orderbridge.pipelines.push.lookups import (
    Doubt,
    Remains,
    SoughtKeys,
    doubts_of,
    intact_plan,
    look_up,
    not_created,
    steps_of_plan,
)
from orderbridge.pipelines.push.model import PushDependencies, PushHooks
from orderbridge.pipelines.push.next_steps import Action, action_of
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.resolutions import Answers, answer_changes
from orderbridge.pipelines.push.results import ResultsWriter
from orderbridge.pipelines.push.rules import SETTLE_S, PushRules, check_settle_s, settle_time_s
from orderbridge.pipelines.push.send import recover
from orderbridge.sources.errors import ExitCode, UsageError
from orderbridge.sources.kinds import additive_fields
from orderbridge.sources.settings import (
    LegacySettings,
    http_settings,
    ledger_path,
    legacy_settings,
    reconcile_settings,
)


class OpenDoubt(NamedTuple):
    """A write that remains in doubt, and what to do about it."""

    plan_id: str
    folder: str
    kind: str
    operation: int
    path: str
    fields: tuple[str, ...]
    advice: str


@dataclass(slots=True)
class SettleResult:
    """What was settled, by new state; what remains in doubt; and what responses revealed about gaps.

    `changed` are the ids of plans whose doubts were settled, `plans` those whose results were written again.
    """

    settled: Counter[State] = field(default_factory=Counter)
    left: list[OpenDoubt] = field(default_factory=list)
    observed: set[tuple[str, str]] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    plans: list[Plan] = field(default_factory=list)

    def commit(self, ledger: PlanLedger, changes: Sequence[StateChange]) -> None:
        """Commits changes to a plan of the ledger, and counts them."""
        ledger.commit(changes, ledger.now())
        if changes:
            self.changed.add(ledger.plan_id)
        self.settled.update(change.to for change in changes)

    def write(self, ledger: PlanLedger, plan: Plan | None, rules: PushRules) -> None:
        """Writes the results of a plan again, if it is not lost."""
        if plan is not None:
            ResultsWriter(plan, ledger, {}, rules).write()
            self.plans.append(plan)

    @property
    def exit_code(self) -> ExitCode:
        """6 while doubts remain."""
        return ExitCode.IN_DOUBT if self.left else ExitCode.DONE


def settle(
    plan: str | None,
    answers: Answers,
    settle_s: float | None,
    hooks: PushHooks | None = None,
    dependencies: PushDependencies | None = None,
) -> SettleResult:
    """Settles the doubts of a host's plans that can be settled, after a person's answers about one of them.

    Args:
        plan: folder or beginning of the id of the plan that the answers are about.
        answers: of a person who has looked on the platform.
        settle_s: seconds after which a write whose response was lost has arrived, if ever; see `PushOptions`.
        hooks: of a push.
        dependencies: of a push.

    Raises:
        UsageError: an unknown plan, an answer about what is not in doubt. AccessError, PlatformError, Stopped: the
            customers could not be read; what was answered is kept.
    """
    hooks = hooks or PushHooks()
    dependencies = dependencies or PushDependencies()
    legacy = legacy_settings()
    path = ledger_path()
    result = SettleResult()
    check_settle_s(settle_s, legacy)
    with (
        ledger_lock(path),
        Ledger.open(path, read=dependencies.read_clock) as ledger,
        dependencies.client(legacy, hooks.stop) as client,
    ):
        host = ledger.host_name(legacy.base_url)
        rules = _rules(ledger, legacy, settle_time_s(settle_s, client))
        shutil.rmtree(walk_folder(), ignore_errors=True)  # of a killed push
        recover(ledger, host, dependencies.deadline_s or http_settings().timeout_s)
        if plan is not None:
            named = named_plan(ledger, host, plan)
            intact = intact_plan(named.plan_id, named.folder)
            result.commit(named, answer_changes(intact, named, rules, answers))
        for one in PlanLedger.all_unsettled(ledger, host):
            result.commit(one, one.ends(rules.additive))
        doubts = _settled_doubts(ledger, host, rules)
        looked_up: dict[tuple[str, int], Remains] = {}
        if doubts:
            check_platform(client, legacy, ledger)
            read = dependencies.list_reader(client, legacy, hooks.on_page, result.observed)
            sought = SoughtKeys(ledger, host, doubts)
            listing = read(sought)
            absent: Action = "again" if legacy.environment == "sandbox" else "resend"
            for doubt in doubts:
                found = _shown(doubt, sought, listing, rules)
                if isinstance(found, StateChange):
                    result.commit(doubt.ledger, [found])
                else:
                    remains = found or Remains("", absent)
                    looked_up[doubt.ledger.plan_id, doubt.row.id] = remains
        result.left = [*_left(ledger, host, rules, looked_up)]
        for plan_id in sorted(result.changed):
            settled = PlanLedger(ledger, plan_id)
            result.write(settled, intact_plan(plan_id, settled.folder), rules)
    return result


def answer_writes(answers: Mapping[str, Answers], *, is_check: bool = False) -> SettleResult:
    """Answers writes of plans, all or none; nothing is requested from the platform.

    Args:
        answers: by folder of the plan, or beginning of its id.
        is_check: nothing is changed: only looks whether that is possible.

    Raises:
        UsageError: an unknown plan, or an answer about what is not in doubt or may still arrive. Nothing is changed.
    """
    legacy = legacy_settings()
    path = ledger_path()
    result = SettleResult()
    with ledger_lock(path), Ledger.open(path) as ledger:
        rules = _rules(ledger, legacy, SETTLE_S)
        recover(ledger, legacy.base_url, http_settings().timeout_s)
        changes = []
        for name, of_plan in answers.items():
            plan = named_plan(ledger, legacy.base_url, name)
            intact = intact_plan(plan.plan_id, plan.folder)
            changes.append((plan, intact, answer_changes(intact, plan, rules, of_plan)))
        if is_check:
            return result
        for plan, intact, of_plan_changes in changes:
            result.commit(plan, of_plan_changes)
            result.write(plan, intact, rules)
    return result


def _rules(ledger: Ledger, legacy: LegacySettings, settle_s: float) -> PushRules:
    """The rules of a command that sends nothing."""
    return PushRules(
        settle_s=settle_s,
        resend=False,
        additive=additive_fields(legacy.semantics),
        wall_time=ledger.clock.wall_time,
        country=reconcile_settings().country,
    )


def _settled_doubts(ledger: Ledger, host: str, rules: PushRules) -> list[Doubt]:
    """The creates in doubt, of any plan of a host, that can be looked up."""
    settled_at = ledger.clock.now() - rules.settle_s
    doubts: list[Doubt] = []
    for plan in PlanLedger.all_unsettled(ledger, host):
        if plan.kind.is_listed:
            doubts += doubts_of(plan, settled_at)
    return doubts


def _shown(
    doubt: Doubt, sought: SoughtKeys, listing: CustomerListing, rules: PushRules
) -> StateChange | Remains | None:
    """What the list shows about a doubt; None: the customer is absent, and its plan can send it again."""
    found = look_up(doubt, sought, listing, rules.country)
    if found is None and doubt.operation is None:
        return not_created(doubt)
    return found


def accept_ledger() -> None:
    """Takes the ledger for the newest, although an older one or none was expected in its place. Raises UsageError."""
    path = ledger_path()
    with ledger_lock(path), Ledger.open(path) as ledger:
        ledger.accept()


def named_plan(ledger: Ledger, host: str, name: str) -> PlanLedger:
    """The plan of a host with this folder, or whose id begins so. Raises UsageError."""
    rows = ledger.connection.execute(
        "SELECT plan_id, folder FROM plans WHERE host = ?", [ledger.host_name(host)]
    ).fetchall()
    folder = str(Path(name).absolute())
    found = [plan_id for plan_id, path in rows if path == folder] or [
        one for one, _ in rows if one.startswith(name)
    ]
    if len(found) != 1:
        what = "several plans" if found else "no plan"
        raise UsageError(
            f"the ledger has {what} of {host} with the folder or id {name}",
            "`orderbridge settle` lists open ones.",
        )
    return PlanLedger(ledger, found[0])


def _left(
    ledger: Ledger,
    host: str,
    rules: PushRules,
    looked_up: Mapping[tuple[str, int], Remains],
) -> Iterator[OpenDoubt]:
    """What remains unknown, with its next step: of a create that was looked up, what that showed."""
    now = ledger.clock.now()
    for plan in PlanLedger.all_unsettled(ledger, host):
        steps = steps_of_plan(plan.plan_id, plan.folder)
        for row in plan.rows("in_doubt", "conflict"):
            settles_at = rules.settles_at(row)
            action = action_of(
                row.state,
                is_listed=plan.kind.is_listed,
                is_repeatable=plan.kind.is_update
                and not rules.additive & set(row.fields)
                and not steps.is_lost,
                settles_at=settles_at,
                now=now,
            )
            reason = row.words if row.state == "conflict" else ""
            if (remains := looked_up.get((plan.plan_id, row.id))) is not None:
                reason, action = remains
            step = str(steps.step(action, at=rules.wall_time(settles_at)))
            advice = "; ".join(filter(None, (reason, step)))
            yield OpenDoubt(
                plan.plan_id, plan.folder, plan.kind.name, row.id, row.path, row.fields, advice
            )
