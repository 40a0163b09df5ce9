"""The files with the new passwords of customers: one for each part in which a person's file was sent.

In: the plan folders of the project. Out: where these files are, and whose passwords they have. No password is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from orderbridge.pipelines.desk.imports import DeskImport, import_of_plan
from orderbridge.pipelines.desk.settled import confirmed_lines
from orderbridge.pipelines.push.passwords import PASSWORDS_FILE
from orderbridge.sources.settings import project_file


@dataclass(frozen=True, slots=True)
class PasswordFile:
    """A file with passwords.

    Attributes:
        folder: that it is in.
        customers: so many have a password in it.
        lines: the corrected lines that it is of; none: the other lines of the file.
        at: when it was written.
    """

    folder: str
    customers: int
    lines: Sequence[int]
    at: datetime


def password_files(one: DeskImport) -> list[PasswordFile]:
    """The files that an import, the one whose lines it corrects, and its other corrections have left, by time."""
    found: list[PasswordFile] = []
    for path in project_file("").glob(f"plan-{one.kind}-*/{PASSWORDS_FILE}"):
        part = import_of_plan(path.parent)
        if part is not None and part.root == one.root:
            with suppress(OSError):  # it was deleted meanwhile
                found.append(_password_file(path, part))
    return sorted((file for file in found if file.customers), key=lambda file: file.at)


def _password_file(path: Path, part: DeskImport) -> PasswordFile:
    rows = path.read_bytes().count(b"\n") - 1
    at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    lines = sorted(confirmed_lines(path.parent)) if part.is_correction else []
    return PasswordFile(str(path.parent), rows, lines or part.corrected_lines, at)
