"""The questions of an import, as a person at a terminal is asked them.

In: questions about a file. Out: the answers that were typed. Cells of the file are shown only to the person who is
asked.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

import click

from orderbridge.pipelines.cli.terminal import escape
from orderbridge.sources.words import number

if TYPE_CHECKING:
    from orderbridge.pipelines.import_file.asking import FileQuestion

_SHOWN: Final = 20
_EXAMPLES: Final = 3
"""Characters of a cell, and cells of a column, that are shown with a question."""
_WIDTH: Final = 100
"""Columns of a line in which the fields are listed."""


def ask(questions: Sequence[FileQuestion]) -> dict[str, str]:
    """Asks a person, and returns the answers by key."""
    columns = [one for one in questions if one.topic == "column"]
    answers = _ask_columns(columns) if columns else {}
    for one in questions:
        if one.topic == "totals":
            is_left_out = click.confirm(escape(one.text), default=True, err=True)
            answers[one.key] = "skip" if is_left_out else "keep"
        elif one.topic == "passwords":
            choices = click.Choice(one.answers)
            answers[one.key] = click.prompt(one.text, type=choices, show_choices=False, err=True)
        elif one.topic != "column":
            is_so = click.confirm(escape(one.text), default=None, err=True)
            answers[one.key] = "yes" if is_so else "no"
    return answers


def _ask_columns(questions: Sequence[FileQuestion]) -> dict[str, str]:
    """Asks for each column whose field is not certain.

    The answer is a field, the guess that is shown, to ignore the column, or to ignore it and all the rest.
    """
    from orderbridge.pipelines.import_file.asking import IGNORE

    kind = questions[0].values["kind"]
    taken = set(questions[0].taken)
    click.echo(_introduction(kind, questions, taken), err=True)
    answers = {one.key: IGNORE for one in questions}
    for one in questions:
        answer = _ask_column(kind, one, taken)
        if answer == "a":
            break
        if answer != "i":
            answers[one.key] = answer
            taken.add(answer)
    return answers


def _introduction(kind: str, questions: Sequence[FileQuestion], taken: Collection[str]) -> str:
    """What is shown before the first column: the columns, what can be typed, and the fields that are free."""
    from orderbridge.pipelines.mapping.field_paths import all_paths
    from orderbridge.sources.kinds import KINDS

    params = [field.name for field in KINDS[kind].operation.params]
    missing = " and ".join(path for path in params if path not in taken)
    free = ", ".join(path for path in all_paths(kind) if path not in taken)
    has_guess = any(one.guess is not None for one in questions)
    names = ", ".join(escape(one.about) for one in questions)
    lines = [
        f"{number(len(questions), 'column')} of the file {'needs' if len(questions) == 1 else 'need'} an answer: "
        f"{names}",
        f"Type the field of {kind} that a column fills{', y for the guess' if has_guess else ''}, "
        "i to ignore it, or a to ignore it and all that follow.",
        "An ignored column is never sent. Enter alone asks again.",
        *textwrap.wrap(
            f"Free fields: {free}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False
        ),
        f"What they mean: orderbridge template {kind} --mapping",
        *([f"The file needs a column for {missing}."] if missing else []),
    ]
    return "\n".join(lines)


def _ask_column(kind: str, asked: FileQuestion, taken: Collection[str]) -> str:
    """Asks for one column until the answer is a free field, `i` or `a`."""
    from orderbridge.pipelines.mapping.field_paths import resolve

    shown = " · ".join(escape(cell)[:_SHOWN] for cell in asked.samples[:_EXAMPLES])
    guess = asked.guess if asked.guess not in taken else None
    question = f"  {escape(asked.about)} ({shown}){f', perhaps {guess}' if guess else ''}"
    while True:
        answer: str = click.prompt(question, err=True).strip()
        if answer in ("i", "a"):
            return answer
        if answer == "y" and guess is not None:
            return guess
        target = resolve(kind, answer)
        if not isinstance(target, str) and answer not in taken:
            return answer
        why = target if isinstance(target, str) else "is filled by another column"
        click.echo(f"  {escape(answer)} {why}", err=True)
