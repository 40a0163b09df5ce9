"""The build of a pull: loaded rows merged into the raw tables, recorded in `ops`, and published.

In: results of walks and the folder that dlt filled. Out: a published warehouse, or an error and the old file as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

import duckdb

from pipelines.ledger import push_log
from pipelines.pull.model import BuildStep, PullOptions, PullResult
from pipelines.pull.order_tail import CursorOwner, record_cursor
from pipelines.pull.quarantine import staged_quarantine
from pipelines.pull.targets import Targets
from pipelines.warehouse import disk_need, merge, ops
from pipelines.warehouse.load import attached
from pipelines.warehouse.run import WarehouseRun
from pipelines.warehouse.schema_changes import observe_schema
from pipelines.warehouse.source import DataSource, check_source, record_source
from sources.contract import ORDER
from sources.errors import CoverageError
from sources.extract.result import ListResult

BOUNDS: Final = {"memory_limit": "384MB", "threads": 4, "checkpoint_threshold": "1KB"}
"""Of DuckDB while it merges: by default it uses up to most of the machine's memory (each thread needs its share), and
writes the rows of a table's last 122,880 to the log before it writes them to the file."""
_QUARANTINE_HINT: Final = (
    "Rows break the interface; ops.quarantine has the reasons. --accept-shrink publishes the others and marks none as "
    "missing."
)
_SHRINK_HINT: Final = (
    "If the platform really lost these records, run once more with --accept-shrink. Otherwise check key and host."
)


def check_coverage(result: PullResult, options: PullOptions) -> None:
    """Ends a run that has nothing to publish, or less than was required.

    Raises:
        AccessError, PlatformError: every list failed, or one did and `require_complete` is set.
        CoverageError: `require_complete` is set, and a list is not complete.
    """
    errors = [walk.error for walk in result.lists if walk.error is not None]
    incomplete = [f"{walk.resource} is {walk.verdict}" for walk in result.lists if walk.verdict != "complete"]
    if len(errors) == len(result.lists) or (errors and options.require_complete):
        raise min(errors, key=lambda error: error.exit_code)
    if options.require_complete and incomplete:
        raise CoverageError(
            f"coverage is not complete: {', '.join(incomplete)}",
            "Nothing was published. Run again at a quieter time, or without --require-complete.",
        )


@dataclass(frozen=True, slots=True)
class Publication:
    """Publishes what one pull read.

    Attributes:
        run: the run.
        options: its options.
        targets: settings of the families that were read from.
        organization: whose data it is; None where the platform does not tell.
        result: results of the walks; changes and lists held back are added to it.
    """

    run: WarehouseRun
    options: PullOptions
    targets: Targets
    organization: str | None
    result: PullResult

    @property
    def source(self) -> DataSource:
        """What was read from."""
        return replace(self.targets.source, organization=self.organization)

    def publish(self, loaded: Path, step: BuildStep | None) -> None:
        """Merges, records and publishes.

        Args:
            loaded: the folder that dlt filled.
            step: what else goes into the build.

        Raises:
            UsageError: the warehouse holds the data of another source, and `accept_new_source` is not set.
            CoverageError: no list could be merged, or a list was held back and `require_complete` is set.
        """
        result = self.result
        at = max(walk.ended_at for walk in result.lists if walk.error is None and walk.ended_at is not None)
        with self.run.build.open() as connection:
            connection.begin()  # each statement of its own would be synced to disk
            merge.create_missing(connection)
            ops.create_missing(connection)
            connection.commit()
            if not self.options.accept_new_source:
                check_source(connection, self.source)
            record_source(connection, self.source, result.run_id, at)
            self._merge_all(connection, loaded, at)
            self._check_held_back()
            connection.begin()
            self._record_lists(connection, at)
            connection.commit()
            if step is not None:
                result.step_code = step(connection, result.run_id, at)
            hosts = {"legacy_host": self.source.legacy_host, "public_v1_host": self.source.public_v1_host}
            self.run.record(connection, result.exit_code, environment=self.source.environment, **hosts)
            push_log.update_push_log(connection)
            with staged_quarantine(result.path, result.run_id, result.lists):
                self.run.build.publish(connection)
        result.published = True

    def _merge_all(self, connection: duckdb.DuckDBPyConnection, loaded: Path, at: datetime) -> None:
        lists = [walk for walk in self.result.lists if walk.error is None]
        for name, value in BOUNDS.items():
            connection.execute(f"SET {name} = '{value}'")
        with attached(connection, lists, loaded):
            merged = []
            for walk in lists:
                counts = merge.compare(connection, walk)
                reason = merge.shrink_reason(walk, counts)
                if reason and not self.options.accept_shrink:
                    self._hold_back(walk, reason)
                else:
                    if walk.resource == ORDER.name and self.targets.public_v1 is not None:
                        owner = CursorOwner.of(self.targets.public_v1, self.organization)
                        record_cursor(connection, self.result.run_id, walk, counts, owner)
                    self.result.changes[walk.resource] = counts
                    merged.append(walk)
            merge.merge_all(connection, merged, self.result.run_id, at)
        for name in BOUNDS:
            connection.execute(f"RESET {name}")

    def _hold_back(self, walk: ListResult, reason: str) -> None:
        """Keeps the old table of a list that shrank too much: the key of another organization looks the same."""
        self.result.held_back[walk.resource] = f"{walk.resource}: {reason}"
        walk.verdict = "unproven"
        walk.evidence.append(f"held back: {reason}; --accept-shrink publishes it")

    def _check_held_back(self) -> None:
        held_back = self.result.held_back
        if self.options.require_complete and held_back:
            raise CoverageError(f"held back: {'; '.join(held_back.values())}", "See --accept-shrink.")
        if not self.result.changes:
            is_quarantine = all(walk.quarantined for walk in self.result.lists if walk.resource in held_back)
            raise CoverageError("; ".join(held_back.values()), _QUARANTINE_HINT if is_quarantine else _SHRINK_HINT)

    def _record_lists(self, connection: duckdb.DuckDBPyConnection, at: datetime) -> None:
        """Records coverage before the further build step, which relies on it."""
        run_id = self.result.run_id
        observe_schema(connection, run_id, at)
        for walk in self.result.lists:
            change = self.result.changes.get(walk.resource)
            ops.record_coverage(connection, run_id, walk, published=change is not None)
            ops.record_observations(connection, run_id, at, walk.observations)
            totals = {
                "read": walk.total("rows"),
                "loaded": walk.distinct if change else 0,
                "held_back": 0 if change else walk.distinct,
                "duplicates": walk.duplicates if walk.error is None else 0,
                "quarantined": len(walk.quarantined),
            }
            if walk.verdict != "tail":
                totals[disk_need.MEASURE] = disk_need.bytes_on_disk(self.run.build, walk)
            if change is not None:
                totals |= {"new": change.new, "changed": change.changed, "newly_missing": change.newly_missing}
            ops.record_totals(connection, run_id, walk.resource, totals)
