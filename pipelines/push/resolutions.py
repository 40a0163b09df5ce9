"""Manual answers about operations in doubt: landed, not landed, or abandoned.

In: ids from options, or a file of answers: `in_doubt.csv` with its column `answer` filled in. Out: changes of state.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from pipelines.ledger.model import LedgerRow, StateChange
from pipelines.plan.model import RESULTS_FOLDER, Plan
from pipelines.push.eligibility import PushRules, format_time
from pipelines.push.plan_ledger import PlanLedger
from sources.errors import UsageError
from sources.files import Row, open_table

ABANDONED: Final = "abandoned: not known whether it arrived"
ANSWER_COLUMN: Final = "answer"
DOUBT_COLUMN: Final = "doubt"


@dataclass(frozen=True, slots=True)
class Answers:
    """Ids of operations by answer."""

    landed: frozenset[int] = frozenset()
    not_landed: frozenset[int] = frozenset()
    abandon: frozenset[int] = frozenset()

    def __or__(self, other: Answers) -> Answers:
        """Both."""
        return Answers(self.landed | other.landed, self.not_landed | other.not_landed, self.abandon | other.abandon)


_NAMES: Final = tuple(field.name for field in fields(Answers))


def doubt_id(plan: Plan, row: LedgerRow) -> str:
    """Identifies a doubt in `in_doubt.csv`: an answer to it is no answer to that of another plan or attempt."""
    return f"{plan.manifest.plan_id[:12]}/{row.id}/{row.attempts}"


def read_answers(path: Path, plan: Plan, ledger: PlanLedger) -> Answers:
    """The answers in a copy of `in_doubt.csv`, however a spreadsheet saved it; lines without an answer are skipped.

    Raises:
        UsageError: the file cannot be read, an answer is unknown, or is about the doubt of another plan or attempt.
    """
    table = open_table(path)
    missing = [name for name in ("operation", ANSWER_COLUMN) if name not in table.columns]
    if missing:
        hint = f"Fill in the column {ANSWER_COLUMN!r} of results/in_doubt.csv, and pass that file."
        raise UsageError(f"{path} has no column {' and '.join(map(repr, missing))}", hint)
    operation_at, answer_at = (table.columns.index(name) for name in ("operation", ANSWER_COLUMN))
    doubt_at = table.columns.index(DOUBT_COLUMN) if DOUBT_COLUMN in table.columns else None
    doubts = {row.id: doubt_id(plan, row) for row in ledger.rows("in_doubt", "conflict", "abandoned")}
    answers: dict[str, set[int]] = {name: set() for name in _NAMES}
    for row in table.rows():
        cells = row.cells if isinstance(row, Row) else ["?"] * len(table.columns)
        answer = cells[answer_at].strip().casefold().replace("-", "_").replace(" ", "_")
        if not answer:
            continue
        number = cells[operation_at].strip()
        if answer not in answers or not (number.isascii() and number.isdecimal()):
            hint = "An answer is `landed`, `not-landed` or `abandon`, next to the number of an operation."
            raise UsageError(f"{path}: line {row.line} has no valid answer", hint)
        if doubt_at is not None and cells[doubt_at] != doubts.get(int(number), cells[doubt_at]):
            hint = f"Look on the platform again, and answer in {plan.folder / RESULTS_FOLDER / 'in_doubt.csv'}."
            raise UsageError(f"{path}: line {row.line} is about another plan, or about an earlier attempt", hint)
        answers[answer].add(int(number))
    return Answers(**{name: frozenset(ids) for name, ids in answers.items()})


def manual_resolutions(ledger: PlanLedger, rules: PushRules, answers: Answers) -> list[StateChange]:
    """The changes of state that a person asks for.

    Raises:
        UsageError: an operation is not in doubt, has two answers, or may still arrive.
    """
    rows = {row.id: row for row in ledger.rows("in_doubt", "conflict")}
    given_up = {row.id: row for row in ledger.rows("abandoned") if row.method == "POST" and row.doubt_at is not None}
    landed, not_landed, abandon = answers.landed, answers.not_landed, answers.abandon
    named = [*landed, *not_landed, *abandon]
    if len(named) != len(set(named)):
        raise UsageError("an operation is named twice", "Give each operation only one answer.")
    unknown = sorted(set(named) - set(rows) - (abandon & ledger.ids("planned")) - (set(given_up) - abandon))
    if unknown:
        raise UsageError(
            f"not in doubt: operation {', '.join(map(str, unknown))}", "results/in_doubt.csv has those that are."
        )
    for number in sorted(not_landed):
        settles_at = rules.settles_at(rows.get(number) or given_up[number])
        if settles_at > ledger.now():
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
