"""The command `check`: prints on stdout each thing that was checked, what is wrong, and how to fix it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipelines.cli.options import log_option
from pipelines.cli.process import STOP, exit_process, start
from sources.errors import ExitCode

if TYPE_CHECKING:
    from pipelines.cli.console import Reporter
    from pipelines.pull.check import CheckResult


@click.command("check", epilog="Example: orderbridge check")
@log_option
def command() -> None:
    """Check settings, permissions, keys and one page of each list.

    Each problem is printed with its fix. Nothing is changed. The exit code is that of the most severe problem.
    """
    with start() as reporter:
        code = run_checks(reporter)
    exit_process(code)


def run_checks(reporter: Reporter) -> ExitCode:
    """Checks everything and reports each result at once. Returns the exit code of the most severe problem."""
    from pipelines.pull.check import check, worst_exit_code

    return worst_exit_code([_reported(result, reporter) for result in check(STOP.event)])


def _reported(result: CheckResult, reporter: Reporter) -> CheckResult:
    if result.is_warning:
        reporter.result("check", f"warn  {result.message}", ok=False)
    elif not result.what:
        reporter.result("check", f"      {result.message}")
    elif result.exit_code == ExitCode.DONE:
        reporter.result("check", f"ok    {result.what}: {result.message}", what=result.what, ok=True)
    else:
        message = f"wrong {result.what}: {result.message}"
        reporter.result("check", message, what=result.what, ok=False, exit_code=int(result.exit_code))
    return result
