"""Passwords of new customers: from the input file, generated and mailed, or generated and stored for the operator.

In: a plan and the operations to send. Out: the password of each. Generated ones to be stored are in `passwords.csv` of
the plan folder, mode 0600 and synced, before the first is sent. Passwords are written to no other file.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence, Set
from collections.abc import Mapping as Pairs
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from orderbridge.pipelines.plan.model import (
    MAPPING_FILE,
    Plan,
    PlannedOperation,
    file_sha256,
)
from orderbridge.pipelines.push.next_steps import plan_again_command
from orderbridge.sources.command_line import run_again
from orderbridge.sources.disk import disk_errors, replace_file
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.formulas import neutralize, people_rows, people_writer
from orderbridge.sources.kinds import KINDS, PASSWORD
from orderbridge.sources.texts import LANGUAGES, Language, everywhere

if TYPE_CHECKING:
    from orderbridge.pipelines.imports import Inputs
    from orderbridge.pipelines.mapping import Mapping

PASSWORDS_FILE: Final = "passwords.csv"
_KEY_COLUMNS: Final = KINDS["customers"].list_keys
PASSWORD_COLUMNS: Final = ("operation", "line", *_KEY_COLUMNS, "password")
_HEADERS: Final = tuple(
    zip(*(everywhere(f"password_file.{name}") for name in PASSWORD_COLUMNS), strict=True)
)
"""The names of the columns in each language. The English ones are read by scripts, and do not change."""
ALPHABET: Final = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without characters that are easily confused: 0 and O, 1, l, I and o."""
LENGTH: Final = 16
"""Characters of a generated password: 93 bits."""

ReadPasswords = Callable[[Plan, Set[int]], Pairs[int, str]]
"""Reads the passwords on these lines of a plan's input: line → password."""


def generate() -> str:
    """A new random password."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def body_encoder(
    plan: Plan,
    to_send: Set[int],
    attempted: Set[int],
    read_passwords: ReadPasswords,
    language: Language = "en",
) -> Callable[[PlannedOperation], bytes]:
    """Makes the bytes to send of an operation: the body of the plan with its password, which only they contain.

    Passwords to be stored are generated and stored first, in a file whose header is in `language`. Operations that were
    `attempted` before keep the stored one.

    Raises:
        UsageError: a line has no password; `passwords.csv` was changed or cannot be written.
    """
    passwords: Pairs[int, str] = {}
    if KINDS[plan.kind].has_login:
        passwords = _passwords(plan, to_send, attempted, read_passwords, language)

    def encode(operation: PlannedOperation) -> bytes:
        if operation.password is None:
            return msgspec.json.encode(operation.body)
        password = passwords.get(operation.id) or generate()
        return msgspec.json.encode({PASSWORD: password, **operation.body})

    return encode


def _passwords(
    plan: Plan,
    to_send: Set[int],
    attempted: Set[int],
    read_passwords: ReadPasswords,
    language: Language,
) -> dict[int, str]:
    """The passwords that are in the input, or are stored: by operation."""
    given: list[PlannedOperation] = []
    stored: dict[int, PlannedOperation] = {}
    for operation in plan.operations(to_send):
        if operation.password == "input":  # noqa: S105 # its source, not a password
            given.append(operation)
        elif operation.password == "stored":  # noqa: S105
            stored[operation.id] = operation
    passwords = _from_input(plan, given, read_passwords) if given else {}
    if stored:
        passwords |= _store(plan, stored, attempted, language)
    return passwords


def _from_input(
    plan: Plan, operations: Sequence[PlannedOperation], read_passwords: ReadPasswords
) -> dict[int, str]:
    """The first password on the lines of each operation. Raises UsageError: there is none."""
    by_line = read_passwords(plan, {line for op in operations for line in op.lines})
    passwords: dict[int, str] = {}
    for operation in operations:
        password = next(filter(None, map(by_line.get, operation.lines)), "")
        if not password:
            line = operation.lines[0]
            hint = f"Plan it again, into a new folder: {plan_again_command(plan)}"
            raise UsageError(f"line {line} of the input has no password", hint)
        passwords[operation.id] = password
    return passwords


def _store(
    plan: Plan, operations: Pairs[int, PlannedOperation], attempted: Set[int], language: Language
) -> dict[int, str]:
    """Generates and stores a password for each operation, except for those sent before with a stored one.

    A password in the file for an operation that was never sent is replaced: somebody may have put it there.
    """
    path = plan.folder / PASSWORDS_FILE
    header, stored = _read_stored(path)
    rows: list[list[str]] = []
    passwords: dict[int, str] = {}
    for row in stored:
        number = int(row[0])
        if number not in operations or number in attempted:
            rows.append(row)
            passwords[number] = row[-1]
    new = [operation for number, operation in operations.items() if number not in passwords]
    for operation in new:
        passwords[operation.id] = generate()
        keys = [operation.keys.get(name, "") for name in _KEY_COLUMNS]
        rows.append([str(operation.id), str(operation.lines[0]), *keys, passwords[operation.id]])
    if new:
        header = header or _HEADERS[LANGUAGES.index(language)]
        write_private_csv(path, [header, *rows], _delimiter(plan, header))
    return {number: passwords[number] for number in operations}


def remove_unsent(plan: Plan, unsent: Set[int]) -> bool:
    """Removes passwords of customers that were not created: a copy of the plan may create them with others.

    Returns:
        Whether any are left.

    Raises:
        UsageError: the file was changed or cannot be written.
    """
    if not KINDS[plan.kind].has_login:
        return False
    header, rows = _read_stored(plan.folder / PASSWORDS_FILE)
    sent = [row for row in rows if int(row[0]) not in unsent]
    if len(sent) < len(rows):
        path = plan.folder / PASSWORDS_FILE
        write_private_csv(path, [header, *sent], _delimiter(plan, header))
    return bool(sent)


def _delimiter(plan: Plan, header: Sequence[str]) -> str:
    """That of the input; of a workbook, which has none, the one at which a spreadsheet of the language splits."""
    of_language = "," if header == _HEADERS[LANGUAGES.index("en")] else ";"
    return plan.manifest.format.get("delimiter") or of_language


def _read_stored(path: Path) -> tuple[Sequence[str], list[list[str]]]:
    """The header and the rows that are stored; both empty where nothing is. Raises UsageError."""
    if not path.exists():
        return (), []
    for header in _HEADERS:
        with suppress(OSError, UsageError):
            rows = [[row[name] for name in header] for row in people_rows(path, header)]
            if all(row[0].isdecimal() and row[-1] for row in rows):
                return header, rows
    raise UsageError(
        f"{path} was changed: it contains the passwords of customers that were created",
        "Restore it, or move it away: then the customers that were not sent get new passwords.",
    )


def write_private_csv(path: Path, rows: Iterable[Sequence[object]], delimiter: str) -> None:
    """Replaces a CSV for people, on disk when this returns; no cell is a formula. Raises UsageError."""
    with (
        disk_errors(path, f"Free space or make its folder writable, then {run_again()}"),
        replace_file(path, is_only_writer=True) as file,
    ):
        write = people_writer(file, delimiter)
        for row in rows:
            write([neutralize(str(cell)) for cell in row])


def inputs_of(plan: Plan) -> Inputs:
    """The inputs that a plan was made of, read with its mapping. Raises UsageError."""
    from orderbridge.pipelines.imports import open_inputs

    manifest = plan.manifest
    mapping = _mapping_of(plan)
    return open_inputs(
        manifest.kind,
        Path(manifest.input.path),
        mapping.with_row_checks(all_checks=manifest.checks_rows) if mapping is not None else None,
        login_mode=manifest.login_mode,
        semantics=manifest.semantics,
    )


def _mapping_of(plan: Plan) -> Mapping | None:
    """The mapping that a plan was made with; a proposed one is in the manifest, from version 0.2 on."""
    from orderbridge.pipelines.mapping import load, parse

    manifest = plan.manifest
    lookups = [Path(file.path) for file in manifest.lookups]
    if manifest.mapping is not None:
        return load(Path(manifest.mapping.path), manifest.kind, lookups)
    if manifest.mapping_toml:
        return parse(manifest.mapping_toml, plan.folder / MAPPING_FILE, manifest.kind, lookups)
    return None


def read_from_input(plan: Plan, lines: Set[int]) -> Pairs[int, str]:
    """The passwords on these lines of the plan's input, read with its mapping.

    Raises:
        UsageError: the input cannot be read, or it or the mapping was changed meanwhile.
    """
    passwords = inputs_of(plan).passwords(lines)
    for file in filter(None, (plan.manifest.input, plan.manifest.mapping)):
        if file_sha256(Path(file.path)) != file.sha256:
            raise UsageError(
                f"{file.path} was changed during the push", "Restore it, then push again."
            )
    return passwords
