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
from orderbridge.sources.texts import Texts

if TYPE_CHECKING:
    from orderbridge.pipelines.import_file.asking import FileQuestion

_SHOWN: Final = 20
_EXAMPLES: Final = 3
"""Characters of a cell, and cells of a column, that are shown with a question."""
_WIDTH: Final = 100
"""Columns of a line in which the fields are listed."""
_YES: Final = ("y", "yes", "s", "si", "sí")
_NO: Final = ("n", "no")


def ask(questions: Sequence[FileQuestion], texts: Texts) -> dict[str, str]:
    """Asks a person, and returns the answers by key."""
    columns = [one for one in questions if one.topic == "column"]
    answers = _ask_columns(columns, texts) if columns else {}
    for one in questions:
        if one.topic == "passwords":
            text = texts("ask.passwords")
            choices = click.Choice(one.answers)
            answers[one.key] = click.prompt(text, type=choices, show_choices=False, err=True)
        elif one.topic == "totals":
            is_left_out = _confirm(_text(one, texts), texts, default=True)
            answers[one.key] = "skip" if is_left_out else "keep"
        elif one.topic != "column":
            answers[one.key] = "yes" if _confirm(_text(one, texts), texts) else "no"
    return answers


def _text(asked: FileQuestion, texts: Texts) -> str:
    return escape(texts(f"ask.{asked.topic}", **asked.values))


def _confirm(text: str, texts: Texts, *, default: bool | None = None) -> bool:
    """Asks for yes or no, in the letters of the language and in English ones; Enter alone is the default."""
    hint = texts("ask.yes_no" if default is None else "ask.yes_default")
    known = {**dict.fromkeys(_YES, True), **dict.fromkeys(_NO, False)}
    while True:
        typed = click.prompt(f"{text} {hint}", default="", show_default=False, err=True)
        answer = known.get(typed.strip().casefold()) if typed.strip() else default
        if answer is not None:
            return answer


def _ask_columns(questions: Sequence[FileQuestion], texts: Texts) -> dict[str, str]:
    """Asks for each column whose field is not certain.

    The answer is a field, the guess that is shown, to ignore the column, or to ignore it and all the rest.
    """
    from orderbridge.pipelines.import_file.asking import IGNORE

    kind = questions[0].values["kind"]
    taken = set(questions[0].taken)
    click.echo(_introduction(kind, questions, taken, texts), err=True)
    answers = {one.key: IGNORE for one in questions}
    for one in questions:
        answer = _ask_column(kind, one, taken, texts)
        if answer == "a":
            break
        if answer != "i":
            answers[one.key] = answer
            taken.add(answer)
    return answers


def _introduction(
    kind: str, questions: Sequence[FileQuestion], taken: Collection[str], texts: Texts
) -> str:
    """What is shown before the first column: the columns, what can be typed, and the fields that are free."""
    from orderbridge.pipelines.mapping.field_paths import all_paths
    from orderbridge.sources.kinds import KINDS

    params = [field.name for field in KINDS[kind].operation.params]
    missing = [path for path in params if path not in taken]
    count = len(questions)
    columns = texts("noun.columns", count=count)
    names = ", ".join(escape(one.about) for one in questions)
    has_guess = any(one.guess is not None for one in questions)
    free = ", ".join(path for path in all_paths(kind) if path not in taken)
    fields = texts("ask.fields", fields=free)
    lines = [
        texts("ask.columns", count=count, columns=columns, names=names),
        texts("ask.type_guess" if has_guess else "ask.type", kind=texts(f"kinds.{kind}")),
        texts("ask.ignored"),
        *textwrap.wrap(fields, _WIDTH, subsequent_indent="  ", break_on_hyphens=False),
        texts("ask.meaning", command=f"orderbridge template {kind} --mapping"),
    ]
    if missing:
        lines.append(texts("ask.missing", fields=", ".join(missing)))
    return "\n".join(lines)


def _ask_column(kind: str, asked: FileQuestion, taken: Collection[str], texts: Texts) -> str:
    """Asks for one column until the answer is a free field, `i` or `a`."""
    from orderbridge.pipelines.mapping.field_paths import resolve

    shown = " · ".join(escape(cell)[:_SHOWN] for cell in asked.samples[:_EXAMPLES])
    guess = asked.guess if asked.guess not in taken else None
    question = f"  {escape(asked.about)} ({shown})"
    if guess is not None:
        question += f", {texts('ask.perhaps', field=guess)}"
    while True:
        answer: str = click.prompt(question, err=True).strip()
        if answer in ("i", "a"):
            return answer
        if answer.casefold() in _YES and guess is not None:
            return guess
        target = resolve(kind, answer)
        if not isinstance(target, str) and answer not in taken:
            return answer
        why = target if isinstance(target, str) else texts("ask.taken")
        click.echo(f"  {escape(answer)} {why}", err=True)
