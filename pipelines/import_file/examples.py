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
from orderbridge.sources.texts import Texts

SHOWN: Final = 5


def examples(plan: Plan, texts: Texts) -> list[str]:
    """The first operations of a plan that are left, then the first differences that it cannot send: five of each."""
    changes, left = first_changes(plan, SHOWN)
    lines = [_line(one, texts) for one in changes]
    if left > SHOWN:
        file = plan.folder / OPERATIONS_FILE
        lines.append(texts("example.more", count=left - SHOWN, file=file))
    for row in first_differences(plan, SHOWN):
        outcome = texts(f"example.{row['outcome']}")
        words = difference_words(row, texts, row["field"])
        lines.append(texts("example.line", line=row["line"], what=outcome, values=words))
    return lines


def _line(change: PlannedChange, texts: Texts) -> str:
    """A request with its line, and of an update the values that it replaces."""
    values = ", ".join(_value(one, texts) for one in change.values)
    what = change.record or texts("example.new")
    line = "–" if change.line is None else change.line
    return texts("example.line", line=line, what=what, values=values)


def _value(change: ValueChange, texts: Texts) -> str:
    name = change.field
    new = _text(change.new)
    old = _text(change.old)
    match change.how:
        case "again":
            return texts("example.again", field=name, value=new)
        case "last_sent":  # orders lower what the platform has
            return texts("example.last_sent", field=name, value=new, old=old)
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
