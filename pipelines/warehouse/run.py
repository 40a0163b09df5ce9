"""One run on a warehouse: its checks, lock, failure note, build, publication and destination copy.

In: the command's name and the settings. Out: a context in which the command fills a build; around it everything that
`pull` and `reconcile` have in common happens in one order, so that no command forgets a part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import uuid4

import duckdb

from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.run_answers import answers_hash
from orderbridge.pipelines.warehouse.bi.descriptions import write_comments
from orderbridge.pipelines.warehouse.build import Build, warehouse_errors
from orderbridge.pipelines.warehouse.destination.copy import check_destination, copy_to_destination
from orderbridge.pipelines.warehouse.failure import (
    clear_failure,
    failure_file,
    marked_published,
    record_failure,
    record_unfinished_copy,
)
from orderbridge.pipelines.warehouse.versions import keep_version
from orderbridge.sources import __version__
from orderbridge.sources.settings import warehouse_settings


class WarehouseRun:
    """A run of `pull`, `run` or `reconcile`.

    Attributes:
        command: its name.
        started_at: when it began.
        run_id: sorts by time and is unique.
        build: the next version of the warehouse.
        answers_hash: see `answers_hash`.
        resumable: lists whose spools stay after the run, for the next one to resume; None: all.
    """

    def __init__(self, command: str) -> None:
        self.command = command
        self.started_at = datetime.now(UTC)
        self.run_id = f"{self.started_at:%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}"
        self.resumable: Collection[str] | None = None
        self.answers_hash = answers_hash()
        self._settings = warehouse_settings()
        self.build = Build(self._settings.path)

    @contextmanager
    def preparation(self) -> Iterator[None]:
        """Wraps what a command checks before it begins, then checks the destination and the path of the warehouse.

        A failure is recorded where a warehouse exists. Nothing is locked, created or fetched yet.

        Raises:
            UsageError: the destination or the path cannot be used, such as a folder that does not exist.
        """
        with record_failure(self.build.path, self.command, self.started_at):
            yield
            check_destination(self._settings)
            with warehouse_errors(self.build.path.parent):
                self.build.check()
                self.build.path.parent.stat()  # never created: a disk that is not mounted would start a new history

    @contextmanager
    def building(self) -> Iterator[Build]:
        """Holds the lock, prepares the build, and copies what the block published to the destination.

        Raises:
            LockedError: another run works on this warehouse.
            UsageError: the disk cannot be written. The published file is unchanged.
            PlatformError: the destination could not be updated. The file is published.
        """
        path = self.build.path
        build = self.build
        with build.locked(self.command), marked_published(lambda: build.is_published):
            note = record_failure(path, self.command, self.started_at, self.run_id)
            with note, marked_published(lambda: build.is_published):
                build.start()
                if self._settings.keep:
                    keep_version(path, self._settings.keep)
                try:
                    yield build
                finally:
                    build.clear(self.resumable)
            clear_failure(path, self.command)
            # a run without one leaves the note of a copy that failed
            if self._settings.destination:
                record_unfinished_copy(path, self.command, self.started_at, self.run_id)
                with record_failure(
                    path, self.command, self.started_at, self.run_id, is_destination=True
                ):
                    copy_to_destination(path, self._settings)
                failure_file(path, is_destination=True).unlink(missing_ok=True)

    def record(
        self, connection: duckdb.DuckDBPyConnection, exit_code: int, **facts: str | None
    ) -> None:
        """Writes this run's row of `ops.runs`, `facts` as further columns, and the comments on tables and columns."""
        write_comments(connection)
        ops.insert(
            connection,
            "runs",
            run_id=self.run_id,
            command=self.command,
            version=__version__,
            started_at=self.started_at,
            ended_at=datetime.now(UTC),
            exit_code=exit_code,
            answers_hash=self.answers_hash,
            **facts,
        )
