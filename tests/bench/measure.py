"""A command in a process of its own, and what it cost.

The process that starts the contenders stays small, and reads no warehouse itself: on Linux a child's peak memory begins
with that of the process that it was forked from.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 3600
SANDBOX_READY_LINES = 7


class Failed(Exception):
    """A command did not end well; the message is what it said last."""


@dataclass(frozen=True)
class Cost:
    """Of a process and those that it started and waited for.

    Attributes:
        wall_s, cpu_s: of the whole process, imports included.
        peak_mb: resident memory of the largest of them, from the kernel.
        work_s: of the measured part alone, where a contender reports it.
    """

    wall_s: float
    cpu_s: float
    peak_mb: float
    work_s: float | None = None

    @property
    def compared_s(self) -> float:
        """What ratios compare."""
        return self.wall_s if self.work_s is None else self.work_s


@dataclass(frozen=True)
class Series:
    """The rounds of one contender at one task.

    Attributes:
        task: what was done.
        rows: of the input; of each list or side, if there are two.
        name: the contender.
        costs: by round. Peers that are much slower than the others run in the first round only.
        reference: the contender that it is compared with.
    """

    task: str
    rows: int
    name: str
    costs: list[Cost]
    reference: str = ""


def measured_rounds(
    task: str,
    rows: int,
    rounds: int,
    contenders: Mapping[str, Callable[[], Cost]],
    references: Mapping[str, str],
    slow: Collection[str] = (),
) -> list[Series]:
    """Runs the contenders in turn, as often as asked for.

    Args:
        task, rows: see Series.
        rounds: of each.
        contenders: by name, in order.
        references: name → the contender that it is compared with.
        slow: contenders that run once.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in contenders}
    for number in range(rounds):
        for name, contender in contenders.items():
            if number == 0 or name not in slow:
                costs[name].append(contender())
                print(f"{task}, {rows:,} rows: {name} {costs[name][-1].compared_s:.2f} s", file=sys.stderr, flush=True)
    return [Series(task, rows, name, of, references.get(name, "")) for name, of in costs.items()]


def environment(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Nothing of the caller's but the path of programs: above all no setting that keeps bytecode from being kept."""
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "DLT_DATA_DIR": str(folder / "dlt"),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "RUNTIME__LOG_LEVEL": "CRITICAL",
        "PYTHONUTF8": "1",
        "PYTHONPATH": str(ROOT),
        **settings,
    }


def run(
    module: str,
    *arguments: str,
    folder: Path,
    settings: Mapping[str, str],
    codes: Sequence[int] = (0,),
    watch: Callable[[int], None] | None = None,
) -> tuple[Cost, str]:
    """Runs `python -m module` to its end; gives its cost and what it printed. Fails where it ends with another code.

    `watch` is called with the process id, twice a second while it runs.
    """
    said = folder / "said.txt"
    with said.open("wb") as out:
        begun = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=folder,
            env=environment(folder, settings),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        late = Timer(TIMEOUT_S, os.killpg, (process.pid, signal.SIGKILL))
        late.daemon = True
        late.start()
        ended = Event()
        watcher = Thread(target=_watch, args=(watch, process.pid, ended), daemon=True)
        watcher.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        finally:
            late.cancel()
            ended.set()
            watcher.join()
        wall = time.perf_counter() - begun
    text = said.read_text("utf-8", "replace")
    if process.returncode not in codes:
        raise Failed(f"{module} {' '.join(arguments)}: exit {process.returncode}\n{text[-3000:]}")
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit), text


def _watch(watch: Callable[[int], None] | None, process: int, ended: Event) -> None:
    while watch is not None and not ended.wait(0.5):
        watch(process)


def asked(module: str, *arguments: str, folder: Path) -> Any:
    """What a module prints as JSON."""
    return json.loads(run(module, *arguments, folder=folder, settings={})[1])


def sandbox(rows: int, latency_ms: int, folder: Path) -> AbstractContextManager[dict[str, str]]:
    """The platform in a process of its own; gives the settings that reach it."""
    arguments = ["--customers", str(rows), "--orders", str(rows), "--latency-ms", str(latency_ms)]
    return served("pipelines.cli", "sandbox", *arguments, folder=folder)


@contextmanager
def served(module: str, *arguments: str, folder: Path) -> Iterator[dict[str, str]]:
    """A platform in a process of its own: a module that prints what `orderbridge sandbox` does."""
    with (folder / "sandbox.txt").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=folder,
            env=environment(folder, {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
    try:
        yield _settings(process, folder)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _settings(process: subprocess.Popen[str], folder: Path) -> dict[str, str]:
    lines = [process.stdout.readline().strip() if process.stdout else "" for _ in range(SANDBOX_READY_LINES)]
    if not lines[0].startswith("ready "):
        raise Failed(f"the sandbox did not start\n{(folder / 'sandbox.txt').read_text()[-3000:]}")
    return _pairs(lines[1:])


def _pairs(lines: Sequence[str]) -> dict[str, str]:
    return {name: value for name, _, value in (line.partition("=") for line in lines)}
