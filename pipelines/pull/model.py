"""Options and result of a pull."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import duckdb

from orderbridge.pipelines.warehouse.raw.merge import MergeCounts
from orderbridge.sources.errors import ExitCode, UsageError
from orderbridge.sources.extract.result import SWEEPS_MAX, ListResult

BuildStep = Callable[[duckdb.DuckDBPyConnection, str, datetime], int]
"""What else goes into a build before it is published. In: the build, the run's id, the instant of the walks. Out: an
exit code, 0, 5 where rows were rejected, or 9 where there are findings to look at."""


@dataclass(frozen=True, slots=True)
class PullOptions:
    """Options of a pull.

    Attributes:
        resources: names of lists; empty: those to refresh, or all of the families that have settings.
        refresh: names of lists that are read as if they had never been read, but for the rows that are known.
        sweeps: the most sweeps over a list that is paged by numbers.
        require_complete: publish nothing unless every list is complete.
        accept_shrink: publish a list that is much smaller than before.
        accept_new_source: publish into a warehouse that holds the data of another host, environment or organization.
        tail: read only the orders after the last read, where that is possible.
        command: recorded in `ops.runs`.
    """

    resources: tuple[str, ...] = ()
    refresh: tuple[str, ...] = ()
    sweeps: int = SWEEPS_MAX
    require_complete: bool = False
    accept_shrink: bool = False
    accept_new_source: bool = False
    tail: bool = False
    command: str = "pull"


@dataclass(slots=True)
class PullResult:
    """What a pull did.

    Attributes:
        run_id: of the run.
        path: of the warehouse.
        lists: results of the walks.
        changes: counts by list, of those that were merged into their raw tables.
        left_out: lists that were not asked for by name, and whose family has no settings.
        held_back: the reason by list, of those that were not since they shrank too much.
        published: whether the build was published.
        step_code: the exit code of the further build step.
        ledger_error: why the published version has no new copy of the ledger.
    """

    run_id: str
    path: Path
    lists: list[ListResult] = field(default_factory=list)
    left_out: tuple[str, ...] = ()
    changes: dict[str, MergeCounts] = field(default_factory=dict)
    held_back: dict[str, str] = field(default_factory=dict)
    published: bool = False
    step_code: int = ExitCode.DONE
    ledger_error: UsageError | None = None

    def counts(self, walked: ListResult) -> dict[str, str | int | None]:
        """A list's verdict and rows, by the names that tables and JSON have; None where it is not known."""
        change = self.changes.get(walked.resource)
        return {
            "resource": walked.resource,
            "verdict": walked.verdict,
            "rows": walked.distinct,
            "new": change.new if change else None,
            "changed": change.changed if change else None,
            "missing": change.newly_missing if change and walked.is_whole else None,
            "quarantined": len(walked.quarantined),
            "problem": self.problem(walked),
        }

    def problem(self, walked: ListResult) -> str:
        """Why a list was not published, and what to do; empty where it was."""
        if walked.error is None:
            return self.held_back.get(walked.resource, "")
        return f"{'; '.join(walked.evidence)}\n  {walked.error.hint}".rstrip()

    @property
    def ledger_problem(self) -> str:
        """Why the ledger was not copied, and what to do; empty where it was, or where there is none."""
        return "" if self.ledger_error is None else f"the ledger was not read: {self.ledger_error}"

    @property
    def exit_code(self) -> int:
        """That of an unusable ledger or a failed list, else of a held-back list, of findings, of rejected rows."""
        errors = [self.ledger_error, *(result.error for result in self.lists)]
        failed = [error.exit_code for error in errors if error is not None]
        if failed:
            return min(failed)
        if self.held_back:
            return ExitCode.COVERAGE
        if self.step_code == ExitCode.FINDINGS:
            return self.step_code
        return (
            ExitCode.REJECTED
            if any(result.quarantined for result in self.lists)
            else self.step_code
        )
