"""The pages of one sweep, in order: from the spool of a stopped walk first, then from the platform, a few in advance.

In: a paginator, a client, a spool. Out: each page with its place in the spool. The next request is under way while a
page is spooled and processed; a page is on disk before it is handed out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from time import monotonic

from orderbridge.sources.command_line import run_again
from orderbridge.sources.contract import Operation
from orderbridge.sources.errors import (
    ContractBroken,
    HttpRejected,
    PlatformError,
    RateLimited,
    Unreachable,
)
from orderbridge.sources.extract.pages import PageBody, Paginator, Request
from orderbridge.sources.extract.spool import Spool
from orderbridge.sources.http.client import Client
from orderbridge.sources.settings import http_settings


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A page, its offset in the spool, and whether its rows belong to the list (those of a probe may not)."""

    request: Request
    body: PageBody
    offset: int
    is_listed: bool


class PageFetcher:
    """Fetches the pages of a list, one sweep at a time, within `sources.http.list_timeout_s`.

    Args:
        operation: the list.
        client: of the list's family.
        window: pages to request at the same time; one for a cursor, and once the platform has answered 429.
    """

    def __init__(self, operation: Operation, client: Client, window: int) -> None:
        self._operation = operation
        self._client = client
        self._window = window
        self._timeout_s = http_settings().list_timeout_s
        self._ends_at = monotonic() + self._timeout_s

    def pages(self, paginator: Paginator, spool: Spool) -> Iterator[FetchedPage]:
        """Fetches one sweep. Raises what the client, the paginator and the spool raise."""
        resumed = yield from _replayed(paginator, spool)
        number = spool.replayed + 1
        pool = ThreadPoolExecutor(self._window, f"fetch-{self._operation.name}")
        pending: deque[tuple[Request, Future[tuple[PageBody, bytes]]]] = deque()

        def request_more(request: Request | None = None) -> None:
            is_single = self._client.is_throttled or self._operation.paging != "pages"
            window = 1 if is_single else self._window
            while not paginator.ended_by and len(pending) < window:
                request = request or paginator.next_request()
                if request is None:
                    return
                pending.append((request, pool.submit(self._fetch, request, paginator)))
                request = None

        try:
            request_more(resumed)
            while not paginator.ended_by:
                if monotonic() > self._ends_at:
                    raise self._out_of_time()
                request, future = pending.popleft()
                try:
                    body, raw = future.result()
                    is_listed = paginator.accept(request, body)
                except (HttpRejected, ContractBroken, Unreachable) as error:
                    if not _is_answer(request, error):
                        raise _on_page(error, request.params.get("page", number)) from None
                    paginator.reject(request, error)
                    request_more()
                    continue
                number += 1
                request_more()
                offset = spool.offset
                spool.write(request.label, raw)
                yield FetchedPage(request, body, offset, is_listed)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _out_of_time(self) -> PlatformError:
        words = f"the list did not end within {self._timeout_s / 3600:.3g} hours"
        if self._client.is_throttled:
            return RateLimited(
                f"{words}, as the platform limits requests",
                f"It goes on here: {run_again()}",
            )
        hint = "It may have none. If it is as long as that, raise sources.http.list_timeout_s."
        return ContractBroken(words, hint)

    def _fetch(self, request: Request, paginator: Paginator) -> tuple[PageBody, bytes]:
        body, response = self._client.get(
            self._operation.path, request.params, check=paginator.parse, is_probe=request.probe
        )
        return body, response.body


def _is_answer(request: Request, error: PlatformError) -> bool:
    """Whether an error is an answer about the list: a rejection, or any answer of the platform to a probe."""
    if isinstance(error, HttpRejected):
        return True
    is_answered = isinstance(error, ContractBroken) or error.status is not None
    return request.probe and is_answered


def _on_page(error: PlatformError, number: str | int) -> PlatformError:
    """The error with the page that it is about."""
    located = copy(error)
    located.message = f"{error.message} (page {number})"
    located.args = (located.message,)
    return located


def _replayed(paginator: Paginator, spool: Spool) -> Generator[FetchedPage, None, Request | None]:
    """The pages that the spool holds; returns the first request that it does not answer."""
    while not paginator.ended_by:
        request = paginator.next_request()
        if request is None:
            return None
        offset = spool.offset
        raw = spool.replay(request.label)
        if raw is None:
            return request
        body = paginator.parse(raw)
        yield FetchedPage(request, body, offset, paginator.accept(request, body))
    return None
