"""Manual answers about operations in doubt: landed, not landed, or abandoned.

In: ids from options. Out: changes of state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from orderbridge.pipelines.ledger.model import StateChange
from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.push.eligibility import PushRules
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.sources.errors import UsageError
from orderbridge.sources.words import format_time

ABANDONED: Final = "given up: not known whether it arrived"


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
    rows = {row.id: row for row in ledger.rows("in_doubt", "conflict")}
    given_up = {
        row.id: row
        for row in ledger.rows("abandoned")
        if row.method == "POST" and row.doubt_at is not None
    }
    never_sent = {row.id for row in ledger.rows("abandoned") if row.doubt_at is None}
    landed, not_landed = sorted(answers.landed), sorted(answers.not_landed)
    abandon = sorted(answers.abandon - never_sent)  # these have ended by themselves
    named = [*landed, *not_landed, *abandon]
    if len(named) != len(set(named)):
        raise UsageError("an operation is named twice", "Give each operation only one answer.")
    may_be_answered = {
        *rows,
        *(given_up.keys() - answers.abandon),
        *(ledger.ids("planned") & answers.abandon),
    }
    if unknown := sorted(set(named) - may_be_answered):
        raise UsageError(
            f"not in doubt: operation {', '.join(map(str, unknown))}",
            "results/in_doubt.csv has those that are.",
        )
    for number in not_landed:
        settles_at = rules.settles_at(rows.get(number) or given_up[number])
        if settles_at > ledger.now():
            again = format_time(rules.wall_time(settles_at))
            raise UsageError(
                f"operation {number} may still arrive",
                f"Look again after {again}, then repeat this.",
            )
    values = (
        {op.id: rules.confirmed_values(op) for op in plan.operations(answers.landed)}
        if plan is not None
        else {}
    )
    arrived, absent = (
        f"a person reported that it {what}" for what in ("arrived", "did not arrive")
    )
    return [
        *(
            StateChange(number, "confirmed", words=arrived, values=values.get(number, {}))
            for number in landed
        ),
        *(StateChange(number, "planned", words=absent, clear=True) for number in not_landed),
        *(
            StateChange(
                number,
                "abandoned",
                words=ABANDONED if number in rows else "given up before it was sent",
            )
            for number in abandon
        ),
    ]
