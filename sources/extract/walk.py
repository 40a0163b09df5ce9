"""A list walked to its end: requests, spool, columns, sweeps, verdict.

In: a client, a list of the contract, a folder to work in. Out: a `ListResult`: Parquet files of distinct rows, the rows
that were refused and why, and the verdict with its evidence. Fetching runs in this thread and a few workers,
decoding in another, files are written as batches of pages fill: memory does not grow with the list.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from sources.contract import LISTS, Operation
from sources.decode.documented import QuarantinedRow
from sources.errors import AccessError, BridgeError, ContractBroken, HttpRejected, Stopped
from sources.extract.page_files import PageFiles
from sources.extract.paginators import Body, CursorExpired, LegacyPages, OnePage, Paginator, Request, V1Cursor
from sources.extract.spool import Spool, SpoolFolder
from sources.http.client import Client

Verdict = Literal["complete", "unproven", "incomplete"]
Progress = Callable[[str, int, int, int | None], None]
"""Called as (resource, pages so far, rows so far, total where the platform told it)."""

SWEEPS_MAX: Final = 6
SECOND_SIZE: Final = 0.61
"""Ratio of the second sweep's page size to the first's: no boundary of one falls on one of the other for long."""
WINDOW: Final = 4
"""Legacy pages in flight; one after a 429."""
RESTARTS_MAX: Final = 3
log = logging.getLogger("orderbridge.walk")


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """How a list is walked. `sweeps`: at most so many; one alone proves nothing of a list paged by numbers."""

    page_limit: int = 100
    sweeps: int = SWEEPS_MAX
    window: int = WINDOW


@dataclass(slots=True)
class Sweep:
    """What one sweep over a list found. `rows` = `distinct` + `duplicates` + `quarantined`."""

    number: int
    limit: int
    size: int = 0
    pages: int = 0
    rows: int = 0
    distinct: int = 0
    duplicates: int = 0
    quarantined: int = 0
    resumed_pages: int = 0
    total: int | None = None
    ended_by: str = ""
    issues: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """No row twice, no total that moved or does not fit, no assumed end. A refused row is there in each sweep."""
        return not self.issues


@dataclass(slots=True)
class ListResult:
    """A list as it was walked.

    Attributes:
        resource: its name.
        verdict: `complete` (proven), `unproven` (rows may be missing), `incomplete` (it failed: `error`).
        sweeps: what each sweep found.
        used_sweeps: numbers of the sweeps whose rows are published: the last where two agree, else all.
        files: Parquet files by table; together they hold each distinct row once.
        quarantined: the rows that were not taken, with reason and bytes.
        observations: (what, value) → count, of what the interface does not show.
        evidence: the verdict in words.
    """

    resource: str
    verdict: Verdict = "incomplete"
    sweeps: list[Sweep] = field(default_factory=list)
    used_sweeps: list[int] = field(default_factory=list)
    files: dict[str, list[tuple[Path, int]]] = field(default_factory=dict)
    quarantined: list[QuarantinedRow] = field(default_factory=list)
    observations: Counter[tuple[str, str]] = field(default_factory=Counter)
    evidence: list[str] = field(default_factory=list)
    distinct: int = 0
    error: BridgeError | None = None
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    ended_at: datetime | None = None

    def total(self, what: Literal["pages", "rows", "quarantined"]) -> int:
        """A figure over the sweeps whose rows are published."""
        return sum(getattr(sweep, what) for sweep in self.sweeps if sweep.number in self.used_sweeps)

    @property
    def duplicates(self) -> int:
        """Rows read (in the sweeps used) beyond the first of each id."""
        return self.total("rows") - self.total("quarantined") - self.distinct


class _Walk:
    """One walk under way."""

    def __init__(
        self,
        operation: Operation,
        client: Client,
        folder: Path,
        spool: SpoolFolder,
        options: WalkOptions,
        progress: Progress,
    ) -> None:
        if operation.records is None:
            raise TypeError(f"{operation.name} lists nothing")
        self.operation, self.client, self.options, self.progress = operation, client, options, progress
        self.record = operation.records
        self.folder, self.spools = folder, spool
        self.walked = ListResult(self.record.name)
        self.throttled = False
        self.open = ExitStack()

    def run(self) -> ListResult:
        walked = self.walked
        try:
            for attempt in range(RESTARTS_MAX + 1):
                try:
                    with ExitStack() as self.open:
                        self._sweeps()
                    break
                except CursorExpired:
                    if attempt == RESTARTS_MAX:
                        raise ContractBroken(
                            f"a cursor that the platform gave was refused, {RESTARTS_MAX + 1} times",
                            "Try later; if it stays so, the platform lets cursors expire faster than pages are read.",
                        ) from None
                    walked.evidence.append("a cursor expired: walked again from the first page")
                    self.spools.clear()
                    walked.sweeps.clear()
            self.spools.finish()
        except Stopped:
            raise
        except BridgeError as failed:
            error = self._placed(failed)
            if isinstance(error, AccessError):
                gap = "legacy_auth_failure" if self.operation.family == "legacy" else "missing_scope"
                walked.observations[gap, f"status {error.status}, code {error.code or 'none'}"] += 1
            walked.verdict, walked.error, walked.used_sweeps, walked.files = "incomplete", error, [], {}
            walked.evidence.append(str(error).splitlines()[0])
            if isinstance(error, (ContractBroken, HttpRejected)):
                self.spools.clear()  # going on from a broken list would break again
        walked.ended_at = datetime.now(UTC)
        return walked

    def _placed(self, error: BridgeError) -> BridgeError:
        """The error with the request that it is about, where a paginator raised it, who knows of none."""
        if not isinstance(error, ContractBroken) or error.family:
            return error
        return ContractBroken(
            error.message, error.hint, family=self.operation.family, verb="GET", path=self.operation.path
        )

    def _sweeps(self) -> None:
        """Sweeps until two agree, or enough were made; then the verdict and the files."""
        paged = self.operation.paging == "pages"
        most = self.options.sweeps if paged else 1
        kept: list[PageFiles] = []
        first_page: int | None = None
        for number in range(1, most + 1):
            limit = self._limit(number)
            paginator = self._paginator(limit, first_page)
            files = PageFiles(self.record, self.folder / f"sweep-{number}", self.walked.observations)
            self._sweep(number, limit, paginator, files)
            first_page = paginator.first_page if isinstance(paginator, LegacyPages) else None
            kept.append(files)
            if not paged:
                break
            if number > 1 and (self._one_size() or self._agree(kept)):
                break  # proven, or a further sweep could prove no more
        self._conclude(kept, paged)

    def _limit(self, number: int) -> int:
        """Page size to ask for in a sweep: L, then ⌊0.61·L⌋ of the size L that was observed, then both in turn."""
        if number == 1:
            return self.options.page_limit
        size = self.walked.sweeps[0].size or self.options.page_limit
        if number % 2:
            return size
        return max(1, int(size * SECOND_SIZE)) if size > 1 else 2

    def _paginator(self, limit: int, first_page: int | None) -> Paginator:
        if self.operation.paging == "pages":
            return LegacyPages(limit, first_page)
        return V1Cursor(limit) if self.operation.paging == "cursor" else OnePage()

    def _sweep(self, number: int, limit: int, paginator: Paginator, files: PageFiles) -> None:
        """Walks the list once, from its first page to its end."""
        sweep = Sweep(number, limit)
        paged = self.operation.paging == "pages"
        self.walked.sweeps.append(sweep)
        spool = self.open.enter_context(closing(self.spools.sweep(number)))
        files.read_from(spool, paginator)
        try:
            for request, body, offset, is_kept in self._pages(paginator, spool):
                sweep.pages += 1
                if is_kept:
                    sweep.rows += body.count
                    number_told = request.params.get("page", sweep.pages)
                    files.add(int(number_told), body, offset)
                    if paged:
                        self.walked.observations[f"{self.record.name}_data", body.form] += 1
                self.progress(self.record.name, sweep.pages, sweep.rows, paginator.total)
            found = files.finish()
        except BaseException:
            files.abandon()
            raise
        sweep.size = paginator.size or 0
        sweep.total, sweep.ended_by, sweep.resumed_pages = paginator.total, paginator.ended_by, spool.replayed
        sweep.distinct, sweep.quarantined = found.distinct, found.quarantined
        sweep.duplicates = sweep.rows - sweep.quarantined - sweep.distinct
        sweep.issues = paginator.issues()
        if isinstance(paginator, LegacyPages):
            self._observe(sweep, paginator.first_page)
        if sweep.duplicates:
            sweep.issues.append(f"{sweep.duplicates} rows came twice")

    def _observe(self, sweep: Sweep, first_page: int) -> None:
        """What a sweep shows of a list's first page, its end and `limit` (gaps `legacy_…`, `customers_end`)."""
        if sweep.rows:
            self.walked.observations["legacy_first_page", f"{self.record.name}: {first_page}"] += 1
        self.walked.observations[f"{self.record.name}_end", sweep.ended_by] += 1
        if sweep.rows > sweep.size:
            how = "honoured" if sweep.size == sweep.limit else f"not honoured: {sweep.size} came for {sweep.limit}"
            self.walked.observations["legacy_limit", f"{self.record.name}: {how}"] += 1

    def _pages(self, paginator: Paginator, spool: Spool) -> Iterator[tuple[Request, Body, int, bool]]:
        """The pages of a sweep in order: from the spool while it has them, then from the platform, a few ahead.

        With each comes whether its rows belong to the list. What is asked next is under way while a page is spooled and
        worked on: a cursor is followed as soon as it is known.
        """
        pending: deque[tuple[Request, Future[tuple[Body, bytes]]]] = deque()
        pool = ThreadPoolExecutor(self.options.window, f"fetch-{self.record.name}")

        def fetch(request: Request) -> None:
            pending.append((request, pool.submit(self._fetch, request, paginator)))

        def fill() -> None:
            alone = self.throttled or self.operation.paging != "pages"
            window = 1 if alone else self.options.window
            while not paginator.ended_by and len(pending) < window and (ahead := paginator.ask()) is not None:
                fetch(ahead)

        try:
            while not paginator.ended_by and (request := paginator.ask()) is not None:
                if (replayed := self._replay(spool, request, paginator)) is None:
                    fetch(request)
                    break
                body, offset = replayed
                yield request, body, offset, paginator.take(request, body)
            fill()
            while not paginator.ended_by:
                request, fetched = pending.popleft()
                try:
                    body, raw = fetched.result()
                except HttpRejected as error:
                    paginator.refused(request, error)
                    fill()
                    continue
                is_kept = paginator.take(request, body)
                fill()
                offset = spool.offset
                spool.write(_label(request), raw)
                yield request, body, offset, is_kept
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _replay(self, spool: Spool, request: Request, paginator: Paginator) -> tuple[Body, int] | None:
        offset = spool.offset
        raw = spool.replay(_label(request))
        return None if raw is None else (paginator.parse(raw), offset)

    def _fetch(self, request: Request, paginator: Paginator) -> tuple[Body, bytes]:
        body, answer = self.client.get(self.operation.path, request.params, check=paginator.parse)
        if answer.throttled:
            self.throttled = True
            self.walked.observations["rate_limit", f"{self.operation.family}: 429 came"] += 1
        return body, answer.body

    def _one_size(self) -> bool:
        """Whether the platform ignores `limit`: then rows that move can be missed by every sweep alike."""
        before, last = self.walked.sweeps[-2:]
        ignored = before.size == last.size != 0 and max(before.rows, last.rows) > last.size
        if ignored and before.is_clean and last.is_clean:
            last.issues.append("the platform ignores `limit`: both sweeps had pages of one size")
        return ignored

    def _agree(self, kept: Sequence[PageFiles]) -> bool:
        """Whether the last two sweeps found the same, each without a doubt."""
        before, last = self.walked.sweeps[-2:]
        return before.is_clean and last.is_clean and kept[-2].same(kept[-1])

    def _conclude(self, kept: list[PageFiles], paged: bool) -> None:
        """The verdict, and the files of the rows behind it."""
        walked, sweeps = self.walked, self.walked.sweeps
        agreed = self._agree(kept) if len(kept) > 1 else not paged
        proven = agreed and not any(sweep.issues or sweep.quarantined for sweep in sweeps[-2:])
        walked.verdict = "complete" if proven else "unproven"
        used = list(zip(sweeps, kept, strict=True))[-1 if agreed else 0 :]
        walked.used_sweeps = [sweep.number for sweep, _ in used]
        seen = None
        for _, files in reversed(used):
            distinct, written, seen = files.write(seen)
            walked.distinct += distinct
            for table, part in written.items():
                walked.files.setdefault(table, []).append(part)
            walked.quarantined += files.refused
        for sweep in sweeps:
            said = "; ".join(sweep.issues) or "clean"
            said += f", {sweep.quarantined} rows refused" if sweep.quarantined else ""
            resumed = f", {sweep.resumed_pages} of them from a stopped walk" if sweep.resumed_pages else ""
            walked.evidence.append(
                f"sweep {sweep.number}: {sweep.rows} rows on {sweep.pages} pages of {sweep.size}{resumed}, "
                f"{sweep.distinct} distinct, ended by {sweep.ended_by}, {said}"
            )
        if paged and len(sweeps) == 1:
            walked.evidence.append("one sweep proves nothing: rows may have moved while it went on")
        elif paged:
            walked.evidence.append("the last two sweeps agree" if agreed else "no two sweeps agree: their union")
        log.debug("%s: %s", walked.resource, walked.verdict)


def _label(request: Request) -> str:
    return "&".join(f"{name}={value}" for name, value in sorted(request.params.items()))


def no_progress(resource: str, pages: int, rows: int, total: int | None) -> None:
    """Progress that nobody watches."""


def walk(
    resource: str,
    client: Client,
    folder: Path,
    spool: SpoolFolder,
    options: WalkOptions | None = None,
    progress: Progress = no_progress,
) -> ListResult:
    """Walks a list to its end.

    Args:
        resource: `customers`, `promotions`, `price_lists` or `orders` (interface, Endpoints).
        client: of the list's family.
        folder: where the Parquet files go; it is the caller's to remove.
        spool: where page bytes go as they come.
        options: page size, sweeps, pages in flight.
        progress: called after each page.

    Returns:
        What was found. A list that failed is `incomplete` and carries its error; nothing of it is to be published.

    Raises:
        Stopped: the client was told to stop; the spool keeps what came.
        OSError: the disk is full or cannot be written.
    """
    return _Walk(LISTS[resource], client, folder, spool, options or WalkOptions(), progress).run()
