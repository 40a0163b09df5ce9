"""A command in a process of its own, and what it cost.

The process that starts the contenders stays small, and reads no warehouse itself: on Linux a child's peak memory begins
with that of the process that it was forked from. `python -m tests.bench.measure MODULE.FUNCTION …` calls a
function of this package with texts, and prints its result as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Failed(Exception):
    """A command did not end well, or came to another result; the message says which, and what it printed last."""


@dataclass(frozen=True)
class Cost:
    """Of a process and those that it started and waited for; `work_s` is what is compared, where it says so."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    work_s: float | None = None

    @property
    def compared_s(self) -> float:
        return self.wall_s if self.work_s is None else self.work_s


@dataclass(frozen=True)
class Series:
    """The rounds of one contender at a task with so many rows, and the contender that it is compared with."""

    task: str
    rows: int
    name: str
    costs: list[Cost]
    reference: str


def measured_rounds(
    task: str,
    rows: int,
    rounds: int,
    contender: Callable[[str], Cost],
    references: Mapping[str, str],
) -> list[Series]:
    """Runs the contenders in turn, as often as asked for; `references` has what each is compared with, if anything."""
    costs: dict[str, list[Cost]] = {name: [] for name in references}
    for _ in range(rounds):
        for name in references:
            costs[name].append(contender(name))
            print(
                f"{task}, {rows:,} rows: {name} {costs[name][-1].compared_s:.2f} s",
                file=sys.stderr,
                flush=True,
            )
    return [Series(task, rows, name, of, references[name]) for name, of in costs.items()]


def started(
    module: str, *arguments: str, folder: Path, settings: Mapping[str, str], **streams: Any
) -> Any:
    """A process that gets only the path of programs: no setting of the caller's that keeps bytecode from being kept."""
    environment = {
        "PATH": os.environ.get("PATH", ""),
        **dict.fromkeys(("HOME", "TMPDIR"), str(folder)),
        "DLT_DATA_DIR": str(folder / "dlt"),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "RUNTIME__LOG_LEVEL": "CRITICAL",
        "PYTHONUTF8": "1",
        "PYTHONPATH": str(ROOT),
        **settings,
    }
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments], cwd=folder, env=environment, **streams
    )


def run(
    module: str,
    *arguments: str,
    folder: Path,
    settings: Mapping[str, str],
    codes: Sequence[int] = (0,),
) -> tuple[Cost, str]:
    """Runs `python -m module` to its end; gives its cost and what it printed. Fails where it ends with another code."""
    printed = folder / "printed.txt"
    with printed.open("wb") as out:
        begun = time.perf_counter()
        streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": subprocess.STDOUT}
        process = started(module, *arguments, folder=folder, settings=settings, **streams)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - begun
    text = printed.read_text("utf-8", "replace")
    if process.returncode not in codes:
        raise Failed(f"{module} {' '.join(arguments)}: exit {process.returncode}\n{text[-3000:]}")
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit), text


def called(
    function: str, *arguments: object, folder: Path, settings: Mapping[str, str] | None = None
) -> tuple[Cost, Any]:
    """Calls a function of this package, such as `pull.found`, in a process of its own: its cost and its result."""
    place = ("tests.bench.measure", function, *map(str, arguments))
    cost, text = run(*place, folder=folder, settings=settings or {})
    return cost, json.loads(text.splitlines()[-1])


@contextmanager
def serving(module: str, *arguments: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A platform in a process of its own, which reads lines and prints lines."""
    streams = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
        "encoding": "utf-8",
    }
    with started(module, *arguments, folder=folder, settings={}, **streams) as process:
        try:
            yield process
        finally:
            process.terminate()


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that a platform prints. Raises Failed where it has ended."""
    line = process.stdout.readline().strip() if process.stdout else ""
    if not line:
        raise Failed("the platform ended")
    return line


if __name__ == "__main__":
    module, _, name = sys.argv[1].partition(".")
    print(json.dumps(getattr(import_module(f"tests.bench.{module}"), name)(*sys.argv[2:])))
