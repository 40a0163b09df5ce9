"""Which operations of a plan may be sent now, which must not, and why.

In: the ledger, the plan, and for customers a fresh list of the platform. Out: changes of state for doubts that can be
settled, operations that may be sent again, and a reason for each one withheld. What cannot be known stays in doubt
(docs/push.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

from pipelines.ledger.keys import variant_ids
from pipelines.ledger.model import Claim, LedgerRow, UnsettledUpdate
from pipelines.plan.model import Plan, PlannedOperation
from pipelines.push.listing import search_keys
from pipelines.push.plan_ledger import PlanLedger
from sources.errors import CoverageError
from sources.kinds import additive_fields

ASK_PERSON: Final = (
    "look on the platform, then pass --landed, --not-landed or --abandon with the operation's number, "
    "or --answers with this file and its column `answer` filled in"
)


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
        accept_unproven: whether creates are sent although the list of customers is not proven complete.
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
    claims = ledger.claimed(settled, -math.inf if rules.accept_unproven else settled)
    return {number: _claimed(claim, str(plan.folder)) for number, claim in claims.items()}


def _claimed(claim: Claim, own_folder: str) -> Withheld:
    plan = "an earlier operation of this plan" if claim.folder == own_folder else f"the plan {claim.folder}"
    if claim.state == "confirmed":
        return Withheld("exists_now", f"{plan} has created this record: pull, and plan this file again")
    return Withheld("blocked", f"{plan} is writing this record: finish that plan, pull, and plan this file again")


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


def conflicting_update(
    operation: PlannedOperation, plan_id: str, unsettled: Mapping[str, list[UnsettledUpdate]]
) -> str | None:
    """Why a variant update must wait: another one of the host, on the same fields, may still arrive and undo it."""
    for other in unsettled.get(operation.path, ()):
        if (other.plan_id, other.id) != (plan_id, operation.id) and other.fields & set(operation.body):
            state = "is in doubt" if other.is_open else "was in doubt and may still arrive"
            return f"operation {other.id} of the plan {other.folder} on the same fields {state}"
    return None


def format_time(seconds: float) -> str:
    """A time, for people."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
