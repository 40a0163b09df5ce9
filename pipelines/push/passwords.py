"""Passwords of customers to be created: from the file, made and mailed, or made and kept for their owner.

In: a plan, and the operations that are to be sent. Out: the password of each, and, where they are made to be kept,
`passwords.csv` in the plan's folder, 0600 and on disk before the first is sent. They are in nothing else of ours.
"""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from pipelines.plan.model import Plan, PlannedOperation, file_sha256
from sources.disk import disk_errors, write_private
from sources.errors import UsageError
from sources.kinds import KINDS

FILE: Final = "passwords.csv"
COLUMNS: Final = ("operation", "line", "erpCode", "email", "loginCode", "password")
LETTERS: Final = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without those that are taken for one another: 0 and O, 1, l, I and o."""
LENGTH: Final = 16
"""Letters of a password that is made: 93 bits."""
MAIL: Final = {"send": True, "withCredentials": True}

Reader = Callable[[Plan, Set[int]], Mapping[int, str]]
"""Reads the passwords on these lines of a plan's input: line → password."""


class Passwords:
    """The passwords of a push, shown to nobody but `body`."""

    __slots__ = ("_known",)

    def __init__(self, known: dict[int, str]) -> None:
        self._known = known

    def __repr__(self) -> str:
        return f"Passwords({len(self._known)} ***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("passwords are not pickled")

    def body(self, operation: PlannedOperation) -> bytes:
        """The bytes to send: the plan's body with the password that belongs to it."""
        if operation.password is None:
            return msgspec.json.encode(operation.body)
        body: dict[str, Any] = {"password": self._known.get(operation.id) or made(), **operation.body}
        if operation.password == "mailed":  # noqa: S105 # its source, not a password
            body["notification"] = MAIL
        return msgspec.json.encode(body)


def made() -> str:
    """A password that nobody had before."""
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))


def opened(plan: Plan, wanted: Set[int], reader: Reader) -> Passwords:
    """The passwords of the operations that are to be sent.

    Args:
        plan: checked; its input is as it was planned.
        wanted: ids of the operations.
        reader: of the input.

    Raises:
        UsageError: a line has no password any more; `passwords.csv` is no file of ours, or cannot be written.
    """
    from_file: dict[int, PlannedOperation] = {}
    to_keep: dict[int, PlannedOperation] = {}
    for operation in plan.operations() if KINDS[plan.kind].has_login and wanted else ():
        if operation.id in wanted and operation.password == "input":  # noqa: S105 # its source, not a password
            from_file[operation.id] = operation
        elif operation.id in wanted and operation.password == "stored":  # noqa: S105
            to_keep[operation.id] = operation
    known = _read(plan, from_file, reader) if from_file else {}
    return Passwords(known | (_kept(plan.folder / FILE, to_keep) if to_keep else {}))


def _read(plan: Plan, operations: Mapping[int, PlannedOperation], reader: Reader) -> dict[int, str]:
    """From the input, by line."""
    on_lines = reader(plan, {line for operation in operations.values() for line in operation.lines})
    known = {}
    for operation in operations.values():
        found = [on_lines[line] for line in operation.lines if on_lines.get(line)]
        if not found:
            raise UsageError(
                f"line {operation.lines[0]} of the input has no password",
                "Make the plan again: orderbridge plan KIND FILE",
            )
        known[operation.id] = found[0]
    return known


def _kept(path: Path, operations: Mapping[int, PlannedOperation]) -> dict[int, str]:
    """Made once for each, and on disk before this returns. What the file has already stays as it is."""
    rows = _rows(path)
    known = {int(row[0]): row[-1] for row in rows}
    new = [operation for number, operation in operations.items() if number not in known]
    for operation in new:
        known[operation.id] = made()
        keys = [operation.keys.get(name, "") for name in COLUMNS[2:5]]
        rows.append([str(operation.id), str(operation.lines[0]), *keys, known[operation.id]])
    if new:
        write_private_csv(path, [COLUMNS, *rows])
    return {number: known[number] for number in operations}


def forget(plan: Plan, unsent: Set[int]) -> None:
    """Takes the passwords that no customer has out of `passwords.csv`: a copy of the plan may give them others.

    Raises:
        UsageError: the file is none of ours, or cannot be written.
    """
    rows = _rows(plan.folder / FILE) if KINDS[plan.kind].has_login else []
    kept = [row for row in rows if int(row[0]) not in unsent]
    if len(kept) < len(rows):
        write_private_csv(plan.folder / FILE, [COLUMNS, *kept])


def _rows(path: Path) -> list[list[str]]:
    try:
        header, *rows = list(csv.reader(io.StringIO(path.read_text("utf-8"))))
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        header, rows = [], []
    if tuple(header) != COLUMNS or not all(len(row) == len(COLUMNS) and row[0].isdecimal() and row[-1] for row in rows):
        raise UsageError(
            f"{path} is not as it was written: the passwords of customers that were sent stand in it",
            "Put it back as it was, or move it away: then new ones are made for those that were not sent.",
        )
    return rows


def write_private_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Writes a CSV for its owner alone, whole and on disk before this returns. Raises UsageError."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    with disk_errors(path, "Make its folder writable, then push again."):
        write_private(path, text.getvalue().encode(), is_only_writer=True)


def from_input(plan: Plan, lines: Set[int]) -> Mapping[int, str]:
    """The passwords on these lines of the plan's input, read by its mapping.

    Raises:
        UsageError: the input cannot be read, or was changed meanwhile.
    """
    from pipelines.imports import open_inputs
    from pipelines.mapping import load

    told = plan.manifest
    mapping = load(Path(told.mapping.path), told.kind) if told.mapping is not None else None
    inputs = open_inputs(told.kind, Path(told.input.path), mapping, login_mode=told.login_mode)
    found = inputs.passwords(lines)
    if file_sha256(Path(told.input.path)) != told.input.sha256:
        raise UsageError(f"{told.input.path} was changed while it was read", "Make the plan again.")
    return found
