"""How a push and its verification are told: progress with its rate, and what came of it, for people or machines.

In: counts. Out: stderr for what goes on, stdout for what came of it. No row's value is ever printed.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from types import TracebackType
from typing import Final, Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from pipelines.cli.console import LINE_EVERY_S, Reporter
from pipelines.plan.model import RESULTS_FOLDER
from pipelines.plan.summary import number
from pipelines.push.eligibility import GIVEN_UP, at_words
from pipelines.push.model import PushResult
from pipelines.push.passwords import FILE as PASSWORDS
from pipelines.push.results import FILES
from pipelines.push.verify import VerifyResult
from sources.errors import ExitCode
from sources.kinds import KINDS

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


def tell_verified(made: VerifyResult, style: str) -> None:
    """What a verification found, on stdout."""
    if style == "json":
        facts = {"kind": made.kind, "verdict": made.verdict, "outcomes": made.outcomes, "fields": made.fields}
        file = str(made.file) if made.file else None
        sys.stdout.write(json.dumps({**facts, "file": file, "exit_code": made.exit_code}) + "\n")
        return
    said = [f"{made.outcomes[name]:>8}  {words}" for name, words in _FOUND.items() if made.outcomes[name]]
    if not KINDS[made.kind].is_listed:
        said.append(f"{made.kind} cannot be read from the platform: what it confirmed is all that there is to know")
    said += [f"          {count} differ in {name}" for name, count in made.fields.most_common()]
    if made.outcomes["missing"] and made.verdict != "complete":
        said.append(f"the list of customers is {made.verdict}: what is missing may be there")
    if made.file is not None and any(made.outcomes[name] for name in ("differs", "missing", "several")):
        said.append(f"each difference: {made.file}")
    sys.stdout.write("".join(f"{line}\n" for line in said))


_FOUND: Final = {
    "same": "are on the platform as they were sent",
    "differs": "differ",
    "missing": "are not in the list of customers",
    "several": "are there more than once",
    "unreadable": "were confirmed, and cannot be read back",
    "unsettled": "were not sent, were refused, or are in doubt",
}
