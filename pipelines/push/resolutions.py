"""Manual answers about operations in doubt: landed, not landed, or abandoned.

In: ids from options. Out: changes of state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from orderbridge.pipelines.ledger.model import StateChange
from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.rules import PushRules
from orderbridge.sources.errors import UsageError
from orderbridge.sources.words import format_time

ABANDONED: Final = "given up: not known whether it arrived"
_NEVER_SENT: Final = "given up before it was sent"
ARRIVED: Final = "a person reported that it arrived"
_ABSENT: Final = "a person reported that it did not arrive"


@dataclass(frozen=True, slots=True)
class Answers:
    """Ids of operations by answer."""

    landed: frozenset[int] = frozenset()
    not_landed: frozenset[int] = frozenset()
    abandon: frozenset[int] = frozenset()


def answer_changes(
    plan: Plan | None, ledger: PlanLedger, rules: PushRules, answers: Answers
) -> list[StateChange]:
    """The changes of state that a person asks for. An update that arrived leaves its values as if confirmed.

    `plan` is None if it is lost: then the values of its updates remain unknown.

    Raises:
        UsageError: an operation is not in doubt, has two answers, or may still arrive.
    """
    never_sent = {row.id for row in ledger.rows("abandoned") if row.doubt_at is None}
    abandon = answers.abandon - never_sent  # these have ended by themselves
    _check_answers(ledger, rules, replace(answers, abandon=abandon))
    in_doubt = ledger.ids("in_doubt", "conflict")
    values = (
        {op.id: rules.confirmed_values(op) for op in plan.operations(answers.landed)}
        if plan is not None
        else {}
    )
    changes: list[StateChange] = []
    for number in sorted(answers.landed):
        changes.append(
            StateChange(number, "confirmed", words=ARRIVED, values=values.get(number, {}))
        )
    for number in sorted(answers.not_landed):
        changes.append(StateChange(number, "planned", words=_ABSENT, clear=True))
    for number in sorted(abandon):
        words = ABANDONED if number in in_doubt else _NEVER_SENT
        changes.append(StateChange(number, "abandoned", words=words))
    return changes


def _check_answers(ledger: PlanLedger, rules: PushRules, answers: Answers) -> None:
    """Each operation has one answer, and one that its state allows. Raises UsageError."""
    named = [*answers.landed, *answers.not_landed, *answers.abandon]
    if len(named) != len(set(named)):
        raise UsageError("an operation is named twice", "Give each operation only one answer.")
    in_doubt = {row.id: row for row in ledger.rows("in_doubt", "conflict")}
    given_up = {
        row.id: row
        for row in ledger.rows("abandoned")
        if row.method == "POST" and row.doubt_at is not None
    }
    may_be_answered = {
        *in_doubt,
        *(given_up.keys() - answers.abandon),
        *(ledger.ids("planned") & answers.abandon),
    }
    unknown = sorted(set(named) - may_be_answered)
    if unknown:
        raise UsageError(
            f"not in doubt: operation {', '.join(map(str, unknown))}",
            "results/in_doubt.csv has those that are.",
        )
    for number in sorted(answers.not_landed):
        settles_at = rules.settles_at(in_doubt.get(number) or given_up[number])
        if settles_at > ledger.now():
            again = format_time(rules.wall_time(settles_at))
            raise UsageError(
                f"operation {number} may still arrive",
                f"Look again after {again}, then repeat this.",
            )
