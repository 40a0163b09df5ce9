"""The command `push`: sends a plan, shows progress with rate and remaining time, and prints the result.

In: options. Out: progress on stderr, the result on stdout, for people or machines. No value of a row is printed.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from orderbridge.pipelines.cli import terminal
from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, print_error, start
from orderbridge.pipelines.cli.terminal import Style, escape
from orderbridge.sources.errors import BridgeError, ExitCode, UsageError
from orderbridge.sources.words import number

if TYPE_CHECKING:
    from orderbridge.pipelines.cli.console import Reporter
    from orderbridge.pipelines.plan.model import Plan
    from orderbridge.pipelines.push.model import PushOptions, PushResult

_YES: Final = ("y", "yes", "s", "si", "sí")


def send(plan: Path, options: PushOptions, reporter: Reporter) -> PushResult:
    """Pushes a plan, or resumes it, and shows how far it is: pages of customers, then operations with their rate."""
    from orderbridge.pipelines.push.model import PushHooks
    from orderbridge.pipelines.push.run import push

    begin: tuple[float, int] | None = None

    def on_operation(done: int, total: int) -> None:
        nonlocal begin
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
    """The result of a push for JSON."""
    return {
        "plan_id": result.plan.manifest.plan_id,
        "folder": result.plan.folder,
        "operations": result.states,
        "sent": result.sent,
        "lines": {
            f"{file}.{outcome}": count for (file, outcome), count in sorted(result.lines.items())
        },
        "settles_at": result.settles_at,
        "broke": result.broke,
        "exit_code": STOP.exit_code(result.exit_code),
    }


def lines_of(result: PushResult, workbook: Path | None = None) -> list[str]:
    """The result of a push as text, and what to do next; `workbook` has the result of each line, if there is one."""
    from orderbridge.pipelines.ledger.model import FINAL_STATES
    from orderbridge.pipelines.plan.model import RESULTS_FOLDER
    from orderbridge.pipelines.push.eligibility import ENDS, format_time
    from orderbridge.pipelines.push.passwords import PASSWORDS_FILE
    from orderbridge.pipelines.push.resolutions import ABANDONED
    from orderbridge.pipelines.push.results import LEFT_OUT, RESULT_FILES, STATUSES
    from orderbridge.sources.files.workbook import CORRECTIONS_SHEET

    manifest, folder = result.plan.manifest, result.plan.folder
    lines = [
        f"{number(manifest.lines, 'line')} of {manifest.kind}, for {manifest.host} ({manifest.environment}):"
    ]
    if result.states and not result.sent and result.states.keys() <= set(FINAL_STATES):
        lines.append("nothing was left to send; earlier pushes:")
    for file in RESULT_FILES:
        outcomes = Counter(
            {outcome: count for (name, outcome), count in result.lines.items() if name == file}
        )
        if file == "in_doubt" and (abandoned := outcomes.pop("abandoned", 0)):
            lines.append(f"  {abandoned:>8}  {ABANDONED}")
        left_out = {STATUSES[name]: outcomes.pop(name) for name in LEFT_OUT if name in outcomes}
        if outcomes.total():
            detail = ", ".join(
                f"{count} {outcome.replace('_', ' ')}" for outcome, count in outcomes.most_common()
            )
            more = "" if set(outcomes) <= {file, "not_sent"} else f" ({detail})"
            lines.append(f"  {outcomes.total():>8}  {STATUSES.get(file, 'not sent')}{more}")
        lines += [f"  {count:>8}  {text}" for text, count in left_out.items()]
    lines.append(f"result of each line: {workbook or folder / RESULTS_FOLDER}")
    if (folder / PASSWORDS_FILE).exists():
        lines.append(f"generated passwords: {folder / PASSWORDS_FILE}")
    if any(file == "rejected" for file, _ in result.lines) and not result.stopped:
        lines += (
            [
                "results/rejected.csv has each reason; correct these lines in a file of their own, and plan it"
            ]
            if workbook is None
            else [
                f"{workbook.name}, sheet `{CORRECTIONS_SHEET}`, has the rejected lines: correct and save it, then run",
                f"  orderbridge import {manifest.kind} {shlex.quote(str(workbook))}",
            ]
        )
    if any(result.lines["unsent", outcome] for outcome in ("blocked", *ENDS)):
        lines.append("results/unsent.csv has the reason for each of them, and what to do")
    if result.broke:
        lines.append("the push ended early: too many outcomes in a row were in doubt")
    if result.stopped:
        lines.append("stopped; run the same command again to continue")
    if result.settles_at is not None:
        lines.append(
            f"run it again from {format_time(result.settles_at)}: operations in doubt can be looked up then"
        )
    elif result.exit_code == ExitCode.IN_DOUBT:
        lines.append(
            "results/in_doubt.csv lists what to do about each, such as --resend; then run it again"
        )
    return lines


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

    The outcome of each line is in the plan's folder, under results. Outcomes in doubt make the exit code 6: run the
    same command again after the time that it prints.
    """
    reporter = start()
    from orderbridge.pipelines.ledger.push_log import publish_push_log
    from orderbridge.pipelines.plan.model import Plan
    from orderbridge.pipelines.push.model import PushOptions

    agreed = yes
    if not yes and confirm is None and sys.stdin.isatty():
        to_send = Plan(plan)
        agreed = to_send.manifest.environment == "sandbox" and agree(to_send)
    result = send(
        plan, PushOptions(confirm=confirm, agreed=agreed, settle_s=settle, **options), reporter
    )
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


def refresh_workbook(plan: Plan) -> None:
    """Writes the workbook of an import again, after its results have changed."""
    from orderbridge.pipelines.import_file.result import has_result, write_result

    if has_result(plan.folder):
        try:
            write_result(plan)
        except UsageError as error:
            print_error(
                error.exit_code, f"the workbook is that of before: {error}", "orderbridge: "
            )


def agree(plan: Plan, examples: Sequence[str] = ()) -> bool:
    """Shows examples on a terminal and asks whether to send; for production, the number has to be typed."""
    if not sys.stdin.isatty():
        return False
    from orderbridge.pipelines.push.checks import describe_plan, operations_left

    for line in examples:
        click.echo(f"  {escape(line)}", err=True)
    text, (count, _) = escape(describe_plan(plan)), operations_left(plan)
    is_sandbox = plan.manifest.environment == "sandbox"
    question, answers = (
        ("Send? [y/N]", _YES) if is_sandbox else (f"To send, type {count}", (str(count),))
    )
    typed = click.prompt(f"{text}. {question}", default="", show_default=False, err=True)
    if typed.strip().casefold() not in answers:
        hint = f"Correct the file first, or run the same command again to send {plan.folder}, which may be removed."
        raise UsageError("nothing was sent", hint)
    return True
