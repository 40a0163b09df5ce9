"""A list walked to its end: requests, spool, tables, sweeps, verdict.

In: a client, a list of the contract, a folder. Out: a `ListResult` with Parquet files of distinct rows, the rows that
were quarantined, and the verdict with its evidence. Pages are fetched by a few threads, decoded by another one, and
written in batches: memory does not grow with the list.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from orderbridge.sources.contract import LISTS, RECORDS, Operation
from orderbridge.sources.decode.undocumented import InferredSchema
from orderbridge.sources.errors import (
    AccessError,
    BridgeError,
    ContractBroken,
    HttpRejected,
    PlatformError,
    RateLimited,
    Stopped,
)
from orderbridge.sources.extract.fetch import PageFetcher
from orderbridge.sources.extract.ids import distinct_rows
from orderbridge.sources.extract.legacy_pages import LegacyPages
from orderbridge.sources.extract.page_files import PageFiles
from orderbridge.sources.extract.pages import PageReadings, Paginator
from orderbridge.sources.extract.proof import Proof, evidence_of, next_limit, observations_of
from orderbridge.sources.extract.result import ListResult, Progress, Sweep, WalkOptions, no_progress
from orderbridge.sources.extract.spool import Spool, SpoolFolder
from orderbridge.sources.extract.sweep_rows import SweepRows
from orderbridge.sources.extract.v1_pages import (
    CursorExpired,
    CursorPosition,
    SinglePage,
    TailMismatch,
    V1Cursor,
)
from orderbridge.sources.http.client import Client
from orderbridge.sources.settings import http_settings

RESTARTS_MAX: Final = 3
CURSOR_SWEEPS_MAX: Final = 2
"""Sweeps over a list that is read by a cursor. The second shows whether an id occurs twice in the list, or occurred
twice in the first only because the list changed meanwhile."""
log = logging.getLogger("orderbridge.walk")


def paginator_for(
    operation: Operation, limit: int, key: str = "id", first_page: int | None = None
) -> Paginator:
    """A paginator for a list of the contract; `first_page` if an earlier sweep found it."""
    rows_field = operation.rows_field
    readings = page_readings()
    if operation.paging == "pages":
        return LegacyPages(limit, key, first_page, rows_field, readings)
    if operation.paging == "cursor":
        return V1Cursor(limit, key, rows_field, readings=readings)
    return SinglePage(key, rows_field, readings)


def page_readings() -> PageReadings:
    """What people have answered about pages that the interface does not describe. Raises UsageError."""
    settings = http_settings()
    return PageReadings(settings.cursor_after_end, settings.empty_array)


def walk(
    resource: str,
    client: Client,
    folder: Path,
    spools: SpoolFolder,
    options: WalkOptions | None = None,
    progress: Progress = no_progress,
    start: CursorPosition | None = None,
) -> ListResult:
    """Walks a list to its end.

    Args:
        resource: the name of a list (`LISTS`).
        client: of the list's family.
        folder: for the Parquet files; the caller removes it.
        spools: for the response bodies.
        options: page size, sweeps, pages in flight.
        progress: called after each page.
        start: where an earlier walk by cursor ended: only the rows from there on are read, and the verdict is `tail`.

    Returns:
        The list. If the walk failed it is `incomplete`, carries its error, and has no rows.

    Raises:
        TailMismatch: the list does not continue at `start`.
        Stopped: the client was stopped; the spool keeps the pages read so far.
        OSError: the disk is full or cannot be written.
    """
    list_walk = _ListWalk(resource, client, folder, spools, options or WalkOptions(), start)
    return list_walk.run(progress)


class _ListWalk:
    """One walk over one list.

    A list is read page by page, by a cursor, or in one response (`paginator_for`): one sweep, or several until they
    prove it. With `start`, only its tail is read.
    """

    def __init__(
        self,
        resource: str,
        client: Client,
        folder: Path,
        spools: SpoolFolder,
        options: WalkOptions,
        start: CursorPosition | None,
    ) -> None:
        record = RECORDS[resource]
        self._operation = LISTS[resource]
        self._record = replace(record, key=options.key or record.key)
        self._options = options
        self._start = start
        self._folder = folder
        self._spools = spools
        self._client = client
        self._fetcher = PageFetcher(self._operation, client, options.window)
        self._is_paged = self._operation.paging == "pages"
        self._inferred = self._new_schema()
        self._result = ListResult(self._record.name)
        self._proof = Proof(self._result, options, is_paged=self._is_paged)

    def run(self, progress: Progress) -> ListResult:
        result = self._result
        result.started_at = datetime.fromtimestamp(self._spools.started_at, UTC)
        try:
            self._read(progress)
        except Stopped:
            raise
        except BridgeError as error:
            self._fail(self._with_request(error))
        if self._record.key_setting and not result.error:
            result.observations[self._record.key_setting, self._record.key] += 1
        if self._client.is_throttled:
            result.observations["rate_limit", f"{self._operation.family}: 429 received"] += 1
        result.ended_at = self._ended_at()
        return result

    def _read(self, progress: Progress) -> None:
        result = self._result
        if self._start is None:
            self._read_whole(progress)
        else:
            self._read_tail(self._start, progress)
        self._spools.finish()
        # Now the total is known.
        pages = result.total("pages")
        progress(result.resource, pages, result.distinct, result.distinct, len(result.sweeps))

    def _fail(self, error: BridgeError) -> None:
        """Makes the result that of a walk that failed, and keeps the pages for the next one where they may help."""
        result = self._result
        result.verdict = "incomplete"
        result.error = error
        result.used_sweeps = []
        result.files = {}
        result.evidence.append(str(error).splitlines()[0])
        if isinstance(error, AccessError):
            is_legacy = self._operation.family == "legacy"
            gap = "legacy_auth_failure" if is_legacy else "missing_scope"
            seen = f"status {error.status}, code {error.code or 'none'}"
            result.observations[gap, seen] += 1
        if isinstance(error, (ContractBroken, HttpRejected)):
            self._spools.clear()  # resuming would fail on the same page again
        if isinstance(error, RateLimited):
            self._spools.stop_by_limit()

    def _ended_at(self) -> datetime:
        """When the last page arrived: now, or earlier where a run that was killed had read all."""
        is_replayed = all(0 < sweep.pages == sweep.resumed_pages for sweep in self._result.sweeps)
        last_page_at = self._spools.last_page_at() if is_replayed else 0.0
        return datetime.fromtimestamp(last_page_at, UTC) if last_page_at else datetime.now(UTC)

    def _new_schema(self) -> InferredSchema | None:
        if self._record.fields:
            return None
        return InferredSchema(self._record, self._options.names, self._options.kinds)

    def _with_request(self, error: BridgeError) -> BridgeError:
        """The error with the request that it is about, if a paginator raised it without one."""
        if not isinstance(error, ContractBroken) or error.family:
            return error
        operation = self._operation
        return ContractBroken(
            error.message, error.hint, family=operation.family, verb="GET", path=operation.path
        )

    def _read_whole(self, progress: Progress) -> None:
        """Reads the list from its first page on, and once more from there where a cursor expires."""
        for _ in range(RESTARTS_MAX + 1):
            try:
                # Open until the end: rows are decoded again from the spools where two sweeps are merged.
                with ExitStack() as open_spools:
                    self._sweep_until_proven(open_spools, progress)
                    self._conclude()
                    return
            except CursorExpired:
                self._result.evidence.append("a cursor expired: started again from the first page")
                self._spools.clear()
                self._result.sweeps.clear()
                self._proof.rows.clear()
                self._inferred = self._new_schema()
        raise ContractBroken(
            f"the platform rejected its own cursor {RESTARTS_MAX + 1} times",
            "Try later. If it persists, cursors expire before the next page can be requested.",
        )

    def _read_tail(self, start: CursorPosition, progress: Progress) -> None:
        """Reads what follows an earlier walk. Raises TailMismatch where that is not certain."""
        rows_field = self._operation.rows_field
        paginator = V1Cursor(start.limit, self._record.key, rows_field, start, page_readings())
        sweep = Sweep(1, start.limit)
        self._result.sweeps.append(sweep)
        with closing(self._spools.sweep(sweep.number)) as spool:
            try:
                self._sweep(sweep, paginator, spool, progress)
            except CursorExpired:
                raise TailMismatch("the platform rejected the saved cursor", "rejected") from None
            except RateLimited:
                raise  # to read the list whole would take more requests
            except PlatformError as error:
                raise TailMismatch(f"the saved cursor failed: {error.message}", "failed") from None
            if issues := paginator.issues():
                raise TailMismatch(issues[0], "continues")
            self._check_tail(sweep)
            self._use(self._proof.rows)
        self._result.verdict = "tail"
        self._result.observations["cursor_reuse", "continues"] += 1
        self._result.evidence += [
            f"continued near the end of the read before: its last {start.rows} rows came again, then "
            f"{sweep.rows - start.rows} more; nothing is known of older rows",
            evidence_of(sweep),
        ]

    def _check_tail(self, sweep: Sweep) -> None:
        """Raises TailMismatch where only the whole list can tell what a row is."""
        if sweep.issues or self._proof.rows[-1].repeated.counts:
            raise TailMismatch("ids occur twice after the saved cursor", "repeats rows")
        if sweep.quarantined:
            # Only whole reads keep count of them: a tail would be the last to mention these.
            raise TailMismatch(
                f"{sweep.quarantined} rows after the saved cursor were quarantined", "continues"
            )

    def _sweeps_max(self) -> int:
        most = self._options.sweeps
        return most if self._is_paged else min(most, CURSOR_SWEEPS_MAX)

    def _sweep_until_proven(self, open_spools: ExitStack, progress: Progress) -> None:
        """Reads the list again and again, until it is proven or no further sweep could prove it."""
        sweeps = self._result.sweeps
        first_page: int | None = None
        for number in range(1, self._sweeps_max() + 1):
            sweep = Sweep(number, next_limit(sweeps, self._options.page_limit))
            paginator = paginator_for(self._operation, sweep.limit, self._record.key, first_page)
            spool = open_spools.enter_context(closing(self._spools.sweep(number)))
            sweeps.append(sweep)
            try:
                self._sweep(sweep, paginator, spool, progress)
            except HttpRejected as error:
                if number == 1 or paginator.size is not None:
                    raise
                # The platform takes certain limits only: the sweeps so far stand.
                sweeps.pop()
                self._result.evidence.append(
                    f"limit {sweep.limit} was rejected with status {error.status}: no further pass"
                )
                return
            is_open = isinstance(paginator, LegacyPages) and paginator.is_page_0_unknown
            if is_open or self._proof.judge():
                return  # no further sweep could prove more
            first_page = None
            if isinstance(paginator, LegacyPages) and not paginator.is_page_0_larger:
                first_page = paginator.first_page

    def _sweep(self, sweep: Sweep, paginator: Paginator, spool: Spool, progress: Progress) -> None:
        """Reads the list once, from its first page to its end."""
        earlier = self._proof.rows[-1] if self._proof.rows else None
        files = PageFiles(
            self._record,
            self._folder / f"sweep-{sweep.number}",
            spool,
            paginator,
            self._inferred,
            earlier,
            is_compared=self._is_paged and self._sweeps_max() > 1,
        )
        try:
            self._read_pages(sweep, paginator, spool, files, progress)
            rows = files.finish()
        except BaseException:
            files.abandon()
            for setting, seen in paginator.undecided:
                self._result.observations[setting, f"{self._record.name}: {seen}"] += 1
            raise
        self._proof.rows.append(rows)
        self._result.observations.update(rows.observations)
        sweep.resumed_pages = spool.replayed
        sweep.size = paginator.size or 0
        sweep.total = paginator.total
        sweep.ended_by = paginator.ended_by
        sweep.distinct = len(rows.ids)
        sweep.quarantined = len(rows.quarantined)
        sweep.duplicates = sweep.rows - sweep.quarantined - sweep.distinct
        sweep.issues = paginator.issues()
        equal = rows.repeated.equal_rows
        if equal:
            sweep.issues.append(f"{equal} rows were read twice")
        if sweep.number == 1 and isinstance(paginator, V1Cursor):  # a later sweep has another limit
            self._result.position = paginator.position
        if isinstance(paginator, LegacyPages):
            self._record_pagination(sweep, paginator)

    def _read_pages(
        self,
        sweep: Sweep,
        paginator: Paginator,
        spool: Spool,
        files: PageFiles,
        progress: Progress,
    ) -> None:
        name = self._record.name
        earlier = self._result.sweeps[:-1]
        expected = earlier[-1].rows if earlier else None
        for page in self._fetcher.pages(paginator, spool):
            sweep.pages += 1
            if page.is_listed:
                sweep.rows += page.body.count
                number = int(page.request.params.get("page", sweep.pages))
                files.add(number, page.body, page.offset)
                if self._is_paged:
                    self._result.observations[f"{name}_data", page.body.form] += 1
            total = expected if paginator.total is None else paginator.total
            progress(name, sweep.pages, sweep.rows, total, sweep.number)

    def _record_pagination(self, sweep: Sweep, paginator: LegacyPages) -> None:
        """Takes from a legacy sweep what its pagination objects reported."""
        sweep.assumed_end = paginator.assumed_end
        sweep.totals = paginator.totals
        sweep.pages_announced = paginator.pages_announced
        sweep.pages_listed = paginator.pages_listed
        sweep.gap = paginator.gap
        if not self._proof.is_gap_known(sweep.gap):
            sweep.issues.append(f"total is {sweep.total}, but {sweep.rows} rows were read")
        observed = observations_of(self._record.name, sweep, paginator.first_page)
        self._result.observations.update(observed)

    def _conclude(self) -> None:
        """The verdict, and the files of the rows that it is about."""
        result = self._result
        result.verdict = self._proof.verdict()
        self._use(self._proof.used_rows())
        self._proof.record_evidence()
        log.debug("%s: %s", result.resource, result.verdict)

    def _use(self, used: list[SweepRows]) -> None:
        """Takes these rows, of the last sweeps, as the result; the newest row of an id wins."""
        result = self._result
        result.used_sweeps = [sweep.number for sweep in result.sweeps[-len(used) :]]
        for position, rows in reversed(list(enumerate(used))):
            distinct, tables = rows.write(used[position + 1 :])
            result.distinct += distinct
            result.items.update(rows.items)
            for table, file in tables.items():
                result.files.setdefault(table, []).append(file)
        result.quarantined = distinct_rows(rows.quarantined for rows in used)
        result.quarantined += used[-1].conflicting_rows(used[:-1])
        if self._inferred is not None:
            result.observations.update(self._inferred.observations())
            result.kinds = self._inferred.kinds()
