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
from orderbridge.sources.extract.proof import (
    agree,
    confirmed_gap,
    cut_in_words,
    evidence_of,
    have_equal_pages,
    next_limit,
    observations_of,
)
from orderbridge.sources.extract.result import ListResult, Progress, Sweep, WalkOptions, no_progress
from orderbridge.sources.extract.spool import SpoolFolder
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
"""A list that is read by a cursor is read again where ids occur twice: in both sweeps, or only while it changed."""
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
    return _ListWalk(resource, client, folder, spools, options or WalkOptions(), start).run(
        progress
    )


class _ListWalk:
    """One walk over one list."""

    def __init__(
        self,
        resource: str,
        client: Client,
        folder: Path,
        spools: SpoolFolder,
        options: WalkOptions,
        start: CursorPosition | None,
    ) -> None:
        operation, record = LISTS[resource], RECORDS[resource]
        self._operation, self._options, self._start = operation, options, start
        self._record = replace(record, key=options.key or record.key)
        self._folder, self._spools = folder, spools
        self._client = client
        self._fetcher = PageFetcher(operation, client, options.window)
        self._result = ListResult(self._record.name)
        self._is_paged = operation.paging == "pages"
        self._inferred = self._new_schema()

    def run(self, progress: Progress) -> ListResult:
        result = self._result
        result.started_at = datetime.fromtimestamp(self._spools.started_at, UTC)
        try:
            if self._start is None:
                self._walk(progress)
            else:
                self._read_tail(self._start, progress)
            self._spools.finish()
            # its end is known now
            progress(
                result.resource,
                result.total("pages"),
                result.distinct,
                result.distinct,
                len(result.sweeps),
            )
        except Stopped:
            raise
        except BridgeError as failure:
            error = self._with_request(failure)
            if isinstance(error, AccessError):
                gap = (
                    "legacy_auth_failure" if self._operation.family == "legacy" else "missing_scope"
                )
                result.observations[gap, f"status {error.status}, code {error.code or 'none'}"] += 1
            result.verdict, result.error, result.used_sweeps, result.files = (
                "incomplete",
                error,
                [],
                {},
            )
            result.evidence.append(str(error).splitlines()[0])
            if isinstance(error, (ContractBroken, HttpRejected)):
                self._spools.clear()  # resuming would fail on the same page again
            if isinstance(error, RateLimited):
                self._spools.stop_by_limit()
        if self._record.key_setting and not result.error:
            result.observations[self._record.key_setting, self._record.key] += 1
        if self._client.is_throttled:
            result.observations["rate_limit", f"{self._operation.family}: 429 received"] += 1
        result.ended_at = datetime.now(UTC)
        if all(sweep.resumed_pages == sweep.pages for sweep in result.sweeps) and (
            at := self._spools.last_page_at()
        ):
            result.ended_at = datetime.fromtimestamp(
                at, UTC
            )  # all was read by a run that was killed
        return result

    def _new_schema(self) -> InferredSchema | None:
        return (
            None
            if self._record.fields
            else InferredSchema(self._record, self._options.names, self._options.kinds)
        )

    def _with_request(self, error: BridgeError) -> BridgeError:
        """The error with the request that it is about, if a paginator raised it without one."""
        if not isinstance(error, ContractBroken) or error.family:
            return error
        operation = self._operation
        return ContractBroken(
            error.message, error.hint, family=operation.family, verb="GET", path=operation.path
        )

    def _walk(self, progress: Progress) -> None:
        """Sweeps the list; from the beginning again where a cursor expires."""
        for _ in range(RESTARTS_MAX + 1):
            try:
                # Open until the end: rows are decoded again from the spools where two sweeps are merged.
                with ExitStack() as open_spools:
                    return self._sweep_until_proven(open_spools, progress)
            except CursorExpired:
                self._result.evidence.append("a cursor expired: started again from the first page")
                self._spools.clear()
                self._result.sweeps.clear()
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
            files = PageFiles(
                self._record, self._folder / "sweep-1", spool, paginator, self._inferred
            )
            try:
                self._sweep(sweep, paginator, files, progress)
            except CursorExpired:
                raise TailMismatch("the platform rejected the saved cursor", "rejected") from None
            except RateLimited:
                raise  # to read the list whole would take more requests
            except PlatformError as error:
                raise TailMismatch(f"the saved cursor failed: {error.message}", "failed") from None
            if sweep.issues or files.repeated.counts:
                raise TailMismatch("ids occur twice after the saved cursor", "repeats rows")
            if (
                sweep.quarantined
            ):  # only whole reads keep count of them: a tail would be the last to mention these
                raise TailMismatch(
                    f"{sweep.quarantined} rows after the saved cursor were quarantined", "continues"
                )
            self._take([(sweep, files)])
        self._result.verdict = "tail"
        self._result.observations["cursor_reuse", "continues"] += 1
        self._result.evidence += [
            f"continued near the end of the read before: its last {start.rows} rows came again, then "
            f"{sweep.rows - start.rows} more; nothing is known of older rows",
            evidence_of(sweep),
        ]

    def _sweep_until_proven(self, open_spools: ExitStack, progress: Progress) -> None:
        sweeps, files = self._result.sweeps, list[PageFiles]()
        first_page: int | None = None
        sweeps_max = (
            self._options.sweeps if self._is_paged else min(self._options.sweeps, CURSOR_SWEEPS_MAX)
        )
        for number in range(1, sweeps_max + 1):
            limit = next_limit(sweeps, self._options.page_limit)
            paginator = paginator_for(self._operation, limit, self._record.key, first_page)
            spool = open_spools.enter_context(closing(self._spools.sweep(number)))
            earlier = files[-1] if files else None
            folder, is_compared = (
                self._folder / f"sweep-{number}",
                self._is_paged and sweeps_max > 1,
            )
            files.append(
                PageFiles(
                    self._record,
                    folder,
                    spool,
                    paginator,
                    self._inferred,
                    earlier,
                    is_compared=is_compared,
                )
            )
            sweeps.append(Sweep(number, limit))
            try:
                files[-1] = self._sweep(sweeps[-1], paginator, files[-1], progress)
            except HttpRejected as error:
                if number == 1 or paginator.size is not None:
                    raise
                # The platform takes certain limits only: the sweeps so far stand.
                del sweeps[-1], files[-1]
                self._result.evidence.append(
                    f"limit {limit} was rejected with status {error.status}: no further sweep"
                )
                break
            if isinstance(paginator, LegacyPages):
                self._check_total(sweeps[-1], paginator.gap, files[-1])
                if paginator.is_page_0_unknown:
                    break  # no further sweep can prove the list
                first_page = None if paginator.is_page_0_larger else paginator.first_page
            if number > 1 and self._is_paged and have_equal_pages(sweeps):
                if sweeps[-2].is_clean and sweeps[-1].is_clean:
                    sweeps[-1].issues.append(
                        "the platform ignores `limit`: both sweeps had pages of the same size"
                    )
                break  # further sweeps cannot prove more
            self._result.is_agreed = self._is_agreed(files)
            if self._result.is_agreed:
                break
        self._conclude(files)

    def _sweep(
        self, sweep: Sweep, paginator: Paginator, files: PageFiles, progress: Progress
    ) -> PageFiles:
        """Reads the list once, from its first page to its end; returns the files that have its rows."""
        name, earlier = self._record.name, self._result.sweeps[:-1]
        expected = earlier[-1].rows if earlier else None
        try:
            for page in self._fetcher.pages(paginator, files.spool):
                sweep.pages += 1
                if page.is_listed:
                    sweep.rows += page.body.count
                    files.add(
                        int(page.request.params.get("page", sweep.pages)), page.body, page.offset
                    )
                    if self._is_paged:
                        self._result.observations[f"{name}_data", page.body.form] += 1
                total = expected if paginator.total is None else paginator.total
                progress(name, sweep.pages, sweep.rows, total, sweep.number)
            finished = files.finish()
        except BaseException:
            files.abandon()
            for name_of_setting, seen in paginator.undecided:
                self._result.observations[name_of_setting, f"{name}: {seen}"] += 1
            raise
        if sweep.number == 1 and isinstance(paginator, V1Cursor):  # a later sweep has another limit
            self._result.position = paginator.position
        sweep.size, sweep.total, sweep.ended_by = (
            paginator.size or 0,
            paginator.total,
            paginator.ended_by,
        )
        sweep.resumed_pages = files.spool.replayed
        sweep.distinct, sweep.quarantined = len(finished.ids), len(finished.quarantined)
        sweep.duplicates = sweep.rows - sweep.quarantined - sweep.distinct
        sweep.issues = paginator.issues()
        if equal := finished.repeated.equal_rows:
            sweep.issues.append(f"{equal} rows were read twice")
        self._result.observations.update(finished.observations)
        if isinstance(paginator, LegacyPages):
            sweep.assumed_end = paginator.assumed_end
            sweep.totals = paginator.totals
            sweep.pages_announced = paginator.pages_announced
            sweep.pages_listed = paginator.pages_listed
            self._result.observations.update(observations_of(name, sweep, paginator.first_page))
        return finished

    def _check_total(self, sweep: Sweep, gap: int, files: PageFiles) -> None:
        """Notes an issue where `total` differs from the rows read, but not by as many as in earlier walks.

        A `total` that counts deleted rows counts those too that were listed before and are not now.
        """
        known, known_ids = self._options.known_gap, self._options.known_ids
        sweep.gap = gap
        if (
            gap
            and gap != known
            and (not known or known_ids is None or gap - known != files.count_absent(known_ids))
        ):
            sweep.issues.append(f"total is {sweep.total}, but {sweep.rows} rows were read")

    def _learn_gap(self, files: list[PageFiles], *, is_proven: bool) -> bool:
        """Records by how many rows `total` differs: as known, or as all sweeps confirm for the next walk.

        Returns:
            Whether the list is proven, or the difference is known or confirmed.
        """
        sweeps, words = self._result.sweeps, ""
        if is_proven and self._options.known_gap:
            gap, words = sweeps[-1].gap, "as earlier reads confirmed"
        elif (gap := confirmed_gap(sweeps)) and all(one.same_rows(files[-1]) for one in files):
            words = f"{len(sweeps)} equal sweeps confirm: a next read with this difference can be complete"
        if words:
            self._result.observations[f"{self._result.resource}_total_gap", f"{gap}"] += 1
        if words and gap:
            self._result.evidence.append(
                f"total counts {abs(gap)} rows {'more' if gap > 0 else 'fewer'} than are listed, {words}"
            )
        return is_proven or bool(words)

    def _is_agreed(self, files: list[PageFiles]) -> bool:
        """Whether the last sweep has all rows: as the one before has them, or by a cursor, each id once.

        A cursor that counts rows skips one where another is removed: if a known id is absent, a second sweep decides.
        """
        last = files[-1]
        if not self._is_paged and not last.repeated.counts:
            if len(files) == 1:
                return self._options.known_ids is None or not last.count_absent(
                    self._options.known_ids
                )
            return not any(last.ids.count_absent(earlier.ids) for earlier in files[:-1])
        return len(files) > 1 and agree(*self._result.sweeps[-2:]) and files[-2].same_rows(last)

    def _conclude(self, files: list[PageFiles]) -> None:
        """The verdict, and the files of the rows that it is about."""
        result, sweeps, is_agreed = self._result, self._result.sweeps, self._result.is_agreed
        judged = sweeps[-2:] if self._is_paged else sweeps[-1:]
        is_proven = is_agreed and not any(sweep.issues or sweep.quarantined for sweep in judged)
        result.verdict = "complete" if is_proven else "unproven"
        used = list(zip(sweeps, files, strict=True))[-1 if is_agreed else 0 :]
        self._take(used)
        result.evidence += map(evidence_of, sweeps)
        if len(sweeps) == 1 and not is_agreed:
            result.evidence.append(
                "a single sweep does not prove a list: rows may have moved while it was read"
            )
        elif len(sweeps) > 1:
            is_equal = self._is_paged or files[-1].repeated.counts
            proof = (
                "the last two sweeps agree"
                if is_equal
                else "the last sweep has each id once, and all ids before it"
            )
            result.evidence.append(proof if is_agreed else "no two sweeps agree: all are merged")
        is_explained = self._learn_gap(files, is_proven=is_proven)
        if not is_explained:
            listed = result.distinct + len(result.quarantined)
            result.cut = cut_in_words(sweeps, listed, self._options.known_gap)
        log.debug("%s: %s", result.resource, result.verdict)

    def _take(self, used: list[tuple[Sweep, PageFiles]]) -> None:
        """Takes the rows of these sweeps as the result; the newest row of an id wins."""
        result = self._result
        result.used_sweeps = [sweep.number for sweep, _ in used]
        used_files = [sweep_files for _, sweep_files in used]
        for position, sweep_files in reversed(list(enumerate(used_files))):
            distinct, tables = sweep_files.write(used_files[position + 1 :])
            result.distinct += distinct
            result.items.update(sweep_files.items)
            for table, file in tables.items():
                result.files.setdefault(table, []).append(file)
        result.quarantined = distinct_rows(sweep_files.quarantined for sweep_files in used_files)
        result.quarantined += used_files[-1].conflicting_rows(used_files[:-1])
        if self._inferred is not None:
            result.observations.update(self._inferred.observations())
            result.kinds = self._inferred.kinds()
