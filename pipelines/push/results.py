"""Results: what happened to each line of the input, in four files that together contain each line once.

In: the ledger, the operations of the plan, and the lines that no operation sends. Out: `results/` in the plan folder
(docs/reference/plans.md), replaced as a whole after each push. Lines that do not add up to the input's are a bug, and
the push fails.
"""

from __future__ import annotations

import heapq
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from orderbridge.pipelines.ledger.model import FINAL_STATES, LedgerRow
from orderbridge.pipelines.plan.model import RESULTS_FOLDER, LineResult, Plan, PlannedOperation
from orderbridge.pipelines.push.eligibility import ENDS, Withheld
from orderbridge.pipelines.push.listing import search_keys
from orderbridge.pipelines.push.next_steps import Action, NextSteps, action_of
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.rules import PushRules
from orderbridge.sources.disk import create_private, disk_errors, open_private, sync, write_private
from orderbridge.sources.errors import BridgeError, UsageError
from orderbridge.sources.files.formulas import neutralize, people_writer
from orderbridge.sources.kinds import KINDS

PUSHES_FILE: Final = ".pushes"
MESSAGES_FILE: Final = ".platform-messages.jsonl"
RESULT_FILES: Final = ("confirmed", "rejected", "in_doubt", "unsent")
RESULT_COLUMNS: Final = (
    "line", "outcome", "operation", "method", "path", "status", "code", "words", "platform_message",
)  # fmt: skip
_DOUBT_COLUMNS: Final = (*RESULT_COLUMNS, "values")
"""Of `in_doubt.csv`: with what was sent."""
LEFT_OUT: Final = ("unchanged", "exists_same", "merged")
"""Outcomes of lines that need nothing."""
FILE_OF: Final = {
    "confirmed": "confirmed",
    "unchanged": "confirmed",
    "exists_same": "confirmed",
    "merged": "confirmed",
    "rejected": "rejected",
    "in_doubt": "in_doubt",
    "conflict": "in_doubt",
    "abandoned": "in_doubt",
    "exists_differs": "unsent",
    "exists_now": "unsent",
    "superseded": "unsent",
    "held": "unsent",
    "ambiguous": "unsent",
    "skipped": "unsent",
    "blocked": "unsent",
    "not_sent": "unsent",
}
"""The file that has a line, by outcome. What was given up is in `unsent` if it was never sent."""
_SEVERITY: Final = ("confirmed", "unsent", "rejected", "in_doubt")
"""Files by severity. Among operations in doubt, one that waits for a person is more severe than a repeatable one."""


class _Result(NamedTuple):
    """The result of a line: that of the most severe operation, if several send it.

    Attributes:
        file, outcome: where and what it is.
        cells: further ones.
        severity: orders the results of operations that send the same line.
        action: what ends it, if it has not ended well.
        at: from when on, epoch seconds; for `wait`.
    """

    file: str
    outcome: str
    cells: tuple[object, ...]
    severity: tuple[int, ...] = ()
    action: Action | None = None
    at: float = 0.0


def check_writable(folder: Path) -> None:
    """Checks that results can be written, and restores those that a killed push was replacing. Raises UsageError."""
    with _writing(folder):
        _new_folder(folder).rmdir()
        final = folder / RESULTS_FOLDER
        old = _old_folder(folder)
        if old.exists() and not final.exists():
            old.rename(final)


def count_push(folder: Path, ledger: PlanLedger, settle_s: float | None = None) -> None:
    """Counts in the ledger, then in the plan folder, that a push begins, before anything is sent, or ends.

    Args:
        folder: of the plan.
        ledger: of the plan.
        settle_s: see `PlanLedger.count_push`.

    Raises:
        UsageError: one of them cannot be written.
    """
    with _writing(folder):
        (folder / RESULTS_FOLDER).mkdir(mode=0o700, exist_ok=True)
        count = ledger.count_push(settle_s)
        write_private(folder / PUSHES_FILE, b"%d" % count, is_only_writer=True)


def add_message(folder: Path, operation: int, text: str) -> None:
    """Keeps the platform's words about an operation in a private file, for the results. Raises UsageError."""
    with _writing(folder), os.fdopen(open_private(folder / MESSAGES_FILE), "ab") as file:
        file.write(b"\n" + msgspec.json.encode([operation, text]))


def _messages(folder: Path) -> dict[int, str]:
    """The last words of the platform about each operation; a line that a crash cut off has none."""
    messages: dict[int, str] = {}
    path = folder / MESSAGES_FILE
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            number, text = msgspec.json.decode(line, type=tuple[int, str])
            messages[number] = text
    return messages


def check_ledger(plan: Plan, path: Path, pushes: int | None) -> None:
    """Checks that the ledger at `path`, which counted these `pushes` of a plan, has all of them.

    Raises:
        UsageError: it lacks one, and what that sent would be sent again.
    """
    if pushes is None and (plan.folder / RESULTS_FOLDER).exists():
        raise UsageError(
            f"this plan was pushed before, but not with the ledger {path}", _restore(plan)
        )
    mark = plan.folder / PUSHES_FILE
    try:
        is_older = int(mark.read_text("ascii")) > (pushes or 0)
    except FileNotFoundError:
        return
    except (OSError, ValueError):
        hint = "If this is the newest ledger, remove that file: the push writes it again. If not, restore that ledger."
        raise UsageError(f"{mark} was changed", hint) from None
    if is_older:
        raise UsageError(
            f"{path} is an older copy of the ledger: it lacks a push of this plan", _restore(plan)
        )


def _restore(plan: Plan) -> str:
    """What to do about a ledger that lacks a push of a plan."""
    folder = shlex.quote(str(plan.folder))
    away = shlex.quote(f"{plan.folder}.lost")
    if KINDS[plan.kind].is_listed:
        what = "move the plan away, and compare its file with the platform anew"
    else:
        what = "look on the platform which lines were sent, and take them out of the file. Then plan the rest"
    return (
        "Restore the newest ledger, together with its `-wal` file if there is one, or set LEDGER__PATH to it: "
        f"otherwise requests would be sent again. If it is lost, {what}: "
        f"mv {folder} {away} && {NextSteps.of(plan).plan_again}"
    )


@dataclass(frozen=True, slots=True)
class ResultsWriter:
    """Writes the results of a push.

    Attributes:
        withheld: the operations that it did not send.
        actions: what ends lines that have not ended, and from when on (epoch seconds); found by `write`.
    """

    plan: Plan
    ledger: PlanLedger
    withheld: Mapping[int, Withheld]
    rules: PushRules
    actions: dict[Action, float] = field(default_factory=dict)

    def write(self) -> Counter[tuple[str, str]]:
        """Replaces the four files. Returns the number of lines by file and outcome.

        Raises:
            BridgeError: the lines do not add up to the input's. UsageError: a disk error.
        """
        plan = self.plan
        with disk_errors(
            plan.folder,
            "What was sent is in the ledger. Free space, then push again for the results.",
        ):
            new = _new_folder(plan.folder)
            counts = self._write(new)
            if counts.total() != plan.manifest.lines:
                raise BridgeError(
                    f"the input has {plan.manifest.lines} lines, the results have {counts.total()}"
                )
            final = plan.folder / RESULTS_FOLDER
            old = _old_folder(plan.folder)
            shutil.rmtree(old, ignore_errors=True)
            if final.exists():
                final.rename(old)
            new.rename(final)
            shutil.rmtree(old, ignore_errors=True)
        return counts

    def _write(self, folder: Path) -> Counter[tuple[str, str]]:
        counts: Counter[tuple[str, str]] = Counter()
        written: set[int] = set()
        with ExitStack() as stack:
            writers = {}
            for name in RESULT_FILES:
                file = stack.enter_context(create_private(folder / f"{name}.csv"))
                write = writers[name] = people_writer(file, self.plan.manifest.delimiter)
                write(_DOUBT_COLUMNS if name == "in_doubt" else RESULT_COLUMNS)
            for line, result in self._results():
                if line in written:
                    raise BridgeError(f"line {line} of the input has two results")
                written.add(line)
                counts[result.file, result.outcome] += 1
                if result.action is not None:
                    since = self.actions.get(result.action, 0.0)
                    self.actions[result.action] = max(since, result.at)
                cells = (
                    neutralize(cell) if isinstance(cell, str) else cell for cell in result.cells
                )
                writers[result.file]([line, result.outcome, *cells])
        for name in RESULT_FILES:
            sync(folder / f"{name}.csv")
        return counts

    def _results(self) -> Iterator[tuple[int, _Result]]:
        """Each line with its result. A merged line has the result of the line that it equals."""
        merged = {
            line.line: line.same_as for line in self.plan.unsent_lines() if line.outcome == "merged"
        }
        originals: dict[int | None, _Result | None] = dict.fromkeys(merged.values())
        others = (line for line in self.plan.unsent_lines() if line.outcome != "merged")
        unsent = ((line.line, _unsent_result(line)) for line in others)
        for number, result in heapq.merge(self._sent(), unsent, key=lambda pair: pair[0]):
            if number in originals:
                originals[number] = result
            yield number, result
        for line, same_as in merged.items():
            if (original := originals[same_as]) is None:
                raise BridgeError(f"line {line} of the input equals a line that has no result")
            yield (
                line,
                original
                if original.outcome == "abandoned"
                else original._replace(outcome="merged"),
            )

    def _sent(self) -> Iterator[tuple[int, _Result]]:
        """Each line that operations send, with the result of the most severe one. Those of a line follow each other."""
        messages = _messages(self.plan.folder)
        steps = NextSteps.of(self.plan)
        pairs = zip(self.plan.operations(), self.ledger.rows(), strict=True)
        for lines, group in groupby(pairs, key=lambda pair: pair[0].lines):
            results = (
                self._result(operation, row, messages.get(row.id, ""), steps)
                for operation, row in group
            )
            result = max(results, key=attrgetter("severity"))
            yield from ((line, result) for line in lines)

    def _result(
        self, operation: PlannedOperation, row: LedgerRow, message: str, steps: NextSteps
    ) -> _Result:
        withheld = self.withheld.get(row.id) if row.state in ("planned", "in_doubt") else None
        outcome, code = _outcome(row, withheld)
        file = "unsent" if row.state == "abandoned" and row.doubt_at is None else FILE_OF[outcome]
        action, at = self._action(operation, row, withheld)
        is_open = row.state in ("in_flight", "in_doubt", "conflict")
        failures = f"failed {row.attempts} times" if is_open and row.attempts > 1 else ""
        reason = withheld.reason if withheld is not None else ""
        step = ""
        if action is not None and action != "read":
            step = str(steps.step(action, at=at, operation=row.id))
        cells: list[object] = [
            operation.id,
            operation.method,
            operation.path,
            "" if row.status is None else row.status,
            code,
            "; ".join(filter(None, (row.words, failures, reason, step))),
            "" if row.state == "confirmed" else message,
        ]
        if file == "in_doubt":
            cells.append(msgspec.json.encode(operation.body).decode())
        is_repeatable = self.rules.is_repeatable(operation)
        severity = (_SEVERITY.index(file), is_open, not is_repeatable)
        return _Result(file, outcome, tuple(cells), severity, action, at)

    def _action(
        self, operation: PlannedOperation, row: LedgerRow, withheld: Withheld | None
    ) -> tuple[Action | None, float]:
        """What ends an operation, and from when on; None if it has ended, as far as its plan can end it."""
        if withheld is not None:
            return withheld.action, withheld.at
        if row.state == "abandoned" and row.code in ENDS:
            return ENDS[row.code], 0.0
        if row.state in FINAL_STATES:
            return None, 0.0
        settles_at = self.rules.settles_at(row)
        action = action_of(
            row.state,
            is_listed=bool(search_keys(operation.keys)),
            is_repeatable=self.rules.is_repeatable(operation),
            settles_at=settles_at,
            now=self.ledger.now(),
        )
        return action, self.rules.wall_time(settles_at)


def _outcome(row: LedgerRow, withheld: Withheld | None) -> tuple[str, str]:
    """The outcome of an operation as people read it, and the code beside it."""
    if row.state == "abandoned" and row.code in ENDS:
        return row.code, ""
    if row.state == "planned":
        return "not_sent" if withheld is None else withheld.outcome, row.code
    return "in_doubt" if row.state == "in_flight" else row.state, row.code


def _unsent_result(line: LineResult) -> _Result:
    # a column may have the field's name
    is_named = not line.field or line.words.startswith(f"{line.field}: ")
    words = line.words if is_named or not line.words else f"{line.field}: {line.words}"
    return _Result(FILE_OF[line.outcome], line.outcome, ("", "", "", "", line.code, words, ""))


def _writing(folder: Path) -> AbstractContextManager[None]:
    return disk_errors(folder, "The results are written into the plan folder: make it writable.")


def _old_folder(folder: Path) -> Path:
    return folder / f".{RESULTS_FOLDER}.old"


def _new_folder(folder: Path) -> Path:
    new = folder / f".{RESULTS_FOLDER}.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    return new
