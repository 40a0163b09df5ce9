"""Questions about writes whose outcome is unknown: did this request take effect? The ledger has the answer.

In: the ledger. Out: a question for each such request, or one for a plan that has many; and answers of a person who has
looked on the platform. Nothing is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from orderbridge.pipelines.import_file.changes import PlannedChange, add_names
from orderbridge.pipelines.ledger.model import LedgerRow
from orderbridge.pipelines.ledger.numbers import operation_numbers
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import Plan, PlannedOperation
from orderbridge.pipelines.push.lookups import intact_plan
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.resolutions import ABANDONED, ARRIVED, Answers
from orderbridge.pipelines.push.settle import answer_writes
from orderbridge.pipelines.questions.model import (
    AskedQuestion,
    Given,
    GivenAnswer,
    KeptAnswer,
    answer_command,
    refuse_limits,
)
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import ledger_path
from orderbridge.sources.words import listed, number
from orderbridge.transforms.questions import Choice

PREFIX: Final = "write:"
_SINGLE_MAX: Final = 10
"""So many requests of a plan are asked one by one."""
_ID_DIGITS: Final = 12
_UNKNOWN: Final = ("in_doubt", "conflict")
_FINAL: Final = "An answer about a request cannot be withdrawn: look on the platform first."
_WAS_WRONG: Final = (
    "This answer cannot be withdrawn. If it was wrong, correct the record on the platform."
)
_CHOICES: Final = (
    Choice("landed", "it took effect on the platform"),
    Choice("not_landed", "it did not: it can be sent again"),
    Choice("abandon", "it is given up, and never sent"),
)


class Writes:
    """Questions about unknown outcomes. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return is_write(question)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`."""
        with Ledger.open(ledger_path(), readonly=True) as ledger:
            plans = PlanLedger.all_unsettled(ledger)
            asked = [one for plan in plans for one in _of_plan(plan)]
            for plan_id, rows in PlanLedger.answered(ledger, ARRIVED, ABANDONED).items():
                folder = PlanLedger(ledger, plan_id).folder
                asked += [_answered(_name(plan_id), row, folder) for row in rows[-_SINGLE_MAX:]]
            return asked

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        refuse_limits(given, "writes")
        answer_writes(_by_plan(answers), is_check=True)

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        answer_writes(_by_plan(answers))
        return str(ledger_path())


def is_write(question: str) -> bool:
    """Whether the id of a question is one of this kind."""
    return question.startswith(PREFIX)


def plan_of(question: str) -> str:
    """What the ids of all questions about a plan begin with, from one of them."""
    return question.partition("/")[0]


def _name(plan_id: str) -> str:
    """What the ids of a plan's questions begin with."""
    return f"{PREFIX}{plan_id[:_ID_DIGITS]}"


def _of_plan(plan: PlanLedger) -> list[AskedQuestion]:
    rows = [*plan.rows(*_UNKNOWN)]
    name = _name(plan.plan_id)
    if len(rows) <= _SINGLE_MAX:
        note = f"all {len(rows)} of this plan at once: {answer_command(name, _CHOICES[0].value)}"
        note = note if len(rows) > 1 else ""
        return [_asked(f"{name}/{row.id}", _words(row), plan.folder, note) for row in rows]
    shown = ", ".join(str(row.id) for row in rows[:_SINGLE_MAX])
    reason = (
        f"{number(len(rows), 'request')} of this plan: {shown} …; one of them: {name}/{rows[0].id}"
    )
    return [_asked(name, reason, plan.folder)]


def write_examples(question: str) -> list[str]:
    """What a request was about, or the first ones of a plan: the lines of the file, and the values that were sent."""
    name, _, numbers = question.removeprefix(PREFIX).partition("/")
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        of_plan = PlanLedger.named(ledger, name)
        if of_plan is None or (plan := intact_plan(of_plan.plan_id, of_plan.folder)) is None:
            return []
        unknown = islice(of_plan.rows(*_UNKNOWN), _SINGLE_MAX)
        shown = operation_numbers(numbers) if numbers else {row.id for row in unknown}
    operations = [*plan.operations(shown)]
    names = record_names(plan, operations)
    file = Path(plan.manifest.input.path).name
    return [_sent(one, file, names.get(one.id, ())) for one in operations]


def record_names(plan: Plan, operations: Sequence[PlannedOperation]) -> dict[int, Sequence[str]]:
    """What people know the records by that requests update, by request; none where the file cannot be read as then."""
    updates = [one for one in operations if one.method == "PATCH" and one.lines]
    changes = [PlannedChange(one.lines[0], one.path, []) for one in updates]
    if plan.manifest.changed_file() is not None:
        return {}
    try:
        add_names(plan, None, changes)
    except UsageError:
        return {}
    return {one.id: change.about for one, change in zip(updates, changes, strict=True)}


def _sent(operation: PlannedOperation, file: str, names: Sequence[str]) -> str:
    """The values of a request, and where they are from; those in lists and objects are not shown."""
    lines = (
        f"{'line' if len(operation.lines) == 1 else 'lines'} {listed([*map(str, operation.lines)])}"
    )
    values = [
        f"{name}: {value}"
        for name, value in operation.body.items()
        if isinstance(value, str | int | float)
    ]
    known_by = [" · ".join(names)] if names else []
    return f"{lines} of {file}: {', '.join([*known_by, *values])}"


def _request(row: LedgerRow) -> str:
    fields = f" ({', '.join(row.fields)})" if row.fields else ""
    return f"{row.method} {row.path}{fields}"


def _words(row: LedgerRow) -> str:
    before, request, reason = row.words.partition(f"{row.method} {row.path}: ")
    words = reason if request else before
    return f"{_request(row)}: {words or 'no answer came'}"


def _answered(plan: str, row: LedgerRow, folder: str) -> AskedQuestion:
    """What a person has answered. A create that was given up can still be looked for."""
    is_final = row.state != "abandoned" or row.method != "POST"
    given = _CHOICES[0] if row.words == ARRIVED else _CHOICES[2]
    return replace(
        _asked(f"{plan}/{row.id}", _request(row), folder),
        state="answered",
        value=given.value,
        answer=KeptAnswer(given.value),
        choices=[one for one in _CHOICES if one is given or not is_final],
        advice=_WAS_WRONG if is_final else "",
        is_final=is_final,
    )


def _asked(question: str, reason: str, folder: str, note: str = "") -> AskedQuestion:
    return AskedQuestion(
        id=question,
        text="Did this request take effect on the platform? Look there, then answer.",
        advice=_FINAL,
        state="open",
        reason=reason,
        choices=_CHOICES,
        holds_up=(f"the lines of the file that it came from, in {folder}",),
        note=note,
    )


def _by_plan(answers: Sequence[GivenAnswer]) -> dict[str, Answers]:
    """The numbers of requests by plan and answer. Raises UsageError."""
    given: dict[str, dict[str, set[int]]] = {}
    for one in answers:
        words = [choice.value for choice in _CHOICES]
        if one.value not in words:
            what = "An answer about a write cannot be withdrawn" if one.value is None else ""
            raise UsageError(
                what or f"{one.value} is not an answer to {one.question}",
                f"Answer one of {', '.join(words)}: {answer_command(one.question, words[0])}",
            )
        plan, _, numbers = one.question.removeprefix(PREFIX).partition("/")
        of_plan = given.setdefault(plan, {word: set() for word in words})
        of_plan[one.value] |= operation_numbers(numbers) if numbers else _all_of(plan)
    return {
        plan: Answers(*(frozenset(of_plan[word]) for word in ("landed", "not_landed", "abandon")))
        for plan, of_plan in given.items()
    }


def _all_of(plan: str) -> set[int]:
    """All requests of a plan whose outcome is unknown. Raises UsageError for a plan that has none."""
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        numbers = {
            row.id
            for one in ledger.open_plans()
            if one.plan_id.startswith(plan)
            for row in PlanLedger(ledger, one.plan_id).rows(*_UNKNOWN)
        }
    if not numbers:
        raise UsageError(
            f"no request of the plan {plan} has an unknown outcome",
            "`orderbridge questions` lists those that have one.",
        )
    return numbers
