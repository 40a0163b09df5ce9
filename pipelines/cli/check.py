"""The command `check`: prints on stdout each thing that was checked, what is wrong, and how to fix it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, start
from orderbridge.pipelines.cli.terminal import escape_lines, print_lines, print_result
from orderbridge.sources.errors import ExitCode

if TYPE_CHECKING:
    from orderbridge.pipelines.cli.console import Reporter
    from orderbridge.pipelines.pull.check import CheckResult


@declared("check")
def command(notify: bool) -> int:
    """Check settings, permissions, keys and one page of each list.

    Each problem is printed with its fix; `retry` marks one of the platform that may pass. Nothing is changed. The exit
    code is that of the most severe problem.
    """
    from orderbridge.pipelines.pull.check import check, check_one, worst_exit_code

    with start(sends_keys=True) as reporter:
        checked = [_reported(result, reporter) for result in check(STOP.event)]
        if notify:
            checked.append(_reported(check_one("test message", _post_test), reporter))
        return worst_exit_code(checked)


def _post_test() -> str:
    from orderbridge.pipelines.reporting.notification import post_test
    from orderbridge.sources.settings import notify_settings

    return post_test(notify_settings().url)


def check_briefly(reporter: Reporter) -> ExitCode:
    """Checks everything. Prints where the keys go and each problem, then how many checks found none."""
    from orderbridge.pipelines.pull.check import check, worst_exit_code

    checked: list[CheckResult] = []
    for result in check(STOP.event, lists_settings=False):
        if result.what:
            checked.append(result)
        if not (result.what and result.is_ok):
            _reported(result, reporter)
    passed = sum(result.is_ok for result in checked)
    print_lines(f"{passed} of {len(checked)} checks are ok; each: orderbridge check")
    return worst_exit_code(checked)


def _reported(result: CheckResult, reporter: Reporter) -> CheckResult:
    mark = "wrong"
    if result.is_warning:
        mark = "warn"
    elif result.is_temporary:
        mark = "retry"
    elif result.is_ok:
        mark = "ok" if result.what else ""
    record = {"what": result.what, "ok": result.is_ok, "exit_code": int(result.exit_code)}
    text = escape_lines(f"{mark:<6}{result.what}{': ' * bool(result.what)}{result.message}")
    print_result("check", text.split("\n"), record, reporter.style)
    sys.stdout.flush()
    return result
