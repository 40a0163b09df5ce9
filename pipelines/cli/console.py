"""Output of a running command: progress bars on a terminal, lines in a pipe, JSON for machines.

In: progress, events and results. Out: stderr for what is going on, stdout for the result. Everything is escaped for the
terminal, and no value of a row is ever printed.
"""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from typing import Final, Literal

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from pipelines.cli.terminal import escape, escape_lines

LINE_EVERY_S: Final = 10.0
Style = Literal["auto", "plain", "json"]


class _Console(Console):
    """rich's console, except that a closed pipe is left to `main`: rich would exit with 1, the code of a bug."""

    def on_broken_pipe(self) -> None:
        """Raises again what rich caught."""
        raise BrokenPipeError


class Printer:
    """Lines and tables on stdout, without markup or colours; a line is wrapped by the terminal alone."""

    def __init__(self) -> None:
        self._console = _Console(highlight=False)

    def line(self, text: str) -> None:
        """Prints one line."""
        self._console.print(escape(text), markup=False, soft_wrap=True)

    def table(self, table: Table) -> None:
        """Prints a table whose cells hold no text from outside."""
        self._console.print(table, soft_wrap=not self._console.is_terminal)


class Reporter:
    """Progress of a run, as bars, lines or JSON. Thread-safe; a context manager."""

    def __init__(self, style: Style = "auto") -> None:
        self.err = _Console(stderr=True, highlight=False)
        self._out = _Console(highlight=False)
        self.style: Style = "plain" if style == "auto" and not self.err.is_terminal else style
        self._lock = threading.Lock()
        self._tasks: dict[str, TaskID] = {}
        self._last_line_at: dict[str, float] = {}
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.err,
            disable=self.style != "auto",
        )

    def __enter__(self) -> Reporter:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def stdout(self) -> Printer:
        """Where the result is printed."""
        return Printer()

    def progress(self, resource: str, pages: int, rows: int, total: int | None) -> None:
        """Called after each page of a walk."""
        self.show(resource, rows, total, f"rows, {pages} pages", resource=resource, rows=rows, pages=pages)

    def show(self, activity: str, done: int, total: int | None, note: str, /, **facts: object) -> None:
        """Shows how far an activity is: a bar, or an event at intervals.

        Args:
            activity: what is done.
            done: rows or operations so far.
            total: of them; None where it is not known.
            note: their unit and further counts.
            facts: of the event.
        """
        with self._lock:
            if self.style == "auto":
                if activity not in self._tasks:
                    self._tasks[activity] = self._bars.add_task(activity, total=total, note=note)
                self._bars.update(self._tasks[activity], completed=done, total=total, note=note)
                return
            now = time.monotonic()
            if now - self._last_line_at.setdefault(activity, now) < LINE_EVERY_S:
                return
            self._last_line_at[activity] = now
        expected = f" of {total}" if total is not None else ""
        self.event("progress", f"{activity}: {done}{expected} {note}", **facts)

    def event(self, name: str, message: str, **facts: object) -> None:
        """One event on stderr: its message, or with `--log json` an object with its name and facts."""
        self._write(self.err, name, message, facts)

    def result(self, name: str, message: str, **facts: object) -> None:
        """A part of the result, on stdout in the same form."""
        self._write(self._out, name, message, facts)

    def _write(self, console: Console, name: str, message: str, facts: dict[str, object]) -> None:
        if self.style == "json":
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            console.file.write(json.dumps({"at": at, "event": name, "message": message, **facts}, default=str) + "\n")
            console.file.flush()
        else:
            console.print(escape_lines(message), markup=False, soft_wrap=True)
