"""The command `push`: sends a plan, shows progress with rate and remaining time, and prints the result.

In: options. Out: progress on stderr, the result on stdout, for people or machines. No value of a row is printed.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from orderbridge.pipelines.cli import terminal
from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import SENT, STOP, print_error, sent_nothing, start
from orderbridge.pipelines.cli.terminal import Style, escape
from orderbridge.sources.command_line import program, typed_command
from orderbridge.sources.errors import BridgeError, UsageError
from orderbridge.sources.texts import Texts, english

if TYPE_CHECKING:
    from orderbridge.pipelines.cli.console import Reporter
    from orderbridge.pipelines.plan.model import Plan
    from orderbridge.pipelines.push.model import PushOptions, PushResult
    from orderbridge.pipelines.push.next_steps import Step

_YES: Final[tuple[str, ...]] = ("y", "yes", "s", "si", "sí")


def send(plan: Path, options: PushOptions, reporter: Reporter) -> PushResult:
    """Pushes a plan, or resumes it, and shows how far it is: pages of customers, then operations with their rate."""
    from orderbridge.pipelines.push.model import PushHooks
    from orderbridge.pipelines.push.run import push

    begin: tuple[float, int] | None = None

    def on_operation(done: int, total: int) -> None:
        nonlocal begin
        STOP.note = SENT
        now = time.monotonic()
        started_at, before = begin = begin or (now, done)
        rate = f", {(done - before) / (now - started_at):.0f}/s" if now > started_at else ""
        reporter.show("sending", done, total, f"operations{rate}", done=done, total=total)

    hooks = PushHooks(
        stop=STOP.event,
        on_operation=on_operation,
        on_page=reporter.progress,
        defer_signals=STOP.gently,
    )
    with reporter:
        return push(plan, options, hooks)


def print_result(result: PushResult, style: Style) -> None:
    """Prints the result of a push on stdout."""
    terminal.print_result("push", lines_of(result), record(result), style)


def record(result: PushResult) -> dict[str, Any]:
    """The result of a push for JSON. `mailed`: new customers whose password the platform was asked to mail."""
    is_mailed = result.plan.made_passwords == "mail"
    return {
        "plan_id": result.plan.manifest.plan_id,
        "folder": result.plan.folder,
        "operations": result.states,
        "sent": result.sent,
        "mailed": result.states.get("confirmed", 0) if is_mailed else 0,
        "lines": {
            f"{file}.{outcome}": count for (file, outcome), count in sorted(result.lines.items())
        },
        "settles_at": result.settles_at,
        "broke": result.broke,
        "exit_code": STOP.exit_code(result.exit_code),
    }


def lines_of(
    result: PushResult, workbook: Path | None = None, texts: Texts | None = None
) -> list[str]:
    """The result of a push as text, and what to do next; `workbook` has the result of each line, if there is one."""
    texts = texts or english()
    return [
        *count_lines(result, texts),
        *file_lines(result, workbook, texts),
        *end_lines(result, next_steps(result, workbook), texts),
    ]


def count_lines(result: PushResult, texts: Texts) -> list[str]:
    """What became of the lines of the file, in numbers."""
    from orderbridge.pipelines.ledger.model import FINAL_STATES
    from orderbridge.pipelines.push.eligibility import ENDS
    from orderbridge.pipelines.push.results import FILE_OF, RESULT_FILES

    manifest = result.plan.manifest
    title = texts(
        "end.title",
        lines=texts("noun.lines", count=manifest.lines),
        kind=texts(f"kinds.{manifest.kind}"),
        target=f"{manifest.host} ({manifest.environment})",
    )
    lines = [title]
    has_ended = result.states.keys() <= set(FINAL_STATES)
    if result.states and not result.sent and has_ended and not has_lines(result, *ENDS):
        lines.append(texts("end.nothing_left"))
    counts: Counter[str] = Counter()
    for file in RESULT_FILES:
        for outcome in FILE_OF:
            counts[_status(file, outcome)] += result.lines[file, outcome]
    return lines + [
        f"  {count:>8}  {texts(f'status.{status}', count=count)}"
        for status, count in counts.items()
        if count
    ]


def has_lines(result: PushResult, *outcomes: str) -> bool:
    """Whether lines were not sent, with one of these outcomes."""
    return any(result.lines["unsent", outcome] for outcome in outcomes)


def _status(file: str, outcome: str) -> str:
    """What became of a line, as the catalogue calls it."""
    from orderbridge.pipelines.push.results import FILE_OF

    if (file, outcome) == ("in_doubt", "abandoned"):
        return "abandoned_unknown"
    if outcome == "merged" and file != "confirmed":  # with the line that it equals
        return file if file in FILE_OF else "not_sent"
    return outcome


def file_lines(result: PushResult, workbook: Path | None, texts: Texts) -> list[str]:
    """Where the results are."""
    from orderbridge.pipelines.plan.model import RESULTS_FOLDER
    from orderbridge.pipelines.push.passwords import PASSWORDS_FILE

    folder = result.plan.folder
    lines = [texts("end.results", file=workbook or folder / RESULTS_FOLDER)]
    if (folder / PASSWORDS_FILE).exists():
        lines.append(texts("end.passwords", file=folder / PASSWORDS_FILE))
    for file in result.earlier_passwords:
        lines.append(texts("end.earlier_passwords", file=file))
    return lines


def end_lines(result: PushResult, steps: Sequence[Step], texts: Texts) -> list[str]:
    """How the push ended, if it ended early, and the next steps."""
    lines = []
    if result.broke:
        lines.append(texts("end.broke"))
    if result.stopped:
        lines.append(texts("end.stopped"))
    for step in steps:
        lines += step.lines_in(texts)
    return lines


def next_steps(result: PushResult, workbook: Path | None) -> list[Step]:
    """What to do next, in the order in which it is done."""
    from orderbridge.pipelines.push.next_steps import ACTIONS, NextSteps

    of_plan = NextSteps.of(result.plan)
    if not result.stopped:
        steps = _lines_to_look_at(result, workbook)
    elif result.actions:
        steps = []
    else:  # of an import that reads back what it has sent
        steps = [of_plan.step("again")]
    says_itself = result.error is not None and bool(result.error.hint)
    for action in ACTIONS:
        if action in result.actions and not (action == "again" and says_itself):
            step = of_plan.step(action, at=result.actions[action])
            if step not in steps:  # of an import, `again` and `plan_again` are the same
                steps.append(step)
    return steps


def _lines_to_look_at(result: PushResult, workbook: Path | None) -> list[Step]:
    """What a person does about lines that no repetition ends."""
    from orderbridge.pipelines.plan.lost_zeros import AS_WRITTEN
    from orderbridge.pipelines.plan.model import DIFFERENCES_FILE, RESULTS_FOLDER
    from orderbridge.pipelines.push.next_steps import NextSteps, Step

    plan = result.plan
    held = _held_lines(plan)
    is_rejected = any(file == "rejected" for file, _ in result.lines)
    is_held_by_push = result.lines["unsent", "held"] > held.total
    steps: list[Step] = []
    if is_rejected or held.texts:
        steps.append(_correction(plan, workbook, is_rejected=is_rejected, is_held=bool(held.texts)))
    for question in held.code_questions:
        steps.append(Step("codes", f"{program()} answer {question} {AS_WRITTEN}"))
    if held.texts:
        steps.append(Step("texts", NextSteps.of(plan).plan_again))
    if held.repeated:
        steps.append(NextSteps.of(plan).step("plan_again"))
    if has_lines(result, "exists_differs", "ambiguous"):
        steps.append(Step("compare", values={"file": str(plan.folder / DIFFERENCES_FILE)}))
    if held.alike or is_held_by_push:
        steps.append(Step("held", f"{program()} questions"))
    if has_lines(result, "blocked") and "read" in result.actions:
        file = plan.folder / RESULTS_FOLDER / "unsent.csv"
        steps.append(Step("blocked", values={"file": str(file)}))
    return steps


class _HeldLines(NamedTuple):
    """How many lines a plan holds back, by what ends that.

    Attributes:
        code_questions: about codes that may have lost zeros.
        alike: of customers that may be known under another code.
        repeated: of codes that the file has more than once.
        texts: held for all other reasons: a person reads their words.
    """

    total: int
    code_questions: list[str]
    alike: int
    repeated: int
    texts: int


def _held_lines(plan: Plan) -> _HeldLines:
    from orderbridge.pipelines.plan.alike import CODE as ALIKE
    from orderbridge.pipelines.plan.lost_zeros import kept_zeros
    from orderbridge.pipelines.plan.repeated_codes import CODE as REPEATED

    total = plan.manifest.outcomes.get("held", 0)
    lines = Counter(one.code for one in plan.unsent_lines()) if total else Counter[str]()
    zeros = [one for one in kept_zeros(plan.folder) if one.lines]
    questions = dict.fromkeys(lost.question for one in zeros for lost in one.found)
    with_zeros = sum(one.lines for one in zeros)
    texts = total - with_zeros - lines[ALIKE] - lines[REPEATED]
    return _HeldLines(total, list(questions), lines[ALIKE], lines[REPEATED], texts)


def _correction(plan: Plan, workbook: Path | None, *, is_rejected: bool, is_held: bool) -> Step:
    """How rejected or held lines are corrected."""
    from orderbridge.pipelines.import_file.result import corrections_sheet_of
    from orderbridge.pipelines.plan.model import RESULTS_FOLDER
    from orderbridge.pipelines.push.next_steps import Step, import_command

    which = "both" if is_rejected and is_held else "rejected" if is_rejected else "held"
    if workbook is None:
        values = {"folder": str(plan.folder / RESULTS_FOLDER)}
        return Step(f"correct_results.{which}", f"{program()} plan {plan.kind} FILE", values)
    command = import_command(plan, workbook)
    values = {"file": workbook.name, "sheet": corrections_sheet_of(plan)}
    return Step(f"correct.{which}", command, values)


@declared("push")
@click.argument("plan", type=click.Path(path_type=Path))
def command(
    plan: Path,
    confirm: int | None,
    yes: bool,
    settle: float | None,
    **options: Any,  # noqa: ANN401 # checked by click
) -> int:
    """Send a plan; run it again to resume: no write takes effect twice.

    The outcome of each line is in the plan's folder, under results. Unknown outcomes make the exit code 6: the command
    prints what to do next.
    """
    reporter = start(sends_keys=True)
    STOP.note = sent_nothing()
    from orderbridge.pipelines.ledger.push_log import publish_push_log
    from orderbridge.pipelines.push.model import PushOptions

    push_options = PushOptions(confirm=confirm, agreed=yes, settle_s=settle, **options)
    if not yes and confirm is None and sys.stdin.isatty():
        push_options = replace(push_options, agreed=_agreed(plan, push_options))
    result = send(plan, push_options, reporter)
    print_result(result, reporter.style)
    if result.error is not None:
        print_error(result.exit_code, str(result.error), "orderbridge: ")
    if not result.stopped:
        refresh_workbook(result.plan)
        try:
            publish_push_log(result.plan.manifest.plan_id, result.observed)
        except BridgeError as error:  # the ledger has what was sent: the next run copies it
            message = f"ops.push_log was not updated; the next pull does it: {error}"
            print_error(result.exit_code, message, "orderbridge: ")
    return STOP.exit_code(result.exit_code)


def _agreed(folder: Path, options: PushOptions) -> bool:
    """Whether a person at the terminal agrees to send a plan to a sandbox; nobody is asked where nothing is left."""
    from orderbridge.pipelines.plan.model import Plan
    from orderbridge.pipelines.push.checks import needs_agreement

    plan = Plan(folder)
    is_asked = plan.manifest.environment == "sandbox" and needs_agreement(plan, options)
    return is_asked and agree(plan)


def refresh_workbook(plan: Plan) -> None:
    """Writes the workbook of an import again, after its results have changed."""
    from orderbridge.pipelines.import_file.result import write_result
    from orderbridge.pipelines.plan.model import is_import

    if is_import(plan.folder):
        try:
            write_result(plan)
        except UsageError as error:
            print_error(
                error.exit_code, f"the workbook is that of before: {error}", "orderbridge: "
            )


def agree(plan: Plan, examples: Sequence[str] = (), texts: Texts | None = None) -> bool:
    """Shows examples on a terminal and asks whether to send; for production, the number has to be typed."""
    if not sys.stdin.isatty():
        return False
    from orderbridge.pipelines.push.checks import describe_plan, operations_left

    texts = texts or english()
    for line in examples:
        click.echo(f"  {escape(line)}", err=True)
    text = escape(describe_plan(plan, texts))
    count, _ = operations_left(plan)
    answers: tuple[str, ...] = (str(count),)
    question = texts("agree.type", count=count)
    if plan.manifest.environment == "sandbox":
        question = texts("agree.send")
        answers = _YES
    typed = click.prompt(f"{text}. {question}", default="", show_default=False, err=True)
    if typed.strip().casefold() not in answers:
        raise UsageError(
            "nothing was sent",
            f"Correct the file first, or send it all the same: {typed_command()}",
        )
    return True
