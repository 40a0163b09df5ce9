"""Settle: ends doubts without sending anything, with the plans or without them (`orderbridge settle`).

In: the ledger, a fresh list of customers, answers of a person. Out: changes of state in the ledger, and what remains in
doubt with what to do about it. Neither an input nor a mapping is needed, and a plan only to compare values.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from orderbridge.pipelines.ledger.model import State, StateChange
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.push.eligibility import PushRules
from orderbridge.pipelines.push.identity import check_platform
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
from orderbridge.pipelines.push.run import (
    check_settle_s,
    ledger_lock,
    read_list,
    recover,
    settle_time_s,
    walk_folder,
)
from orderbridge.sources.errors import ExitCode, UsageError
from orderbridge.sources.kinds import additive_fields
from orderbridge.sources.settings import (
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
    path, result = ledger_path(), SettleResult()
    check_settle_s(settle_s, legacy)
    with (
        ledger_lock(path),
        Ledger.open(path, read=dependencies.read_clock) as ledger,
        dependencies.client(legacy, hooks.stop) as client,
    ):
        host = ledger.host_name(legacy.base_url)
        rules = PushRules(
            settle_s=settle_time_s(settle_s, client),
            resend=False,
            additive=additive_fields(legacy.semantics),
            wall_time=ledger.clock.wall_time,
            country=reconcile_settings().country,
        )
        shutil.rmtree(walk_folder(), ignore_errors=True)  # of a killed push
        recover(ledger, host, dependencies.deadline_s or http_settings().timeout_s)
        if plan is not None:
            named = named_plan(ledger, host, plan)
            result.commit(
                named,
                answer_changes(intact_plan(named.plan_id, named.folder), named, rules, answers),
            )
        for one in PlanLedger.all_unsettled(ledger, host):
            result.commit(one, one.ends(rules.additive))
        settled_at = ledger.clock.now() - rules.settle_s
        doubts: list[Doubt] = []
        looked_up: dict[tuple[str, int], Remains] = {}
        for one in PlanLedger.all_unsettled(ledger, host):
            doubts += doubts_of(one, settled_at) if one.kind.is_listed else []
        if doubts:
            check_platform(client, legacy, ledger)
            sought = SoughtKeys(ledger, host, doubts)
            listing = read_list(client, legacy, hooks, dependencies, result.observed, sought)
        for doubt in doubts:
            found = look_up(doubt, sought, listing, rules.country)
            if found is None and doubt.operation is None:
                found = not_created(doubt)
            if isinstance(found, StateChange):
                result.commit(doubt.ledger, [found])
            else:
                absent: Action = "again" if legacy.environment == "sandbox" else "resend"
                remains = found or Remains("", absent)
                looked_up[doubt.ledger.plan_id, doubt.row.id] = remains
        result.left = [*_left(ledger, host, rules, looked_up)]
        for plan_id in sorted(result.changed):
            settled = PlanLedger(ledger, plan_id)
            if (intact := intact_plan(settled.plan_id, settled.folder)) is not None:
                ResultsWriter(intact, settled, {}, rules).write()
                result.plans.append(intact)
    return result


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
