"""Results: what became of each line of the input, in four files that together have each line once (design §8).

In: the ledger's rows, the plan's operations and the lines that none of them sends. Out: `results/` in the plan's
folder, written anew after each push, all four at once. Lines that do not add up are a bug, and the push fails.
"""

from __future__ import annotations

import csv
import heapq
import io
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple, TextIO

from pipelines.plan.model import RESULTS_FOLDER, LineResult, Plan, PlannedOperation
from pipelines.push.eligibility import HeldAs, Rules, to_do
from pipelines.push.plan_ledger import LedgerRow, PlanLedger
from sources.disk import create_private, disk_errors, sync
from sources.errors import BridgeError, UsageError

COLUMNS: Final = ("line", "outcome", "operation", "method", "path", "status", "code", "words")
FILES: Final = ("confirmed", "rejected", "in_doubt", "unsent")
_GRAVITY: Final = ("confirmed", "unsent", "rejected", "in_doubt")
"""Of the files; among operations in doubt, one that waits for a person is graver than one that a repeat settles."""
_FILE_OF_STATE: Final = {
    "confirmed": "confirmed",
    "rejected": "rejected",
    "in_doubt": "in_doubt",
    "in_flight": "in_doubt",
    "conflict": "in_doubt",
    "abandoned": "in_doubt",
    "planned": "unsent",
}
_FILE_OF_LINE: Final = {
    "unchanged": "confirmed",
    "exists_same": "confirmed",
    "merged": "confirmed",
    "rejected": "rejected",
    "exists_differs": "unsent",
    "ambiguous": "unsent",
    "skipped": "unsent",
}
Held = Mapping[int, tuple[HeldAs, str]]


class _Fate(NamedTuple):
    """Where a line stands, and what is said of it; of several operations on a line the gravest tells it."""

    file: str
    outcome: str
    operation: int | str = ""
    method: str = ""
    path: str = ""
    status: int | str = ""
    code: str = ""
    words: str = ""
    gravity: tuple[int, ...] = ()


def prepare(folder: Path) -> None:
    """Looks whether results can be written, before anything is sent. Raises UsageError."""
    with disk_errors(folder, "The results go into the plan's folder: make it writable."):
        _fresh(folder).rmdir()


def check_ledger(plan: Plan, book: PlanLedger) -> None:
    """Looks whether the ledger is older than the results: what stands in them as sent is untried in it.

    Raises:
        UsageError: it is, or the results cannot be read.
    """
    untried = {row.id for row in book.rows("planned") if not row.attempts}
    for name in ("confirmed", "in_doubt") if untried else ():
        path = plan.folder / RESULTS_FOLDER / f"{name}.csv"
        try:
            with path.open(encoding="utf-8", newline="") as file:
                tried = any(row["operation"] and int(row["operation"]) in untried for row in csv.DictReader(file))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, csv.Error):
            raise UsageError(f"{path} is not as it was written", "Put it back as it was.") from None
        if tried:
            raise UsageError(
                f"{path} has requests that were sent, and the ledger does not know it: it is an older copy",
                "Put back the newest ledger, or name it in LEDGER__PATH: with this one they would be sent again.",
            )


def write(plan: Plan, book: PlanLedger, held: Held, rules: Rules) -> Counter[tuple[str, str]]:
    """Writes the four files.

    Args:
        plan: checked.
        book: of the plan.
        held: why operations were not sent by this push.
        rules: of this push: they say what settles a doubt.

    Returns:
        Lines by file and outcome.

    Raises:
        BridgeError: the lines do not add up to the input's. UsageError: the files cannot be written.
    """
    with disk_errors(plan.folder, "What was sent is in the ledger. Free space, then push again for the results."):
        return _write(plan, book, held, rules)


def _write(plan: Plan, book: PlanLedger, held: Held, rules: Rules) -> Counter[tuple[str, str]]:
    new = _fresh(plan.folder)
    counts: Counter[tuple[str, str]] = Counter()
    seen = bytearray()
    with ExitStack() as stack:
        files = {name: stack.enter_context(_private(new / f"{name}.csv")) for name in FILES}
        writers = {name: csv.writer(file, lineterminator="\n") for name, file in files.items()}
        for writer in writers.values():
            writer.writerow(COLUMNS)
        for line, fate in _fates(plan, book, held, rules):
            if line >= len(seen):
                seen.extend(bytes(max(line + 1 - len(seen), len(seen), 1024)))
            if seen[line]:
                raise BridgeError(f"line {line} of the input has two results")
            seen[line] = 1
            counts[fate.file, fate.outcome] += 1
            writers[fate.file].writerow([line, *fate[1:-1]])
    for name in FILES:
        sync(new / f"{name}.csv")
    if counts.total() != plan.manifest.lines:
        raise BridgeError(f"the input has {plan.manifest.lines} lines, the results have {counts.total()}")
    final = plan.folder / RESULTS_FOLDER
    old = plan.folder / f".{RESULTS_FOLDER}.old"
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        final.rename(old)
    new.rename(final)
    shutil.rmtree(old, ignore_errors=True)
    return counts


def _fates(plan: Plan, book: PlanLedger, held: Held, rules: Rules) -> Iterator[tuple[int, _Fate]]:
    """Each line and its fate; a merged one has that of the line which says the same."""
    followed = {line.same_as for line in plan.unsent_lines() if line.outcome == "merged"}
    of_followed: dict[int, _Fate] = {}
    left = Counter(line for operation in plan.operations() for line in operation.lines)
    worst: dict[int, _Fate] = {}

    def sent() -> Iterator[tuple[int, _Fate]]:
        for operation, row in zip(plan.operations(), book.rows(), strict=True):
            if operation.id != row.id:
                raise BridgeError(f"the ledger has no operation {operation.id} of this plan")
            own = _of_operation(operation, row, held, rules)
            for line in operation.lines:
                left[line] -= 1
                fate = max(worst.pop(line, own), own, key=attrgetter("gravity"))
                if left[line]:
                    worst[line] = fate  # another operation is of this line too: the gravest of them tells it
                    continue
                if line in followed:
                    of_followed[line] = fate
                yield line, fate

    def unsent() -> Iterator[tuple[int, _Fate]]:
        for line in plan.unsent_lines():
            if line.outcome == "merged":
                continue
            fate = _of_line(line)
            if line.line in followed:
                of_followed[line.line] = fate
            yield line.line, fate

    yield from heapq.merge(sent(), unsent(), key=lambda pair: pair[0])
    for line in plan.unsent_lines():
        if line.outcome == "merged":
            if line.same_as not in of_followed:
                raise BridgeError(f"line {line.line} of the input says the same as one that has no result")
            fate = of_followed[line.same_as]
            yield line.line, fate if fate.outcome == "abandoned" else fate._replace(outcome="merged")


def _of_operation(operation: PlannedOperation, row: LedgerRow, held: Held, rules: Rules) -> _Fate:
    outcome: str = {"planned": "not_sent", "in_flight": "in_doubt"}.get(row.state, row.state)
    is_open = row.state in ("in_flight", "in_doubt", "conflict")
    told = held.get(row.id) if row.state in ("planned", "in_doubt") else None
    if told is not None and row.state == "planned":
        outcome = told[0]
    more = told[1] if told is not None else to_do(operation, row, rules) if is_open else ""
    given_up = row.state == "abandoned" and row.doubt_at is None  # never sent: nothing of it is in doubt
    return _Fate(
        file := "unsent" if given_up else _FILE_OF_STATE[row.state],
        outcome,
        operation.id,
        operation.method,
        operation.path,
        "" if row.status is None else row.status,
        row.code,
        "; ".join(filter(None, (row.words, more))),
        (_GRAVITY.index(file), is_open, not rules.repeatable(operation)),
    )


def _of_line(line: LineResult) -> _Fate:
    told = not line.field or line.words.startswith(f"{line.field}: ")  # a column may have the field's name
    words = line.words if told or not line.words else f"{line.field}: {line.words}"
    return _Fate(_FILE_OF_LINE[line.outcome], line.outcome, code=line.code, words=words)


def _fresh(folder: Path) -> Path:
    new = folder / f".{RESULTS_FOLDER}.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    return new


def _private(path: Path) -> TextIO:
    return io.TextIOWrapper(create_private(path), "utf-8", newline="")
