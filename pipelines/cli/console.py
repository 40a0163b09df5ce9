"""Output of a running command: progress bars on a terminal, lines in a pipe, JSON for machines.

In: progress, events and results. Out: stderr for what is going on, stdout for the result. Everything is escaped for the
terminal, and no value of a row is ever printed.
"""

from __future__ import annotations

import io
import logging
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from orderbridge.pipelines.cli.terminal import Style, escape, escape_lines, event_json
from orderbridge.sources.command_line import complete
from orderbridge.sources.http.waiting import WAITS

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LINE_EVERY_S: Final = 10.0
JSON_EVERY_S: Final = 1.0
"""Seconds between two lines about an activity; as JSON they are closer in its first seconds."""
_JSON_SHARE: Final = 0.1
"""Of its duration so far, after which an activity has another line of JSON."""
_WIDE: Final = 100_000
STEPS: Final = "orderbridge.steps"
"""The logger of what a run does where no rows are counted: it merges, reconciles, publishes."""


class _Console(Console):
    """rich's console, except that a closed pipe is left to `main`: rich would exit with 1, the code of a bug."""

    def on_broken_pipe(self) -> None:
        """Raises again what rich caught."""
        raise BrokenPipeError


def table_lines(
    headings: Sequence[str], rows: Iterable[Sequence[object]], numbers: Collection[str] = ()
) -> list[str]:
    """The lines of a table, cut nowhere: a terminal wraps them. Columns in `numbers` are aligned to the right."""
    table = Table(box=None, pad_edge=False, header_style="")
    for heading in headings:
        table.add_column(
            Text(escape(heading)), justify="right" if heading in numbers else "left", no_wrap=True
        )
    for row in rows:
        table.add_row(*(Text(escape(value)) for value in row))
    out = io.StringIO()
    Console(file=out, highlight=False, width=_WIDE, force_terminal=False).print(
        table, soft_wrap=True
    )
    return [line.rstrip() for line in out.getvalue().splitlines()]


class Reporter:
    """Progress of a run, as bars, lines or JSON. Thread-safe; a context manager.

    Attributes:
        phase: what the run is doing; it is in each event as JSON. Empty: the run has no phases.
    """

    def __init__(self, style: Style = "auto", phase: str = "") -> None:
        self.phase = phase
        self._err = _Console(stderr=True, highlight=False)
        self.style: Style = "plain" if style == "auto" and not self._err.is_terminal else style
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}
        self._step: TaskID | None = None
        self._last_line_at: dict[str, float] = {}
        self._begun_at: dict[str, float] = {}

    @cached_property
    def _bars(self) -> Progress:
        """The bars on a terminal; in a pipe nothing of them is imported."""
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        return Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._err,
            transient=True,  # what remains on the screen is the result
            redirect_stdout=False,  # the result, which is not to appear among the bars on stderr
        )

    def attach(self) -> None:
        """Shows log records from now on: steps; waits and warnings as events, which fit between bars and JSON lines."""
        logging.getLogger("orderbridge").handlers = [_ReporterHandler(self)]
        logging.getLogger(STEPS).setLevel(logging.INFO)
        logging.getLogger(WAITS).setLevel(logging.INFO)

    def __enter__(self) -> Reporter:
        self.attach()
        if self.style == "auto":
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.style == "auto":
            self._bars.stop()

    def begin(self, phase: str) -> None:
        """Called when a phase of the run begins: an event for machines, since people see what it does."""
        if phase != self.phase:
            self.phase = phase
            if self.style == "json":
                self.event("phase", phase)

    def progress(self, resource: str, pages: int, rows: int, total: int | None, sweep: int) -> None:
        """Called after each page of a walk."""
        note = f"rows, {pages} pages" + (f", pass {sweep}" if sweep > 1 else "")
        self.show(
            resource, rows, total, note, resource=resource, rows=rows, pages=pages, sweep=sweep
        )

    def step(self, words: str) -> None:
        """Called when a part of the run begins that counts nothing: a bar that moves, or an event at intervals."""
        with self._lock:
            if self.style == "auto":
                self._step = (
                    self._bars.add_task(words, total=None, note="")
                    if self._step is None
                    else self._step
                )
                self._bars.update(self._step, description=escape(words))
            elif self._is_due("step"):
                self.event("progress", words)

    def show(
        self, activity: str, done: int, total: int | None, note: str, /, **facts: object
    ) -> None:
        """Shows how far an activity is: a bar, or an event with `facts` at intervals.

        `total` is None where it is not known; `note` has the unit and further counts.
        """
        with self._lock:
            if self.style == "auto":
                if activity not in self._tasks:
                    self._tasks[activity] = self._bars.add_task(activity, total=total, note=note)
                self._bars.update(self._tasks[activity], completed=done, total=total, note=note)
                return
            if not self._is_due(activity):
                return
        expected = f" of {total}" if total is not None else ""
        counted = {"activity": activity, "done": done, "total": total}
        self.event("progress", f"{activity}: {done}{expected} {note}", **{**counted, **facts})

    def _is_due(self, activity: str) -> bool:
        """Whether the last line about an activity, or its beginning, is long enough ago for another one."""
        now = time.monotonic()
        interval = LINE_EVERY_S
        if self.style == "json":
            duration = now - self._begun_at.setdefault(activity, now)
            interval = min(LINE_EVERY_S, max(JSON_EVERY_S, duration * _JSON_SHARE))
        is_due = now - self._last_line_at.setdefault(activity, now) >= interval
        if is_due:
            self._last_line_at[activity] = now
        return is_due

    def event(self, name: str, message: str, **facts: object) -> None:
        """One event on stderr: its message, or with `--log json` an object with its name and facts."""
        message = complete(message)
        if self.style == "json":
            facts = {"phase": self.phase, **facts} if self.phase else facts
            self._err.file.write(event_json(name, message, **facts) + "\n")
            self._err.file.flush()
        else:
            self._err.print(escape_lines(message), markup=False, soft_wrap=True)


class _ReporterHandler(logging.Handler):
    """Passes log records on to a reporter."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self._reporter = reporter

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == STEPS:
            self._reporter.begin(getattr(record, "phase", self._reporter.phase))
            self._reporter.step(record.getMessage())
        elif record.name == WAITS:
            facts = getattr(record, "facts", {})
            self._reporter.event("waiting", record.getMessage(), **facts)
        elif record.levelno >= logging.WARNING:
            self._reporter.event("log", record.getMessage(), level=record.levelname.lower())
