"""The command `questions`: what a person has to decide, a line each; or one with its evidence and commands."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, start
from orderbridge.pipelines.cli.terminal import print_lines, print_result
from orderbridge.sources.command_line import program
from orderbridge.sources.words import shortened

if TYPE_CHECKING:
    from orderbridge.pipelines.questions.model import AskedQuestion
    from orderbridge.transforms.questions import Choice

_NONE: Final = "nothing is open and nothing is assumed"
_NOT_ASKED: Final = "decided by the values"
_SHOWN_CHOICES: Final = 12
_SHOWN_OF_KIND: Final = 10
_WIDTH_MAX: Final = 45
"""Columns for ids; a longer one moves what follows it."""
_COLUMNS: Final = ("question", "answer", "why", "state", "proposal", "text", "evidence")
"""Of the spreadsheet; a person fills in `answer` and perhaps `why`."""


@declared("questions")
@click.argument("question", required=False)
def command(question: str | None, target: Path | None) -> None:
    """List the questions that need a person, the most pressing first, or show one QUESTION with its evidence.

    An open question leaves values null. An assumed answer is used, and does not change by itself. A contradicted one
    stays in use although rows speak against it. `orderbridge answer` answers a question.
    """
    start()
    from orderbridge.pipelines.questions.questions import asked_questions, find_question

    if question is not None:
        one = find_question(question)
        print_result("question", shown(one), record(one), STOP.style)
        return
    asked = asked_questions()
    if target is not None:
        _write_csv(target, asked)
        print_lines(
            f"written: {target}; then: {program()} answer --from {shlex.quote(str(target))}"
        )
        return
    print_result("questions", listed(asked), {"questions": [*map(record, asked)]}, STOP.style)


def listed(asked: Sequence[AskedQuestion]) -> list[str]:
    """The questions, a line each, and what to do."""
    if not asked:
        return [_NONE]
    return [
        *rows(asked),
        f"to see one: {program()} questions {shlex.quote(asked[0].id)}",
        *confirmation(asked),
    ]


def rows(asked: Sequence[AskedQuestion]) -> list[str]:
    """A line for each question; of many that begin alike only the first ones, and how many more there are."""
    shown_ones, hidden = _first_of_each_kind(asked)
    width = min(_WIDTH_MAX, max(len(one.id) for one in shown_ones))
    lines = [f"{one.state:<12}  {one.id:<{width}}  {_now(one)}".rstrip() for one in shown_ones]
    for kind, count in hidden.items():
        lines.append(f"and {count} more that begin with {kind}:, all with --csv FILE")
    return lines


def confirmation(asked: Sequence[AskedQuestion]) -> list[str]:
    """The command that confirms what is assumed; empty where nothing is."""
    if not any(one.is_confirmable for one in asked):
        return []
    return [f"to confirm what is assumed or proposed: {program()} answer --proposed"]


def _first_of_each_kind(
    asked: Sequence[AskedQuestion],
) -> tuple[list[AskedQuestion], dict[str, int]]:
    """The first questions of each kind, and how many more there are by kind: there may be a thousand pairs."""
    shown_ones: list[AskedQuestion] = []
    counts: Counter[str] = Counter()
    for one in asked:
        kind, separator, _ = one.id.partition(":")
        counts[kind] += 1
        if not separator or counts[kind] <= _SHOWN_OF_KIND:
            shown_ones.append(one)
    kinds = {one.id.partition(":")[0] for one in asked if ":" in one.id}
    hidden = {
        kind: count - _SHOWN_OF_KIND
        for kind, count in counts.items()
        if kind in kinds and count > _SHOWN_OF_KIND
    }
    return shown_ones, hidden


def _now(one: AskedQuestion) -> str:
    """What is used now, or why nothing is."""
    if one.state == "assumed":
        return f"{shortened(str(one.value))} is used"
    if one.state == "open" and one.value is None and one.proposal is not None:
        return f"{one.proposal} is proposed"
    return shortened(one.reason) if one.value is not None else one.reason


def shown(one: AskedQuestion) -> Iterator[str]:
    """One question with its evidence, what rests on it, and the commands that answer it."""
    yield f"{one.id}: {_NOT_ASKED if one.state == 'proven' else one.state}"
    yield one.text
    if one.reason:
        yield f"  {one.reason}"
    yield from (f"  {line}" for line in one.examples)
    for choice in one.choices[:_SHOWN_CHOICES]:
        yield from _choice_lines(one, choice)
    if len(one.choices) > _SHOWN_CHOICES:
        yield f"  and {len(one.choices) - _SHOWN_CHOICES} more"
    if one.holds_up:
        yield f"what depends on it: {', '.join(one.holds_up)}"
    for text in filter(None, (one.advice, one.note)):
        yield f"note: {text}"
    yield from answers_to(one)


def _choice_lines(one: AskedQuestion, choice: Choice) -> Iterator[str]:
    """A choice, and what speaks for it: one thing a line."""
    marks = choice.evidence.split("; ") if choice.evidence else []
    if choice.value == one.value:
        marks.append("used now")
    elif choice.value == one.proposal:
        marks.append("proposed")
    width = max(len(other.value) for other in one.choices[:_SHOWN_CHOICES])
    for label, mark in zip_longest([choice.value], marks, fillvalue=""):
        yield f"  {label:<{width}}  {mark}".rstrip()


def answers_to(one: AskedQuestion) -> Iterator[str]:
    """The commands that answer a question: one for each choice, the proposed one first."""
    from orderbridge.pipelines.questions.model import answer_command

    values = [choice.value for choice in one.choices[:_SHOWN_CHOICES] if choice.is_possible]
    if one.proposal is not None and one.proposal not in values:
        values.insert(0, one.proposal)
    values.sort(key=lambda value: value != one.proposal)
    commands = [answer_command(one.id, value) for value in values]
    if one.has_unknown_rows:
        yield f"to answer: {_own_answer(one)}"
        yield from (f"to confirm what is used now: {command}" for command in commands)
        return
    yield from (f"to answer: {command}" for command in commands)
    if one.example:
        label = "another" if commands else "to answer"
        yield f"{label}: {_own_answer(one)}"
    if one.otherwise:
        yield f"or answer nothing: {one.otherwise}"


def _own_answer(one: AskedQuestion) -> str:
    """The command for a value that is not among the choices, and what it can be."""
    looks_like_option = any(choice.value.startswith("-") for choice in one.choices)
    value = "-- VALUE" if looks_like_option else "VALUE"
    return f"{program()} answer {shlex.quote(one.id)} {value}  # {one.example}"


def record(one: AskedQuestion) -> dict[str, Any]:
    """A question for JSON."""
    return {**asdict(one), "command": one.command}


def _write_csv(path: Path, asked: Sequence[AskedQuestion]) -> None:
    """Writes the questions for a spreadsheet. Raises UsageError."""
    from orderbridge.pipelines.warehouse.answers.reviews import write_csv
    from orderbridge.sources.disk import disk_errors, replace_file
    from orderbridge.sources.settings import own_path

    rows = [
        {
            "question": one.id,
            "state": one.state,
            "proposal": one.value if one.state == "assumed" else one.proposal,
            "text": one.text,
            "evidence": "; ".join(
                f"{choice.value}: {choice.evidence}" for choice in one.choices if choice.evidence
            ),
        }
        for one in asked
    ]
    import io

    text = io.StringIO()
    write_csv(text, _COLUMNS, rows)
    with disk_errors(path, "Name another file."), replace_file(own_path(path), 0o600) as file:
        file.write(text.getvalue().encode())
