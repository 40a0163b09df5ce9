"""What a list of the platform's customers shows about creates in doubt, whether their plan is still there or not.

In: doubts from the ledger, with the operation where the plan's folder has it, and a listing. Out: a change of state, a
reason why a doubt remains, or that the customer is absent. Of a lost plan the ledger has only hashes of the keys: the
keys in the list are hashed and compared, values are not.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from orderbridge.pipelines.ledger.keys import key_hashes, loose_code, salted, spelling_hashes
from orderbridge.pipelines.ledger.model import LedgerRow, State, StateChange
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import Plan, PlannedOperation
from orderbridge.pipelines.push.listing import (
    ANY_SPELLING,
    LIST_KEYS,
    CustomerListing,
    Key,
    any_spelling,
    differing_fields,
    search_keys,
)
from orderbridge.pipelines.push.next_steps import Action, NextSteps
from orderbridge.pipelines.push.outcome import is_refusal
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.sources.errors import UsageError
from orderbridge.sources.words import VERDICTS

UNIDENTIFIED: Final = "in quarantine, or has a number as a code"
QUARANTINE: Final = "after `orderbridge pull customers`, ops.quarantine has the reason and the quarantine file the row"
_CODES: Final = [name for name in LIST_KEYS if name != "email"]
_ABSENT: Final = "not created: absent from the complete list of customers after the settle time"


class Remains(NamedTuple):
    """Why the outcome of a create remains unknown, and what ends that."""

    reason: str
    action: Action


@dataclass(frozen=True, slots=True)
class Doubt:
    """A customer's create in doubt.

    Attributes:
        ledger: of its plan.
        operation: None if the plan is lost.
        hashes: of its keys, as the ledger has them; empty with an operation.
        is_orphan: no import goes on with its plan, which is lost, or whose file was changed since.
    """

    ledger: PlanLedger
    row: LedgerRow
    operation: PlannedOperation | None = None
    hashes: Set[bytes] = frozenset()
    is_orphan: bool = False


def intact_plan(plan_id: str, folder: str) -> Plan | None:
    """The plan that the ledger has with this id, if its folder is as it was."""
    try:
        plan = Plan(Path(folder))
    except UsageError:
        return None
    return plan if plan.manifest.plan_id == plan_id else None


def steps_of_plan(plan_id: str, folder: str) -> NextSteps:
    """The next steps of a plan that the ledger has, whether its folder is there or not."""
    plan = intact_plan(plan_id, folder)
    return NextSteps.of_lost(plan_id) if plan is None else NextSteps.of(plan)


def doubts_of(ledger: PlanLedger, settled: float, plan: Plan | None = None) -> list[Doubt]:
    """The creates in doubt of a plan that have settled at a ledger time; it is opened, if it is not lost."""
    rows = {
        row.id: row
        for row in ledger.rows("in_doubt")
        if (row.doubt_at or row.sent_at or 0.0) <= settled
    }
    if not rows:
        return []
    plan = plan or intact_plan(ledger.plan_id, ledger.folder)
    if plan is None:
        return [
            Doubt(ledger, row, hashes=ledger.keys(row.id), is_orphan=True) for row in rows.values()
        ]
    is_orphan = plan.manifest.changed_file() is not None
    return [Doubt(ledger, rows[op.id], op, is_orphan=is_orphan) for op in plan.operations(rows)]


class SoughtKeys(Container[Key]):
    """The keys by which doubts, and further operations, are looked up; those of lost plans as hashes."""

    def __init__(
        self, ledger: Ledger, host: str, doubts: Sequence[Doubt], more: Iterable[Key] = ()
    ) -> None:
        own = [
            key for doubt in doubts if doubt.operation for key in search_keys(doubt.operation.keys)
        ]
        self._keys = {*own, *any_spelling(own), *more}
        self._hashes = {key for doubt in doubts for key in doubt.hashes}
        self._salt = ledger.salt
        self._host = host

    def __contains__(self, key: object) -> bool:
        return key in self._keys or bool(self._hashes and self._hashes & self.hashes(key))

    def hashes(self, key: object) -> set[bytes]:
        """The hashes of a key, as the ledger has them."""
        name, value = key if isinstance(key, tuple) else ("", "")
        field = name.removesuffix(ANY_SPELLING)
        if field not in LIST_KEYS:
            return set()
        hashes = key_hashes if name == field else spelling_hashes
        return {salted(self._salt, one) for one in hashes(self._host, field, value)}

    def keys_of(self, doubt: Doubt, listing: CustomerListing) -> list[Key]:
        """The keys of a doubt; of a lost plan those that are in the list, in another spelling if none is as it was."""
        if doubt.operation is not None:
            return search_keys(doubt.operation.keys)
        listed = [
            key
            for key in (*listing.records, *listing.quarantined_keys)
            if doubt.hashes & self.hashes(key)
        ]
        return [key for key in listed if key[0] in LIST_KEYS] or listed


def look_up(
    doubt: Doubt, sought: SoughtKeys, listing: CustomerListing, country: str | None
) -> StateChange | Remains | None:
    """What the list shows about a create in doubt that has settled.

    Returns:
        The change of state; or why the doubt remains; None if the customer is absent: it was not created. One that is
        absent and was refused is rejected: it is never sent again by itself.
    """
    keys = sought.keys_of(doubt, listing)
    if any(key in listing.quarantined_keys for key in keys):
        reason = "a quarantined row of the list has its erpCode, email or loginCode"
        return Remains(f"{reason} ({QUARANTINE})", "answer")
    matches = listing.find(keys) or listing.find(any_spelling(keys))
    if len(matches) > 1:
        words = f"the platform has {len(matches)} customers with its erpCode, email or loginCode"
        return _conflict(doubt.row, words)
    if matches:
        return _found(doubt, matches[0], country)
    if doubt.operation is not None and not keys:
        return Remains("it has no key to look it up by", "answer")
    if not listing.is_whole:
        verdict = VERDICTS[listing.verdict]
        return Remains(f"not found, but the list of customers is {verdict}", "again")
    if listing.unidentified:
        reason = f"not found, but a row of the list that is {UNIDENTIFIED} may be this customer"
        return Remains(reason, "answer")
    return _refused(doubt.row) if is_refusal(doubt.row.status) else None


def _found(doubt: Doubt, customer: Mapping[str, Any], country: str | None) -> StateChange:
    """The create has arrived, if the customer that has its keys has its values as well."""
    row = doubt.row
    remote_id = str(customer["id"])
    confirmed = StateChange(row.id, "confirmed", row.status, remote_id=remote_id)
    operation = doubt.operation
    if operation is None:
        words = "found on the platform by its keys; the plan is gone, so no value was compared"
        return confirmed._replace(words=words)
    fields = differing_fields(operation.body, customer, country)
    spelt = [
        name
        for name in fields
        if name in _CODES and _is_same_code(operation.body[name], customer[name])
    ]
    others = [name for name in fields if name not in spelt]
    if others:
        words = f"the platform has a customer with its key, but {', '.join(others)} differ"
        return _conflict(row, words)._replace(remote_id=remote_id)
    more = f"; {', '.join(spelt)} in another spelling there" if spelt else ""
    return confirmed._replace(words=f"found on the platform{more}")


def _conflict(row: LedgerRow, words: str) -> StateChange:
    return StateChange(row.id, "conflict", row.status, row.code, row.request_id, words)


def _refused(row: LedgerRow) -> StateChange:
    """The end of a create that was refused, and is absent."""
    refused = row.words or f"status {row.status}"
    words = f"{refused}; {_ABSENT}"
    return StateChange(row.id, "rejected", row.status, row.code, row.request_id, words, clear=True)


def not_created(doubt: Doubt) -> StateChange:
    """The end of a doubt of another plan about what is absent: that plan shall not send it again by itself."""
    # a lost plan sends nothing until it is made anew
    to: State = "planned" if doubt.operation is None else "abandoned"
    return StateChange(doubt.row.id, to, doubt.row.status, words=_ABSENT, clear=True)


def _is_same_code(sent: str, found: str | None) -> bool:
    return loose_code(sent) == loose_code(found or "")
