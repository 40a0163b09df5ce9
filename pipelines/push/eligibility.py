"""Which operations of a plan may be sent now, which must not, and why.

In: the ledger, the plan, and for customers a fresh list of the platform, in which doubts are looked up: nothing is
created that exists by now. Out: changes of state for doubts that can be settled, operations that may be sent again, and
a reason for each one withheld. What cannot be known stays in doubt (docs/exactly-once.md).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal, NamedTuple

from orderbridge.pipelines.ledger.model import (
    Claim,
    StateChange,
    UnsettledUpdate,
)
from orderbridge.pipelines.plan.alike import likeness
from orderbridge.pipelines.plan.model import Plan, PlannedOperation
from orderbridge.pipelines.push.listing import (
    CustomerListing,
    ReadCustomers,
    any_spelling,
    search_keys,
)
from orderbridge.pipelines.push.lookups import (
    QUARANTINE,
    UNIDENTIFIED,
    Doubt,
    Remains,
    SoughtKeys,
    doubts_of,
    look_up,
    not_created,
    steps_of_plan,
)
from orderbridge.pipelines.push.next_steps import Action, NextSteps, answer_step
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.rules import PushRules
from orderbridge.sources.errors import CoverageError
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.words import VERDICTS, number

_EXISTS: Final = "the platform has a customer with this erpCode, email or loginCode"
_RESPELT: Final = "in another spelling, which was created while this push sent the others"


ENDS: Final[Mapping[str, Action]] = {
    "exists_now": "plan_again",
    "superseded": "plan_again",
    "held": "read",
}
"""Outcomes of operations that no repetition of their plan would send, and what to do then."""


class Withheld(NamedTuple):
    """Why an operation is not sent: its outcome in the results, the reason, and what ends that.

    Attributes:
        action: `read` where the reason says it.
        at: from when it ends, epoch seconds; for `wait`.
    """

    outcome: Literal["blocked", "exists_now", "superseded", "held", "in_doubt"]
    reason: str
    action: Action = "read"
    at: float = 0.0


def ended(withheld: Mapping[int, Withheld], planned: Set[int]) -> list[StateChange]:
    """The end of the planned operations that no repetition would send; the ledger keeps why."""
    return [
        StateChange(number, "abandoned", code=one.outcome, words=one.reason)
        for number, one in sorted(withheld.items())
        if one.outcome in ENDS and number in planned
    ]


@dataclass(slots=True)
class Eligibility:
    """What may be sent and what not.

    Attributes:
        resend: operations in doubt that may be sent again: updates, and creates that certainly did not happen.
        withheld: operations that are not sent.
        unproven: set if creates wait for a list that is proven complete.
        absent: creates whose customers a list that is proven complete did not have, when it was first read.
        alike: ids of customers whose code is that of a create in another spelling, by operation.
    """

    resend: set[int] = field(default_factory=set)
    withheld: dict[int, Withheld] = field(default_factory=dict)
    unproven: CoverageError | None = None
    absent: Set[int] = frozenset()
    alike: dict[int, set[str]] = field(default_factory=dict)


def _claims(ledger: PlanLedger, rules: PushRules) -> dict[int, list[Claim]]:
    """Of each operation the others that write its record, or have written it a moment ago."""
    settled = ledger.now() - rules.settle_s
    return ledger.claimed(settled, settled if rules.accept_unproven else 0.0)


def claimed_elsewhere(plan: Plan, ledger: PlanLedger, rules: PushRules) -> dict[int, Withheld]:
    """Operations whose record another operation is writing, or has written a moment ago."""
    claims = _claims(ledger, rules)
    if not claims:
        return {}
    steps = NextSteps.of(plan)
    steps_of_others = cache(steps_of_plan)
    return {
        number: _claimed(others[0], plan, ledger, rules, steps, steps_of_others)
        for number, others in claims.items()
    }


def _claimed(
    claim: Claim,
    plan: Plan,
    ledger: PlanLedger,
    rules: PushRules,
    steps: NextSteps,
    steps_of_others: Callable[[str, str], NextSteps],
) -> Withheld:
    other = f"operation {claim.id} of {'this plan' if claim.plan_id == ledger.plan_id else f'the plan {claim.folder}'}"
    answer = answer_step(claim.plan_id, claim.id)
    settles_at = claim.doubt_at + rules.settle_s
    is_listed = KINDS[plan.kind].is_listed
    if claim.state == "confirmed" and is_listed and settles_at <= ledger.now():
        question = f"create:{claim.plan_id[:12]}/{claim.id}"
        return Withheld(
            "held",
            f"{other} has created this record, and the list does not have it by these keys: the platform writes them "
            f"in another way, or has deleted it. To create it again: orderbridge answer {question} again",
        )
    if claim.state == "confirmed":
        return Withheld("exists_now", f"{other} has created this record", "plan_again")
    if claim.state == "planned" or claim.state == "in_flight":
        first = steps_of_others(claim.plan_id, claim.folder).again
        advice = f"end that one first: {first}"
        return Withheld("blocked", f"{other} is writing this record: {advice}")
    if claim.state == "abandoned":
        advice = f"{answer}; or if it does not exist: {steps.push} --accept-unproven"
    elif is_listed and settles_at > ledger.now():
        reason = f"{other} may have created this record"
        return Withheld("blocked", reason, "wait", rules.wall_time(settles_at))
    elif is_listed and claim.state == "in_doubt":
        advice = f"end that one first: {steps_of_others(claim.plan_id, claim.folder).again}"
    else:
        advice = f"{answer}; then {steps.step('again')}"
    return Withheld("blocked", f"{other} may have created this record: {advice}")


def withhold_changed(ledger: PlanLedger, rules: PushRules) -> dict[int, Withheld]:
    """What was never sent, where the plan is not for the files and settings of today."""
    never_sent = ledger.ids("planned") - rules.answered if rules.changed else ()
    return dict.fromkeys(never_sent, Withheld("blocked", rules.changed, "plan_again"))


def due_doubts(plan: Plan, ledger: PlanLedger, rules: PushRules) -> list[Doubt]:
    """The creates in doubt that have settled: of this plan, of orphans, and those that keep operations waiting."""
    settled = ledger.now() - rules.settle_s
    planned = ledger.ids("planned")
    claims = (
        claim
        for number, others in _claims(ledger, rules).items()
        if number in planned
        for claim in others
    )
    waited_for = {(claim.plan_id, claim.id) for claim in claims if claim.state == "in_doubt"}
    doubts = doubts_of(ledger, settled, plan)
    for other in PlanLedger.all_unsettled(ledger.ledger, ledger.host):
        if other.kind is ledger.kind and other.plan_id != ledger.plan_id:
            found = doubts_of(other, settled)
            doubts += [
                one for one in found if one.is_orphan or (other.plan_id, one.row.id) in waited_for
            ]
    return doubts


def assess_creates(
    plan: Plan,
    ledger: PlanLedger,
    rules: PushRules,
    read_customers: ReadCustomers,
    before: Eligibility | None = None,
) -> Eligibility:
    """Settles the doubts that can be settled, and decides what may be sent; nothing is in flight.

    Doubts of other plans are settled too: all where no import goes on with them, else those of customers that are
    absent and that this plan creates. `read_customers` is called at most once, and only if customers are to be created
    or looked up.

    `before` is what the same push knew when it last read the list. What was proven absent then is sent on, unless it is
    listed by now: customers that somebody else has created since.

    Raises:
        AccessError, PlatformError, Stopped: the customers could not be read.
    """
    before = before or Eligibility()
    eligibility = Eligibility(withheld=withhold_changed(ledger, rules), absent=before.absent)
    due = due_doubts(plan, ledger, rules)
    planned = ledger.ids("planned") - set(eligibility.withheld)
    claimed = claimed_elsewhere(plan, ledger, rules)
    to_look_up = planned - {number for number, one in claimed.items() if one.outcome != "held"}
    if not due and not to_look_up:
        eligibility.withheld = claimed | eligibility.withheld
        return eligibility
    keys = {op.id: op.keys for op in plan.operations(planned)}
    own = [key for keys_of_one in keys.values() for key in search_keys(keys_of_one)]
    sought = SoughtKeys(ledger.ledger, ledger.host, due, [*own, *any_spelling(own)])
    listing = read_customers(sought)
    for doubt in due:
        _settle(doubt, look_up(doubt, sought, listing, rules.country), ledger, rules, eligibility)
    eligibility.withheld = claimed_elsewhere(plan, ledger, rules) | eligibility.withheld
    held = {create for create, one in eligibility.withheld.items() if one.outcome == "held"}
    may_send = planned - (set(eligibility.withheld) - held)
    for create in may_send:
        _compare(create, keys[create], listing, rules, before, eligibility)
    left = may_send - set(eligibility.withheld)
    if listing.proves_absence or rules.accept_unproven:
        eligibility.absent = before.absent | left
    _withhold_unproven(left - eligibility.absent, listing, plan, eligibility)
    return eligibility


def _settle(
    doubt: Doubt,
    found: StateChange | Remains | None,
    ledger: PlanLedger,
    rules: PushRules,
    eligibility: Eligibility,
) -> None:
    """Ends a doubt as the list shows; or says of one of this plan whether it is sent again, or why not.

    A plan whose customer was found records that itself, with its results.
    """
    is_own = doubt.ledger is ledger
    if found is None and not is_own:
        found = not_created(doubt)
    if isinstance(found, StateChange):
        if is_own or doubt.is_orphan or found.to in ("abandoned", "rejected"):
            doubt.ledger.commit([found], ledger.now())
    elif not is_own:
        return  # it is reported by the push of that plan
    elif found is not None:
        eligibility.withheld[doubt.row.id] = Withheld("in_doubt", *found)
    elif rules.resend:
        eligibility.resend.add(doubt.row.id)
    else:
        eligibility.withheld[doubt.row.id] = Withheld("in_doubt", "", "resend")


def _compare(
    create: int,
    keys: Mapping[str, str],
    listing: CustomerListing,
    rules: PushRules,
    before: Eligibility,
    eligibility: Eligibility,
) -> None:
    """Withholds a create whose customer is listed, or may be one that is listed."""
    own_keys = search_keys(keys)
    withheld = eligibility.withheld
    if any(listing.records.get(key) for key in own_keys):
        withheld[create] = Withheld("exists_now", _EXISTS, "plan_again")
        return
    if any(key in listing.quarantined_keys for key in own_keys):
        reason = f"{_EXISTS}, in a quarantined row of the list: {QUARANTINE}"
        withheld[create] = Withheld("exists_now", reason, "plan_again")
        return
    alike = listing.find(any_spelling(own_keys))
    if not alike:
        return
    eligibility.alike[create] = {str(record["id"]) for record in alike}
    is_since = eligibility.alike[create] - before.alike.get(create, set())
    if create in before.absent and is_since:
        withheld[create] = Withheld("exists_now", f"{_EXISTS} {_RESPELT}", "plan_again")
        return
    known = likeness(keys, alike, rules.reviews())
    if known.customer is not None:
        withheld[create] = Withheld("exists_now", f"it is the customer {known.customer}")
    elif known.open is not None:
        withheld.setdefault(create, Withheld("held", known.open.words))


def _withhold_unproven(
    creates: Set[int], listing: CustomerListing, plan: Plan, eligibility: Eligibility
) -> None:
    """Withholds creates that a list without a proof may lack."""
    if not creates:
        return
    reason, hint = _unproven(listing, plan)
    message = f"{reason}: {number(len(creates), 'customer')} not sent, since they may exist already"
    eligibility.unproven = CoverageError(message, hint)
    may_exist = Withheld("blocked", f"{reason}: the customer may exist already", "again")
    eligibility.withheld |= dict.fromkeys(creates, may_exist)


def _unproven(listing: CustomerListing, plan: Plan) -> tuple[str, str]:
    """Why creates wait, and what to do. Waiting does not help with a row that may be any customer."""
    steps = NextSteps.of(plan)
    reasons = {}
    if not listing.is_whole:
        reasons[f"the list of customers is {VERDICTS[listing.verdict]}"] = (
            f"When the list changes less, {steps.step('again')}"
        )
    if listing.unidentified:
        rows = f"{number(listing.unidentified, 'row')} of the list of customers may be any customer"
        hint = (
            f"Have them corrected on the platform: a number has lost leading zeros; {QUARANTINE}."
        )
        reasons[f"{rows}: each is {UNIDENTIFIED}"] = hint
    accept = f"If you know that the customers do not exist: {steps.push} --accept-unproven"
    return " and ".join(reasons), "\n".join([*reasons.values(), accept])


def assess_updates(plan: Plan, ledger: PlanLedger, rules: PushRules) -> Eligibility:
    """Eligibility of operations that cannot be looked up: variants, subcategories, warehouses; none is in flight."""
    superseded = ledger.ledger.superseded(ledger.plan_id)
    reason = "the plan {} has changed these fields since"
    undoing = {
        number: Withheld("superseded", reason.format(folder), "plan_again")
        for number, folder in superseded.items()
    }
    withheld = claimed_elsewhere(plan, ledger, rules) | undoing | withhold_changed(ledger, rules)
    eligibility = Eligibility(withheld=withheld)
    for operation in plan.operations(ledger.ids("in_doubt")):
        if rules.is_repeatable(operation):
            eligibility.resend.add(operation.id)
        else:
            eligibility.withheld[operation.id] = Withheld("in_doubt", "", "answer")
    return eligibility


class UnsettledUpdates:
    """Updates of a host that may still arrive: those in the ledger, and doubts of this push as they arise.

    Args:
        ledger: of the plan that is pushed.
        rules: how long a doubt counts even if it ended, and which fields a repeat may add to: a doubt about another
            field ends with that time, since what a later plan sends is what remains.
    """

    def __init__(self, ledger: PlanLedger, rules: PushRules) -> None:
        self._since = ledger.now() - rules.settle_s
        self._rules = rules
        self._plan_id, self._folder = ledger.plan_id, ledger.folder
        self._updates: dict[str, list[UnsettledUpdate]] = defaultdict(list)
        for update in ledger.unsettled(self._since):
            self._updates[update.path].append(update)

    def add(self, operation: PlannedOperation) -> None:
        """From now on, an update of this push that is in doubt blocks others on the same fields."""
        if operation.method == "PATCH":
            fields = frozenset(operation.body)
            path = operation.path
            update = UnsettledUpdate(
                self._plan_id, self._folder, operation.id, path, fields, True, False, math.inf
            )
            self._updates[path].append(update)

    def conflict(self, operation: PlannedOperation) -> Withheld | None:
        """Why an update must wait: another one on the same fields may still arrive and undo it. None if it need not.

        One that a later plan has in doubt is over, whatever becomes of that doubt: it would undo the later value.
        """
        for other in self._updates.get(operation.path, ()):
            shared = other.fields & set(operation.body)
            is_over = (
                other.doubt_at <= self._since
                and not other.is_later
                and not shared & self._rules.additive
            )
            if (other.plan_id, other.id) == (self._plan_id, operation.id) or not shared or is_over:
                continue
            what = f"operation {other.id} of the plan {other.folder} on the same fields"
            if shared & self._rules.additive and other.is_open:
                reason = f"{what} has an unknown outcome: {answer_step(other.plan_id, other.id)}"
                return Withheld("blocked", reason)
            if other.is_open and other.is_later:
                return Withheld("superseded", f"{what} is later", "plan_again")
            may_arrive = "has" if other.is_open else "had"
            reason = f"{what} {may_arrive} an unknown outcome and may still arrive"
            settles_at = other.doubt_at + self._rules.settle_s
            if math.isinf(settles_at):
                return Withheld("blocked", reason, "again")
            return Withheld("blocked", reason, "wait", self._rules.wall_time(settles_at))
        return None
