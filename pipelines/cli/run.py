"""The command `run`: pull and reconcile, published once. What a scheduler calls."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orderbridge.pipelines.cli import pull as pull_command
from orderbridge.pipelines.cli import reconcile as reconcile_command
from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, settings_origin, start
from orderbridge.pipelines.cli.terminal import Style, print_lines, print_result
from orderbridge.sources.command_line import program
from orderbridge.sources.contract import LISTS
from orderbridge.sources.words import VERDICTS, number

if TYPE_CHECKING:
    from orderbridge.pipelines.cli.console import Reporter
    from orderbridge.pipelines.pull.model import PullResult
    from orderbridge.pipelines.reconcile.erp.files import ErpFiles
    from orderbridge.pipelines.reconcile.reconcile import FailOn, ReconcileResult
    from orderbridge.pipelines.reporting.headline import Headline
    from orderbridge.sources.extract.result import ListResult

_ERP: Final = "erp_customers"


@declared("run")
def command(
    notify: str | None,
    fail_on: FailOn,
    report: Path | None,
    verbose: bool,
    **options: Any,  # noqa: ANN401 # checked by click
) -> int:
    """Pull every list, reconcile, publish once: the command for a scheduler."""
    with start(sends_keys=True) as reporter:
        from orderbridge.pipelines.reconcile.erp.files import ErpFiles
        from orderbridge.pipelines.reporting.headline import headline_of_run
        from orderbridge.pipelines.reporting.notification import notify_failure, notify_result
        from orderbridge.sources.settings import NotifySettings, Secret, notify_settings

        if reporter.style == "json":  # of a run that is killed, the log has this line
            reporter.event("started", "the run began", pid=os.getpid(), **settings_origin())
        files = ErpFiles(**{item.name: options.pop(item.name) for item in fields(ErpFiles)})
        notified = notify_settings() if notify is None else NotifySettings(url=Secret(notify))
        with (
            _headline_of_failure(reporter),
            notify_failure(notified.url, signal_code=STOP.exit_code),
        ):
            result, reconciled = _run(files, fail_on, report, options, reporter)
        notify_result(notified, result, reconciled)
        _report_headline(reporter, headline_of_run(result, reconciled))
    _print(result, reconciled, reporter.style, is_verbose=verbose)
    if reporter.style != "json" and reconciled is not None and files.result is not None:
        print_lines(f"comparison: {files.result}")
    return result.exit_code


def _run(
    files: ErpFiles,
    fail_on: FailOn,
    report: Path | None,
    options: dict[str, Any],
    reporter: Reporter,
) -> tuple[PullResult, ReconcileResult | None]:
    """Pulls, reconciles, publishes, and writes the report and the comparison.

    Where one of these files cannot be written, it ends before the first request.
    """
    from orderbridge.pipelines.pull.model import PullOptions
    from orderbridge.pipelines.pull.pull import pull
    from orderbridge.pipelines.reconcile.reconcile import Reconciling
    from orderbridge.pipelines.reporting.erp_result import result_target, write_erp_result
    from orderbridge.pipelines.reporting.report import check_ending, report_target
    from orderbridge.pipelines.reporting.report import report as write_report
    from orderbridge.pipelines.warehouse.failure import publish_and_write, record_failure
    from orderbridge.sources.settings import is_new_project, warehouse_path

    reconciling = Reconciling(files, fail_on=fail_on)
    with record_failure(warehouse_path(), "run", datetime.now(UTC)):
        if report is not None:
            if is_new_project():  # the nights of another one go on
                check_ending(report, "--report")
            report_target(report, "--report")
        if files.result is not None:
            result_target(files.result)

    def read() -> PullResult:
        reporter.begin("pull")
        wanted = PullOptions(**options, command="run")
        return pull(wanted, reporter.progress, STOP.event, reconciling)

    def write() -> None:
        if reconciling.result is None:
            return
        if report is not None:
            write_report(report)
        if files.result is not None:
            write_erp_result(files.result, files)

    result = publish_and_write(read, write)
    return result, reconciling.result


def _print(
    result: PullResult, reconciled: ReconcileResult | None, style: Style, *, is_verbose: bool
) -> None:
    if is_verbose or style == "json":
        pull_command.print_pull(result, style)
        if reconciled is not None:
            reconcile_command.print_reconcile(reconciled, style)
    if not is_verbose or style == "json":
        record = {"exit_code": result.exit_code}
        print_result("ended", summary(result, reconciled), record, style)


@contextmanager
def _headline_of_failure(reporter: Reporter) -> Iterator[None]:
    """Reports what happened, and the command that is next, where the block fails."""
    from orderbridge.pipelines.reporting.headline import headline_of_error

    try:
        yield
    except Exception as error:
        _report_headline(reporter, headline_of_error(error))
        raise


def _report_headline(reporter: Reporter, headline: Headline) -> None:
    """Prints what happened and the next command as events, for a script that mails them."""
    if reporter.style != "json":
        return
    reporter.event("headline", headline.happened)
    if headline.has_command:
        reporter.event("next", headline.todo)


def new_question(question: str) -> str:
    """A question that is asked for the first time, with the command that shows it."""
    return f"new question: {program()} questions {shlex.quote(question)}"


def first_questions() -> list[str]:
    """What a first run has assumed, and what is open and therefore null, with the commands; empty where nothing is."""
    from orderbridge.pipelines.cli.questions import confirmation, rows
    from orderbridge.pipelines.questions.meanings import Meanings
    from orderbridge.pipelines.questions.model import PRESSING

    asked = [one for one in Meanings().asked() if one.state in PRESSING]
    if not asked:
        return []
    return [
        "what values mean, until you answer (open: left empty; assumed: used as it is shown):",
        *(f"  {line}" for line in [*rows(asked), *confirmation(asked)]),
    ]


def summary(result: PullResult, reconciled: ReconcileResult | None) -> list[str]:
    """What a run did: lists, what is wrong with one, tables, findings, the match, and where it was published."""
    lines = _read_lines(result)
    if reconciled is not None:
        lines += _reconciled_lines(reconciled, {one.resource: one.distinct for one in result.lists})
        if reconciled.is_first and result.ledger_error is None:  # evidence of some is in the ledger
            lines += first_questions()
        if reconciled.match:
            lines += reconcile_command.match_lines(reconciled.match, brief=True)
        if reconciled.variants:
            lines += reconcile_command.variant_lines(reconciled.variants)
    return lines + pull_command.ending(result)


def _read_lines(result: PullResult) -> list[str]:
    """The lists with their sizes, the problem of each that has one, and how many rows are quarantined.

    What is to be done about several lists is there once.
    """
    lists = (
        f"{_size(walked)}{walked.resource.replace('_', ' ')} ({VERDICTS[walked.verdict]})"
        for walked in result.lists
    )
    lines = [f"read: {', '.join(lists)}"]
    for walked in result.lists:
        if problem := result.problem(walked):
            shown = f"{walked.resource}: {problem}".split("\n")
            lines += [line for line in shown if line not in lines]
    if quarantined := sum(len(walked.quarantined) for walked in result.lists):
        lines.append(f"{number(quarantined, 'row')} quarantined: reasons in ops.quarantine")
    return lines


def _size(walked: ListResult) -> str:
    """How many records were read of a list; nothing of one that failed, whose records stay."""
    return f"{walked.distinct} " if walked.error is None else ""


def _reconciled_lines(reconciled: ReconcileResult, read: Mapping[str, int]) -> list[str]:
    """The tables that have another size than their list, the findings, what left the revenue, and new questions."""
    tables = [name for name in LISTS if read.get(name) != reconciled.rows.get(name)]
    sizes = reconcile_command.sizes(reconciled, tables)
    return [
        *([sizes] if sizes else []),
        *_finding_lines(reconciled),
        *(one.text for one in reconciled.new_rules),
        *reconciled.left_revenue,
        *(new_question(one) for one in reconciled.new_questions),
    ]


def _finding_lines(reconciled: ReconcileResult) -> list[str]:
    """The findings by severity, and those that are named; empty where there are none."""
    from orderbridge.pipelines.warehouse.finding_history import in_words

    if not reconciled.severities:
        return []
    counts = [f"{count} {severity}" for severity, count in reconciled.severities.most_common()]
    shown = ", ".join(counts)
    if not reconciled.match:
        kept = sum(count for entity, *_, count in reconciled.findings if entity == _ERP)
        shown += f" ({kept} of the last comparison with the ERP)" if kept else ""
    if reconciled.new:
        shown += f" ({in_words(reconciled.new)[0]})"
    return [
        f"findings: {shown}; --verbose lists them, orderbridge report says what to do",
        *(f"  {one}" for one in reconciled.named),
    ]
