"""All questions in one list, the most pressing first; and answers to any of them, all or none.

In: the kinds of questions. Out: their questions, and answers in the stores of their kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from orderbridge.pipelines.questions.changes import Changes
from orderbridge.pipelines.questions.codes import Codes
from orderbridge.pipelines.questions.columns import Columns
from orderbridge.pipelines.questions.creates import Creates
from orderbridge.pipelines.questions.examples import examples_for
from orderbridge.pipelines.questions.findings import Findings
from orderbridge.pipelines.questions.imports import Imports
from orderbridge.pipelines.questions.keys import Keys
from orderbridge.pipelines.questions.kinds import Kinds
from orderbridge.pipelines.questions.meanings import Meanings, without_evidence
from orderbridge.pipelines.questions.model import (
    PRESSING,
    AnswerResult,
    AskedQuestion,
    Given,
    GivenAnswer,
    QuestionKind,
    answer_command,
    unknown_question,
)
from orderbridge.pipelines.questions.pair_groups import PairGroups
from orderbridge.pipelines.questions.pairs import Pairs
from orderbridge.pipelines.questions.platforms import Platforms
from orderbridge.pipelines.questions.writes import Writes
from orderbridge.pipelines.warehouse.answers.lock import answers_lock
from orderbridge.pipelines.warehouse.build import kept_open
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.setting import SETTINGS

KINDS: Final[tuple[QuestionKind, ...]] = (
    Platforms(),
    Keys(),
    Writes(),
    Creates(),
    Codes(),
    Imports(),
    Columns(),
    Findings(),
    Changes(),
    Meanings(),
    Kinds(),
    PairGroups(),
    Pairs(),
)
"""The kinds of questions, the most pressing first."""


def asked_questions(*, with_answered: bool = False) -> list[AskedQuestion]:
    """The questions that are asked, the most pressing first; `with_answered`: the others too.

    Raises:
        UsageError: a settings file or the warehouse cannot be read.
    """
    found = _all_questions()
    states = [*PRESSING, "answered"] if with_answered else [*PRESSING]
    return sorted(
        (one for one in found if one.state in states), key=lambda one: states.index(one.state)
    )


def _all_questions() -> list[AskedQuestion]:
    with kept_open():
        return [one for kind in KINDS for one in kind.asked()]


def find_question(name: str) -> AskedQuestion:
    """The question with an id, with examples. Raises UsageError: there is none."""
    known = {one.id: one for one in _all_questions()}
    if name in known:
        found = known[name]
        return replace(found, examples=[*found.examples, *examples_for(found)])
    settings = {key: setting for key, setting in SETTINGS.items() if setting.asks}
    if name in settings:
        return without_evidence(settings[name])
    key, _, value = name.partition("=")
    if value and key in {*known, *settings}:
        hint = f"The answer is a word of its own: {answer_command(key, value)}"
        raise UsageError(f"there is no question {name}", hint)
    near = get_close_matches(name, known, n=1) or [one for one in known if name in one]
    raise unknown_question(name, f"Did you mean {near[0]}?" if near else "")


def answer_questions(answers: Sequence[GivenAnswer], given: Given) -> AnswerResult:
    """Writes answers to questions of any kind.

    Raises:
        UsageError: an id is of no question, or an answer is not possible: nothing is written then. Or the disk fails,
            perhaps between two kinds.
    """
    by_kind = _by_kind(answers)
    with answers_lock("answer"):
        for kind, of_kind in by_kind:
            kind.check(of_kind, given)
        places = [kind.write(of_kind, given) for kind, of_kind in by_kind]
    answered = {one.question for one in answers}
    notes: list[str] = []
    for kind, _ in by_kind:
        for one in kind.asked():
            if one.id in answered and one.note:
                notes.append(f"{one.id}: {one.note}")
    return AnswerResult(answers, places, notes)


def _by_kind(answers: Sequence[GivenAnswer]) -> list[tuple[QuestionKind, list[GivenAnswer]]]:
    """The answers of each kind that has some. Raises UsageError: an id is of no question."""
    by_kind: list[tuple[QuestionKind, list[GivenAnswer]]] = []
    known: list[GivenAnswer] = []
    for kind in KINDS:
        of_kind = [one for one in answers if kind.is_about(one.question)]
        known += of_kind
        if of_kind:
            by_kind.append((kind, of_kind))
    for one in answers:
        if one not in known:
            find_question(one.question)
    return by_kind
