"""Where a plan stands before it is sent: what is settled of the doubts, what may go, what must not.

In: the ledger's rows, the plan, a fresh list of the customers where one is needed. Out: changes of state, the
operations that may be sent again, and for each that is held back the reason. What cannot be known stays in doubt
(design §8).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

from pipelines.ledger.store import variant_of
from pipelines.plan.model import Plan, PlannedOperation
from pipelines.push.listing import Key, Listing, differing, keys_of
from pipelines.push.plan_ledger import LedgerRow, PlanLedger, StateChange, UnsettledUpdate
from sources.errors import CoverageError, UsageError
from sources.kinds import KINDS, additive_fields

HeldAs = Literal["blocked", "exists_now", "in_doubt"]
Look = Callable[[Set[Key]], Listing]
"""Reads the platform's customers now, for these keys."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a push may do.

    Attributes:
        settle_s: seconds until a write whose answer was lost has landed, if ever.
        resend: a create that is surely absent after that time is sent again.
        accept_unproven: creates are sent though the list of customers is not proven complete.
        added: the fields of a variant that a repeat would or may add to.
        changes: those of them whose values are changes: what stands afterwards is unknown.
    """

    settle_s: float
    resend: bool
    accept_unproven: bool = False
    added: frozenset[str] = additive_fields({})
    changes: frozenset[str] = frozenset()

    def repeatable(self, operation: PlannedOperation) -> bool:
        """Whether sending it twice does what sending it once does."""
        return operation.repeatable and operation.method == "PATCH" and not self.added & set(operation.body)


@dataclass(slots=True)
class Standing:
    """What may go and what not.

    Attributes:
        again: operations in doubt that may be sent again → whether nothing of the first attempt can have happened.
        held: operations that are not sent: as what, and why.
        unproven: set where creates wait for a list that is proven complete.
    """

    again: dict[int, bool] = field(default_factory=dict)
    held: dict[int, tuple[HeldAs, str]] = field(default_factory=dict)
    unproven: CoverageError | None = None


def stand(plan: Plan, book: PlanLedger, rules: Rules, look: Look, clock: Callable[[], float]) -> Standing:
    """Settles what can be settled, and says what may be sent.

    Args:
        plan: checked.
        book: recovered: nothing is in flight.
        rules: of this push.
        look: called at most once, and only where customers are to be created or looked up.
        clock: epoch seconds.

    Raises:
        AccessError, PlatformError, Stopped: the customers could not be read.
    """
    standing = Standing()
    now = clock()
    settled = now - rules.settle_s
    taken = book.taken(settled, -math.inf if rules.accept_unproven else settled)
    words = "plan {} has this record in hand: finish that one, pull, and plan this file again"
    standing.held |= {number: ("blocked", words.format(other)) for number, other in taken.items()}
    doubtful = {row.id: row for row in book.rows("in_doubt")}
    if KINDS[plan.kind].is_listed:
        _customers(plan, book, rules, look, clock, doubtful, standing)
        return standing
    standing.held |= _overtaken(book)
    for operation in plan.operations() if doubtful else ():
        if operation.id in doubtful:
            if rules.repeatable(operation):
                standing.again[operation.id] = False
            else:
                standing.held[operation.id] = ("in_doubt", _PERSON)
    return standing


def _overtaken(book: PlanLedger) -> dict[int, tuple[HeldAs, str]]:
    """Updates that would put back what a later plan has changed."""
    others = book.overtaken()
    held: dict[int, tuple[HeldAs, str]] = {}
    for row in book.rows("planned") if others else ():
        variant = variant_of(row.path)
        later = [others[(*variant, name)] for name in row.fields if variant and (*variant, name) in others]
        if later:
            held[row.id] = ("blocked", f"plan {later[0]} has changed these fields since; make the plan again")
    return held


GIVEN_UP: Final = "given up: not known whether it landed"
_PERSON: Final = "look on the platform, then say --landed, --not-landed or --abandon with the operation's number"


def _customers(
    plan: Plan,
    book: PlanLedger,
    rules: Rules,
    look: Look,
    clock: Callable[[], float],
    doubtful: Mapping[int, LedgerRow],
    standing: Standing,
) -> None:
    """Creates: what is in doubt is looked for, and nothing is created that is there by now."""
    now = clock()
    planned = book.ids("planned") - set(standing.held)
    due: set[int] = set()
    for row in doubtful.values():
        settles_at = (row.doubt_at or 0.0) + rules.settle_s
        if settles_at <= now:
            due.add(row.id)
        else:
            standing.held[row.id] = ("in_doubt", _looked_for(settles_at))
    if not due and not planned:
        return
    asked = {op.id: op for op in plan.operations() if op.id in due}
    keys = {op.id: keys_of(op.keys) for op in plan.operations() if op.id in due or op.id in planned}
    listing = look({key for found in keys.values() for key in found})
    changes = [
        change
        for number in sorted(due)
        if (change := _looked_up(asked[number], doubtful[number], listing, rules, standing))
    ]
    book.commit(changes, clock())
    for number in planned:
        if any(listing.found.get(key) for key in keys[number]):
            standing.held[number] = ("exists_now", _EXISTS)
        elif any(key in listing.refused for key in keys[number]):
            standing.held[number] = ("exists_now", f"{_EXISTS}, in a row of its list that was refused: {_REFUSED}")
    if not listing.complete and not rules.accept_unproven and (left := planned - set(standing.held)):
        why, hint = _unproven(listing)
        standing.unproven = CoverageError(f"{why}: creates that may be there already were not sent ({len(left)})", hint)
        standing.held |= dict.fromkeys(left, ("blocked", f"{why}: the customer may be there already"))


_EXISTS: Final = "the platform has a customer with this erpCode, email or loginCode"
_REFUSED: Final = "why stands in ops.quarantine, the row in the quarantine file, after: orderbridge pull customers"


def _unproven(listing: Listing) -> tuple[str, str]:
    """Why creates wait, and what to do: a row that is refused stays so at any time of the day."""
    why, hints = [], []
    if not listing.whole:
        why.append(f"the list of customers is {listing.verdict}")
        hints.append("Run the push again at a quieter time.")
    if listing.untold:
        rows = "1 row" if listing.untold == 1 else f"{listing.untold} rows"
        why.append(f"{rows} of the list of customers, refused, may be anybody's")
        hints.append(f"Have it put right on the platform; {_REFUSED}.")
    hints.append("Or push with --accept-unproven, where you know that they are not there.")
    return " and ".join(why), " ".join(hints)


def _looked_up(
    operation: PlannedOperation, row: LedgerRow, listing: Listing, rules: Rules, standing: Standing
) -> StateChange | None:
    """What the list says of a create in doubt that has settled."""
    found = listing.by(operation.keys)
    if any(key in listing.refused for key in keys_of(operation.keys)):
        words = f"a row of the list that was refused has its erpCode, email or loginCode ({_REFUSED}); {_PERSON}"
        standing.held[operation.id] = ("in_doubt", words)
        return None
    if len(found) > 1:
        words = f"the platform has {len(found)} customers with its erpCode, email or loginCode"
        return StateChange(operation.id, "conflict", row.status, row.code, row.request_id, words)
    if found and (fields := differing(operation.body, found[0])):
        words = f"the platform has a customer with its key whose {', '.join(fields)} differ"
        return StateChange(
            operation.id, "conflict", row.status, row.code, row.request_id, words, remote_id=str(found[0]["id"])
        )
    if found:
        return StateChange(
            operation.id, "confirmed", row.status, words="found on the platform", remote_id=str(found[0]["id"])
        )
    if not keys_of(operation.keys):
        standing.held[operation.id] = ("in_doubt", f"it has nothing that it could be found by: {_PERSON}")
    elif not listing.whole:
        standing.held[operation.id] = ("in_doubt", f"not found, but the list of customers is {listing.verdict}")
    elif not listing.complete:
        words = f"not found, but a row of the list was refused and does not tell whose it is ({_REFUSED})"
        standing.held[operation.id] = ("in_doubt", words)
    elif rules.resend:
        standing.again[operation.id] = True
    else:
        standing.held[operation.id] = ("in_doubt", "not found on the platform; --resend sends it again")
    return None


def to_do(operation: PlannedOperation, row: LedgerRow, rules: Rules) -> str:
    """What settles an operation in doubt: a look-up, a repeat, or a person."""
    if row.state == "conflict":
        return _PERSON
    if keys_of(operation.keys):
        return _looked_for((row.doubt_at or row.sent_at or 0.0) + rules.settle_s)
    return "push again: it is sent again" if rules.repeatable(operation) else _PERSON


def in_the_way(operation: PlannedOperation, plan_id: str, unquiet: Mapping[str, list[UnsettledUpdate]]) -> str | None:
    """Why a variant update must wait: another one may still land on the same fields, and would undo it.

    Args:
        operation: to be sent.
        plan_id: its plan.
        unquiet: of this host, by path.
    """
    for other in unquiet.get(operation.path, ()):
        if (other.plan_id, other.id) != (plan_id, operation.id) and other.fields & set(operation.body):
            state = "is in doubt" if other.open else "was in doubt, and may still land"
            return f"operation {other.id} of plan {other.plan_id} on the same fields {state}"
    return None


def manual_resolutions(
    book: PlanLedger,
    rules: Rules,
    now: float,
    landed: Set[int],
    not_landed: Set[int],
    abandon: Set[int],
) -> list[StateChange]:
    """What a person says of operations in doubt.

    Raises:
        UsageError: one is not in doubt, is told twice, or may still land.
    """
    rows = {row.id: row for row in book.rows("in_doubt", "conflict")}
    told = [*landed, *not_landed, *abandon]
    if len(told) != len(set(told)):
        raise UsageError("an operation is told twice", "Name each operation in one of the three options.")
    unknown = sorted(set(told) - set(rows) - (abandon & book.ids("planned")))
    if unknown:
        raise UsageError(
            f"not in doubt: operation {', '.join(map(str, unknown))}", "results/in_doubt.csv has those that are."
        )
    for number in sorted(not_landed):
        settles_at = (rows[number].doubt_at or 0.0) + rules.settle_s
        if rows[number].state == "in_doubt" and settles_at > now:
            raise UsageError(
                f"operation {number} may still land", f"Look again from {at_words(settles_at)} on, then say so."
            )
    return [
        *(StateChange(number, "confirmed", words="a person said that it landed") for number in sorted(landed)),
        *(
            StateChange(number, "planned", words="a person said that it did not land", clear=True)
            for number in sorted(not_landed)
        ),
        *(
            StateChange(number, "abandoned", words=GIVEN_UP if number in rows else "given up before it was sent")
            for number in sorted(abandon)
        ),
    ]


def at_words(seconds: float) -> str:
    """An instant as people read it."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _looked_for(settles_at: float) -> str:
    return f"it can be looked for from {at_words(settles_at)} on: push again"
