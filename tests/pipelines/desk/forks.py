"""Commands of the desk as forks of a process that has imported the program: a start costs a second otherwise."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from orderbridge.pipelines.cli.console import Reporter
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from tests.pipelines import bridge

_PROGRAM: Final = "orderbridge.pipelines.cli"


class Forks:
    """In the place of the module `subprocess` where the desk starts its commands.

    Attributes:
        before: what a command calls first, in its own process.
    """

    DEVNULL: Final = subprocess.DEVNULL

    def __init__(self) -> None:
        self.before: Callable[[], object] = os.setsid

    def Popen(  # as there
        self, words: Sequence[str], *, cwd: Path, stdout: int, stderr: int, **more: Any
    ) -> Any:
        """A command whose streams are files."""
        if _PROGRAM not in words:
            return subprocess.Popen(words, cwd=cwd, stdout=stdout, stderr=stderr, **more)
        assert more == {"stdin": subprocess.DEVNULL, "start_new_session": True}
        streams = [Connection(os.dup(one), readable=False) for one in (stdout, stderr)]
        process = bridge.fork(_arguments(words), dict(os.environ), cwd, self.before, *streams)
        process.wait = process.join  # type: ignore[attr-defined] # as a process of that module
        return process

    def run(self, words: Sequence[str], *, cwd: Path, **more: Any) -> Any:
        """A command whose end is waited for."""
        assert more["start_new_session"]
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as stdin:
            stdin.write(more.get("input") or "")
            stdin.flush()
            before = partial(_reading, stdin.name, self.before)
            started = bridge.start(*_arguments(words), env=os.environ, cwd=cwd, preexec_fn=before)
            with started as process:
                out, err = process.communicate()
                return subprocess.CompletedProcess(words, process.wait(60), out, err)


def _reading(file: str, before: Callable[[], object]) -> None:
    """The command has a file as its stdin."""
    os.dup2(os.open(file, os.O_RDONLY), 0)
    before()


def _arguments(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(words[words.index(_PROGRAM) + 1 :])


def killed_at(step: str) -> None:
    """The command is killed where it comes to a phase, or is about to record a state of its requests."""
    os.setsid()
    begin, record = Reporter.begin, PlanLedger._apply

    def begin_or_die(self: Reporter, phase: str) -> None:
        if phase == step:
            os.kill(os.getpid(), signal.SIGKILL)
        begin(self, phase)

    def record_or_die(self: PlanLedger, connection: Any, to: Any, *more: Any) -> None:
        if to == step:
            os.kill(os.getpid(), signal.SIGKILL)
        record(self, connection, to, *more)

    setattr(Reporter, "begin", begin_or_die)  # noqa: B010 # mypy: a method
    setattr(PlanLedger, "_apply", record_or_die)  # noqa: B010
