"""The command `import`: takes a file to the platform in one run, shows each step, and asks before anything is sent.

In: options. Out: steps and progress on stderr, the result on stdout, for people or machines. Values of the file are
shown only to the person who is asked.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Container, Sequence
from collections.abc import Mapping as Pairs
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from orderbridge.pipelines.cli import plan as plan_command
from orderbridge.pipelines.cli import push as push_command
from orderbridge.pipelines.cli import verify as verify_command
from orderbridge.pipelines.cli.options import declared, kind_argument
from orderbridge.pipelines.cli.process import KEPT, STOP, print_error, start
from orderbridge.pipelines.cli.terminal import escape, print_result
from orderbridge.sources.words import number

if TYPE_CHECKING:
    from orderbridge.pipelines.cli.console import Reporter
    from orderbridge.pipelines.import_file.run import ImportResult, ImportSteps
    from orderbridge.pipelines.mapping import Mapping
    from orderbridge.pipelines.plan.make import PlanResult

_STOPPED: Final = "; nothing was sent: run the same command again to go on"
_SHOWN: Final = 20
_EXAMPLES: Final = 3
"""Characters of a cell, and cells of a column, that are shown with a question."""
_WIDTH: Final = 100
"""Columns of a line in which the fields are listed."""


@declared("import")
@kind_argument
@click.argument("file", type=click.Path(path_type=Path))
def command(
    yes: bool,
    confirm: int | None,
    wait: bool,
    resend: bool,
    **options: Any,  # noqa: ANN401 # checked by click
) -> int:
    """Send a CSV or .xlsx to the platform: plan, show, ask, push, verify; run it again to continue.

    KIND. Nothing is sent before you agree. The outcome of each line
    is in the folder of the plan, under results. A run that was stopped, or that lost answers, is continued by
    the same command, as long as the file is the same.
    """
    reporter = start()
    STOP.note = _STOPPED
    from orderbridge.pipelines.import_file.run import ImportOptions, import_file
    from orderbridge.pipelines.push.model import PushOptions
    from orderbridge.pipelines.reporting.notification import notify_failure, notify_import
    from orderbridge.sources.settings import notify_settings

    url = (
        None if sys.stdin.isatty() else notify_settings().url
    )  # a person in front of it sees how it ends
    push_options = PushOptions(confirm=confirm, agreed=yes, wait=wait, resend=resend)
    import_options = ImportOptions(
        push=push_options, holds_damaged=not sys.stdin.isatty(), **options
    )
    with notify_failure(url, "import", STOP.exit_code):
        result = import_file(import_options, steps(reporter))
    notify_import(url, result, lines_of(result), STOP.exit_code(result.exit_code))
    print_result("import", lines_of(result), record(result), reporter.style)
    error = result.push.error or result.error
    if error is not None:
        print_error(result.exit_code, str(error), "orderbridge: ")
    return STOP.exit_code(result.exit_code)


def steps(reporter: Reporter) -> ImportSteps:
    """The steps, shown as their own commands show them."""
    from orderbridge.pipelines.cli.console import Reporter
    from orderbridge.pipelines.import_file.run import ImportSteps
    from orderbridge.pipelines.pull.model import PullOptions, PullResult
    from orderbridge.pipelines.pull.pull import pull

    def run_pull(options: PullOptions) -> PullResult:
        STOP.note = KEPT
        with Reporter(reporter.style) as bars:
            result = pull(replace(options, command="import"), bars.progress, STOP.event)
        STOP.note = _STOPPED
        return result

    def on_plan(made: PlanResult) -> None:
        plan_command.print_warnings(made, reporter)
        lines = plan_command.summary_lines(made)
        reporter.event("planned", "\n".join(lines), **plan_command.record(made))

    questions: dict[str, Any] = {
        "ask_columns": ask_columns, "ask_totals": ask_totals, "ask_yes": ask_yes, "ask_passwords": ask_passwords,
    }  # fmt: skip
    return ImportSteps(
        pull=run_pull,
        push=lambda folder, options: push_command.send(folder, options, Reporter(reporter.style)),
        agree=push_command.agree,
        on_plan=on_plan,
        on_step=reporter.event,
        **(questions if sys.stdin.isatty() else {}),
    )


def ask_passwords() -> Literal["mail", "file"]:
    """Asks on a terminal how new customers get a password."""
    text = "New customers need a password: mail (the platform mails it to each) or file (kept for you in passwords.csv)"
    answer: Literal["mail", "file"] = click.prompt(
        text, type=click.Choice(["mail", "file"]), show_choices=False, err=True
    )
    return answer


def ask_yes(question: str) -> bool:
    """Asks on a terminal whether something about the file is so; there is no answer by default."""
    return click.confirm(escape(question), default=None, err=True)


def ask_totals(lines: Sequence[int]) -> Literal["skip", "keep"]:
    """Asks on a terminal whether lines of totals are left out, now and in later files."""
    shown = ", ".join(map(str, lines[:_EXAMPLES])) + (" …" if len(lines) > _EXAMPLES else "")
    return (
        "skip"
        if click.confirm(f"Lines of totals ({shown}): leave them out?", default=True, err=True)
        else "keep"
    )


def ask_columns(proposed: Mapping, samples: Pairs[str, Sequence[str]]) -> dict[str, str | None]:
    """Asks on a terminal for each column whose field is not certain.

    The answer is a field, the guess that is shown, to ignore the column, or to ignore it and all the rest.
    """
    contested = {name: path for path, names in proposed.contested.items() for name in names}
    guesses = proposed.doubtful | contested
    taken = {column.field for column in proposed.columns.values() if column.field}
    taken.update(path for lookup in proposed.lookups for path in lookup.give)
    names = sorted(proposed.unknown, key=lambda name: name not in guesses)
    click.echo(_columns_question(proposed, names, guesses, taken), err=True)
    answers: dict[str, str | None] = dict.fromkeys(proposed.unknown)
    for name in names:
        guess = guesses.get(name)
        answer = _ask_column(proposed.kind, name, samples[name], guess, taken)
        if answer == "a":
            break
        if answer != "i":
            answers[name] = answer
            taken.add(answer)
    return answers


def _columns_question(
    proposed: Mapping, names: Sequence[str], guesses: Pairs[str, str], taken: Container[str]
) -> str:
    """What is shown before the first column: the columns, what can be typed, and the fields that are free."""
    from orderbridge.pipelines.mapping.field_paths import all_paths
    from orderbridge.sources.kinds import KINDS

    kind = proposed.kind
    params = [field.name for field in KINDS[kind].operation.params]
    missing = " and ".join(path for path in params if path not in taken)
    free = ", ".join(path for path in all_paths(kind) if path not in taken)
    lines = [
        f"{number(len(names), 'column')} of the file {'needs' if len(names) == 1 else 'need'} an answer: "
        f"{', '.join(map(escape, names))}",
        f"Type the field of {kind} that a column fills{', y for the guess' if guesses else ''}, "
        "i to ignore it, or a to ignore it and all that follow.",
        "An ignored column is never sent. Enter alone asks again.",
        *textwrap.wrap(
            f"Free fields: {free}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False
        ),
        f"What they mean: orderbridge template {kind} --mapping",
        *([f"The file needs a column for {missing}."] if missing else []),
    ]
    return "\n".join(lines)


def _ask_column(
    kind: str, name: str, cells: Sequence[str], guess: str | None, taken: Container[str]
) -> str:
    """Asks for one column until the answer is a free field, `i` or `a`."""
    from orderbridge.pipelines.mapping.field_paths import resolve

    different = dict.fromkeys(cell for cell in cells if cell.strip())
    shown = " · ".join([escape(cell)[:_SHOWN] for cell in different][:_EXAMPLES])
    is_free = guess is not None and guess not in taken
    question = f"  {escape(name)} ({shown}){f', perhaps {guess}' if is_free else ''}"
    while True:
        answer: str = click.prompt(question, err=True).strip()
        if answer in ("i", "a"):
            return answer
        if answer == "y" and guess is not None and is_free:
            return guess
        target = resolve(kind, answer)
        if not isinstance(target, str) and answer not in taken:
            return answer
        why = target if isinstance(target, str) else "is filled by another column"
        click.echo(f"  {escape(answer)} {why}", err=True)


def lines_of(result: ImportResult) -> list[str]:
    """The result as text."""
    found = result.verification
    return [
        *push_command.count_lines(result.push),
        *(verify_command.import_lines(found) if found is not None else []),
        *push_command.file_lines(result.push, result.file),
        *push_command.next_lines(result.push, result.file),
    ]


def record(result: ImportResult) -> dict[str, Any]:
    """The result for JSON: an object for each step, null where it was not done."""
    return {
        "kind": result.plan.kind,
        "folder": result.plan.folder,
        "plan": plan_command.record(result.made) if result.made is not None else None,
        "push": push_command.record(result.push),
        "file": result.file,
        "verify": verify_command.record(result.verification)
        if result.verification is not None
        else None,
        "exit_code": STOP.exit_code(result.exit_code),
    }
