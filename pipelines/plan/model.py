"""The files of a plan as values: the manifest, the operations, the lines that are not sent (docs/reference/plans.md).

In: `plan.json`, `operations.jsonl` and `lines.csv` of a plan folder. Out: typed values, verified against the hashes in
the manifest. No operation contains a password; it names the source from which the push takes one. The same input gives
the same bytes, so nothing here contains the current time.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from orderbridge.sources.contract import path_pattern
from orderbridge.sources.disk import file_version
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KINDS, KindName, LoginMode, Semantics
from orderbridge.sources.settings import find_root, own_path

MANIFEST_FILE: Final = "plan.json"
OPERATIONS_FILE: Final = "operations.jsonl"
LINES_FILE: Final = "lines.csv"
REJECTS_FILE: Final = "rejects.csv"
UNCHANGED_FILE: Final = "unchanged.csv"
DIFFERENCES_FILE: Final = "differences.csv"
SUMMARY_FILE: Final = "summary.md"
MAPPING_FILE: Final = "mapping.toml"
RESULTS_FOLDER: Final = "results"
IMPORT_MARK: Final = ".result.sha256"
"""Is in the folder of a plan that an import pushes: the hash of its workbook, empty before there is one."""

LineOutcome = Literal[
    "merged",
    "unchanged",
    "exists_same",
    "exists_differs",
    "ambiguous",
    "held",
    "rejected",
    "skipped",
]
"""Outcome of a line that no operation sends."""
PasswordSource = Literal["input", "mailed", "stored"]
"""Where the push takes a password from: the input file; generated and mailed; generated and stored in a file."""
PASSWORD_SOURCES: Final[dict[Literal["mail", "file"], PasswordSource]] = {
    "mail": "mailed",
    "file": "stored",
}
"""Of generated passwords, by the option `--passwords`."""
_AGREED_DIGITS: Final = 16
PLAN_AGAIN: Final = "Make the plan again: orderbridge plan KIND FILE"


Evidence = TypeVar("Evidence", bound=msgspec.Struct)


def read_evidence(path: Path, kind: type[Evidence]) -> Evidence | None:
    """What a plan has kept in a file; None if there is none. Raises UsageError for a damaged one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError):
        raise UsageError(
            f"{path} is damaged", f"{PLAN_AGAIN}, then move {path.parent} away."
        ) from None


def is_import(folder: Path) -> bool:
    """Whether an import pushes the plan in a folder, and keeps a workbook in it."""
    return (folder / IMPORT_MARK).exists()


class LineResult(NamedTuple):
    """A line of the input that no operation sends: a row of `lines.csv`.

    Attributes:
        line: 1-based. An input that spans several lines has a row for each.
        same_as: first line of the input with equal content. A merged line has the result of that line's operation; if
            that line is not sent, both have the same outcome.
        field, code, words: reason of a rejected or held line; several problems are joined by ` | `.
    """

    line: int
    outcome: LineOutcome
    same_as: int | None
    field: str
    code: str
    words: str


class PlannedOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a plan.

    Attributes:
        id, batch: numbers from 1, in the order of the file.
        method, path: of the request; the path is relative to the family's base URL.
        body: JSON body without the password.
        lines: of the input file, 1-based, ascending.
        target: record that is written, of an update its path; at most one operation per target is in flight.
        keys: of a create, the fields by which the platform's list is searched (`erpCode`, `email`, `loginCode`).
        repeatable: whether sending it twice has the same effect as sending it once.
        password: source of the password of a new customer; None if the operation needs none.
    """

    id: int
    batch: int
    method: Literal["POST", "PATCH"]
    path: str
    body: dict[str, Any]
    lines: tuple[int, ...]
    target: str
    keys: dict[str, str] = {}
    repeatable: bool = False
    password: PasswordSource | None = None


class PlanFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the plan depends on, by path and `sha256` of its bytes: if it is changed later, the push stops.

    In `plan.json` the path of a file in the project is relative to it, so that a project can be moved.
    """

    path: str
    sha256: str


class ReadState(msgspec.Struct, frozen=True, kw_only=True):
    """The read of the platform's customers that the plan was compared with.

    Attributes:
        run_id, at: run that read them, and when (ISO 8601).
        verdict: of the walk over the list.
        rows: customers compared with.
        refused: rows of the list in quarantine, not compared.
    """

    run_id: str
    at: str
    verdict: str
    rows: int
    refused: int = 0


def sent_as(kind: KindName) -> Literal["create", "patch"]:
    """Outcome of a line that is sent (docs/reference/plans.md)."""
    return "patch" if KINDS[kind].is_update else "create"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`plan.json`.

    Attributes:
        plan_id: derived from the content: the same input gives the same id.
        host: base URL of the legacy family.
        organization: whose data of this host the warehouse holds; None if it is not known. Not part of `plan_id`.
        login_mode: for customers; None for other kinds.
        semantics: of the additive fields of variants; empty for other kinds.
        input: the CSV or .xlsx.
        mapping: the mapping file; None if the mapping was proposed.
        lookups: files named by the mapping.
        format: detected format of the input.
        mapping_toml: the complete mapping, including what was proposed and what the file proved; also `mapping.toml`.
        replaces: hash of the confirmed values that updates replace (`pipelines.plan.replaced`); None for other kinds.
        read: None if the kind is not compared with the platform's list.
        lines: rows of the input. Each is counted in exactly one of `outcomes`.
        outcomes: lines by outcome: `create` (for variants `patch`), `merged`, `unchanged`, `exists_same`,
            `exists_differs`, `ambiguous`, `held`, `rejected`, `skipped`.
        operations: number of operations.
        operations_sha256, lines_sha256: of `operations.jsonl` and `lines.csv`.
        messages: messages to customers that the platform would send.
        suspicious: valid values that are rarely meant, and prices that jump.
        password_column: column of the input that contains the passwords.
        checks_rows: whether lines were checked by all rules; not in plans of 0.3, and in those that go on from one.
    """

    plan_id: str
    version: str
    kind: KindName
    host: str
    environment: Literal["sandbox", "production"]
    organization: str | None = None
    login_mode: LoginMode | None = None
    semantics: dict[str, Semantics] = {}
    input: PlanFile
    mapping: PlanFile | None = None
    lookups: tuple[PlanFile, ...] = ()
    format: dict[str, Any] = {}
    mapping_toml: str = ""
    replaces: str | None = None
    read: ReadState | None = None
    lines: int
    outcomes: dict[str, int]
    operations: int
    operations_sha256: str
    lines_sha256: str
    messages: int = 0
    suspicious: int = 0
    password_column: str | None = None
    checks_rows: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError for a delimiter that no CSV can have: results are written with it after the push."""
        delimiter: object = self.delimiter
        if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
            raise ValueError("the delimiter is not a character")

    def with_paths(self, change: Callable[[str], str]) -> Manifest:
        """The same with changed paths of its files."""

        def changed(file: PlanFile) -> PlanFile:
            return msgspec.structs.replace(file, path=change(file.path))

        mapping = self.mapping and changed(self.mapping)
        lookups = tuple(map(changed, self.lookups))
        return msgspec.structs.replace(
            self, input=changed(self.input), mapping=mapping, lookups=lookups
        )

    def changed_file(self) -> tuple[str, str] | None:
        """What the first file is that was changed since, or is missing, and its path; None if none was."""
        files = [("input", self.input), ("mapping", self.mapping)]
        files += [("lookup", file) for file in self.lookups]
        for name, file in files:
            if file is not None and file_sha256(Path(file.path)) != file.sha256:
                return name, file.path
        return None

    @property
    def delimiter(self) -> str:
        """Of the CSVs for people."""
        return self.format.get("delimiter") or ","

    @property
    def sent(self) -> int:
        """Lines that are sent in an operation."""
        return self.outcomes[sent_as(self.kind)]


class Plan:
    """A plan folder, opened and verified.

    Raises:
        UsageError: not a plan; changed since it was made; in a folder that others can write to; or of customers and by
            version 0.1, which named the sources of passwords otherwise.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder = folder.absolute() if folder.exists() else find_root() / folder
        own_path(self.folder / MANIFEST_FILE)
        try:
            with _well_formed(folder, MANIFEST_FILE):
                self.manifest = msgspec.json.decode(
                    (folder / MANIFEST_FILE).read_bytes(), type=Manifest
                )
                urlsplit(self.manifest.host)  # raises ValueError for what is no URL
        except OSError:
            raise UsageError(
                f"{folder} is not a plan: it has no {MANIFEST_FILE}",
                "Make one: orderbridge plan KIND FILE. If it was removed, see orderbridge settle.",
            ) from None
        self.manifest = self.manifest.with_paths(lambda path: str(find_root() / path))
        self.kind = self.manifest.kind
        if KINDS[self.kind].has_login and not self.manifest.mapping_toml:
            raise UsageError(
                f"{folder} was made by orderbridge 0.1",
                "Push it with orderbridge 0.2, which ends it: docs/upgrade.md has the commands.",
            )
        self._version = file_version(folder / OPERATIONS_FILE)
        for name, sha256 in (
            (OPERATIONS_FILE, self.manifest.operations_sha256),
            (LINES_FILE, self.manifest.lines_sha256),
        ):
            if sha256 != file_sha256(folder / name):
                raise _changed(folder, name)

    def operations(self, ids: Container[int] | None = None) -> Iterator[PlannedOperation]:
        """The operations with these ids, or all, in the order of the file; of others only the id is read.

        Whoever wrote them, they are requests of the plan's kind and nothing else.

        Raises:
            UsageError: the file was changed after the plan was opened; or an operation is none of the kind.
        """
        if file_version(self.folder / OPERATIONS_FILE) != self._version:
            raise _changed(self.folder, OPERATIONS_FILE)
        request = KINDS[self.kind].operation
        path = path_pattern(request.path)
        with (
            _well_formed(self.folder, OPERATIONS_FILE),
            (self.folder / OPERATIONS_FILE).open("rb") as lines,
        ):
            for line in lines:
                if ids is not None and _ID.decode(line).id not in ids:
                    continue
                operation = _OPERATION.decode(line)
                if operation.method != request.verb or not path.fullmatch(operation.path):
                    asked = f"operation {operation.id} of {self.folder} is not {request.verb} {request.path}"
                    raise UsageError(f"{asked}, as a plan of {self.kind} sends", PLAN_AGAIN)
                yield operation

    @property
    def agreed_as(self) -> str:
        """What names the operations when somebody agrees to them."""
        return self.manifest.operations_sha256[:_AGREED_DIGITS]

    @property
    def made_passwords(self) -> Literal["mail", "file"] | None:
        """How the passwords are generated that its customers get; None: they are not."""
        first = next(self.operations(), None)
        source = first.password if first is not None else None
        return next((name for name, made in PASSWORD_SOURCES.items() if made == source), None)

    def unsent_lines(self) -> Iterator[LineResult]:
        """Each line of the input that is in no operation, in the order of the file."""
        with (
            _well_formed(self.folder, LINES_FILE),
            (self.folder / LINES_FILE).open(encoding="utf-8", newline="") as file,
        ):
            rows = csv.reader(file)
            next(rows, None)
            for line, outcome, same_as, field, code, words in rows:
                yield LineResult(
                    int(line),
                    outcome,  # type: ignore[arg-type] # written by us
                    int(same_as) if same_as else None,
                    field,
                    code,
                    words,
                )


class _OperationId(msgspec.Struct):
    id: int


_ID: Final = msgspec.json.Decoder(_OperationId)
_OPERATION: Final = msgspec.json.Decoder(PlannedOperation)


@contextmanager
def _well_formed(folder: Path, name: str) -> Iterator[None]:
    """Turns what a parser raises for a malformed file of a plan into UsageError."""
    try:
        yield
    except (ValueError, RecursionError, csv.Error):  # msgspec's and Unicode errors are ValueErrors
        raise _changed(folder, name) from None


def _changed(folder: Path, name: str) -> UsageError:
    return UsageError(f"{folder / name} was changed after the plan was made", PLAN_AGAIN)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file in hex; an empty string, which equals no hash, if the file cannot be read."""
    try:
        if path.is_file():  # a pipe would be waited for
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        pass
    return ""
