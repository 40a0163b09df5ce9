"""Questions about writes whose outcome is unknown: did this request take effect? The ledger has the answer.

In: the ledger. Out: a question for each such request, or one for a plan that has many; and answers of a person who has
looked on the platform. Nothing is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from orderbridge.pipelines.ledger.model import LedgerRow
from orderbridge.pipelines.ledger.numbers import operation_numbers
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import PlannedOperation
from orderbridge.pipelines.push.lookups import intact_plan
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.resolutions import Answers
from orderbridge.pipelines.push.settle import answer_writes
from orderbridge.pipelines.questions.model import (
    AskedQuestion,
    Given,
    GivenAnswer,
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
_CHOICES: Final = (
    Choice("landed", "it took effect on the platform"),
    Choice("not_landed", "it did not: it can be sent again"),
    Choice("abandon", "it is given up, and never sent"),
)


class Writes:
    """Questions about unknown outcomes. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question.startswith(PREFIX)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`."""
        with Ledger.open(ledger_path(), readonly=True) as ledger:
            plans = PlanLedger.all_unsettled(ledger)
            return [asked for plan in plans for asked in _of_plan(plan)]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        refuse_limits(given, "writes")
        answer_writes(_by_plan(answers), is_check=True)

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        answer_writes(_by_plan(answers))
        return str(ledger_path())


def _of_plan(plan: PlanLedger) -> list[AskedQuestion]:
    rows = [*plan.rows(*_UNKNOWN)]
    name = f"{PREFIX}{plan.plan_id[:_ID_DIGITS]}"
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
        for one in ledger.open_plans():
            plan = intact_plan(one.plan_id, one.folder) if one.plan_id.startswith(name) else None
            if plan is not None:
                unknown = islice(PlanLedger(ledger, one.plan_id).rows(*_UNKNOWN), _SINGLE_MAX)
                shown = operation_numbers(numbers) if numbers else {row.id for row in unknown}
                file = Path(plan.manifest.input.path).name
                return [_sent(operation, file) for operation in plan.operations(shown)]
    return []


def _sent(operation: PlannedOperation, file: str) -> str:
    """The values of a request, and where they are from; those in lists and objects are not shown."""
    lines = (
        f"{'line' if len(operation.lines) == 1 else 'lines'} {listed([*map(str, operation.lines)])}"
    )
    values = [
        f"{name}: {value}"
        for name, value in operation.body.items()
        if isinstance(value, str | int | float)
    ]
    return f"{lines} of {file}: {', '.join(values)}"


def _words(row: LedgerRow) -> str:
    fields = f" ({', '.join(row.fields)})" if row.fields else ""
    before, request, reason = row.words.partition(f"{row.method} {row.path}: ")
    words = reason if request else before
    return f"{row.method} {row.path}{fields}: {words or 'no answer came'}"


def _asked(question: str, reason: str, folder: str, note: str = "") -> AskedQuestion:
    return AskedQuestion(
        id=question,
        text="Did this request take effect on the platform? Look there, then answer.",
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
