"""A few lines of a plan as a person reads them: what is new, and each value that changes, old → new.

In: a plan and the ledger. Out: lines of text with values of the file, for the terminal of the person who is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from orderbridge.pipelines.ledger.model import FINAL_STATES
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import (
    DIFFERENCES_FILE,
    OPERATIONS_FILE,
    Plan,
    PlannedOperation,
)
from orderbridge.pipelines.plan.outcomes import DIFFERENCE_SCHEMA
from orderbridge.pipelines.plan.replaced import confirmed_fields
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.sources.files.formulas import people_rows
from orderbridge.sources.kinds import KINDS, NOTIFICATION, increment_fields
from orderbridge.sources.settings import ledger_path

SHOWN: Final = 5


def examples(plan: Plan) -> list[str]:
    """The first operations of a plan that are left, then the first differences that it cannot send: five of each."""
    before: dict[tuple[str, str], Any] = {}
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        is_begun = ledger.pushes(plan.manifest.plan_id) is not None
        final = PlanLedger(ledger, plan.manifest.plan_id).ids(*FINAL_STATES) if is_begun else set()
        operations = list(islice((one for one in plan.operations() if one.id not in final), SHOWN))
        if KINDS[plan.kind].is_update:
            rows = confirmed_fields(ledger, plan.manifest.host).to_pylist()
            paths = {operation.path for operation in operations}
            before = {
                (row["key"], row["field"]): json.loads(row["value"])
                for row in rows
                if row["key"] in paths
            }
    increments = increment_fields(plan.manifest.semantics)
    lines = [_operation(operation, before, increments) for operation in operations]
    if (more := plan.manifest.operations - len(final) - SHOWN) > 0:
        lines.append(f"… and {more} more: the values are in {plan.folder / OPERATIONS_FILE}")
    return lines + list(_differences(plan))


def _operation(
    operation: PlannedOperation, before: dict[tuple[str, str], Any], increments: frozenset[str]
) -> str:
    """An operation with its line, and of an update the values that it replaces."""
    parts = []
    for name, value in operation.body.items():
        if name == NOTIFICATION:
            continue
        old, sign = before.get((operation.path, name)), ""
        if name in increments:
            old, sign = None, "+" if value > 0 else ""
        if old == value:
            parts.append(f"{name} {_text(value)}, sent again")
        elif name == "stock" and old is not None:  # orders lower what the platform has
            parts.append(f"stock {_text(value)} (last sent: {_text(old)})")
        else:
            parts.append(
                f"{name} {_text(old)} → {_text(value)}"
                if old is not None
                else f"{name} {sign}{_text(value)}"
            )
    what = operation.path.strip("/") if operation.method == "PATCH" else "new"
    return f"line {operation.lines[0] if operation.lines else '–'}: {what}: {', '.join(parts)}"


def _text(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    if isinstance(value, dict):
        return f"({', '.join(f'{name} {_text(one)}' for name, one in value.items())})"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _differences(plan: Plan) -> Iterator[str]:
    """Records that exist with other values, which a person has to change."""
    for row in islice(people_rows(plan.folder / DIFFERENCES_FILE, DIFFERENCE_SCHEMA.names), SHOWN):
        yield f"line {row['line']}: {row['outcome'].replace('_', ' ')}: {difference_words(row)}"


def difference_words(row: Mapping[str, str]) -> str:
    """Both values of a row of `differences.csv`."""
    return (
        f"{row['field']} {row['platform_value']} on the platform, {row['file_value']} in the file"
    )
