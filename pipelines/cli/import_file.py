"""The command `import`: takes a file to the platform in one run, shows each step, and asks before anything is sent.

In: options. Out: steps and progress on stderr, the result on stdout, for people or machines. Values of the file are
shown only to the person who is asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orderbridge.pipelines.cli import plan as plan_command
from orderbridge.pipelines.cli import push as push_command
from orderbridge.pipelines.cli import verify as verify_command
from orderbridge.pipelines.cli.import_document import ended_early, next_steps, record
from orderbridge.pipelines.cli.import_questions import ask
from orderbridge.pipelines.cli.options import declared, kind_argument
from orderbridge.pipelines.cli.process import (
    KEPT,
    STOP,
    print_error,
    sent_nothing,
    shown_texts,
    start,
)
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.texts import Language, Texts, english
from orderbridge.sources.words import number

if TYPE_CHECKING:
    from orderbridge.pipelines.cli.console import Reporter
    from orderbridge.pipelines.import_file.run import ImportResult, ImportSteps
    from orderbridge.pipelines.plan.make import PlanResult
    from orderbridge.pipelines.push.model import PushOptions


@declared("import")
@kind_argument
@click.argument("file", type=click.Path(path_type=Path))
def command(
    yes: bool,
    confirm: int | None,
    wait: bool,
    resend: bool,
    values: bool,
    sql: bool,
    lang: Language | None,
    **options: Any,  # noqa: ANN401 # checked by click
) -> int:
    """Send a CSV or .xlsx to the platform: plan, show, ask, push, verify; run it again to continue.

    KIND. Nothing is sent before you agree. The outcome of each line
    is in the folder of the plan, under results. A run that was stopped, or that lost answers, is continued by
    the same command, as long as the file is the same.
    """
    reporter = start(sends_keys=True)
    STOP.note = sent_nothing()
    from orderbridge.pipelines.import_file.run import Import, ImportOptions
    from orderbridge.pipelines.push.model import PushOptions
    from orderbridge.pipelines.reporting.notification import notify_failure, notify_import
    from orderbridge.sources.settings import NotifySettings, notify_settings

    is_plan_alone = values and not yes and confirm is None
    is_watched = sys.stdin.isatty() or is_plan_alone  # a person sees how it ends
    notified = NotifySettings() if is_watched else notify_settings()
    if sql:
        with notify_failure(notified.url, "import", STOP.exit_code):
            options["file"] = _result_of_sql(options["file"], reporter)
    push_options = PushOptions(confirm=confirm, agreed=yes, wait=wait, resend=resend)
    is_terminal = sys.stdin.isatty()
    import_options = ImportOptions(
        push=push_options, holds_damaged=not is_terminal, is_watched=is_terminal, **options
    )
    texts = shown_texts(lang)

    def is_brief(made: PlanResult) -> bool:
        return reporter.style != "json" and _is_sent_at_once(made, push_options)

    run = Import(import_options, steps(reporter, lang, texts, is_brief))
    try:
        with notify_failure(notified.url, "import", STOP.exit_code):
            result = run.run()
    except (BridgeError, KeyboardInterrupt) as error:
        if reporter.style == "json":
            known = error if isinstance(error, BridgeError) else None
            print_result("import", [], ended_early(run, known, values=values), reporter.style)
        raise
    code = STOP.exit_code(result.exit_code)
    first_step = next(iter(next_steps(result)), None)
    first_lines = first_step.lines if first_step is not None else []
    further = [line for line in lines_of(result, english()) if line not in first_lines]
    notify_import(notified, result, further, code, str(first_step or ""))
    shown = lines_of(result, texts)
    print_result("import", shown, record(run, result, values=values), reporter.style)
    if (failure := result.push.error or result.error) is not None:
        print_error(result.exit_code, str(failure), "orderbridge: ")
    return STOP.exit_code(result.exit_code)


def _is_sent_at_once(made: PlanResult, options: PushOptions) -> bool:
    """Whether nobody is asked before a plan is sent."""
    manifest = made.manifest
    if options.confirm is not None:
        return manifest.operations <= options.confirm
    return not manifest.operations or (options.agreed and manifest.environment == "sandbox")


def _result_of_sql(statement: Path, reporter: Reporter) -> Path:
    """The file with the result of a SELECT, which is imported in its place."""
    from orderbridge.pipelines.reporting.export import snapshot

    done = snapshot(statement)
    reporter.event("snapshot", f"{statement}: {number(done.rows, 'row')} in {done.file}")
    return done.file


def steps(
    reporter: Reporter,
    language: Language | None = None,
    texts: Texts | None = None,
    is_brief: Callable[[PlanResult], bool] = lambda made: False,
) -> ImportSteps:
    """The steps, shown as their own commands show them.

    `language`: of the workbook, if it was given. `is_brief`: whether the result follows the plan at once, so that the
    plan is shown without what the result repeats.
    """
    texts = texts or english()
    from orderbridge.pipelines.cli.console import Reporter
    from orderbridge.pipelines.import_file.asking import nobody
    from orderbridge.pipelines.import_file.run import ImportSteps
    from orderbridge.pipelines.pull.model import PullOptions, PullResult
    from orderbridge.pipelines.pull.pull import pull
    from orderbridge.pipelines.push.model import PushResult

    def run_pull(options: PullOptions) -> PullResult:
        before = STOP.note
        STOP.note = KEPT
        with Reporter(reporter.style, reporter.phase) as bars:
            result = pull(replace(options, command="import"), bars.progress, STOP.event)
        STOP.note = before
        return result

    def run_push(folder: Path, options: PushOptions) -> PushResult:
        return push_command.send(folder, options, Reporter(reporter.style, reporter.phase))

    def on_plan(made: PlanResult) -> None:
        plan_command.print_warnings(made, reporter)
        lines = plan_command.summary_lines(made, texts=texts, is_sent_at_once=is_brief(made))
        reporter.event("planned", "\n".join(lines), **plan_command.record(made))

    def on_step(step: str, text: str) -> None:
        if step != "pull" or reporter.style == "json":  # its progress shows that a list is read
            reporter.event(step, text)

    return ImportSteps(
        pull=run_pull,
        push=run_push,
        agree=partial(push_command.agree, texts=texts),
        on_phase=reporter.begin,
        on_plan=on_plan,
        on_step=on_step,
        ask=partial(ask, texts=texts) if sys.stdin.isatty() else nobody,
        texts=texts,
        language=language or (None if texts.language == "en" else texts.language),
    )


def lines_of(result: ImportResult, texts: Texts) -> list[str]:
    """The result as text."""
    found = result.verification
    return [
        *push_command.count_lines(result.push, texts),
        *(verify_command.import_lines(found, texts) if found is not None else []),
        *push_command.file_lines(result.push, result.file, texts),
        *push_command.end_lines(result.push, next_steps(result), texts),
    ]
