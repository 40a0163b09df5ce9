"""The build of a pull: walked lists loaded, merged into the raw tables, recorded in `ops`, and published.

In: results of walks. Out: a published warehouse, or an error and the old file as it was.

Rows that no raw table can hold go into `<warehouse>.quarantine.jsonl`, mode 0600, for the owner alone: the warehouse
has only their reasons and hashes, so that it can be shared. Rows of a list stay until a run has read it again.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Final

import duckdb

from orderbridge.pipelines.ledger import push_log
from orderbridge.pipelines.pull.model import BuildStep, PullOptions, PullResult
from orderbridge.pipelines.pull.order_tail import OrderTail
from orderbridge.pipelines.pull.targets import Targets
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.accepted_changes import AcceptedChanges
from orderbridge.pipelines.warehouse.raw import merge
from orderbridge.pipelines.warehouse.raw.column_values import record_column_values
from orderbridge.pipelines.warehouse.raw.field_kinds import record_kinds
from orderbridge.pipelines.warehouse.raw.held_lists import (
    HeldList,
    facts_of,
    published_read,
    record_held,
)
from orderbridge.pipelines.warehouse.raw.load import attached, load
from orderbridge.pipelines.warehouse.raw.recent_rows import mark_recent_rows
from orderbridge.pipelines.warehouse.raw.schema_changes import observe_schema
from orderbridge.pipelines.warehouse.raw.shrinking import shrink_reason
from orderbridge.pipelines.warehouse.run import WarehouseRun
from orderbridge.pipelines.warehouse.source import (
    check_source,
    read_source,
    record_source,
    source_run,
)
from orderbridge.pipelines.warehouse.sql import change_settings
from orderbridge.sources.contract import ORDER
from orderbridge.sources.disk import replace_file
from orderbridge.sources.errors import BridgeError, CoverageError, HttpError, UsageError
from orderbridge.sources.extract.result import ListResult
from orderbridge.sources.settings import DataSource


def quarantine_file(path: Path) -> Path:
    """The quarantine file of a warehouse."""
    return path.with_name(f"{path.name}.quarantine.jsonl")


@contextmanager
def staged_quarantine(path: Path, run_id: str, lists: Sequence[ListResult]) -> Iterator[None]:
    """Writes the file next to the old one, and replaces that where the block, which publishes the build, succeeds.

    Without quarantined rows the old file is removed instead. It keeps those of lists that this run did not read whole.

    Args:
        path: of the warehouse.
        run_id: of the run.
        lists: results of its walks.
    """
    file = quarantine_file(path)
    read = {walked.resource for walked in lists if walked.error is None and walked.is_whole}
    if not any(walked.quarantined for walked in lists) and not any(_kept(file, read)):
        yield
        file.unlink(missing_ok=True)
        return
    with replace_file(file, is_only_writer=True) as out:
        out.writelines(_kept(file, read))
        for walked in lists:
            for row in walked.quarantined:
                record = {
                    "run_id": run_id,
                    "resource": walked.resource,
                    "page": row.page,
                    "position": row.position,
                    "reason": row.reason,
                    "row_hash": row.row_hash,
                    "row": row.row.decode("utf-8", "replace"),
                }
                out.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        out.flush()  # a full disk must show before anything is published
        os.fsync(out.fileno())
        yield


def _kept(file: Path, read: Collection[str]) -> Iterator[bytes]:
    """The lines of the file about other lists than those that were read; none if it cannot be read."""
    with suppress(OSError), file.open("rb") as lines:
        for line in lines:
            with suppress(ValueError, KeyError, TypeError):
                if json.loads(line)["resource"] not in read:
                    yield line


MERGE_SETTINGS: Final = {
    "memory_limit": "384MB",
    "threads": min(4, os.cpu_count() or 1),
    "checkpoint_threshold": "1KB",
}
"""Of DuckDB while it merges: by default it uses most of the machine's memory (each thread needs its share), and writes
the last, partly filled row group of a table (up to 122,880 rows) to the log before it writes it to the file."""
_QUARANTINE_HINT: Final = (
    "Rows break the interface; ops.quarantine has the reasons. --accept-shrink publishes the others and marks none as "
    "missing."
)
_SHRINK_HINT: Final = (
    "If the platform really lost these records, run once more with --accept-shrink. "
    "Otherwise check key and host."
)


def _accept(*resources: str) -> str:
    """The commands that accept what lists lost."""
    return "; ".join(f"orderbridge answer list:{name} accept" for name in resources)


log = logging.getLogger("orderbridge.pull")
steps = logging.getLogger("orderbridge.steps")


def check_coverage(result: PullResult, options: PullOptions) -> None:
    """Ends a run that has nothing to publish, or less than was required.

    Raises:
        AccessError, PlatformError: every list failed, or one did and `require_complete` is set.
        CoverageError: `require_complete` is set, and a list is not complete, or was left out.
    """
    errors = [walked.error for walked in result.lists if walked.error is not None]
    if len(errors) == len(result.lists) or (errors and options.require_complete):
        raise _worst(errors)
    incomplete = [
        f"{walked.resource} is {walked.verdict}"
        for walked in result.lists
        if walked.verdict != "complete"
    ]
    incomplete += [f"{name} is not read, as its API has no settings" for name in result.left_out]
    if options.require_complete and incomplete:
        raise CoverageError(
            f"coverage is not complete: {', '.join(incomplete)}",
            "Nothing was published. Run again at a quieter time, or without --require-complete.",
        )


def _worst(errors: Sequence[BridgeError]) -> BridgeError:
    """The first error by exit code; its hint has a line for the other family."""
    worst = min(errors, key=lambda error: error.exit_code)
    others = {error.family: error for error in reversed(errors) if isinstance(error, HttpError)}
    if isinstance(worst, HttpError):
        others.pop(worst.family, None)
    further = [": ".join(filter(None, (error.message, error.hint))) for error in others.values()]
    worst.hint = "\n  ".join(filter(None, [worst.hint, *further]))
    return worst


@dataclass(eq=False)
class Publication:
    """Merges what one pull reads into a build, list by list as they are walked, and publishes it.

    Attributes:
        run: the run.
        options: its options.
        targets: settings of the families that were read from.
        result: of the run; changes and lists held back are added to it.
        tail: of the orders, where they are read.
        stop: once it is set, a merge is interrupted, and no further one begins.
        accepted: what a person accepted before the run began.
    """

    run: WarehouseRun
    options: PullOptions
    targets: Targets
    result: PullResult
    tail: OrderTail | None
    stop: Event
    accepted: AcceptedChanges = field(default_factory=AcceptedChanges)

    def __post_init__(self) -> None:
        self._held: dict[str, HeldList] = {}
        self._build: duckdb.DuckDBPyConnection | None = None
        self._settings_before: dict[str, object] = {}
        self._loads = 0

    def close(self) -> None:
        """Closes the build: DuckDB would use one that stays open for the next run of this process."""
        if self._build is not None:
            self._build.close()

    def merge(self, lists: Sequence[ListResult], organization: str | None) -> None:
        """Loads walked lists and merges them into the build, unless they shrank; called by one thread at a time.

        Args:
            lists: walked without an error.
            organization: that they belong to; None where it is not known.
        """
        self._loads += 1
        names = ", ".join(walked.resource for walked in lists)
        steps.info("merging %s", names, extra={"phase": "merge"})
        folder = self.run.build.run_folder / f"load-{self._loads}"
        load(lists, folder)
        with (
            merge.interruptible(self._opened(), self.stop) as cursor,
            attached(cursor, lists, folder),
        ):
            for walked in lists:
                if self._accept(cursor, walked, organization):
                    mark_recent_rows(cursor, walked, self.result.changes[walked.resource])
                    merge.merge_list(cursor, walked, self.result.run_id)

    def _accept(
        self, cursor: duckdb.DuckDBPyConnection, walked: ListResult, organization: str | None
    ) -> bool:
        """Records what merging a list will change, or why it is held back: it shrank. Returns whether it is merged."""
        counts = merge.compare(cursor, walked)
        reason = shrink_reason(walked, counts)
        if reason and not self.options.accept_shrink:
            held = HeldList(
                walked.resource,
                counts.known,
                counts.missing,
                reason,
                ", ".join(merge.absent_ids(cursor, walked)),
                published_read(cursor, walked.resource),
            )
            if not self.accepted.covers_fall(held):
                self.result.held_back[walked.resource] = reason
                self._held[walked.resource] = held
                return False
            log.info("%s: %s, as a person accepted", walked.resource, reason)
        if self.tail is not None and walked.resource == ORDER.name:
            self.tail.record(cursor, self.result.run_id, walked, counts, organization)
        self.result.changes[walked.resource] = counts
        return True

    def _opened(self) -> duckdb.DuckDBPyConnection:
        if self._build is None:
            self._build = self.run.build.open()
            self._settings_before = change_settings(self._build, MERGE_SETTINGS)
            self._build.begin()  # otherwise each statement would be synced to disk
            merge.create_missing(self._build)
            ops.create_missing(self._build)
            merge.rename_reserved(self._build)
            self._build.commit()
        return self._build

    def publish(self, organization: str | None, step: BuildStep | None) -> None:
        """Records and publishes what was merged.

        Args:
            organization: as for `merge`.
            step: what else goes into the build.

        Raises:
            UsageError: the warehouse holds the data of another source, and `accept_new_source` is not set; or not every
                list of another organization or environment was read.
            CoverageError: no list was merged, or a list was held back and `require_complete` is set.
        """
        result = self.result
        connection = self._opened()
        change_settings(connection, self._settings_before)
        at = max(walked.ended_at for walked in result.lists if walked.error is None)
        source = replace(self.targets.source, organization=organization)
        self._check_source(connection, source)
        record_source(connection, source, result.run_id, at)
        if (
            organization is None
            and self.targets.whoami is not None
            and (known := read_source(connection).organization)
        ):
            words = "GET /whoami did not report the organization of the key: the lists are published as those of %s"
            log.warning(words, known)
        self._hold_back()
        connection.begin()
        self._record_lists(connection, at)
        connection.commit()
        if step is not None:
            result.step_code = step(connection, result.run_id, at)
        hosts = {"legacy_host": source.legacy_host, "public_v1_host": source.public_v1_host}
        result.ledger_error = push_log.update_push_log(connection)
        self.run.record(connection, result.exit_code, environment=source.environment, **hosts)
        steps.info("publishing", extra={"phase": "publish"})
        with staged_quarantine(result.path, result.run_id, result.lists):
            self.run.build.publish(connection)
        result.published = True

    def _check_source(self, connection: duckdb.DuckDBPyConnection, source: DataSource) -> None:
        """Raises UsageError where the warehouse holds the data of another source, and nobody accepted this one."""
        held = read_source(connection)
        is_accepted = (
            self.options.accept_new_source
            or self.accepted.covers_source(held, source_run(connection), source)
            or self.targets.is_renamed(held)
        )
        try:
            check_source(connection, held, source, self.result.changes if is_accepted else None)
        except UsageError as error:
            error.facts |= facts_of(self._held)
            raise

    def _hold_back(self) -> None:
        """Keeps the old tables of lists that shrank too much: the key of another organization looks the same."""
        held_back = [
            walked for walked in self.result.lists if walked.resource in self.result.held_back
        ]
        reasons = [
            f"{walked.resource}: {self.result.held_back[walked.resource]}" for walked in held_back
        ]
        for walked in held_back:
            walked.verdict = "unproven"
            reason = self.result.held_back[walked.resource]
            walked.evidence.append(
                f"held back: {reason}; --accept-shrink publishes it, or: {_accept(walked.resource)}"
            )
        if self.options.require_complete and held_back:
            words = f"held back: {'; '.join(reasons)}"
            raise self._held_error(words, f"See --accept-shrink, or: {_accept(*self._held)}")
        if not self.result.changes:
            is_quarantine = all(walked.quarantined for walked in held_back)
            hint = _QUARANTINE_HINT if is_quarantine else _SHRINK_HINT
            words = "; ".join(reasons)
            raise self._held_error(words, f"{hint} To accept it: {_accept(*self._held)}")

    def _held_error(self, message: str, hint: str) -> CoverageError:
        """An error whose note has the evidence: nothing is published that could have it."""
        error = CoverageError(message, hint)
        error.facts = facts_of(self._held)
        return error

    def _record_lists(self, connection: duckdb.DuckDBPyConnection, at: datetime) -> None:
        """Records coverage before the further build step, which relies on it."""
        run_id = self.result.run_id
        observe_schema(connection, run_id, at)
        observed = [one for walked in self.result.lists for one in walked.observations]
        ops.record_observations(connection, run_id, at, observed)
        for walked in self.result.lists:
            change = self.result.changes.get(walked.resource)
            ops.record_coverage(connection, run_id, walked, published=change is not None)
            if (held := self._held.get(walked.resource)) is not None:
                record_held(connection, run_id, held)
            if change is not None:
                record_kinds(
                    connection,
                    run_id,
                    at,
                    walked,
                    is_refreshed=walked.resource in self.options.refresh,
                )
            totals = {
                "read": walked.total("rows"),
                "loaded": walked.distinct if change else 0,
                "held_back": 0 if change else walked.distinct,
                "duplicates": walked.duplicates if walked.error is None else 0,
                "quarantined": len(walked.quarantined),
            }
            if change is not None:
                totals |= {
                    "new": change.new,
                    "changed": change.changed,
                    "newly_missing": change.newly_missing,
                }
            ops.record_totals(connection, run_id, walked.resource, totals)
        merged = [walked for walked in self.result.lists if walked.resource in self.result.changes]
        record_column_values(connection, run_id, at, merged)
