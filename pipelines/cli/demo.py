"""The demo: the whole bridge against the built-in sandbox, with no settings and nothing outside its own folder.

In: a folder. Out: a warehouse pulled and reconciled, two files of an ERP planned and pushed (the first push is killed
in the middle, and goes on), what landed pulled and verified; all of it told on stdout.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pipelines.cli.console import Reporter, Style
from pipelines.cli.demo_files import CUSTOMERS, VARIANTS, write_files
from pipelines.pull.pull import PullOptions, pull
from pipelines.reconcile.reconcile import Reconciling
from sources.errors import BridgeError, ExitCode, UsageError

if TYPE_CHECKING:
    from sandbox import Sandbox
    from sandbox.state import State
    from sources.kinds import KindName

MARK: Final = ".orderbridge-demo"
KILL_AFTER: Final = 20
"""So many customers are created, then the push is killed."""
PATIENCE_S: Final = 30.0
LATENCY_MS: Final = 15.0
_NEEDED: Final = ("erpCode", "email", "firstName", "lastName")


def demo(folder: Path, style: Style, stop: threading.Event) -> int:
    """Shows the whole bridge. Returns 0 where all came out as it should.

    Raises:
        UsageError: the folder holds something that no demo made.
        BridgeError: a step went wrong.
    """
    from sandbox import SandboxConfig, serve

    _fresh(folder)
    with serve(SandboxConfig(seed=7, latency_ms=LATENCY_MS)) as platform:
        os.environ |= _settings(platform, folder.absolute())
        click.echo(f"A stand-in for the platform listens on {platform.url}.")
        _step("Pull and reconcile: the platform's lists, published whole in one DuckDB file")
        _pull(style, stop, Reconciling())
        write_files(folder, [row for row in platform.state.records("customers") if all(map(row.get, _NEEDED))])
        _step(f"Plan: what {CUSTOMERS}, as an ERP exports it, would change; nothing is sent")
        customers = _plan("customers", folder, CUSTOMERS, style)
        _step("Push the customers, and kill that process in the middle (SIGKILL)")
        _killed(customers, platform.state, len(platform.state.customer_inputs) + KILL_AFTER)
        reached = len(platform.state.customer_inputs)
        click.echo(
            f"The platform had created {reached} customers when the push was killed. One answer was still awaited:\n"
            "nobody knows whether that customer landed, so it is not sent again blindly."
        )
        _step("Push again: it waits until the doubt can settle, looks for that customer, and goes on")
        _push(customers, style, stop)
        created = Counter(str(body.get("erpCode")) for body in platform.state.customer_inputs)
        click.echo(f"The platform has {len(created)} new customers, and {_twice(created) or 'none'} of them twice.")
        _step(f"Plan and push {VARIANTS}: prices, stock and codes of variants")
        variants = _plan("variants", folder, VARIANTS, style)
        _push(variants, style, stop)
        sold = platform.state.variants[10, 1038].fields
        click.echo(f"19.367,25 in the file is {sold['price']} on the platform, and 00038 is {sold['sku']!r}.")
        _step("Pull again, and verify: what landed against what was sent, field by field")
        _pull(style, stop)
        code = _verified(customers)
    _where_to_look(folder, customers, variants)
    if _twice(created):
        raise BridgeError("a customer was created twice")
    return code


def _settings(platform: Sandbox, folder: Path) -> dict[str, str]:
    return {
        "SOURCES__LEGACY__BASE_URL": platform.url,
        "SOURCES__LEGACY__API_KEY": platform.legacy_key,
        "SOURCES__LEGACY__ENVIRONMENT": "sandbox",
        "SOURCES__LEGACY__LOGIN_MODE": "email",
        "SOURCES__PUBLIC_V1__BASE_URL": platform.url,
        "SOURCES__PUBLIC_V1__API_KEY": platform.v1_key,
        "WAREHOUSE__PATH": str(folder / "warehouse.duckdb"),
        "LEDGER__PATH": str(folder / "ledger.sqlite"),
    }


def _step(words: str) -> None:
    click.echo(f"\n── {words}\n")


def _pull(style: Style, stop: threading.Event, reconciling: Reconciling | None = None) -> None:
    with Reporter(style) as reporter:
        pulled = pull(PullOptions(command="demo"), reporter.progress, stop, reconciling)
    reporter.pulled(pulled)
    if reconciling is not None and reconciling.made is not None:
        reporter.reconciled(reconciling.made)
    if pulled.exit_code:
        raise BridgeError(f"the pull ended with {pulled.exit_code}")


def _plan(kind: KindName, folder: Path, file: str, style: Style) -> Path:
    """Plans a file of the demo; that rows were rejected, exit 5, is what it is there for."""
    from pipelines.cli.plan import plan
    from pipelines.plan.make import PlanOptions

    target = folder / f"plan-{kind}"
    code = plan(PlanOptions(kind, folder / file, (folder / file).with_suffix(".toml"), target), Reporter(style))
    _expect(code, ExitCode.REJECTED)
    return target


def _killed(plan: Path, state: State, created: int) -> None:
    """Pushes in a process of its own, which is killed once so many customers were created."""
    command = [sys.executable, "-m", "pipelines.cli", "push", str(plan), "--yes", "--log", "plain"]
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
    with subprocess.Popen(  # noqa: S603 # our own command
        command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        until = time.monotonic() + PATIENCE_S
        while len(state.customer_inputs) < created:
            if process.poll() is not None or time.monotonic() > until:
                process.kill()
                said = process.communicate()[1].decode(errors="replace").strip()
                raise BridgeError(f"the push that was to be killed ended by itself ({process.returncode}): {said}")
            time.sleep(0.002)
        process.kill()


def _push(plan: Path, style: Style, stop: threading.Event) -> None:
    """Pushes, or goes on with a push. This platform answers in milliseconds: what is in doubt settles in seconds."""
    from pipelines.cli.push import Watching, tell
    from pipelines.push.model import MEANS, PushOptions
    from pipelines.push.run import push

    with Watching(Reporter(style)) as watching:
        asked = PushOptions(agreed=True, settle_s=2.0, wait=True)
        pushed = push(plan, asked, stop, watching.sent, watching.page, means=replace(MEANS, deadline_s=1.0))
    tell(pushed, style)
    if pushed.error is not None:
        raise pushed.error
    _expect(pushed.exit_code, ExitCode.REJECTED)


def _verified(plan: Path) -> int:
    from pipelines.cli.push import tell_verified
    from pipelines.push.verify import verify

    made = verify(plan)
    tell_verified(made, "plain")
    return made.exit_code


def _expect(code: int, wanted: int) -> None:
    if code != wanted:
        raise BridgeError(f"this step ended with {code}, and {wanted} was to be expected")
    click.echo(f"(exit code {code}: done, with rejected rows)")


def _twice(created: Counter[str]) -> int:
    return sum(count > 1 for count in created.values())


def _fresh(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise UsageError(
            f"{folder} holds something that no demo made", "Name another folder: orderbridge demo --folder NAME"
        )
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / MARK).touch()
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be made: {error.strerror}", "Name another folder: orderbridge demo --folder NAME"
        ) from None


def _where_to_look(folder: Path, customers: Path, variants: Path) -> None:
    things = {
        f"{CUSTOMERS}, {VARIANTS}": "the files, each with its mapping (.toml)",
        f"{customers.name}/summary.md": "what was planned; beside it rejects.csv, the rows to mend with their reasons",
        f"{customers.name}/results/": "what became of each line; passwords.csv has those that were made",
        f"{variants.name}/operations.jsonl": "each request as it was sent",
        "warehouse.duckdb": "tables raw, reconciled and ops; ops.coverage tells how well each list was read",
    }
    width = max(map(len, things))
    click.echo(f"\n── Look at it, in {folder}\n")
    for name, words in things.items():
        click.echo(f"{name:<{width}}  {words}")
    look = f"import duckdb; print(duckdb.connect('{folder}/warehouse.duckdb', read_only=True).sql('FROM ops.coverage'))"
    click.echo(f'\n  {shlex.quote(os.path.relpath(sys.executable))} -c "{look}"')
