"""The command `check`: prints on stdout each thing that was checked, what is wrong, and how to fix it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, start
from orderbridge.pipelines.cli.terminal import escape_lines, print_result
from orderbridge.sources.errors import ExitCode

if TYPE_CHECKING:
    from orderbridge.pipelines.cli.console import Reporter
    from orderbridge.pipelines.pull.check import CheckResult


@declared("check")
def command() -> int:
    """Check settings, permissions, keys and one page of each list.

    Each problem is printed with its fix. Nothing is changed. The exit code is that of the most severe problem.
    """
    with start(sends_keys=True) as reporter:
        return run_checks(reporter)


def run_checks(reporter: Reporter) -> ExitCode:
    """Checks everything and reports each result at once. Returns the exit code of the most severe problem."""
    from orderbridge.pipelines.pull.check import check, worst_exit_code

    return worst_exit_code([_reported(result, reporter) for result in check(STOP.event)])


def _reported(result: CheckResult, reporter: Reporter) -> CheckResult:
    is_ok = not result.is_warning and result.exit_code == ExitCode.DONE
    mark = (
        "warn" if result.is_warning else "ok" if is_ok and result.what else "" if is_ok else "wrong"
    )
    record = {"what": result.what, "ok": is_ok, "exit_code": int(result.exit_code)}
    text = escape_lines(f"{mark:<6}{result.what}{': ' * bool(result.what)}{result.message}")
    print_result("check", text.split("\n"), record, reporter.style)
    sys.stdout.flush()
    return result
