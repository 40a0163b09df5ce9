"""The command `demo`: the whole bridge against the built-in sandbox, without settings, inside one folder.

In: a folder. Out: what a user would type, each command in a process of its own, with what it prints: pull and
reconcile, two ERP files imported (the first import is killed in the middle and continued by the same command), run
again.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pipelines.cli.demo_files import CUSTOMERS_FILE, VARIANTS_FILE, write_files
from pipelines.cli.process import STOP, exit_process
from pipelines.cli.terminal import escape
from sources.disk import disk_errors
from sources.errors import BridgeError, ExitCode, UsageError

if TYPE_CHECKING:
    from sandbox.state import State

_MARK: Final = ".orderbridge-demo"
KILL_AFTER: Final = 20
"""The import is killed once this many customers have been created."""
LATENCY_MS: Final = 15.0
_ORDERS: Final = 1_200
NEW_ORDERS: Final = 4
"""Placed between the two runs."""
_NEEDED: Final = ("erpCode", "email", "firstName", "lastName")
_REQUEST_TIMEOUT_S: Final = "3"
"""The sandbox answers in milliseconds: what a killed import has sent is over after this time."""
_IMPORT_CUSTOMERS: Final = ("import", "customers", CUSTOMERS_FILE, "--passwords", "file", "--yes")
_WHERE: Final = f"""
report.html                        one page about the warehouse: open it in a browser
{CUSTOMERS_FILE}, {VARIANTS_FILE}        the ERP files; mappings/ has which column was taken for which field
plan-customers-*/                  result.xlsx with each line and lines to correct, summary.md, passwords.csv
plan-variants-*/operations.jsonl   each request as it was sent
warehouse.duckdb                   schemas raw, reconciled, ops and bi: docs/bi.md has SQL for ten questions
Next: make notebooks       (the notebooks, executed with this warehouse, as pages for a browser)
      orderbridge init     (a project of yours)"""


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
    STOP.listen()
    demo(folder)
    exit_process(ExitCode.DONE)


def demo(folder: Path) -> None:
    """Runs every step. Raises UsageError if the folder holds files that are not a demo's, BridgeError if one failed."""
    from sandbox import SandboxConfig, serve

    _fresh(folder)
    started_at = time.monotonic()
    with serve(SandboxConfig(seed=7, orders=_ORDERS, latency_ms=LATENCY_MS)) as platform:
        state, shell = platform.state, _Shell(folder, platform.url)
        click.echo(f"A stand-in for the platform is listening on {platform.url}.")
        _step("Pull and reconcile: the platform's lists, published in one DuckDB file, all or nothing")
        shell.run("run", "--verbose")
        write_files(folder, [row for row in state.records("customers") if all(map(row.get, _NEEDED))])
        _step(f"Import {CUSTOMERS_FILE}, exported from an ERP, and kill the process in the middle (SIGKILL)")
        shell.kill(state, len(state.customer_inputs) + KILL_AFTER, *_IMPORT_CUSTOMERS)
        click.echo(
            f"The platform had created {len(state.customer_inputs)} customers when the import was killed. One "
            "answer was outstanding:\nwhether that customer exists is unknown, so the request is not simply repeated."
        )
        _step("The same command again: wait until the outcome can be known, look that customer up, go on, verify")
        shell.run(*_IMPORT_CUSTOMERS, "--wait", ends_with=ExitCode.REJECTED)
        created = Counter(str(body.get("erpCode")) for body in state.customer_inputs)
        twice = sum(count > 1 for count in created.values())
        click.echo(f"The platform has {len(created)} new customers, {twice or 'none'} of them twice.")
        _step(f"Import {VARIANTS_FILE}: prices, stock and codes of variants")
        shell.run("import", "variants", VARIANTS_FILE, "--yes", ends_with=ExitCode.REJECTED)
        sold = state.variants[10, 1038].fields
        click.echo(f"19.367,25 in the file is {sold['price']} on the platform, and 00038 is {sold['sku']!r}.")
        _step("Run again, compared with both files: the two errors are planted in the file of customers")
        state.grow("orders", NEW_ORDERS)
        files = ("--erp-customers", CUSTOMERS_FILE, "--erp-variants", VARIANTS_FILE)
        shell.run("run", *files, "--verbose", ends_with=ExitCode.FINDINGS)
        shell.run("report")
    _step(f"Where to look, in {escape(folder.absolute())}")
    click.echo(f"{_WHERE.lstrip()}\nDone in {time.monotonic() - started_at:.0f} s.")
    if twice:
        raise BridgeError("a customer was created twice")


def _step(title: str) -> None:
    click.echo(f"\n── {title}")


class _Shell:
    """Runs commands in a folder, with the settings of a sandbox."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._environment = folder, _environment(folder, url)

    def run(self, *words: str, ends_with: ExitCode = ExitCode.DONE) -> None:
        """Runs a command to its end. Raises BridgeError if it has another exit code."""
        with self._started(words) as process:
            code = process.wait()
        if code != ends_with:
            raise BridgeError(f"`{shlex.join(words)}` ended with exit code {code}")

    def kill(self, state: State, created: int, *words: str) -> None:
        """Runs a command, and kills it once that many customers have been created. Raises BridgeError if it ends."""
        with self._started(words) as process:
            while len(state.customer_inputs) < created:  # as long as a slow machine needs: the import has limits itself
                if process.poll() is not None:
                    raise BridgeError(f"the import to be killed ended by itself ({process.wait()})")
                time.sleep(0.002)
            process.kill()

    def _started(self, words: tuple[str, ...]) -> subprocess.Popen[bytes]:
        click.echo(f"$ orderbridge {shlex.join(words)}")
        sys.stdout.flush()
        command = [sys.executable, "-m", "pipelines.cli", *words]
        out = sys.stdout.fileno()
        return subprocess.Popen(command, cwd=self._folder, env=self._environment, stdout=out, stderr=out)  # noqa: S603 # our own command


def _environment(folder: Path, url: str) -> Mapping[str, str]:
    """Hides the user's own settings, except whose folders are trusted: nothing may be copied to their destination."""
    from sandbox.config import settings
    from sources.settings.sections import SECTIONS
    from sources.settings.setting import variable

    hidden = tuple(f"{variable(section)}__" for section in SECTIONS if section != "files")
    own = {name: value for name, value in os.environ.items() if not name.upper().startswith(hidden)}
    given = settings(url) | {"sources.http.timeout_s": _REQUEST_TIMEOUT_S}
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
    variables = {variable(key): value for key, value in given.items()}
    return own | variables | {"DLT_PROJECT_DIR": str(folder.absolute()), "PYTHONPATH": path}


def _fresh(folder: Path) -> None:
    hint = "Name another folder: orderbridge demo --folder NAME"
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise UsageError(f"{folder} holds files that are not a demo's", hint)
    with disk_errors(f"{folder} cannot be created", hint):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / _MARK).touch()
