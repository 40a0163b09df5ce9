"""What every command of `orderbridge` shares: how it begins, how it is stopped, how it ends, how it says so."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from pipelines.cli.console import Reporter

F = TypeVar("F", bound=Callable[..., Any])


class Stop:
    """Ctrl-C and SIGTERM: the first one asks the walks to stop and unwinds; what is on disk stays whole.

    Attributes:
        event: set once the process is to end.
        signal: which one came.
        as_json: whether last words are for machines.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self.signal = 0
        self.as_json = False
        self._is_gentle = False

    def listen(self) -> None:
        """From now on both signals come here."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        if self.signal:
            return  # it is stopping: another one must not break off what clears up
        self.signal = number
        self.event.set()
        if not self._is_gentle:
            raise KeyboardInterrupt

    @contextmanager
    def gently(self) -> Iterator[None]:
        """Inside the block a signal sets the event, and breaks in nowhere."""
        self._is_gentle = True
        try:
            yield
        finally:
            self._is_gentle = False


STOP = Stop()


def started(style: str) -> Reporter:
    """The settings' root, dlt made quiet, logging to stderr: what every command that works begins with."""
    from pipelines.cli.console import Reporter
    from pipelines.cli.environment import prepare

    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    prepare()
    STOP.listen()
    return Reporter(style)  # type: ignore[arg-type]


class Output(io.TextIOWrapper):
    """What is told on stdout. Once the disk refuses it, the rest goes nowhere: what was done is done.

    Attributes:
        refused: why, from then on.
    """

    refused: OSError | None = None

    def write(self, text: str, /) -> int:
        """See TextIOWrapper."""
        self._try(lambda: super(Output, self).write(text))
        return len(text)

    def flush(self) -> None:
        """See TextIOWrapper."""
        self._try(super().flush)

    def _try(self, does: Callable[[], object]) -> None:
        try:
            does()
        except BrokenPipeError:
            raise
        except OSError as error:
            self.refused = self.refused or error
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            super().flush()


def begin() -> None:
    """Sees to it that there is something to write to, and that every sign can be written, whatever started us.

    A descriptor that is closed would be that of the next file opened: the warehouse, or the ledger.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper):
        encoding, by_line = out.encoding, out.line_buffering
        sys.stdout = Output(out.detach(), encoding, "backslashreplace", line_buffering=by_line)


def end(code: int) -> NoReturn:
    """Ends the process now: neither a fetch that waits for an answer nor memory to be given back may hold it up."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or 128 + signal.SIGPIPE
    if isinstance(sys.stdout, Output) and sys.stdout.refused is not None:
        sys.stderr.write(f"orderbridge: not all that was told could be written: {sys.stdout.refused.strerror}\n")
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def say(code: int, words: str, prefix: str = "") -> None:
    """The last words of a command that did not end well: for a person, or an object for machines."""
    if STOP.as_json:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        words = json.dumps({"at": at, "event": "error", "message": words, "exit_code": code})
        prefix = ""
    sys.stderr.write(f"{prefix}{words}\n")


def _remember(_: click.Context, __: click.Parameter, style: str) -> str:
    STOP.as_json = style == "json"
    return style


def log_option(function: F) -> F:
    """`--log`: how progress and errors are told, on stderr."""
    return click.option(
        "--log",
        "style",
        is_eager=True,
        callback=_remember,
        type=click.Choice(["auto", "plain", "json"]),
        default="auto",
        show_default=True,
        help="Bars on a terminal and lines in a pipe, always lines, or JSON for machines.",
    )(function)


def _remember_json(_: click.Context, __: click.Parameter, as_json: bool) -> bool:
    STOP.as_json = STOP.as_json or as_json
    return as_json


def json_option(function: F) -> F:
    """`--json`: the answer for machines, on stdout."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        is_eager=True,
        callback=_remember_json,
        help="JSON on stdout; an error as JSON on stderr.",
    )(function)
