"""The commands that the desk starts, in sessions of their own: what they send goes on whatever becomes of the desk.

In: the words of a command and the file that gets its output. Out: whether it runs, and its events so far. A command
writes to files, never to a pipe, which would break when the desk ends. It holds the lock of its file of events
until it has ended, however
it ends: a desk that is started later sees the same as the one that started it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from filelock import lock_descriptor

from orderbridge.pipelines.warehouse.lock import lock_holder
from orderbridge.sources.disk import disk_errors, open_private, write_private
from orderbridge.sources.settings import find_root

Event = dict[str, Any]
_HINT: Final = "Free space or make the folder writable, then try again."


@dataclass(frozen=True, slots=True)
class Job:
    """A command of the desk, by its files.

    Attributes:
        log: its events, an object a line.
        result: what it prints at its end.
    """

    log: Path
    result: Path

    @classmethod
    def of(cls, folder: Path, name: str) -> Job:
        """The files of a command in a folder."""
        return cls(folder / f"{name}.events", folder / f"{name}.result")

    @property
    def is_running(self) -> bool:
        """Whether the command has not ended."""
        return lock_holder(self.log)[1]

    @property
    def was_started(self) -> bool:
        """Whether there was one."""
        return self.log.exists()

    @property
    def written_at(self) -> float:
        """When it last reported something, epoch seconds; 0 if there was none."""
        with suppress(OSError):
            return max(self.log.stat().st_mtime, self.result.stat().st_mtime)
        return 0.0

    def events(self) -> list[Event]:
        """The events so far."""
        return _objects(self.log)

    def results(self) -> list[Event]:
        """What it printed."""
        return _objects(self.result)

    @property
    def words(self) -> Sequence[str]:
        """The words of the command that was started last."""
        with suppress(OSError, ValueError):
            return [*map(str, json.loads(self._words_file.read_bytes()))]
        return ()

    @property
    def _words_file(self) -> Path:
        return self.log.with_suffix(".words")

    def start(self, words: Sequence[str], before: Callable[[], None] = lambda: None) -> bool:
        """Starts a command; False if the one before has not ended.

        Args:
            words: of the command.
            before: called once the one before has ended for certain, while its output is still there.

        Raises:
            UsageError: the disk fails.
        """
        with disk_errors(self.log.parent, _HINT):
            log = open_private(self.log)
            try:
                if not lock_descriptor(log, blocking=False):
                    return False
                before()
                self._start(words, log)
            finally:
                os.close(log)  # the command has it too, and with it the lock
        return True

    def _start(self, words: Sequence[str], log: int) -> None:
        write_private(self._words_file, json.dumps(words).encode())
        os.ftruncate(log, 0)
        result = open_private(self.result)
        try:
            os.ftruncate(result, 0)
            process = subprocess.Popen(  # noqa: S603 # our own command
                command_line(words),
                cwd=find_root(),
                stdin=subprocess.DEVNULL,
                stdout=result,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(result)
        threading.Thread(target=process.wait, daemon=True).start()  # its end is taken note of


def command_line(words: Sequence[str]) -> list[str]:
    """The command as a process. `-P`: a module in the project's folder is never imported in place of ours."""
    program = [sys.executable, "-P", "-m", "orderbridge.pipelines.cli"]
    return [*program, "--project", str(find_root()), *words]


@dataclass(frozen=True, slots=True)
class Done:
    """A short command that has ended.

    Attributes:
        code: its exit code.
        error: why it failed; empty if it did not.
    """

    code: int
    error: str = ""


def run_short(words: Sequence[str], text: str = "") -> Done:
    """Runs a command that takes no time, such as `answer`, and waits for its end.

    Args:
        words: of the command: other users of the machine can see them.
        text: for its stdin.
    """
    done = subprocess.run(  # noqa: S603 # our own command
        command_line(words),
        cwd=find_root(),
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        start_new_session=True,
        check=False,
    )
    if done.returncode == 0:
        return Done(0)
    errors = [line["message"] for line in _parsed(done.stderr) if line.get("event") == "error"]
    return Done(done.returncode, errors[-1] if errors else done.stderr.strip())


def _objects(path: Path) -> list[Event]:
    with suppress(OSError):
        return _parsed(path.read_text("utf-8", "replace"))
    return []


def _parsed(text: str) -> list[Event]:
    """The objects of the lines that are objects: others are of a program that was ended while it wrote."""
    found: list[Event] = []
    for line in text.splitlines():
        with suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                found.append(value)
    return found
