"""A bug in a copy of the checkout, and whether its tests notice.

In: a file with a bug in it, and the arguments of pytest. Out: `caught`, `SURVIVED` or `ERROR`, printed when known.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

CHECKOUT: Final = Path(__file__).parents[2]
_NOT_COPIED: Final = (".git", ".venv*", ".*_cache", ".hypothesis", "demo", "dist", "site")
"""Byte code is copied, to be compiled again for the file with the bug alone."""
_FAILED: Final = re.compile(r"\b[0-9]+ (failed|errors?)\b")


class PatchError(Exception):
    """A patch cannot be applied, or its tests cannot be judged: the catalogue is wrong, not the product."""


class Bug(Protocol):
    """A bug that can be planted."""

    @property
    def name(self) -> str:
        """What is printed."""

    @property
    def file(self) -> str:
        """The file that it is in, relative to the checkout."""

    @property
    def arguments(self) -> Sequence[str]:
        """The tests that must fail, as arguments of pytest."""

    @property
    def timeout_s(self) -> float:
        """Tests that take longer have failed: a bug may let a walk or a push go on for ever."""

    def patched(self, checkout: Path) -> str:
        """The text of the file with the bug in it. Raises PatchError."""


def judge_all(bugs: Sequence[Bug], jobs: int) -> int:
    """Plants each bug and prints which are caught.

    Args:
        bugs: to plant, each in a copy of its own.
        jobs: how many are tested at the same time.

    Returns:
        The exit code: 1 if one survived, 2 if one could not be planted.
    """
    results = defaultdict[str, list[str]](list)
    with ThreadPoolExecutor(jobs) as pool:
        for bug, result in zip(bugs, pool.map(_judge, bugs), strict=True):
            results[result].append(bug.name)
    print(f"{len(results['caught'])} of {len(bugs)} planted bugs caught")
    for name in results["SURVIVED"]:
        print(f"survived: {name}")
    if results["ERROR"]:
        return 2
    return 1 if results["SURVIVED"] else 0


def _judge(bug: Bug) -> str:
    """`caught`, `SURVIVED` or `ERROR`; printed when it is known."""
    try:
        result, words = "caught" if is_caught(bug) else "SURVIVED", bug.name
    except PatchError as error:
        result, words = "ERROR", str(error)
    print(f"{result:<8} {words}", flush=True)
    return result


def is_caught(bug: Bug) -> bool:
    """Whether a test fails once the bug is in a copy of the checkout. Raises PatchError: the tests could not be run."""
    if not bug.arguments:
        return False
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        tempfile.TemporaryFile() as output,
    ):
        copy = Path(folder) / "checkout"
        shutil.copytree(CHECKOUT, copy, ignore=shutil.ignore_patterns(*_NOT_COPIED), symlinks=True)
        (copy / bug.file).write_text(bug.patched(copy), "utf-8")
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-n0",
                "-p",
                "no:cacheprovider",
                *bug.arguments,
            ],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(bug.timeout_s)
        except subprocess.TimeoutExpired:
            return True
        finally:
            with suppress(ProcessLookupError):  # what is left of the run: its own process group
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        report = output.read().decode("utf-8", "replace")
    if code and not _FAILED.search(report[-500:]):
        raise PatchError(f"{bug.name}: pytest ended with {code}:\n{report[-2000:]}")
    return bool(code)
