"""The command `demo`: the whole bridge against the built-in sandbox, without settings, inside one folder.

In: a folder. Out: a warehouse pulled and reconciled; two ERP files imported (the first import is killed in the middle
and continued by the same command) and verified. Each step is printed on stdout.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pipelines.cli import import_file as import_command
from pipelines.cli import pull as pull_command
from pipelines.cli import push as push_command
from pipelines.cli import reconcile as reconcile_command
from pipelines.cli.demo_files import CUSTOMERS_FILE, VARIANTS_FILE, write_files
from pipelines.cli.process import STOP, exit_process, prepare_environment, start
from pipelines.cli.terminal import Style, escape, print_lines
from sources.disk import disk_errors
from sources.errors import BridgeError, ExitCode, UsageError

if TYPE_CHECKING:
    from pipelines.import_file.run import ImportResult
    from pipelines.reconcile.erp_files import ErpFiles
    from sandbox.state import State
    from sources.kinds import KindName

_MARK: Final = ".orderbridge-demo"
KILL_AFTER: Final = 20
"""The import is killed once this many customers have been created."""
PUSH_TIMEOUT_S: Final = 30.0
LATENCY_MS: Final = 15.0
_ORDERS: Final = 1_200
NEW_ORDERS: Final = 4
"""Placed between the two runs."""
_NEEDED: Final = ("erpCode", "email", "firstName", "lastName")


@click.command("demo", epilog="Example: orderbridge demo")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Folder of the demo; the folder of an earlier demo is replaced.",
)
def command(folder: Path) -> None:
    """Show the whole bridge against the built-in sandbox; no settings needed.

    Pull, reconcile, import, a crash in the middle, import again, verify. Nothing outside the folder is touched.
    """
    demo(folder, start("auto").style)
    exit_process(ExitCode.DONE)


def demo(folder: Path, style: Style) -> None:
    """Runs every step. Raises UsageError if the folder holds files that are not a demo's, BridgeError if one failed."""
    from pipelines.reconcile.erp_files import ErpFiles
    from sandbox import SandboxConfig, serve
    from sandbox.config import settings
    from sources.settings.setting import variable

    _fresh(folder)
    _isolate(folder)
    os.chdir(folder)
    started_at = time.monotonic()
    with serve(SandboxConfig(seed=7, orders=_ORDERS, latency_ms=LATENCY_MS)) as platform:
        names = {"warehouse.path": "warehouse.duckdb", "ledger.path": "ledger.sqlite"}
        paths = {key: str(Path(name).absolute()) for key, name in names.items()}
        os.environ |= {variable(key): value for key, value in (settings(platform.url) | paths).items()}
        click.echo(f"A stand-in for the platform is listening on {platform.url}.")
        _step("Pull and reconcile: the platform's lists, published in one DuckDB file, all or nothing")
        _run(style, ErpFiles())
        write_files(Path(), [row for row in platform.state.records("customers") if all(map(row.get, _NEEDED))])
        _step(f"Import {CUSTOMERS_FILE}, exported from an ERP, and kill the process in the middle (SIGKILL)")
        _import_and_kill(platform.state, len(platform.state.customer_inputs) + KILL_AFTER)
        click.echo(
            f"The platform had created {len(platform.state.customer_inputs)} customers when the import was killed. One "
            "answer was outstanding:\nwhether that customer exists is unknown, so the request is not simply repeated."
        )
        _step("The same command again: wait until the outcome can be known, look that customer up, go on, verify")
        customers = _import("customers", CUSTOMERS_FILE, style)
        created = Counter(str(body.get("erpCode")) for body in platform.state.customer_inputs)
        twice = sum(count > 1 for count in created.values())
        click.echo(f"The platform has {len(created)} new customers, {twice or 'none'} of them twice.")
        _step(f"Import {VARIANTS_FILE}: prices, stock and codes of variants")
        variants = _import("variants", VARIANTS_FILE, style)
        sold = platform.state.variants[10, 1038].fields
        click.echo(f"19.367,25 in the file is {sold['price']} on the platform, and 00038 is {sold['sku']!r}.")
        _step(f"Run again, compared with {CUSTOMERS_FILE} and {VARIANTS_FILE}")
        platform.state.grow("orders", NEW_ORDERS)
        files = [Path(CUSTOMERS_FILE), Path(VARIANTS_FILE)]
        _run(style, ErpFiles(*(path for file in files for path in (file, file.with_suffix(".toml")))))
    _where_to_look(folder, customers.plan.folder, variants.plan.folder)
    click.echo(f"Done in {time.monotonic() - started_at:.0f} s.")
    if twice:
        raise BridgeError("a customer was created twice")


def _isolate(folder: Path) -> None:
    """Hides the user's own settings, except whose folders are trusted: nothing may be copied to their destination."""
    from sources.settings import set_project
    from sources.settings.sections import SECTIONS
    from sources.settings.setting import variable

    for name in list(os.environ):
        if name.upper().startswith(tuple(f"{variable(section)}__" for section in SECTIONS if section != "files")):
            del os.environ[name]
    set_project(folder)
    prepare_environment()


def _step(title: str) -> None:
    click.echo(f"\n── {title}")


def _run(style: Style, erp_files: ErpFiles) -> None:
    from pipelines.cli.console import Reporter
    from pipelines.pull.model import PullOptions
    from pipelines.pull.pull import pull
    from pipelines.reconcile.reconcile import Reconciling

    reconciling = Reconciling(erp_files)
    with Reporter(style) as reporter:
        result = pull(PullOptions(command="run"), reporter.progress, STOP.event, reconciling)
    pull_command.print_result(result, style)
    if result.exit_code not in (ExitCode.DONE, ExitCode.REJECTED, ExitCode.FINDINGS) or reconciling.result is None:
        raise BridgeError(f"the run ended with exit code {int(result.exit_code)}")
    notes = {"error": " (planted in the ERP file on purpose)"}
    parts = (
        f"{count} {severity}{notes.get(severity, '')}" for severity, count in reconciling.result.severities.items()
    )
    click.echo(f"findings: {', '.join(parts)}")
    if reconciling.result.match is not None:
        click.echo(reconcile_command.match_lines(reconciling.result.match)[0])
    if reconciling.result.variants is not None:
        click.echo(reconcile_command.variant_lines(reconciling.result.variants)[0])


def _import(kind: KindName, file: str, style: Style) -> ImportResult:
    """Imports a file of the demo. The sandbox answers in milliseconds, so a doubt can be settled within seconds.

    Raises:
        BridgeError: it ended with another exit code than 5: the files have lines to reject.
    """
    from pipelines.cli.console import Reporter
    from pipelines.import_file.run import ImportOptions, import_file
    from pipelines.push.model import PushOptions

    push_options = PushOptions(agreed=True, settle_s=2.0, wait=True)
    options = ImportOptions(kind=kind, file=Path(file), mapping=Path(file).with_suffix(".toml"), push=push_options)
    steps = replace(
        import_command.steps(Reporter(style)),
        push=lambda plan, options: push_command.send(plan, options, Reporter(style), deadline_s=1.0),
        on_plan=lambda made: click.echo(f"planned: {import_command.outcome_counts(made)}"),
        on_step=lambda step, text: None,
    )
    result = import_file(options, steps)
    print_lines(*import_command.lines_of(result))
    if (error := result.push.error or result.error) is not None:
        raise error
    if result.exit_code != ExitCode.REJECTED:
        raise BridgeError(f"the import ended with exit code {result.exit_code}")
    return result


def _import_and_kill(state: State, created: int) -> None:
    """Imports the customers in another process, and kills it once that many have been created."""
    words = ["import", "customers", CUSTOMERS_FILE, "--mapping", "clientes.toml", "--yes", "--log", "plain"]
    command = [sys.executable, "-m", "pipelines.cli", *words]
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
    with subprocess.Popen(  # noqa: S603 # our own command
        command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        until = time.monotonic() + PUSH_TIMEOUT_S
        while len(state.customer_inputs) < created:
            if process.poll() is not None or time.monotonic() > until:
                process.kill()
                stderr = process.communicate()[1].decode(errors="replace").strip()
                raise BridgeError(f"the import to be killed ended by itself ({process.returncode}): {stderr}")
            time.sleep(0.002)
        process.kill()


def _fresh(folder: Path) -> None:
    hint = "Name another folder: orderbridge demo --folder NAME"
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise UsageError(f"{folder} holds files that are not a demo's", hint)
    with disk_errors(f"{folder} cannot be created", hint):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / _MARK).touch()


def _where_to_look(folder: Path, customers: Path, variants: Path) -> None:
    from pipelines.reporting.report import report

    page = Path("report.html")
    report(page)
    files = {
        page.name: "one page about the warehouse: open it in a browser",
        f"{CUSTOMERS_FILE}, {VARIANTS_FILE}": "the ERP files, each with its mapping (.toml)",
        f"{customers.name}/": "result.xlsx with each line and lines to correct, summary.md, passwords.csv",
        f"{variants.name}/operations.jsonl": "each request as it was sent",
        "warehouse.duckdb": "schemas raw, reconciled and ops; ops.coverage has the verdict of each list",
    }
    width = max(map(len, files))
    _step(f"Where to look, in {escape(folder)}")
    for name, description in files.items():
        click.echo(f"{name:<{width}}  {description}")
    click.echo("Next: make notebooks       (the notebooks, executed with this warehouse, as pages for a browser)")
    click.echo("      orderbridge report   (the same page, for a warehouse of yours: orderbridge init)")
