"""The releases, as the table in docs/upgrade.md names them, and their code.

In: the table, the history of git. Out: a folder with the code of a release, and an interpreter with what it was locked
to.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final, NamedTuple

CHECKOUT: Final = Path(__file__).parents[2]
ENVIRONMENTS: Final = CHECKOUT / ".venv-upgrades"
_ROW: Final = re.compile(
    r"^\| (?P<version>[0-9.]+) \| (?P<date>[0-9-]+) \| `(?P<commit>[0-9a-f]{8})` \|"
    r" (?P<ledger>[0-9]+) \| (?P<warehouse>[0-9.]+) \| (?P<converted_by>.*) \|$",
    re.MULTILINE,
)
_COMMIT: Final = re.compile(r"`([0-9a-f]{8})`")


class Release(NamedTuple):
    """A row of the table.

    Attributes:
        ledger: version of the ledger.
        warehouse: version that first wrote this form of the warehouse.
        converted_by: what makes it one of today.
    """

    version: str
    date: str
    commit: str
    ledger: str
    warehouse: str
    converted_by: str

    @property
    def via(self) -> str:
        """The commit whose code converts it first; empty where today's does."""
        commits = _COMMIT.findall(self.converted_by)
        return commits[0] if commits else ""


def releases() -> list[Release]:
    """The rows of the table, the newest first."""
    text = (CHECKOUT / "docs/upgrade.md").read_text("utf-8")
    return [Release(**match.groupdict()) for match in _ROW.finditer(text)]


def git(*arguments: str) -> bytes:
    """What git prints about the checkout."""
    return subprocess.run(["git", *arguments], cwd=CHECKOUT, check=True, capture_output=True).stdout


def code_of(commit: str, folder: Path) -> Path:
    """The code of a commit, in a folder of its own."""
    target = folder / commit
    if not target.exists():
        with tarfile.open(fileobj=io.BytesIO(git("archive", commit))) as archive:
            archive.extractall(target, filter="data")
    return target


def interpreter_of(commit: str, code: Path) -> Path:
    """Python with the packages that a commit was locked to, installed once."""
    environment = ENVIRONMENTS / commit
    python = environment / "bin/python"
    done = environment / "done"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
        install = ["install", "--no-compile", "--require-hashes"]
        subprocess.run([*pip, *install, "-r", str(code / "requirements.txt")], check=True)
        done.touch()
    return python
