"""Plants each bug of the catalogue in a copy of the checkout and runs its tests there.

    python -m tests.mutants [--check] [--jobs N] [NAME …]

Names may contain `*`. Each bug is reported as caught or survived; one that no test catches ends the command with 1, and
a patch that cannot be applied, which is named before any test runs, with 2. `--check` runs no test.

The catalogue is the text files of this folder. An entry is its name, the file and the arguments of pytest on one line,
then whole lines of the file, before (`-`) and after (`+`):

    * an-ambiguous-number-is-guessed @ transforms/numbers.py: tests/transforms/test_numbers.py
    -            return "ambiguous"
    +            return "comma"
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
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).parents[2]
TIMEOUT_S: Final = 600.0
"""Tests that take longer have failed: a bug may let a walk or a push go on for ever."""
_NOT_COPIED: Final = (".git", ".venv*", "__pycache__", ".*_cache", ".hypothesis", "demo", "dist")
_FAILED: Final = re.compile(r"\b[0-9]+ (failed|errors?)\b")


class PatchError(Exception):
    """A patch cannot be applied, or its tests cannot be judged: the catalogue is wrong, not the product."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A patch that breaks one promise: `before` are lines that the file has exactly once, `after` replaces them."""

    name: str
    file: str
    tests: str
    before: str
    after: str

    def patched(self, checkout: Path) -> str:
        """The text of the file with the bug in it. Raises PatchError: the lines are not in it exactly once."""
        try:
            text = f"\n{(checkout / self.file).read_text('utf-8')}"
        except FileNotFoundError:
            raise PatchError(
                f"{self.name}: there is no {self.file}: name the file that has the code now"
            ) from None
        if (count := text.count(f"\n{self.before}")) != 1:
            words = f"{self.name}: {self.file} contains the lines {count} times: adapt the patch to the code"
            raise PatchError(f"{words}\n{self.before}")
        patched = text.replace(f"\n{self.before}", f"\n{self.after}").removeprefix("\n")
        try:
            if self.file.endswith(".py"):
                compile(patched, self.file, "exec")
        except SyntaxError as error:
            raise PatchError(f"{self.name}: the patch is not Python: {error}") from None
        return patched


def read_mutants(catalogue: Path) -> Iterator[Mutant]:
    """The entries of a file, in their order. Raises PatchError: one is not in the form that the module shows."""
    for entry in catalogue.read_text("utf-8").split("\n* ")[1:]:
        head, *lines = entry.rstrip("\n").split("\n")
        name, _, place = head.partition(" @ ")
        file, colon, tests = place.partition(": ")
        before, after = (
            "".join(f"{line[1:]}\n" for line in lines if line[:1] == sign) for sign in "-+"
        )
        if not (colon and before) or any(line[:1] not in ("-", "+") for line in lines):
            raise PatchError(f"{catalogue.name}: {name} is not a name, a place and lines")
        yield Mutant(name, file, tests, before, after)


def is_caught(mutant: Mutant) -> bool:
    """Whether a test fails once the bug is in a copy of the checkout. Raises PatchError: the tests could not be run."""
    files, has_expression, expression = mutant.tests.partition(" -k ")
    tests = [*files.split(), *(["-k", expression] if has_expression else [])]
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        tempfile.TemporaryFile() as output,
    ):
        copy = Path(folder) / "checkout"
        shutil.copytree(CHECKOUT, copy, ignore=shutil.ignore_patterns(*_NOT_COPIED), symlinks=True)
        (copy / mutant.file).write_text(mutant.patched(copy), "utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", *tests],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return True
        finally:
            with suppress(ProcessLookupError):  # what is left of the run: its own process group
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        report = output.read().decode("utf-8", "replace")
    if code and not _FAILED.search(report[-500:]):
        raise PatchError(f"{mutant.name}: pytest ended with {code}:\n{report[-2000:]}")
    return bool(code)


def judged(mutant: Mutant) -> str:
    """`caught`, `SURVIVED` or `ERROR`; printed when it is known."""
    try:
        result, words = "caught" if is_caught(mutant) else "SURVIVED", mutant.name
    except PatchError as error:
        result, words = "ERROR", str(error)
    print(f"{result:<8} {words}", flush=True)
    return result


def main(arguments: Sequence[str]) -> int:
    """Plants the bugs and prints which are caught. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--check", action="store_true", help="only check that every patch can be applied"
    )
    parser.add_argument("--jobs", type=int, default=1, help="bugs that are tested at the same time")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", default=["*"], help="bugs to plant (default: all)"
    )
    options = parser.parse_args(arguments)
    files = sorted(Path(__file__).parent.glob("*.txt"))
    catalogue, problems = [mutant for file in files for mutant in read_mutants(file)], []
    for name in options.names:
        if not any(fnmatch(mutant.name, name) for mutant in catalogue):
            problems.append(f"no mutant is named {name}")
    mutants = [
        mutant for mutant in catalogue if any(fnmatch(mutant.name, name) for name in options.names)
    ]
    for mutant in mutants:
        try:
            mutant.patched(CHECKOUT)
        except PatchError as error:
            problems.append(str(error))
    if problems or options.check:
        print("\n".join(problems) or f"{len(mutants)} patches can be applied")
        return 2 if problems else 0
    results = defaultdict[str, list[str]](list)
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, result in zip(mutants, pool.map(judged, mutants), strict=True):
            results[result].append(mutant.name)
    print(f"{len(results['caught'])} of {len(mutants)} planted bugs caught")
    for name in results["SURVIVED"]:
        print(f"survived: {name}")
    return 2 if results["ERROR"] else 1 if results["SURVIVED"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
