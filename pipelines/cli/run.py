"""The command `run`: pull and reconcile, published once. What a scheduler calls."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli import pull as pull_command
from pipelines.cli import reconcile as reconcile_command
from pipelines.cli.options import erp_options, fail_on_option, log_option, path_option, pull_options
from pipelines.cli.process import STOP, exit_process, start
from pipelines.cli.terminal import Style

if TYPE_CHECKING:
    from pipelines.reconcile.reconcile import FailOn


@click.command(
    "run", epilog="Example, in a crontab: 15 3 * * * cd /srv/orderbridge && .venv/bin/orderbridge run --log json"
)
@pull_options
@erp_options
@fail_on_option
@click.option(
    "--notify",
    metavar="URL",
    help="Webhook (Slack, Teams …) that gets the run's summary as JSON. Default: the setting notify.url. Other users "
    "can see a URL given here in the process list: set one with a token as NOTIFY__URL or in .dlt/secrets.toml.",
)
@path_option("--report", help="Write the report to this file when it has published, as `orderbridge report` does.")
@log_option
def command(notify: str | None, fail_on: FailOn, style: Style, report: Path | None, **options: Any) -> None:  # noqa: ANN401 # checked by click
    """Pull every list, reconcile, publish once: what a scheduler calls."""
    with start(style) as reporter:
        from pipelines.pull.model import PullOptions
        from pipelines.pull.pull import pull
        from pipelines.reconcile.erp_files import ErpFiles
        from pipelines.reconcile.reconcile import Reconciling
        from pipelines.reporting.notification import notify_failure, notify_result
        from pipelines.reporting.report import report as write_report
        from pipelines.reporting.report import report_target
        from pipelines.warehouse.failure import record_failure
        from sources.settings import NotifySettings, Secret, notify_settings, warehouse_path

        url = (notify_settings() if notify is None else NotifySettings(url=Secret(notify))).url
        with notify_failure(url):
            with record_failure(warehouse_path(), "run", datetime.now(UTC)):
                if report is not None:
                    report_target(report)  # what cannot be written ends the run before its first request
                files = ErpFiles(**{item.name: options.pop(item.name) for item in fields(ErpFiles)})
                reconciling = Reconciling(files, fail_on=fail_on)
            result = pull(PullOptions(**options, command="run"), reporter.progress, STOP.event, reconciling)
        if report is not None and reconciling.result is not None:
            write_report(report)
        notify_result(url, result, reconciling.result)
    pull_command.print_result(result, reporter.style)
    if reconciling.result is not None:
        reconcile_command.print_result(reconciling.result, reporter.style)
    exit_process(result.exit_code)
