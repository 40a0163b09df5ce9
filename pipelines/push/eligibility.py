"""Which operations of a plan may be sent now, which must not, and why.

In: the ledger, the plan, and for customers a fresh list of the platform, in which doubts are looked up: nothing is
created that exists by now. Out: changes of state for doubts that can be settled, operations that may be sent again, and
a reason for each one withheld. What cannot be known stays in doubt (docs/push.md).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

import msgspec

from pipelines.ledger.keys import variant_ids
from pipelines.ledger.model import Claim, LedgerRow, StateChange, UnsettledUpdate, VariantField
from pipelines.plan.model import Plan, PlannedOperation
from pipelines.push.listing import CustomerListing, ReadCustomers, differing_fields, search_keys
from pipelines.push.plan_ledger import PlanLedger
from sources.errors import CoverageError
from sources.kinds import additive_fields

ASK_PERSON: Final = (
    "look on the platform, then pass --landed, --not-landed or --abandon with the operation's number, "
    "or --answers with this file and its column `answer` filled in"
)


_EXISTS: Final = "the platform has a customer with this erpCode, email or loginCode"
_QUARANTINE: Final = "after `orderbridge pull customers`, ops.quarantine has the reason and the quarantine file the row"


class Withheld(NamedTuple):
    """Why an operation is not sent: its outcome in the results, and the reason."""

    outcome: Literal["blocked", "exists_now", "in_doubt"]
    reason: str


@dataclass(frozen=True, slots=True)
class PushRules:
    """What a push may do.

    Attributes:
        settle_s: seconds after which a write whose response was lost has arrived, if ever.
        resend: whether a create that is absent after that time is sent again.
        accept_unproven: whether creates are sent although the list of customers is not proven complete, or although
            another plan abandoned the same create of what has no list.
        additive: fields of a variant that a repeated update would or may add to.
        increments: those of them whose values are increments: the value afterwards is unknown.
        wall_time: wall time of a ledger time, for people.
        country: of phone numbers without a country code.
    """

    settle_s: float
    resend: bool
    accept_unproven: bool = False
    additive: frozenset[str] = field(default_factory=lambda: additive_fields({}))
    increments: frozenset[str] = frozenset()
    wall_time: Callable[[float], float] = float
    country: str | None = None

    def is_repeatable(self, operation: PlannedOperation) -> bool:
        """Whether sending it twice has the same effect as sending it once."""
        return operation.repeatable and operation.method == "PATCH" and not self.additive & set(operation.body)

    def confirmed_values(self, operation: PlannedOperation) -> dict[VariantField, str | None]:
        """The values on the platform after a variant update; after an increment they are unknown."""
        if (variant := variant_ids(operation.path)) is None:
            return {}
        return {
            (*variant, name): None if name in self.increments else msgspec.json.encode(value).decode()
            for name, value in operation.body.items()
        }

    def lookup_from(self, row: LedgerRow) -> str:
        """When a create in doubt can be looked up, for people."""
        return f"it can be looked up from {format_time(self.wall_time(self.settles_at(row)))}: push again then"

    def settles_at(self, row: LedgerRow) -> float:
        """When a create in doubt can be looked up, ledger time."""
        return (row.doubt_at or row.sent_at or 0.0) + self.settle_s


@dataclass(slots=True)
class Eligibility:
    """What may be sent and what not.

    Attributes:
        resend: operations in doubt that may be sent again → whether their first attempt certainly did not happen.
        withheld: operations that are not sent.
        unproven: set if creates wait for a list that is proven complete.
    """

    resend: dict[int, bool] = field(default_factory=dict)
    withheld: dict[int, Withheld] = field(default_factory=dict)
    unproven: CoverageError | None = None


def claimed_elsewhere(plan: Plan, ledger: PlanLedger, rules: PushRules) -> dict[int, Withheld]:
    """Operations whose record another operation is writing, or has written a moment ago."""
    settled = ledger.now() - rules.settle_s
    listed_since, unlisted_since = (-math.inf, settled) if rules.accept_unproven else (settled, 0.0)
    claims = ledger.claimed(settled, listed_since, unlisted_since)
    return {number: _claimed(claim, str(plan.folder)) for number, claim in claims.items()}


def _claimed(claim: Claim, own_folder: str) -> Withheld:
    plan = "an earlier operation of this plan" if claim.folder == own_folder else f"the plan {claim.folder}"
    if claim.state == "confirmed":
        return Withheld("exists_now", f"{plan} has created this record: pull, and plan this file again")
    if claim.state == "abandoned":
        advice = "look on the platform, then push that plan with --landed or --not-landed, "
        advice += "or if it is gone and the record does not exist, this one with --accept-unproven"
        return Withheld("blocked", f"{plan} may have created this record: {advice}")
    return Withheld("blocked", f"{plan} is writing this record: finish that plan, pull, and plan this file again")


def assess_creates(plan: Plan, ledger: PlanLedger, rules: PushRules, read_customers: ReadCustomers) -> Eligibility:
    """Settles the doubts that can be settled, and decides what may be sent; nothing is in flight.

    `read_customers` is called at most once, and only if customers are to be created or looked up.

    Raises:
        AccessError, PlatformError, Stopped: the customers could not be read.
    """
    eligibility = Eligibility(withheld=claimed_elsewhere(plan, ledger, rules))
    withheld = eligibility.withheld
    doubts = {row.id: row for row in ledger.rows("in_doubt")}
    planned = ledger.ids("planned") - set(withheld)
    due: set[int] = set()
    for row in doubts.values():
        if rules.settles_at(row) <= ledger.now():
            due.add(row.id)
        else:
            withheld[row.id] = Withheld("in_doubt", rules.lookup_from(row))
    if not due and not planned:
        return eligibility
    operations = {op.id: op for op in plan.operations() if op.id in due}
    keys = {op.id: search_keys(op.keys) for op in plan.operations() if op.id in due or op.id in planned}
    listing = read_customers({key for own_keys in keys.values() for key in own_keys})
    changes = [
        change
        for number in sorted(due)
        if (change := _look_up(operations[number], doubts[number], listing, rules, eligibility))
    ]
    ledger.commit(changes, ledger.now())
    for number in planned:
        if any(listing.records.get(key) for key in keys[number]):
            withheld[number] = Withheld("exists_now", _EXISTS)
        elif any(key in listing.quarantined_keys for key in keys[number]):
            withheld[number] = Withheld("exists_now", f"{_EXISTS}, in a quarantined row of the list: {_QUARANTINE}")
    left = {number for number in planned - set(withheld) if not listing.is_absent(keys[number])}
    if left and not rules.accept_unproven:
        reason, hint = _unproven(listing, {name for number in left if (name := listing.numeric_field(keys[number]))})
        message = f"{reason}: creates that may exist already were not sent ({len(left)})"
        eligibility.unproven = CoverageError(message, hint)
        withheld |= dict.fromkeys(left, Withheld("blocked", f"{reason}: the customer may exist already"))
    return eligibility


def _unproven(listing: CustomerListing, numeric_fields: Set[str]) -> tuple[str, str]:
    """Why creates wait, and what to do. Waiting does not help with a quarantined row or a number."""
    reasons, hints = [], []
    if not listing.is_whole:
        reasons.append(f"the list of customers is {listing.verdict}")
        hints.append("Push again when the list changes less.")
    if listing.unidentified:
        rows = "1 quarantined row" if listing.unidentified == 1 else f"{listing.unidentified} quarantined rows"
        reasons.append(f"{rows} of the list of customers may be any customer")
        hints.append(f"Have it corrected on the platform; {_QUARANTINE}.")
    if numeric_fields:
        reasons.append(f"the list of customers has numbers as {' and '.join(sorted(numeric_fields))}")
        hints.append("Have the codes corrected on the platform: as numbers they have lost their leading zeros.")
    hints.append("Or push with --accept-unproven if you know that the customers do not exist.")
    return " and ".join(reasons), " ".join(hints)


def _look_up(
    operation: PlannedOperation, row: LedgerRow, listing: CustomerListing, rules: PushRules, eligibility: Eligibility
) -> StateChange | None:
    """What the list shows about a create in doubt that has settled."""

    def withhold(reason: str) -> None:
        eligibility.withheld[operation.id] = Withheld("in_doubt", reason)

    def conflict(words: str, remote_id: str | None = None) -> StateChange:
        return StateChange(operation.id, "conflict", row.status, row.code, row.request_id, words, remote_id=remote_id)

    matches = listing.find(operation.keys)
    if any(key in listing.quarantined_keys for key in search_keys(operation.keys)):
        withhold(f"a quarantined row of the list has its erpCode, email or loginCode ({_QUARANTINE}); {ASK_PERSON}")
    elif len(matches) > 1:
        return conflict(f"the platform has {len(matches)} customers with its erpCode, email or loginCode")
    elif matches:
        remote_id = str(matches[0]["id"])
        if fields := differing_fields(operation.body, matches[0], rules.country):
            words = f"the platform has a customer with its key, but {', '.join(fields)} differ"
            return conflict(words, remote_id)
        return StateChange(operation.id, "confirmed", row.status, words="found on the platform", remote_id=remote_id)
    elif not search_keys(operation.keys):
        withhold(f"it has no key to look it up by: {ASK_PERSON}")
    elif not listing.is_whole:
        withhold(f"not found, but the list of customers is {listing.verdict}")
    elif name := listing.numeric_field(search_keys(operation.keys)):
        withhold(f"not found, but the list has a number as {name} that may be this customer's; {ASK_PERSON}")
    elif listing.unidentified:
        withhold(f"not found, but a quarantined row of the list may be this customer ({_QUARANTINE})")
    elif rules.resend:
        eligibility.resend[operation.id] = True
    else:
        withhold("not found on the platform; --resend sends it again")
    return None


def assess_updates(plan: Plan, ledger: PlanLedger, rules: PushRules) -> Eligibility:
    """Eligibility of operations that cannot be looked up: variants, subcategories, warehouses; none is in flight."""
    eligibility = Eligibility(withheld=claimed_elsewhere(plan, ledger, rules) | _superseded(ledger))
    doubts = ledger.ids("in_doubt")
    for operation in plan.operations() if doubts else ():
        if operation.id in doubts and rules.is_repeatable(operation):
            eligibility.resend[operation.id] = False
        elif operation.id in doubts:
            eligibility.withheld[operation.id] = Withheld("in_doubt", ASK_PERSON)
    return eligibility


def _superseded(ledger: PlanLedger) -> dict[int, Withheld]:
    """Updates that would undo those of a later plan."""
    others = ledger.superseded()
    withheld: dict[int, Withheld] = {}
    for row in ledger.rows("planned") if others else ():
        variant = variant_ids(row.path)
        later = [others[(*variant, name)] for name in row.fields if variant and (*variant, name) in others]
        if later:
            reason = f"the plan {later[0]} has changed these fields since: plan this file again"
            withheld[row.id] = Withheld("blocked", reason)
    return withheld


def next_step(operation: PlannedOperation, row: LedgerRow, rules: PushRules) -> str:
    """What settles an operation in doubt: a lookup, a repeat, or a person."""
    if row.state == "conflict":
        return ASK_PERSON
    if search_keys(operation.keys):
        return rules.lookup_from(row)
    return "push again: it will be sent again" if rules.is_repeatable(operation) else ASK_PERSON


class UnsettledUpdates:
    """Variant updates of a host that may still arrive: those in the ledger, and doubts of this push as they arise.

    Args:
        ledger: of the plan that is pushed.
        since: ledger time after which a doubt counts, even if it ended.
    """

    def __init__(self, ledger: PlanLedger, since: float) -> None:
        self._plan_id, self._folder = ledger.plan_id, ledger.folder
        self._updates: dict[str, list[UnsettledUpdate]] = defaultdict(list)
        for update in ledger.unsettled(since):
            self._updates[update.path].append(update)

    def add(self, operation: PlannedOperation) -> None:
        """From now on, an update of this push that is in doubt blocks others on the same fields."""
        if operation.method == "PATCH":
            fields, path = frozenset(operation.body), operation.path
            self._updates[path].append(UnsettledUpdate(self._plan_id, self._folder, operation.id, path, fields, True))

    def conflict(self, operation: PlannedOperation) -> str | None:
        """Why an update must wait: another one on the same fields may still arrive and undo it. None if it need not."""
        for other in self._updates.get(operation.path, ()):
            if (other.plan_id, other.id) != (self._plan_id, operation.id) and other.fields & set(operation.body):
                state = "is in doubt" if other.is_open else "was in doubt and may still arrive"
                return f"operation {other.id} of the plan {other.folder} on the same fields {state}"
        return None


def format_time(seconds: float) -> str:
    """A time, for people."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
