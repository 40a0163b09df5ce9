"""Pull: walk the lists and load them through dlt, merge them into the raw tables, publish the file as a whole.

In: settings and the names of lists. Out: a published warehouse and a `PullResult`, or an error and the old file as it
was. A list whose walk fails keeps its old table, and the run says so by its exit code; where every list failed, nothing
is published.
"""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

import duckdb

from pipelines.ledger import push_log
from pipelines.warehouse import merge, ops
from pipelines.warehouse.build import Build, exclusive, warehouse_errors
from pipelines.warehouse.destination import check_destination, mirror
from pipelines.warehouse.failure import clear_failure, record_failure
from pipelines.warehouse.load import BOUNDS, load, warm
from sources import __version__
from sources.contract import LISTS, Family
from sources.disk import replace_file
from sources.errors import CoverageError, ExitCode, Unreachable, UsageError
from sources.extract.result import SWEEPS_MAX, ListResult, Progress, WalkOptions, no_progress
from sources.extract.spool import SpoolFolder
from sources.extract.walk import walk
from sources.http.client import Client
from sources.settings import (
    LegacySettings,
    PublicV1Settings,
    check_same_environment,
    legacy_settings,
    public_v1_settings,
    warehouse_settings,
)

log = logging.getLogger("orderbridge.pull")
Load = tuple[Path, list[ListResult]]
"""A file that dlt filled, and the lists in it."""
EARLY_ROWS: Final = 10_000
"""From so many rows on, loading beside the walks saves more than a load of its own costs."""


@dataclass(frozen=True, slots=True)
class PullOptions:
    """What a pull is asked for. `resources` empty: every list whose family has settings."""

    resources: tuple[str, ...] = ()
    sweeps: int = SWEEPS_MAX
    require_complete: bool = False
    accept_shrink: bool = False
    command: str = "pull"


@dataclass(slots=True)
class PullResult:
    """What a pull did: the walks, the changes to each raw table, and the exit code that sums them up.

    Attributes:
        after_code: the exit code of what went into the build after the raw tables.
    """

    run_id: str
    path: Path
    walked: list[ListResult]
    changes: dict[str, merge.MergeCounts] = field(default_factory=dict)
    held_back: dict[str, str] = field(default_factory=dict)
    published: bool = False
    after_code: int = 0

    @property
    def exit_code(self) -> int:
        """The gravest of: a list that failed, a list held back, rows refused."""
        failed = [walked.error.exit_code for walked in self.walked if walked.error is not None]
        if failed:
            return min(failed)
        if self.held_back:
            return ExitCode.COVERAGE
        return ExitCode.REJECTED if any(walked.quarantined for walked in self.walked) else self.after_code


@dataclass(frozen=True, slots=True)
class Targets:
    """The settings of the families that are asked for."""

    legacy: LegacySettings | None
    public_v1: PublicV1Settings | None

    def client(self, family: Family, stop: threading.Event) -> Client:
        """A client of that family."""
        settings = self.legacy if family == "legacy" else self.public_v1
        if settings is None:
            raise UsageError(f"no settings for the family {family}")
        return Client.from_settings(settings, stop)

    def page_limit(self, family: Family) -> int:
        """Items to ask for per page."""
        settings = self.legacy if family == "legacy" else self.public_v1
        return settings.page_limit if settings is not None else 1

    def host(self, family: Family) -> str:
        """Scheme and host of that family, or nothing."""
        settings = self.legacy if family == "legacy" else self.public_v1
        return settings.base_url if settings is not None else ""


def targets(resources: Sequence[str]) -> Targets:
    """Reads and checks the settings of the families that these lists need, and of no other.

    Raises:
        UsageError: an unknown list; a setting that is missing or wrong; families of two environments.
    """
    unknown = [name for name in resources if name not in LISTS]
    if unknown:
        raise UsageError(f"there is no list {', '.join(unknown)}", f"Lists: {', '.join(LISTS)}.")
    families = {LISTS[name].family for name in resources}
    legacy = legacy_settings() if "legacy" in families else None
    public_v1 = public_v1_settings() if "public_v1" in families else None
    if legacy is not None and public_v1 is not None:
        check_same_environment(legacy, public_v1)
    return Targets(legacy, public_v1)


After = Callable[[duckdb.DuckDBPyConnection, str, datetime], int]
"""What else goes into a build before it is published: the build, the run's id, the instant of the walks. It gives the
exit code that it would end with: 0, or 5 where it refused rows."""


def new_run_id(at: datetime) -> str:
    """Sorts by time, and is nobody else's."""
    return f"{at:%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}"


def pull(
    wanted: PullOptions,
    progress: Progress = no_progress,
    stop: threading.Event | None = None,
    after: After | None = None,
) -> PullResult:
    """Pulls lists into the warehouse (design §5, `orderbridge pull`).

    Args:
        wanted: what is asked for.
        progress: called after each page.
        stop: ends the walks once it is set.
        after: called with the build once the raw tables are in it; what it raises leaves the old file.

    Raises:
        UsageError, LockedError: before the first request.
        AccessError, PlatformError: no list could be walked.
        CoverageError: `require_complete`, and a list is not. In every case the old file stays as it was.
    """
    names = wanted.resources or tuple(LISTS)
    settings = warehouse_settings()
    stop = stop or threading.Event()
    started_at = datetime.now(UTC)
    with record_failure(settings.path, wanted.command, started_at):
        found = targets(names)
        check_destination(settings.destination)
    run_id = new_run_id(started_at)
    build = Build(settings.path)
    with warehouse_errors(build.path.parent):
        build.look()
        build.path.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(build, wanted.command):
        with record_failure(build.path, wanted.command, started_at, run_id):
            pulled = _pulled(names, found, build, wanted, progress, stop, run_id, started_at, after)
        with record_failure(build.path, wanted.command, started_at, run_id, published=True):
            mirror(build.path, settings.destination)
        clear_failure(build.path, wanted.command)
    return pulled


def _pulled(
    names: Sequence[str],
    found: Targets,
    build: Build,
    wanted: PullOptions,
    progress: Progress,
    stop: threading.Event,
    run_id: str,
    started_at: datetime,
    after: After | None,
) -> PullResult:
    """Walks and publishes; whatever happens, nothing is left of the build but what a later run goes on with."""
    build.start()
    resumable = set(names)
    try:
        walked, loads = _walk_all(names, found, build, wanted, progress, stop)
        pulled = PullResult(run_id, build.path, walked)
        resumable = {w.resource for w in walked if isinstance(w.error, Unreachable)}
        _gate(pulled, wanted)
        with warehouse_errors(build.path.parent):
            _publish(pulled, loads, wanted, build, found, started_at, after)
    except UsageError:
        resumable = set()  # the disk is full, perhaps: what was fetched must not hold on to it
        raise
    finally:
        build.clear(resumable)
    return pulled


def _walk_all(
    names: Sequence[str], found: Targets, build: Build, wanted: PullOptions, progress: Progress, stop: threading.Event
) -> tuple[list[ListResult], list[Load]]:
    """Walks the lists at once, a thread each, and loads them. A list that fails does not end the others.

    A long list is loaded beside the walks that go on; short ones together at the end, since every load has its price.
    """
    clients = {family: found.client(family, stop) for family in dict.fromkeys(LISTS[name].family for name in names)}

    def one(name: str) -> ListResult:
        family = LISTS[name].family
        limit = found.page_limit(family)
        identity: dict[str, str | int] = {
            "host": found.host(family),
            "list": name,
            "limit": limit,
            "version": __version__,
        }
        with warehouse_errors(build.path.parent):
            spool = SpoolFolder(build.spools / name, identity)
            options = WalkOptions(limit, wanted.sweeps)
            return walk(name, clients[family], build.run / "files" / name, spool, options, progress)

    def loaded(lists: list[ListResult]) -> Load:
        with warehouse_errors(build.path.parent):
            return load(lists, build.run / f"load-{len(loads)}"), lists

    pool = ThreadPoolExecutor(len(names) + 1, "walk")
    threading.Thread(target=warm, name="warm", daemon=True).start()
    try:
        futures = [pool.submit(one, name) for name in names]
        pending: set[Future[Any]] = set(futures)
        loads: list[Load] = []
        ready: list[ListResult] = []
        loading: Future[Load] | None = None  # never two: dlt's settings are the process's
        while pending:  # a bounded wait lets a signal through
            done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in done:
                if future.exception() is not None:
                    stop.set()
                result = future.result()
                if not isinstance(result, ListResult):
                    loads.append(result)
                    loading = None
                elif result.error is None:
                    ready.append(result)
            enough = not pending or sum(walked.distinct for walked in ready) >= EARLY_ROWS
            if ready and enough and loading is None:
                loading = pool.submit(loaded, ready)
                pending.add(loading)
                ready = []
        return [future.result() for future in futures], loads
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(wait=not stop.is_set(), cancel_futures=True)
        for client in clients.values():
            client.close()


def _gate(pulled: PullResult, wanted: PullOptions) -> None:
    """Ends the run where nothing is worth publishing, or where less than was required came."""
    errors = [walked.error for walked in pulled.walked if walked.error is not None]
    if len(errors) == len(pulled.walked):
        raise min(errors, key=lambda error: error.exit_code)
    lacking = [f"{w.resource} is {w.verdict}" for w in pulled.walked if w.verdict != "complete"]
    if wanted.require_complete and lacking:
        if errors:
            raise min(errors, key=lambda error: error.exit_code)
        raise CoverageError(
            f"coverage is not complete: {', '.join(lacking)}",
            "Nothing was published. Run again at a quieter time, or without --require-complete.",
        )


def _publish(
    pulled: PullResult,
    loads: Sequence[Load],
    wanted: PullOptions,
    build: Build,
    found: Targets,
    started_at: datetime,
    after: After | None,
) -> None:
    """Merges, records and publishes."""
    at = max(walked.ended_at for walked in pulled.walked if walked.error is None and walked.ended_at is not None)
    with build.open() as connection:
        merge.create_missing(connection)
        ops.create_missing(connection)
        for name, value in BOUNDS.items():
            connection.execute(f"SET {name} = '{value}'")
        for file, lists in loads:
            connection.execute(f"ATTACH '{str(file).replace(chr(39), chr(39) * 2)}' AS load")
            for walked in lists:
                missing, present = merge.newly_missing(connection, walked.resource)
                reason = merge.shrinks(walked, missing, present)
                if reason and not wanted.accept_shrink:
                    _hold_back(pulled, walked, reason)
                    continue
                pulled.changes[walked.resource] = merge.merge(connection, walked, pulled.run_id, at)
            connection.execute("DETACH load")
        for name in BOUNDS:
            connection.execute(f"RESET {name}")
        if wanted.require_complete and pulled.held_back:
            raise CoverageError(f"held back: {'; '.join(pulled.held_back.values())}", "See --accept-shrink.")
        if not pulled.changes:
            is_refused = all(walked.quarantined for walked in pulled.walked if walked.resource in pulled.held_back)
            hint = _REFUSED_HINT if is_refused else _SHRINK_HINT
            raise CoverageError("; ".join(pulled.held_back.values()), hint)
        _record_walks(connection, pulled, at)
        if after is not None:
            pulled.after_code = after(connection, pulled.run_id, at)
        _record_run(connection, pulled, wanted, found, started_at)
        push_log.update_push_log(connection)
        _write_quarantine(pulled)
        build.publish(connection)
    pulled.published = True


_REFUSED_HINT: Final = (
    "Rows do not fit the interface; --accept-shrink takes the others and marks none missing; ops.quarantine says why."
)
_SHRINK_HINT: Final = (
    "If the platform really lost these records, run once more with --accept-shrink; else check key and host."
)


def _hold_back(pulled: PullResult, walked: ListResult, reason: str) -> None:
    """A list that shrank beyond belief keeps its old table: another organization's key looks the same."""
    pulled.held_back[walked.resource] = f"{walked.resource}: {reason}"
    walked.verdict = "unproven"
    walked.evidence.append(f"held back: {reason}; --accept-shrink takes it")


def _record_run(
    connection: duckdb.DuckDBPyConnection, pulled: PullResult, wanted: PullOptions, found: Targets, started_at: datetime
) -> None:
    environment = (found.legacy or found.public_v1).environment if found.legacy or found.public_v1 else ""  # type: ignore[union-attr]
    ops.record_run(
        connection,
        {
            "run_id": pulled.run_id,
            "command": wanted.command,
            "version": __version__,
            "started_at": started_at,
            "ended_at": datetime.now(UTC),
            "exit_code": pulled.exit_code,
            "environment": environment,
            "legacy_host": urlsplit(found.host("legacy")).netloc or None,
            "public_v1_host": urlsplit(found.host("public_v1")).netloc or None,
        },
    )


def _record_walks(connection: duckdb.DuckDBPyConnection, pulled: PullResult, at: datetime) -> None:
    """How far each list was read: what goes into the build after the raw tables must know what they prove."""
    kinds = connection.execute("SELECT DISTINCT adjustment_type FROM raw.price_lists").fetchall()
    ops.record_observations(connection, pulled.run_id, at, [("adjustment_types", str(kind)) for (kind,) in kinds])
    for walked in pulled.walked:
        ops.record_coverage(connection, pulled.run_id, walked, published=walked.resource in pulled.changes)
        ops.record_observations(connection, pulled.run_id, at, walked.observations)
        change = pulled.changes.get(walked.resource)
        totals = {
            "read": walked.total("rows"),
            "loaded": walked.distinct if change else 0,
            "held_back": 0 if change else walked.distinct,
            "duplicates": walked.duplicates if walked.error is None else 0,
            "quarantined": walked.total("quarantined"),
        }
        if change is not None:
            totals |= {"new": change.new, "changed": change.changed, "newly_missing": change.newly_missing}
        ops.record_totals(connection, pulled.run_id, walked.resource, totals)


def quarantine_file(path: Path) -> Path:
    """Where the refused rows of the last run lie, as they came."""
    return path.with_name(f"{path.name}.quarantine.jsonl")


def _write_quarantine(pulled: PullResult) -> None:
    """The refused rows themselves, for the owner alone; the warehouse has their reasons and hashes only."""
    file = quarantine_file(pulled.path)
    rows = [(walked.resource, row) for walked in pulled.walked for row in walked.quarantined]
    if not rows:
        file.unlink(missing_ok=True)
        return
    with replace_file(file, is_only_writer=True) as raw, io.TextIOWrapper(raw, "utf-8") as out:
        for resource, row in rows:
            told = {
                "run_id": pulled.run_id,
                "resource": resource,
                "page": row.page,
                "position": row.position,
                "reason": row.reason,
                "row_hash": row.row_hash,
                "row": row.row.decode("utf-8", "replace"),
            }
            out.write(json.dumps(told, ensure_ascii=False) + "\n")
