"""How a push and its verification are told: progress with its rate, and what came of it, for people or machines.

In: counts. Out: stderr for what goes on, stdout for what came of it. No row's value is ever printed.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import click

from pipelines.cli.options import log_option
from pipelines.cli.process import STOP, exit_process, print_error, start
from sources.errors import BridgeError, ExitCode, UsageError

if TYPE_CHECKING:
    from rich.progress import TaskID

    from pipelines.cli.console import Reporter
    from pipelines.push.model import PushResult

_SAID: Final = {
    "confirmed": "confirmed",
    "rejected": "rejected",
    "in_doubt": "in doubt: sent, and nobody knows yet whether it landed",
    "unsent": "not sent",
}


class Watching:
    """Progress of a push: pages where customers are read, then operations, with rate and remaining time.

    Args:
        reporter: says how; its own bars are not shown.
    """

    def __init__(self, reporter: Reporter) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        self._reporter = reporter
        self._lock = threading.Lock()
        self._began: tuple[float, int] | None = None
        self._told_at = time.monotonic()
        self._tasks: dict[str, TaskID] = {}
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=reporter.err,
            disable=reporter.style != "auto",
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bars.stop()

    def page(self, resource: str, pages: int, rows: int, total: int | None) -> None:
        """Called after each page of the customers."""
        self._show(f"reading {resource}", rows, total, f"{pages} pages")

    def sent(self, done: int, total: int) -> None:
        """Called as operations end."""
        now = time.monotonic()
        began_at, before = self._began = self._began or (now, done)
        rate = (done - before) / (now - began_at) if now > began_at else 0.0
        self._show("sending", done, total, f"{rate:.0f}/s" if rate else "")

    def _show(self, what: str, done: int, total: int | None, rate: str) -> None:
        from pipelines.cli.console import LINE_EVERY_S

        with self._lock:
            if self._reporter.style == "auto":
                if what not in self._tasks:
                    self._tasks[what] = self._bars.add_task(what, total=total, rate=rate)
                self._bars.update(self._tasks[what], completed=done, total=total, rate=rate)
                return
            now = time.monotonic()
            if now - self._told_at < LINE_EVERY_S:
                return
            self._told_at = now
        of = f" of {total}" if total is not None else ""
        self._reporter.event("progress", f"{what}: {done}{of}, {rate}".rstrip(", "), done=done, total=total)


def tell(pushed: PushResult, style: str) -> None:
    """What a push did, on stdout."""
    told = pushed.plan.manifest
    if style == "json":
        lines = {f"{file}.{outcome}": count for (file, outcome), count in sorted(pushed.lines.items())}
        facts = {"plan_id": told.plan_id, "folder": str(pushed.plan.folder), "operations": pushed.states}
        more = {"lines": lines, "settles_at": pushed.settles_at, "broke": pushed.broke, "exit_code": pushed.exit_code}
        sys.stdout.write(json.dumps({**facts, **more}) + "\n")
        return
    sys.stdout.write("".join(f"{line}\n" for line in _lines(pushed)))


def _lines(pushed: PushResult) -> list[str]:
    from pipelines.plan.model import RESULTS_FOLDER
    from pipelines.plan.summary import number
    from pipelines.push.eligibility import GIVEN_UP, at_words
    from pipelines.push.passwords import FILE as PASSWORDS
    from pipelines.push.results import FILES

    told, folder = pushed.plan.manifest, pushed.plan.folder
    said = [f"{number(told.lines, 'line')} of {told.kind}, for {told.host} ({told.environment}):"]
    for file in FILES:
        outcomes = Counter({outcome: count for (name, outcome), count in pushed.lines.items() if name == file})
        if file == "in_doubt" and (given_up := outcomes.pop("abandoned", 0)):
            said.append(f"  {given_up:>8}  {GIVEN_UP}")
        if outcomes.total():
            detail = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in outcomes.most_common())
            more = "" if set(outcomes) <= {file, "not_sent"} else f" ({detail})"
            said.append(f"  {outcomes.total():>8}  {_SAID[file]}{more}")
    said.append(f"each line and what became of it: {folder / RESULTS_FOLDER}")
    if (folder / PASSWORDS).exists():
        said.append(f"the passwords that were made: {folder / PASSWORDS}")
    if pushed.lines["unsent", "blocked"]:
        said.append("why a line is blocked, and what to do, stands in results/unsent.csv")
    if pushed.broke:
        said.append("nothing more was sent: too many answers in a row left their outcome in doubt")
    if pushed.stopped:
        said.append("stopped; run the same command again to go on")
    if pushed.settles_at is not None:
        said.append(f"run it again from {at_words(pushed.settles_at)} on: then what is in doubt can be looked for")
    elif pushed.exit_code == ExitCode.IN_DOUBT:
        said.append("what to do about each doubt stands in results/in_doubt.csv; then run it again")
    return said


@click.command("push", epilog="Example: orderbridge push plan-customers --yes; run it again to resume")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "--confirm",
    type=click.IntRange(min=0),
    metavar="N",
    help="Production: the number of operations, as a confirmation.",
)
@click.option("--yes", is_flag=True, help="Sandbox: send without asking.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Maximum requests per second.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 16),
    metavar="N",
    help="Requests at once. Default: 1 for creates, 4 for updates.",
)
@click.option(
    "--settle",
    type=click.FloatRange(min=0),
    default=15,
    show_default=True,
    metavar="MINUTES",
    help="How long a create whose answer was lost may still take effect; less for a sandbox only.",
)
@click.option(
    "--resend", is_flag=True, help="Production: send a create again if the customer is absent after that time."
)
@click.option("--wait", is_flag=True, help="Wait until operations in doubt can be looked up, then continue.")
@click.option("--accept-unproven", is_flag=True, help="Create customers although the list is not proven complete.")
@click.option(
    "--landed", type=int, multiple=True, metavar="ID", help="Operation in doubt that took effect on the platform."
)
@click.option(
    "--not-landed", type=int, multiple=True, metavar="ID", help="Operation in doubt that did not: it is sent again."
)
@click.option(
    "--abandon", type=int, multiple=True, metavar="ID", help="Operation in doubt to give up: it is never sent again."
)
@log_option
def command(
    plan: Path,
    confirm: int | None,
    yes: bool,
    settle: float,
    landed: tuple[int, ...],
    not_landed: tuple[int, ...],
    abandon: tuple[int, ...],
    style: str,
    **options: Any,  # noqa: ANN401 # checked by click
) -> None:
    """Send a plan, each write exactly once; run it again to resume.

    The outcome of each line is in the plan's folder, under results. Outcomes in doubt make the exit code 6: run the
    same command again after the time that it prints.
    """
    reporter = start(style)
    from pipelines.ledger.push_log import publish
    from pipelines.push.model import PushOptions
    from pipelines.push.run import push as send

    asked = PushOptions(
        confirm=confirm,
        agreed=yes or (confirm is None and _agreed(plan)),
        settle_s=settle * 60,
        landed=frozenset(landed),
        not_landed=frozenset(not_landed),
        abandon=frozenset(abandon),
        **options,
    )
    with Watching(reporter) as watching:
        pushed = send(plan, asked, STOP.event, watching.sent, watching.page, STOP.gently)
    tell(pushed, style)
    if pushed.error is not None:
        print_error(pushed.exit_code, str(pushed.error), "orderbridge: ")
    if not pushed.stopped:
        try:
            publish(pushed.plan.manifest.plan_id, pushed.observed)
        except BridgeError as error:  # the ledger has what was sent: the next run copies it
            print_error(
                pushed.exit_code, f"ops.push_log was not updated; the next pull does it: {error}", "orderbridge: "
            )
    exit_process(128 + STOP.signal if pushed.stopped and STOP.signal else pushed.exit_code)


def _agreed(folder: Path) -> bool:
    """Asks on a terminal whether to send a plan for a sandbox."""
    if not sys.stdin.isatty():
        return False
    from pipelines.plan.model import Plan
    from pipelines.push.checks import would

    plan = Plan(folder)
    if plan.manifest.environment != "sandbox":
        return False
    if not click.confirm(f"{would(plan)}. Send?", err=True):
        raise UsageError("nothing was sent", "Run the same command again to send it.")
    return True
