"""The command `demo`: the whole bridge against the built-in sandbox, without settings, inside one folder.

In: a folder. Out: what a user would type, each command in a process of its own, with what it prints: a run, two files
of an ERP imported, the first one twice, another run and a report. The files are templates next to this module:
customers and articles as a Spanish ERP exports them, with a few rows that cannot go.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP
from orderbridge.pipelines.cli.terminal import escape
from orderbridge.sources.disk import disk_errors
from orderbridge.sources.errors import BridgeError, ExitCode, UsageError
from orderbridge.sources.settings.root import DEMO_MARK
from orderbridge.sources.texts import Language
from orderbridge.sources.words import render_text

_CUSTOMERS: Final = "clientes.csv"
_VARIANTS: Final = "articulos.csv"
_IMPORT: Final = ("import", "customers", _CUSTOMERS, "--passwords", "file", "--yes")
_NEEDED: Final = ("erpCode", "email", "firstName", "lastName")
_NEW_ORDERS: Final = 4
"""Placed before the last run; some promotions are used as well."""
_LOG: Final = "import.log"


class _Step(NamedTuple):
    """A command of the demo.

    Attributes:
        ends_with: the exit code that it has to have.
        shows_work: whether what it prints while it works is shown; otherwise it is in a file.
    """

    title: str
    words: Sequence[str]
    ends_with: ExitCode = ExitCode.DONE
    shows_work: bool = True


_FIRST: Final = _Step("read every list, publish one DuckDB file: all of it or nothing", ("run",))
_STEPS: Final = (
    _FIRST,
    _Step("send a file of the ERP", _IMPORT, ExitCode.REJECTED),
    _Step("again: nothing is sent twice", _IMPORT, ExitCode.REJECTED, shows_work=False),
    _Step(
        "prices and stock",
        ("import", "variants", _VARIANTS, "--yes"),
        ExitCode.REJECTED,
        shows_work=False,
    ),
    _Step(
        f"compare with both files; the two errors are planted in {_CUSTOMERS}",
        ("run", "--erp-customers", _CUSTOMERS, "--erp-variants", _VARIANTS),
        ExitCode.FINDINGS,
    ),
    _Step("one page for all", ("report",)),
)
_SPEAKING: Final = ("import", "report", "desk")
"""Commands that an office reads."""
_DESK: Final = _Step(f"import {_CUSTOMERS} and {_VARIANTS} there; Ctrl-C ends it", ("desk",))
_NEXT: Final = """\
next: orderbridge demo --desk  (its pages in the browser)
      orderbridge init         (a project of yours)"""


@declared("demo")
def command(folder: Path, desk: bool, lang: Language | None) -> None:
    """Show the whole bridge against the built-in sandbox; no settings needed.

    It runs `run`, `import`, `import` again, `run` and `report`. Nothing outside the folder is changed.
    """
    STOP.listen()
    demo(folder, opens_desk=desk, language=lang)


def demo(folder: Path, *, opens_desk: bool = False, language: Language | None = None) -> None:
    """Runs every step, or the first one and the desk. `language`: of the report and the desk; None: of the locale.

    Raises:
        UsageError: the folder holds files that are not a demo's.
        BridgeError: a step failed.
    """
    from orderbridge.sandbox import SandboxConfig, serve

    _fresh(folder)
    started_at = time.monotonic()
    with serve(SandboxConfig(seed=7, orders=1_200)) as platform:
        there = [row for row in platform.state.records("customers") if all(map(row.get, _NEEDED))]
        for name in (_CUSTOMERS, _VARIANTS):
            text = render_text("orderbridge.pipelines.cli", f"{name}.j2", there=there).replace(
                "\n", "\r\n"
            )
            (folder / name).write_bytes(text.encode("cp1252"))
        environment = _environment(folder, platform.url)
        before = ""
        for step in [_FIRST, _DESK] if opens_desk else _STEPS:
            if step.ends_with is ExitCode.FINDINGS:
                platform.state.grow("orders", _NEW_ORDERS)
                for running in platform.state.records("promotions")[5::10]:
                    platform.state.change(
                        "promotions", running["id"], {"useCount": running["useCount"] + 1}
                    )
            click.echo(before, nl=False)
            before = "\n"
            _run(step, _spoken(step.words[0], language), folder, environment)
    if opens_desk:
        return
    seconds = time.monotonic() - started_at
    found = f"report.html, warehouse.duckdb, plan-*/result.xlsx, {_LOG}"
    click.echo(
        f"\ndone in {seconds:.0f} s; look into {escape(folder.absolute())}: {found}\n{_NEXT}"
    )


def _run(step: _Step, options: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Shows the command of a step, and runs it. Raises BridgeError if it ends with another exit code."""
    words = [*step.words, *options]
    typed = f"orderbridge {shlex.join(words)}" + ("" if step.shows_work else f" 2>>{_LOG}")
    click.echo(f"$ {typed}    # {step.title}")
    sys.stdout.flush()
    line = [sys.executable, "-m", "orderbridge.pipelines.cli", *words]
    out = sys.stdout.fileno()
    with (folder / _LOG).open("ab") as log:
        done = subprocess.run(  # noqa: S603  # our own command
            line,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out if step.shows_work else log,
            check=False,
        )
    if done.returncode != step.ends_with:
        raise BridgeError(
            f"`{typed}` ended with exit code {done.returncode}",
            "" if step.shows_work else f"Why is in {folder / _LOG}.",
        )


def _spoken(name: str, language: Language | None) -> list[str]:
    """The option for the language of a command that has one; otherwise it is that of the locale."""
    return [f"--lang={language}"] if language is not None and name in _SPEAKING else []


def _environment(folder: Path, url: str) -> Mapping[str, str]:
    """Hides the user's own settings, except whose folders are trusted: nothing may be copied to their destination."""
    from orderbridge.sandbox.config import settings
    from orderbridge.sources.settings.setting import variable

    own = {
        name: value
        for name, value in os.environ.items()
        if "__" not in name or name.upper().startswith("FILES__")
    }
    path = os.pathsep.join(
        filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH")))
    )
    given = {variable(key): value for key, value in settings(url).items()}
    return own | given | {"DLT_PROJECT_DIR": str(folder.absolute()), "PYTHONPATH": path}


def _fresh(folder: Path) -> None:
    hint = "Name another folder: orderbridge demo --folder NAME"
    if folder.exists() and any(folder.iterdir()) and not (folder / DEMO_MARK).exists():
        raise UsageError(f"{folder} holds files that are not a demo's", hint)
    with disk_errors(f"{folder} cannot be created", hint):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / DEMO_MARK).touch()
