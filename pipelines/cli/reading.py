"""The commands that read: pull, run, reconcile, check, status, report."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pipelines.cli.process import STOP, F, end, json_option, log_option, started
from sources.contract import LISTS

if TYPE_CHECKING:
    from pipelines.reconcile.erp_customers import ErpFiles

RESOURCES: Final = tuple(LISTS)


def _pull_options(function: F) -> F:
    for option in (
        click.option("--accept-shrink", is_flag=True, help="Take a list that is much smaller than it was."),
        click.option("--require-complete", is_flag=True, help="Publish nothing unless every list is proven complete."),
        click.option(
            "--sweeps",
            type=click.IntRange(1, 6),
            default=6,
            show_default=True,
            help="At most so many sweeps over a list paged by numbers; two that agree are enough, one proves nothing.",
        ),
    ):
        function = option(function)
    return function


def _erp_options(function: F) -> F:
    for name, told in (
        ("--erp-variants-mapping", "The same for the variants' columns."),
        ("--erp-variants", "The ERP's variants: which are as the platform last confirmed them, by the ledger."),
        (
            "--erp-mapping",
            "Which of the customers' columns are which fields; read by their names where it is not told.",
        ),
        ("--erp-customers", "The ERP's customers, CSV or .xlsx: who is who, and in what both sides differ."),
    ):
        function = click.option(name, type=click.Path(path_type=Path), metavar="FILE", help=told)(function)
    return function


@click.command(epilog="Example: orderbridge pull customers orders --require-complete")
@click.argument("resource", nargs=-1, type=click.Choice(RESOURCES), metavar="[RESOURCE]...")
@_pull_options
@log_option
def pull(resource: tuple[str, ...], sweeps: int, require_complete: bool, accept_shrink: bool, style: str) -> None:
    """Walk the lists to their ends and publish the raw tables.

    RESOURCE: customers, promotions, price_lists, orders; all of them where none is named. A list whose walk fails
    keeps its old table and the exit code says so; where every list fails, nothing is published.
    """
    _pull("pull", resource, sweeps, require_complete, accept_shrink, style)


@click.command(epilog="Example, in a crontab: 15 3 * * * cd /srv/orderbridge && .venv/bin/orderbridge run --log json")
@_pull_options
@_erp_options
@log_option
def run(
    sweeps: int,
    require_complete: bool,
    accept_shrink: bool,
    erp_customers: Path | None,
    erp_mapping: Path | None,
    erp_variants: Path | None,
    erp_variants_mapping: Path | None,
    style: str,
) -> None:
    """What a scheduler calls: pull every list, reconcile, publish once."""
    from pipelines.reconcile.erp_customers import ErpFiles

    files = ErpFiles(erp_customers, erp_mapping, erp_variants, erp_variants_mapping)
    _pull("run", (), sweeps, require_complete, accept_shrink, style, files)


@click.command(epilog="Example: orderbridge reconcile --erp-customers clientes.csv")
@_erp_options
@log_option
def reconcile(
    erp_customers: Path | None,
    erp_mapping: Path | None,
    erp_variants: Path | None,
    erp_variants_mapping: Path | None,
    style: str,
) -> None:
    """Build the reconciled tables from the published raw ones: what they mean, and what does not fit.

    With --erp-customers, the ERP's customers are matched with the platform's: by the ERP's code, else by the login
    code, the e-mail address, the number of a document. A line that does not fit its file is told, and the exit code is
    5.
    """
    with started(style) as reporter:
        from pipelines.reconcile.erp_customers import ErpFiles
        from pipelines.reconcile.reconcile import reconcile as reconcile_tables

        made = reconcile_tables(ErpFiles(erp_customers, erp_mapping, erp_variants, erp_variants_mapping))
    reporter.reconciled(made)
    end(made.exit_code)


def _pull(
    command: str,
    resource: tuple[str, ...],
    sweeps: int,
    require_complete: bool,
    accept_shrink: bool,
    style: str,
    files: ErpFiles | None = None,
) -> None:
    with started(style) as reporter:
        from pipelines.pull.pull import PullOptions
        from pipelines.pull.pull import pull as pull_lists
        from pipelines.reconcile.reconcile import Reconciling
        from pipelines.warehouse.failure import record_failure
        from sources.settings import warehouse_path

        wanted = PullOptions(tuple(dict.fromkeys(resource)), sweeps, require_complete, accept_shrink, command)
        reconciling = None
        if command == "run":
            with record_failure(warehouse_path(), command, datetime.now(UTC)):
                reconciling = Reconciling(files)
        pulled = pull_lists(wanted, reporter.progress, STOP.event, reconciling)
    reporter.pulled(pulled)
    if reconciling is not None and reconciling.made is not None:
        reporter.reconciled(reconciling.made)
    end(pulled.exit_code)


@click.command(epilog="Example: orderbridge check")
@log_option
def check(style: str) -> None:
    """Look at settings, permissions, keys and one page of each list; say what is wrong and how to mend it."""
    with started(style) as reporter:
        from pipelines.pull.check import check as check_all

        code = check_all(reporter.event, STOP.event)
    end(code)


@click.command(epilog="Example, for a monitor: orderbridge status --max-age 26 --json")
@click.option(
    "--max-age", type=click.FloatRange(min=0), metavar="HOURS", help="Exit 7 where a list is older than this."
)
@json_option
def status(max_age: float | None, as_json: bool) -> None:
    """Show the last runs, the verdict and age of each list, and the failure since, if there is one."""
    started("plain")
    from pipelines.reporting.status import status as show

    end(show(max_age, as_json))


@click.command(epilog="Example: orderbridge report --out bridge.html")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The file; a report that is there is replaced.",
)
def report(out: Path) -> None:
    """Write one HTML page about the published warehouse, for a mail or a share; it holds no personal data.

    Coverage, findings with what to do about each, the comparison with the ERP, price lists, promotions, orders. A new
    file can be read by you alone (mode 0600); one that is replaced keeps its mode.
    """
    started("plain")
    from pipelines.reporting.report import report as write

    told = write(out)
    click.echo(f"wrote {out}: as of run {told.run['run_id']}, {sum(row['findings'] for row in told.findings)} findings")
