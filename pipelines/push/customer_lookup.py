"""Creates of customers: doubts are looked up in the platform's list, and nothing is created that exists by now.

In: a plan, its ledger, and the list read now. Out: changes of state in the ledger, and the eligibility of the rest.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from pipelines.ledger.model import LedgerRow, StateChange
from pipelines.plan.model import Plan, PlannedOperation
from pipelines.push.comparison import differing_fields
from pipelines.push.eligibility import ASK_PERSON, Eligibility, PushRules, Withheld, claimed_elsewhere
from pipelines.push.listing import CustomerListing, ReadCustomers, search_keys
from pipelines.push.plan_ledger import PlanLedger
from sources.errors import CoverageError

_EXISTS: Final = "the platform has a customer with this erpCode, email or loginCode"
_QUARANTINE: Final = "after `orderbridge pull customers`, ops.quarantine has the reason and the quarantine file the row"


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
