"""Plants each bug of the catalogue in a copy of the checkout and runs its tests there.

    python -m tests.mutants [--check] [--jobs N] [NAME …]

Names may contain `*`. Each bug is reported as caught or survived; one that no test catches ends the command with 1, and
a patch that cannot be applied, which is named before any test runs, with 2. `--check` runs no test.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from tests.mutants.mutant import Mutant, PatchError, read_mutants

CHECKOUT: Final = Path(__file__).parents[2]
CATALOGUE: Final = tuple(
    mutant for file in sorted(Path(__file__).parent.glob("*.txt")) for mutant in read_mutants(file)
)
TIMEOUT_S: Final = 600.0
"""Tests that take longer have failed: a bug may let a walk or a push go on for ever."""
_NOT_COPIED: Final = (".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", ".import_linter_cache", "demo", "dist")
_FAILED: Final = re.compile(r"\b[0-9]+ (failed|errors?)\b")


def selected(names: Sequence[str]) -> list[Mutant]:
    """The mutants with these names, or all of them. Raises PatchError for a name that fits none."""
    for name in names:
        if not any(fnmatch(mutant.name, name) for mutant in CATALOGUE):
            raise PatchError(f"no mutant is named {name}")
    return [mutant for mutant in CATALOGUE if not names or any(fnmatch(mutant.name, name) for name in names)]


def check(mutants: Sequence[Mutant], checkout: Path) -> None:
    """Checks that every patch can be applied. Raises PatchError that names all which cannot."""
    problems = []
    for mutant in mutants:
        try:
            mutant.patched(checkout)
        except PatchError as error:
            problems.append(str(error))
    if problems:
        raise PatchError("\n".join(problems))


@contextmanager
def planted(mutant: Mutant, checkout: Path) -> Iterator[None]:
    file = checkout / mutant.file
    original = file.read_bytes()
    file.write_text(mutant.patched(checkout), "utf-8")
    try:
        yield
    finally:
        file.write_bytes(original)


def is_caught(mutant: Mutant, checkout: Path) -> bool:
    """Whether a test fails once the bug is in this copy of the checkout."""
    environment = {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    arguments = ["-q", "-x", "-n0", "-p", "no:cacheprovider", *_split(mutant.tests)]
    with planted(mutant, checkout), tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=checkout,
            env=os.environ | environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return True
        finally:
            _end(process)
        output.seek(0)
        report = output.read().decode("utf-8", "replace")
    if code and not _FAILED.search(report[-500:]):
        raise PatchError(f"{mutant.name}: pytest ended with {code}:\n{report[-2000:]}")
    return bool(code)


def _split(tests: str) -> list[str]:
    """Arguments of pytest; what follows ` -k ` is one expression."""
    files, has_expression, expression = tests.partition(" -k ")
    return [*files.split(), *(["-k", expression] if has_expression else [])]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends what is left of a test run: its own process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


class _Run:
    """A run over mutants, by several threads, each with its own copy of the checkout."""

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self._queue: SimpleQueue[Mutant] = SimpleQueue()
        for mutant in mutants:
            self._queue.put(mutant)
        self._lock = threading.Lock()
        self.survivors: list[str] = []
        self.errors: list[str] = []

    def work(self) -> None:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            copy = Path(folder) / "checkout"
            shutil.copytree(CHECKOUT, copy, ignore=shutil.ignore_patterns(*_NOT_COPIED), symlinks=True)
            while True:
                try:
                    mutant = self._queue.get_nowait()
                except Empty:
                    return
                self._judge(mutant, copy)

    def _judge(self, mutant: Mutant, copy: Path) -> None:
        started = time.monotonic()
        try:
            caught = is_caught(mutant, copy)
        except PatchError as error:
            with self._lock:
                self.errors.append(mutant.name)
                _say(f"ERROR    {error}")
            return
        with self._lock:
            if not caught:
                self.survivors.append(mutant.name)
            _say(f"{'caught  ' if caught else 'SURVIVED'} {mutant.name} ({time.monotonic() - started:.0f} s)")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Plants the bugs and prints which are caught. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only check that every patch can be applied")
    parser.add_argument("--jobs", type=int, default=1, help="bugs that are tested at the same time")
    parser.add_argument("names", nargs="*", metavar="NAME", help="bugs to plant; all of them if none is given")
    options = parser.parse_args(arguments)
    try:
        mutants = selected(options.names)
        check(mutants, CHECKOUT)
    except PatchError as error:
        _say(str(error))
        return 2
    if options.check:
        _say(f"{len(mutants)} patches can be applied")
        return 0
    run = _Run(mutants)
    threads = [threading.Thread(target=run.work) for _ in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    caught = len(mutants) - len(run.survivors) - len(run.errors)
    _say(f"{caught} of {len(mutants)} planted bugs caught")
    for name in run.survivors:
        _say(f"survived: {name}")
    return 2 if run.errors else 1 if run.survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
