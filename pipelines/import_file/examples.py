"""A few lines of a plan as a person reads them: what is new, and each value that changes, old → new.

In: a plan and the ledger. Out: lines of text with values of the file, for the terminal of the person who is asked.
"""

from __future__ import annotations

import json
from typing import Final

from orderbridge.pipelines.import_file.changes import (
    PlannedChange,
    ValueChange,
    first_changes,
    first_differences,
)
from orderbridge.pipelines.import_file.result import difference_words
from orderbridge.pipelines.plan.model import OPERATIONS_FILE, Plan

SHOWN: Final = 5


def examples(plan: Plan) -> list[str]:
    """The first operations of a plan that are left, then the first differences that it cannot send: five of each."""
    changes, left = first_changes(plan, SHOWN)
    lines = [_line(one) for one in changes]
    if left > SHOWN:
        lines.append(
            f"… and {left - SHOWN} more: the values are in {plan.folder / OPERATIONS_FILE}"
        )
    for row in first_differences(plan, SHOWN):
        outcome = row["outcome"].replace("_", " ")
        lines.append(f"line {row['line']}: {outcome}: {difference_words(row)}")
    return lines


def _line(change: PlannedChange) -> str:
    """A request with its line, and of an update the values that it replaces."""
    line = "–" if change.line is None else change.line
    return f"line {line}: {change.record or 'new'}: {', '.join(map(_value, change.values))}"


def _value(change: ValueChange) -> str:
    name, new, old = change.field, _text(change.new), _text(change.old)
    match change.how:
        case "again":
            return f"{name} {new}, sent again"
        case "last_sent":  # orders lower what the platform has
            return f"{name} {new} (last sent: {old})"
        case "changed":
            return f"{name} {old} → {new}"
        case "added" if change.new > 0:
            return f"{name} +{new}"
        case _:
            return f"{name} {new}"


def _text(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    if isinstance(value, dict):
        return f"({', '.join(f'{name} {_text(one)}' for name, one in value.items())})"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
