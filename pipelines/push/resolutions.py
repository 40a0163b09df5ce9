"""What a person says about operations in doubt: they arrived, they did not, or they are abandoned."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from pipelines.ledger.model import StateChange
from pipelines.push.eligibility import PushRules, format_time
from pipelines.push.plan_ledger import PlanLedger
from sources.errors import UsageError

ABANDONED: Final = "abandoned: not known whether it arrived"


def manual_resolutions(
    ledger: PlanLedger, rules: PushRules, landed: Set[int], not_landed: Set[int], abandon: Set[int]
) -> list[StateChange]:
    """The changes of state that a person asks for.

    Args:
        ledger: of the plan.
        rules: of this push.
        landed: ids of operations that arrived.
        not_landed: of those that did not.
        abandon: of those to give up.

    Raises:
        UsageError: an operation is not in doubt, is named twice, or may still arrive.
    """
    rows = {row.id: row for row in ledger.rows("in_doubt", "conflict")}
    named = [*landed, *not_landed, *abandon]
    if len(named) != len(set(named)):
        raise UsageError("an operation is named twice", "Name each operation in only one of the options.")
    unknown = sorted(set(named) - set(rows) - (abandon & ledger.ids("planned")))
    if unknown:
        raise UsageError(
            f"not in doubt: operation {', '.join(map(str, unknown))}", "results/in_doubt.csv has those that are."
        )
    for number in sorted(not_landed):
        settles_at = rules.settles_at(rows[number])
        if rows[number].state == "in_doubt" and settles_at > ledger.now():
            again = format_time(rules.wall_time(settles_at))
            raise UsageError(f"operation {number} may still arrive", f"Look again after {again}, then repeat this.")
    return [
        *(StateChange(number, "confirmed", words="a person reported that it arrived") for number in sorted(landed)),
        *(
            StateChange(number, "planned", words="a person reported that it did not arrive", clear=True)
            for number in sorted(not_landed)
        ),
        *(
            StateChange(number, "abandoned", words=ABANDONED if number in rows else "abandoned before it was sent")
            for number in sorted(abandon)
        ),
    ]
