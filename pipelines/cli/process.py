"""What every command shares: how its process starts, how a signal stops it, how it ends and with which exit code."""

from __future__ import annotations

import ctypes
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click
from click.core import ParameterSource

from orderbridge.pipelines.cli.terminal import Style, escape, escape_lines, event_json
from orderbridge.sources.command_line import run_again
from orderbridge.sources.errors import ExitCode, UsageError, memory_limit
from orderbridge.sources.settings import (
    check_project,
    find_root,
    is_new_project,
    key_routes,
    misspelt_names,
    prepare_dlt,
)
from orderbridge.sources.texts import Language, Texts, english, language_of_locale

if TYPE_CHECKING:
    from orderbridge.pipelines.cli.console import Reporter

LOG: Final = logging.getLogger("orderbridge")
KEPT: Final = "; nothing was published, and pages already fetched are kept for the next run"
"""Note of a stopped command that fetches pages."""
SENT: Final = "; what was sent is recorded, and nothing is sent twice"
"""Note of a stopped command that has begun to send."""
MEMORY_MIN: Final = 600 << 20
"""Address space without which no command that uses settings works: with less, OpenBLAS and Arrow end the process."""
_ARENAS: Final = -8
"""The option of mallopt(3) for the number of arenas: by default eight a core, and threads reserve 64 MB for each.

Arrow's own pool reserves 1 GB. A small run uses little of either, but all counts where address space is limited.
"""
UNUSED_DLT_FOLDER: Final = "orderbridge-dlt-unused"


class _SignalEvent(threading.Event):
    """An event that a signal handler can set while its own thread waits for it, and holds its lock for a moment."""

    def __init__(self) -> None:
        super().__init__()
        # its lock can be taken again by the thread that holds it
        self._cond = threading.Condition()


class Stop:
    """Ctrl-C, SIGTERM, a closed terminal: the first asks the walks to stop and unwinds the stack; files stay whole.

    Attributes:
        event: set once the process should end.
        signal: number of the signal that was received; 0 for none.
        style: how the command prints, its final error message too.
        note: what is added to the message of a stopped command.
    """

    def __init__(self) -> None:
        self.event = _SignalEvent()
        self.signal = 0
        self.style: Style = "auto"
        self.note = ""
        self._is_gentle = False

    def listen(self) -> None:
        """Handles these signals from now on; `nohup` ignores that of the terminal, and so do we then."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        if self.signal:
            return  # already stopping: a second signal must not interrupt the clean-up
        self.signal = number
        self.event.set()
        if not self._is_gentle:
            raise KeyboardInterrupt(128 + number)

    def exit_code(self, code: int) -> int:
        """The exit code with the number of the signal, where the code only says that one stopped the command."""
        return 128 + self.signal if code == ExitCode.STOPPED and self.signal else code

    @contextmanager
    def gently(self) -> Iterator[None]:
        """Inside the block a signal only sets `event`; it interrupts nothing."""
        self._is_gentle = True
        try:
            yield
        finally:
            self._is_gentle = False


STOP = Stop()


def sent_nothing() -> str:
    """Note of a stopped command that has not begun to send."""
    return f"; this run sent nothing. To go on, {run_again()}"


def start(*, sends_keys: bool = False) -> Reporter:
    """Prepares the process of a command that uses settings: logging, dlt's folders, signals. Returns its reporter.

    Args:
        sends_keys: whether the command makes requests.
    """
    from orderbridge.pipelines.cli.console import Reporter

    _check_memory()
    reporter = Reporter(STOP.style)
    reporter.attach()
    prepare_environment()
    check_project()
    # a file that cannot be read is the error of the section that reads it
    with suppress(UsageError):
        for name, setting in misspelt_names().items():
            LOG.warning("`%s` is not a setting and is not read. Did you mean `%s`?", name, setting)
    _warn_of_hidden_options()
    STOP.listen()
    if sends_keys:
        _confirm_hosts()
    return reporter


def _warn_of_hidden_options() -> None:
    """Warns of options that were given and that the help no longer has: the next version does not take them."""
    context = click.get_current_context(silent=True)
    if context is None:
        return
    for option in context.command.params:
        is_hidden = isinstance(option, click.Option) and option.hidden and option.name
        if is_hidden and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            name = f"{context.command.name} {option.opts[0]}"
            LOG.warning("the next version does not take `%s`: take it out of scripts", name)


def _confirm_hosts() -> None:
    """Asks before the first request of a project where keys of the environment go to hosts that its files name.

    Without a terminal it is one line, and the command goes on: its keys were put there for it. Raises UsageError where
    a person does not agree.
    """
    if not is_new_project():
        return
    routes = [route.words for route in key_routes() if route.is_split]
    if not routes:
        return
    if not sys.stdin.isatty():
        LOG.warning("first request of this project: %s", "; ".join(routes))
        return
    lines = "".join(f"  {escape(words)}\n" for words in routes)
    question = f"The files of this folder say where keys from elsewhere go:\n{lines}Is that right?"
    if not click.confirm(question, err=True):
        raise UsageError(
            "nothing was sent", f"Set the hosts with the keys, or correct {find_root() / '.dlt'}."
        )


def _check_memory() -> None:
    """Prepares the libraries for a limit of address space, before they are imported.

    Raises UsageError below a limit under which they end the process themselves, with codes of their own.
    """
    limit = memory_limit()
    if not limit:
        return
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(AttributeError):  # another C library than glibc
        ctypes.CDLL(None).mallopt(_ARENAS, 1)
    if limit < MEMORY_MIN:
        allowed, least = limit >> 20, MEMORY_MIN >> 20
        raise UsageError(
            f"not enough memory: this process may use {allowed:,} MB (ulimit -v), and needs {least:,} MB",
            f"Raise the limit, then {run_again()}",
        )


def shown_texts(language: Language | None) -> Texts:
    """The texts for the person who reads a command: in the language given, else at a terminal in that of the locale.

    What machines and logs read is English.
    """
    if STOP.style == "json":
        return english()
    if language is None and sys.stdin.isatty():
        language = language_of_locale()
    return Texts(language or "en")


def settings_origin() -> dict[str, str]:
    """The folder of the settings, and the dlt destination that gets a copy ("" for none): every run reports them."""
    from orderbridge.sources.settings import warehouse_settings

    return {
        "settings": str(find_root() / ".dlt"),
        "destination": warehouse_settings().destination or "",
    }


def origin_line() -> str:
    """`settings_origin` as a line."""
    origin = settings_origin()
    copy = f"; a copy goes to {origin['destination']}" if origin["destination"] else ""
    return f"settings from {origin['settings']} and the environment{copy}"


def prepare_environment() -> None:
    """Points dlt at the project's settings, before dlt is imported.

    Each load uses a working folder of its own, so dlt needs no data folder: it gets the name of one that does not
    exist, or it would use the home folder or, for root, one below /var.
    """
    prepare_dlt(find_root(), Path(os.environ.get("TMPDIR") or "/tmp") / UNUSED_DLT_FOLDER)  # noqa: S108 # never created


class Output(io.TextIOWrapper):
    """stdout, stderr. When one cannot be written (full disk, closed terminal), the rest of it is dropped.

    `write_error` is the first error, if there was one.
    """

    write_error: OSError | None = None

    def write(self, text: str, /) -> int:
        """See TextIOWrapper."""
        self._attempt(lambda: super(Output, self).write(text))
        return len(text)

    def flush(self) -> None:
        """See TextIOWrapper."""
        self._attempt(super().flush)

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except BrokenPipeError:
            raise
        except OSError as error:
            self.write_error = self.write_error or error
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            super().flush()


def open_streams() -> None:
    """Opens standard streams that the parent process closed; output escapes what its encoding cannot hold.

    A closed descriptor would be reused by the next file opened: the warehouse, or the ledger.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115  # the process owns it
            setattr(sys, name, stream)
    for name, out in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        if isinstance(out, io.TextIOWrapper):
            encoding, by_line, at_once = out.encoding, out.line_buffering, out.write_through
            stream = Output(
                out.detach(),
                encoding,
                "backslashreplace",
                line_buffering=by_line,
                write_through=at_once,  # of PYTHONUNBUFFERED, which containers set
            )
            setattr(sys, name, stream)


def exit_process(code: int) -> NoReturn:
    """Ends the process at once, without waiting for threads that await an answer or for memory to be freed.

    A command that is done, but could not print what it did, ends with 2.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or 128 + signal.SIGPIPE
    with suppress(OSError):
        if isinstance(sys.stdout, Output) and sys.stdout.write_error is not None:
            code = code or ExitCode.USAGE
            print_error(
                code,
                f"stdout could not be written: {sys.stdout.write_error.strerror}",
                "orderbridge: ",
            )
        sys.stderr.flush()
    os._exit(code)


def print_error(code: int, message: str, prefix: str = "") -> None:
    """Prints why a command failed, on stderr: text, or one JSON object where the command was asked for JSON."""
    text = (
        event_json("error", message, exit_code=code)
        if STOP.style == "json"
        else f"{prefix}{escape_lines(message)}"
    )
    with suppress(BrokenPipeError):
        sys.stderr.write(f"{text}\n")
