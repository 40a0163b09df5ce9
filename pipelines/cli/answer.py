"""The command `answer`: answers questions, one or many, confirms what is assumed, or withdraws an answer."""

from __future__ import annotations

import getpass
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import LOG, STOP, start
from orderbridge.pipelines.cli.questions import shown
from orderbridge.pipelines.cli.terminal import escape, print_lines, print_result
from orderbridge.sources.command_line import typed_command
from orderbridge.sources.errors import UsageError
from orderbridge.sources.words import number

if TYPE_CHECKING:
    from orderbridge.pipelines.questions.model import Given, GivenAnswer


@declared("answer")
@click.argument("question", required=False)
@click.argument("value", required=False)
def command(
    question: str | None,
    value: str | None,
    file: Path | None,
    proposed: bool,
    withdraw: bool,
    now: bool,
    who: str | None,
    why: str | None,
    until: datetime | None,
    up_to: int | None,
) -> int | None:
    """Answer a QUESTION with a VALUE; `orderbridge questions` lists them.

    An answer counts from the next run, or at once with --now. It is kept in the project with who, when, why and the
    evidence at that time.
    """
    start()
    if sum((question is not None, file is not None, proposed)) != 1:
        raise UsageError(
            "name one QUESTION, or a file with --from, or --proposed",
            "`orderbridge questions` lists what is asked.",
        )
    answers = _answers(question, value, file, proposed=proposed, withdraw=withdraw, why=why or "")
    if not answers:
        print_lines("nothing to answer")
        return None
    moment = datetime.now(UTC).replace(microsecond=0)
    _answer(answers, _given(who, moment, until, up_to), is_now=now)
    if not now:
        return None
    return _reconcile()


def _given(who: str | None, at: datetime, until: datetime | None, up_to: int | None) -> Given:
    from orderbridge.pipelines.questions.model import Given

    if until is not None and until.date() < at.date():
        raise UsageError(
            f"--until {until.date()} is past",
            f"Name the last day on which it holds, such as: {typed_command('--until', str(at.date()))}",
        )
    return Given(
        by=person(who), at=at, until=until.date() if until is not None else None, up_to=up_to
    )


def _answers(
    question: str | None,
    value: str | None,
    file: Path | None,
    *,
    proposed: bool,
    withdraw: bool,
    why: str,
) -> list[GivenAnswer]:
    """The answers that the arguments give."""
    from orderbridge.pipelines.questions.files import answers_in
    from orderbridge.pipelines.questions.model import GivenAnswer

    if file is not None:
        return answers_in(file, why)
    if proposed:
        return _confirmed(why)
    if question is None:
        return []
    if withdraw:
        if value is not None:
            raise UsageError(
                "--withdraw takes no VALUE",
                f"Withdraw the answer: orderbridge answer {shlex.quote(question)} --withdraw",
            )
        return [GivenAnswer(question=question, value=None)]
    return [GivenAnswer(question=question, value=value or _ask(question), why=why)]


def _ask(question: str) -> str:
    """Shows a question and asks for the answer. Raises UsageError without a terminal."""
    from orderbridge.pipelines.questions.questions import find_question

    one = find_question(question)
    print_lines(*shown(one))
    if not sys.stdin.isatty():
        raise UsageError(
            f"no VALUE is given for {question}", f"Choose one of the commands above: {one.command}"
        )
    default = one.value if one.state == "assumed" else one.proposal
    answer: str = click.prompt(escape(one.id), default=default, err=True)
    return answer.strip()


def _confirmed(why: str) -> list[GivenAnswer]:
    """What is assumed or proposed, shown; on a terminal the person is asked."""
    from orderbridge.pipelines.questions.model import GivenAnswer
    from orderbridge.pipelines.questions.questions import asked_questions

    answers: list[GivenAnswer] = []
    for one in asked_questions():
        value = one.value if one.state == "assumed" else one.proposal
        if one.is_confirmable and value is not None:
            print_lines(f"{one.id}: {value}")
            answers.append(GivenAnswer(question=one.id, value=value, why=why))
    if answers and sys.stdin.isatty():
        text = f"Confirm {number(len(answers), 'answer')}?"
        if not click.confirm(text, default=True, err=True):
            return []
    return answers


def _answer(answers: Sequence[GivenAnswer], given: Given, *, is_now: bool) -> None:
    """Writes the answers, and says where they are kept."""
    from orderbridge.pipelines.questions.questions import answer_questions

    result = answer_questions(answers, given)
    lines = [
        f"{one.question}: withdrawn" if one.value is None else f"{one.question}: {one.value}"
        for one in result.answers
    ]
    if len(lines) > 1:
        lines = [f"{number(len(lines), 'question')} answered"]
    later = "" if is_now else "; it counts from the next run"
    lines.append(f"kept in {', '.join(result.places)}{later}")
    facts = [
        {"question": one.question, "value": one.value, "why": one.why} for one in result.answers
    ]
    print_result("answer", lines, {"answers": facts, "places": result.places}, STOP.style)
    for note in result.notes:
        LOG.warning("%s", note)


def _reconcile() -> int:
    from orderbridge.pipelines.cli.reconcile import print_reconcile
    from orderbridge.pipelines.reconcile.reconcile import reconcile

    result = reconcile()
    print_reconcile(result, STOP.style)
    return result.exit_code


def person(who: str | None) -> str:
    """Who decides: as given, else the user of this process. Raises UsageError for a user without a name."""
    try:
        return who or getpass.getuser()
    except (KeyError, OSError):
        raise UsageError(
            "this user has no name", f"Name who decides: {typed_command('--who', 'NAME')}"
        ) from None
