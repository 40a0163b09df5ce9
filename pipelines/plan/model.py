"""What a plan is: a manifest and its operations, as they lie in the plan's folder (design §8).

In: `plan.json`, `operations.jsonl` and `lines.csv`. Out: the same as values, checked against their hashes. No operation
holds a password: it says where the push gets one. The same input gives the same bytes, so nothing here tells the time
of day.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from sources.errors import UsageError

KindName = Literal["customers", "variants", "subcategories", "warehouses"]
KINDS: Final[tuple[KindName, ...]] = ("customers", "variants", "subcategories", "warehouses")

MANIFEST: Final = "plan.json"
OPERATIONS: Final = "operations.jsonl"
LINES: Final = "lines.csv"
REJECTS: Final = "rejects.csv"
UNCHANGED: Final = "unchanged.csv"
DIFFERENCES: Final = "differences.csv"
SUMMARY: Final = "summary.md"
MAPPING: Final = "mapping.toml"
RESULTS: Final = "results"

LineOutcome = Literal["merged", "unchanged", "exists_same", "exists_differs", "ambiguous", "rejected", "skipped"]
"""What the plan makes of a line that no operation sends."""


class LineResult(NamedTuple):
    """A line of the input that no operation sends, as `lines.csv` has it.

    Attributes:
        line: 1-based; of an input on several lines, each has its own.
        outcome: what the plan makes of it.
        same_as: the first line of the input that says the same. A merged line shares the fate of its operation;
            where that line is not sent, this one has its outcome.
        field, code, words: why, of a rejected line; several problems are joined by ` | `. No cell's value.
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
        id: of the operation within its plan: its place in the file, from 1.
        batch: which batch it belongs to, from 1.
        method, path: as they are sent, the path under the family's base.
        body: the JSON body, without password.
        lines: of the input file, 1-based, in order.
        target: what is written to, e.g. `variants/17/1003`; never two operations in flight for one target.
        keys: of a create: what the record is found by on the platform (`erpCode`, `email`, `loginCode`, as sent).
        repeatable: whether sending it twice does what sending it once does.
        password: of a customer: read from the `file` again, made and mailed by the platform (`mail`), or made and
            kept in a file (`made`); None for what has none.
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
    password: Literal["file", "mail", "made"] | None = None


class FileOfPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a plan rests on; `path` is absolute, `sha256` of its bytes. Changed since: the push refuses."""

    path: str
    sha256: str


class ReadState(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan knew of the platform's customers.

    Attributes:
        run_id, at: which run read them, and when (ISO 8601).
        verdict: how well.
        rows: that the plan compares with. refused: that the run did not take, so that nothing is compared with them.
    """

    run_id: str
    at: str
    verdict: str
    rows: int
    refused: int = 0


def sent_as(kind: KindName) -> Literal["create", "patch"]:
    """What the plan makes of a line that goes to the platform (design §8)."""
    return "patch" if kind == "variants" else "create"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`plan.json`.

    Attributes:
        plan_id: of the content: the same input gives the same id.
        version: of orderbridge.
        kind: what is written.
        host: of the legacy family: scheme, host, port and path of its base.
        environment: `sandbox` or `production`.
        login_mode: of the customers; None for other kinds.
        input: the CSV or .xlsx.
        mapping: the mapping file; None where the mapping was proposed. lookups: the files that it names.
        found: how the intake reads the input, for people and for reading the passwords again.
        told: the mapping in full as TOML text, with what was proposed and what the file proved; also `mapping.toml`.
        read: None where the plan needs nothing of the platform.
        lines: of the input that hold a row. Each is in exactly one of `outcomes`.
        outcomes: lines by what the plan makes of them: `create` (of variants `patch`), `merged`, `unchanged`,
            `exists_same`, `exists_differs`, `ambiguous`, `rejected`, `skipped`.
        operations: how many. operations_sha256: of `operations.jsonl`. lines_sha256: of `lines.csv`.
        messages: to customers, that the platform would send.
        password_column: the input's column that holds the passwords.
    """

    plan_id: str
    version: str
    kind: KindName
    host: str
    environment: Literal["sandbox", "production"]
    login_mode: Literal["email", "code"] | None = None
    input: FileOfPlan
    mapping: FileOfPlan | None = None
    lookups: tuple[FileOfPlan, ...] = ()
    found: dict[str, Any] = {}
    told: str = ""
    read: ReadState | None = None
    lines: int
    outcomes: dict[str, int]
    operations: int
    operations_sha256: str
    lines_sha256: str
    messages: int = 0
    password_column: str | None = None

    @property
    def sent(self) -> int:
        """Lines of which operations are made."""
        return self.outcomes[sent_as(self.kind)]


class Plan:
    """A plan's folder, opened and checked.

    Args:
        folder: of the plan.

    Raises:
        UsageError: it is no plan, or was changed since it was made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        try:
            self.manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
        except OSError:
            raise UsageError(
                f"{folder} is no plan: it has no {MANIFEST}", "Make one: orderbridge plan KIND FILE"
            ) from None
        except msgspec.DecodeError:
            raise _changed(folder, MANIFEST) from None
        for name, planned in (
            (OPERATIONS, self.manifest.operations_sha256),
            (LINES, self.manifest.lines_sha256),
        ):
            if planned != file_sha256(folder / name):
                raise _changed(folder, name)

    def operations(self) -> Iterator[PlannedOperation]:
        """Each operation, in the file's order."""
        with (self.folder / OPERATIONS).open("rb") as lines:
            for line in lines:
                yield _OPERATION.decode(line)

    def unsent_lines(self) -> Iterator[LineResult]:
        """Each line of the input that is in no operation, in the input's order."""
        with (self.folder / LINES).open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            next(rows, None)
            for line, outcome, same_as, field, code, words in rows:
                yield LineResult(int(line), outcome, int(same_as) if same_as else None, field, code, words)  # type: ignore[arg-type] # written by us


_OPERATION: Final = msgspec.json.Decoder(PlannedOperation)


def _changed(folder: Path, name: str) -> UsageError:
    return UsageError(f"{folder / name} is not as it was planned", "Make the plan again: orderbridge plan KIND FILE")


def file_sha256(path: Path) -> str:
    """The hash of a file's bytes, in hex; empty where it cannot be read, which no hash is."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
