"""The command `demo`: the whole bridge against the built-in sandbox, without settings, inside one folder.

In: a folder. Out: what a user would type, each command in a process of its own, with what it prints: pull and
reconcile, two ERP files imported, the first one twice, run again. The files are templates next to this module:
customers and articles as a Spanish ERP exports them, with a few rows that cannot go.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP
from orderbridge.pipelines.cli.terminal import escape
from orderbridge.sources.disk import disk_errors
from orderbridge.sources.errors import BridgeError, ExitCode, UsageError
from orderbridge.sources.texts import Language
from orderbridge.sources.words import render_text

_MARK: Final = ".orderbridge-demo"
_CUSTOMERS: Final = "clientes.csv"
_VARIANTS: Final = "articulos.csv"
_IMPORT: Final = ("import", "customers", _CUSTOMERS, "--passwords", "file", "--yes")
_NEEDED: Final = ("erpCode", "email", "firstName", "lastName")
_NEW_ORDERS: Final = 4
"""Placed before the last run; some promotions are used as well."""
_STEPS: Final = (
    (
        "Pull and reconcile: the platform's lists, published in one DuckDB file, all or nothing",
        ("run",),
        ExitCode.DONE,
    ),
    (
        f"Import {_CUSTOMERS}, exported from an ERP: each rejected line has its reason",
        _IMPORT,
        ExitCode.REJECTED,
    ),
    ("The same command again: what was sent is not sent a second time", _IMPORT, ExitCode.REJECTED),
    (
        f"Import {_VARIANTS}: prices, stock and codes of variants; 00038 keeps its zeros",
        ("import", "variants", _VARIANTS, "--yes"),
        ExitCode.REJECTED,
    ),
    (
        "Run again, compared with both files: the two errors are planted in the file of customers",
        ("run", "--erp-customers", _CUSTOMERS, "--erp-variants", _VARIANTS),
        ExitCode.FINDINGS,
    ),
    ("What was found, as a page", ("report",), ExitCode.DONE),
)
"""Title, command and its exit code."""
_SPEAKING: Final = ("import", "report", "desk")
"""Commands that an office reads."""
_DESK: Final = (
    f"The desk: import {_CUSTOMERS} and {_VARIANTS} there, Ctrl-C ends it",
    ("desk",),
    ExitCode.DONE,
)
_WHERE: Final = f"""\
report.html                        one page about the warehouse: open it in a browser
plan-*/result.xlsx                 each line of {_CUSTOMERS} and {_VARIANTS}, and the lines to correct
warehouse.duckdb                   schemas raw, reconciled, ops and bi: docs/bi.md has SQL for twelve questions
Next: orderbridge demo --desk  (its pages in the browser: drop the two files there)
      orderbridge init         (a project of yours)"""


@declared("demo")
def command(folder: Path, desk: bool, lang: Language | None) -> None:
    """Show the whole bridge against the built-in sandbox; no settings needed.

    Pull, reconcile, import, import again, run, report. Nothing outside the folder is touched. With --desk, the first of
    these only, then the desk opens in the browser, and the sandbox serves until it ends.
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
        click.echo(f"A stand-in for the platform is listening on {platform.url}.")
        there = [row for row in platform.state.records("customers") if all(map(row.get, _NEEDED))]
        for name in (_CUSTOMERS, _VARIANTS):
            text = render_text("orderbridge.pipelines.cli", f"{name}.j2", there=there).replace(
                "\n", "\r\n"
            )
            (folder / name).write_bytes(text.encode("cp1252"))
        environment = _environment(folder, platform.url)
        steps = [_STEPS[0], _DESK] if opens_desk else _STEPS
        for title, command_words, ends_with in steps:
            words = [*command_words, *_spoken(command_words[0], language)]
            if ends_with is ExitCode.FINDINGS:
                platform.state.grow("orders", _NEW_ORDERS)
                for running in platform.state.records("promotions")[5::10]:
                    platform.state.change(
                        "promotions", running["id"], {"useCount": running["useCount"] + 1}
                    )
            click.echo(f"\n── {title}\n$ orderbridge {shlex.join(words)}")
            sys.stdout.flush()
            line = [sys.executable, "-m", "orderbridge.pipelines.cli", *words]
            out = sys.stdout.fileno()
            done = subprocess.run(  # noqa: S603  # our own command
                line, cwd=folder, env=environment, stdout=out, stderr=out, check=False
            )
            if done.returncode != ends_with:
                raise BridgeError(f"`{shlex.join(words)}` ended with exit code {done.returncode}")
    if opens_desk:
        return
    click.echo(f"\n── Where to look, in {escape(folder.absolute())}\n{_WHERE}")
    click.echo(f"Done in {time.monotonic() - started_at:.0f} s.")


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
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        raise UsageError(f"{folder} holds files that are not a demo's", hint)
    with disk_errors(f"{folder} cannot be created", hint):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / _MARK).touch()
