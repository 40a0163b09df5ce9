"""Walks of platforms that page unusually, without an error: replicas, caches, caps, unstable order, moving rows.

A seed draws how a platform orders, cuts and answers its list. A request is a moment of time, before which the list may
change. A `complete` list has all records that were there in every state that an answer could show, and none that never
was. Left out is what no reading can notice (docs/completeness.md): rows that are on no page. Orders have a list that
mostly has one item; all items are in its child table.

Most walks are interrupted for one to nine minutes of simulated time, or limited all the time: by the platform, or by
somebody in between. They wait, and come to the same end.
"""

from __future__ import annotations

import logging
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import format_datetime
from typing import Any, Final
from unittest import mock

import httpx
import pyarrow as pa

from orderbridge.sandbox.config import LEGACY_KEY, V1_KEY
from orderbridge.sources.contract import LISTS
from orderbridge.sources.errors import AccessError, HttpRejected, Unreachable
from orderbridge.sources.extract import page_files
from orderbridge.sources.extract.ids import IdHashes, hash_ids
from orderbridge.sources.extract.result import ListResult, WalkOptions
from orderbridge.sources.extract.spool import SpoolFolder
from orderbridge.sources.extract.walk import walk
from orderbridge.sources.http.client import Client
from orderbridge.sources.http.waiting import WAITS
from tests.soak.transport import requested_url
from tests.soak.walks import Outcome, folder_in_memory, inline, judge_ids, tables_of
from tests.sources.clock import SimulatedClock

GROWTH_MAX: Final = 1000
"""Requests after which the list does not grow any more: pages in a random order would never end."""
AGE_MAX: Final = 40
"""Moments by which a replica or a cache is behind at most; the list existed for as long before the walk."""
STEPS: Final = (1, 2, 5, 10, 20, 50)
INTERRUPTIONS: Final = {
    "closed connections": 0,
    "503": 503,
    "429": 429,
    "challenge": 403,
    "401": 401,
    "408": 408,
    "409": 409,
    "425": 425,
    "epoch": 429,
    "date": 503,
}
"""The status of each; 0 for none. `epoch` and `date` are forms of Retry-After."""
LIMIT: Final = "limit"
"""So many requests in a time, and 429 without Retry-After."""
CHALLENGE: Final = b"<!doctype html><title>Just a moment</title>"
ASKED_MAX_S: Final = 240.0
REFUSALS_MAX: Final = 80
"""Requests that nine minutes may take: delays are 15 s on average."""
LIMITS: Final = ((60, 60), (10, 10), (5, 10))
"""Requests, and in how many seconds."""
LIMITED_ROWS: Final = 400
FIRST_REFUSALS_MAX: Final = 12
REFUSALS_SHARE: Final = 0.1
"""Refusals before the pace is known, and further ones for each answer."""
PAGINATION: Final = ("page", "pages", "total", "hasPrevPage", "hasNextPage")


ITEMS: Final = "orders__items"
SEVERAL_EVERY: Final = 15
"""One order in so many has two items."""
Tables = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Record:
    """A row in one state of the list: its id, and the moment of its last change."""

    id: int
    changed: int


def items_of(key: int) -> int:
    """The number of items of an order."""
    return 1 if key % SEVERAL_EVERY else 2


class UnusualPlatform(httpx.BaseTransport):
    """Answers the requests of a walk, as its seed draws; `rows`: another number of them, long before the walk."""

    def __init__(self, seed: int, rows: int | None = None) -> None:
        draw = random.Random(seed)
        rate = draw.choice((0.0, 0.0, 0.02, 0.1, 0.3))
        lags = tuple(draw.randrange(AGE_MAX) for _ in range(draw.choice((1, 2, 3))))
        self.resource = draw.choice(
            ("customers", *(name for name, one in LISTS.items() if one.paging != "none"))
        )
        self.serial = draw.choice((1, 2, 5, 10, 20, 21, 41, 60))  # rows, long before the walk
        self.serial = rows or self.serial
        self.page_limit = draw.choice((3, 5, 7, 10, 20, 25))
        self.window = draw.choice((1, 4))
        # inserts, deletes, touches per request
        self.changes = [rate * draw.choice((0, 1)) for _ in range(3)]
        # `stepped`: down to a permitted size; `ignored`: always `cap` rows
        self.limit = draw.choice(
            ("honoured", "honoured", "honoured", "capped", "stepped", "ignored")
        )
        self.cap = draw.choice((5, 10, 20))
        # any, in each answer
        self.order = draw.choice(("id", "id", "-id", "changed", "-changed", "unstable"))
        # from page 1 again
        self.end = draw.choice(("empty", "empty", "empty", "repeat", "status_404", "wrap"))
        self.pagination = draw.choice(
            ((), (), (), PAGINATION, PAGINATION[:2], ("total",), ("hasNextPage",))
        )
        self.shrunk = draw.choice((0.0, 0.0, 0.0, 0.05, 0.3))  # rate of pages with half of the rows
        self.is_shifted = draw.random() < 0.5  # then they also begin earlier
        # the request from which it is
        self.capped_from = draw.randrange(20) if draw.random() < 0.1 else 1_000_000
        self.lags = lags if draw.random() < 0.2 else (0,)  # moments by which each replica is behind
        self.balancing = draw.choice(("page", "random", "turn"))
        # what a proxy knows an answer by
        self.cached_by = draw.choice(("", "", "", "", "url", "page"))
        self.ttl = draw.randrange(1, AGE_MAX)
        # where the next page begins; `snapshot`: an offset into an old state
        self.cursor = draw.choice(("id", "id", "changed", "offset", "snapshot"))
        self.deleted = draw.choice((0, 0, 1, 3))  # rows that no page has, and `total` counts
        # how many of them are known, truly or not
        self.known_gap = draw.choice((0, self.deleted, 1))
        self._draw, self._count = random.Random(f"{seed}:platform"), self.serial
        self._cache: dict[str, tuple[int, httpx.Response]] = {}
        self._snapshots: list[list[Record]] = []
        self.requests = 0
        self.states = [[Record(number, number) for number in range(1, self.serial + 1)]]
        for _ in range(AGE_MAX):
            self._change()

    def _change(self) -> None:
        rows, draw, now = list(self.states[-1]), self._draw, self._count + 2 * len(self.states)
        inserts, deletes, touches = (draw.random() < rate for rate in self.changes)
        if inserts and self.requests < GROWTH_MAX:
            self.serial += 1
            rows.append(Record(self.serial, now))
        if rows and deletes:
            rows.pop(draw.randrange(len(rows)))
        if rows and touches:
            touched = rows.pop(draw.randrange(len(rows)))
            rows.append(replace(touched, changed=now + 1))  # never at the same moment as an insert
        self.states.append(rows if rows != self.states[-1] else self.states[-1])

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        self._change()
        url = requested_url(request)
        query = dict(url.params)
        is_cursor = LISTS[self.resource].paging == "cursor"
        # a cursor is bound to its limit: no answer to it is used for another one
        key = query["page"] if self.cached_by == "page" and not is_cursor else str(url)
        if (
            self.cached_by
            and key in self._cache
            and self.requests - self._cache[key][0] <= self.ttl
        ):
            return self._cache[key][1]
        answer = self._cursor_page(query) if is_cursor else self._numbered_page(query)
        self._cache[key] = self.requests, answer
        return answer

    def _state(self, page: int, order: str) -> list[Record]:
        """What the replica that answers has: always the first one where a cursor (page 0) follows the last changes.

        A row that moves to the end is on no page where the last one comes from an older replica.
        """
        lags, draw = self.lags if page or order != "changed" else self.lags[:1], self._draw
        number = {"page": page, "random": draw.randrange(len(lags)), "turn": self.requests}[
            self.balancing
        ]
        rows = self.states[-1 - lags[number % len(lags)]]
        if order == "unstable":
            return draw.sample(rows, len(rows))
        return sorted(
            rows, key=lambda row: getattr(row, order.strip("-")), reverse=order.startswith("-")
        )

    def _size(self, limit: int) -> int:
        if self.limit == "ignored":
            return self.cap
        if self.limit == "capped" or self.requests >= self.capped_from:
            return min(limit, self.cap)
        return STEPS[bisect_right(STEPS, limit) - 1] if self.limit == "stepped" else limit

    def _numbered_page(self, query: dict[str, str]) -> httpx.Response:
        page = max(1, int(query["page"]))
        rows, stride = self._state(page, self.order), self._size(int(query["limit"]))
        is_shrunk = self._draw.random() < self.shrunk
        half = max(1, stride // 2)
        stride = half if is_shrunk and self.is_shifted else stride
        pages = max(1, -(-len(rows) // stride))
        if page > pages:
            if self.end == "status_404":
                return httpx.Response(404, json={"errors": []})
            page = {"repeat": pages, "wrap": (page - 1) % pages + 1}.get(self.end, page)
        begin, size = (page - 1) * stride, half if is_shrunk and page < pages else stride
        values = dict(
            zip(
                PAGINATION,
                (page, pages, len(rows) + self.deleted, page > 1, page < pages),
                strict=True,
            )
        )
        members = {name: values[name] for name in self.pagination}
        return self._response(
            rows[begin : begin + size], {"pagination": members} if members else {}
        )

    def _cursor_page(self, query: dict[str, str]) -> httpx.Response:
        number, _, after = query.get("startingAfter", "0:0").partition(":")
        if self.cursor == "snapshot" and "startingAfter" in query:
            rows = self._snapshots[int(number)]
        else:
            rows = self._state(0, "id" if self.cursor in ("offset", "snapshot") else self.cursor)
            self._snapshots.append(rows)
            number = str(len(self._snapshots) - 1)
        by_value = self.cursor in ("id", "changed")
        begin = (
            sum(getattr(row, self.cursor) <= int(after) for row in rows) if by_value else int(after)
        )
        size = self._size(int(query["limit"]))
        end = begin + (max(1, size // 2) if self._draw.random() < self.shrunk else size)
        if end >= len(rows):
            return self._response(rows[begin:], {"hasMore": False, "nextCursor": None})
        position = getattr(rows[end - 1], self.cursor) if by_value else end
        return self._response(
            rows[begin:end], {"hasMore": True, "nextCursor": f"{number}:{position}"}
        )

    def _record(self, row: Record) -> dict[str, Any]:
        """A row in JSON. Orders have a list that mostly has one item."""
        record: dict[str, Any] = {"id": row.id, "name": "A"}
        if self.resource == "orders":
            record["items"] = [{"sku": f"{row.id}-{n}"} for n in range(1, items_of(row.id) + 1)]
        return record

    def _response(self, rows: list[Record], members: dict[str, Any]) -> httpx.Response:
        records = [self._record(row) for row in rows]
        return httpx.Response(200, json={LISTS[self.resource].rows_field: records, **members})


class Interruption:
    """What disturbs a walk: for one to nine minutes, from a request on, or a limit of requests all the time.

    Attributes:
        kind: empty where nothing does.
        statuses: it may answer with.
    """

    def __init__(self, seed: int, clock: SimulatedClock) -> None:
        draw = random.Random(f"{seed}:interruption")
        self.kind = draw.choice(("", *INTERRUPTIONS, LIMIT))
        self.seconds = draw.randrange(60, 541)
        self.first_request = draw.randrange(2, 12)
        self.limit, self.window_s = draw.choice(LIMITS)
        self._clock = clock
        self._ends_at: float | None = None
        self._asked_until = 0.0
        self._answered: Counter[int] = Counter()
        self.refusals = 0
        self.hasty = 0

    @property
    def sets_a_pace(self) -> bool:
        """Whether pages are requested one at a time from then on: the list may be another one then."""
        return self.kind == LIMIT or INTERRUPTIONS.get(self.kind, 0) == 429

    def answer(self, request: int) -> httpx.Response | Exception | None:
        """In place of the platform's answer to its n-th request; None if that comes through."""
        now = self._clock.now
        if self.kind == LIMIT:
            window = int(now // self.window_s)
            is_over = self._answered[window] >= self.limit
            self._answered[window] += not is_over
            self.refusals += is_over
            return httpx.Response(429) if is_over else None
        if not self.kind or request < self.first_request:
            return None
        self._ends_at = now + self.seconds if self._ends_at is None else self._ends_at
        if now >= self._ends_at:
            return None
        self.refusals += 1
        self.hasty += now < self._asked_until
        return self._disturbance(min(self._ends_at - now, ASKED_MAX_S))

    def _disturbance(self, left_s: float) -> httpx.Response | Exception:
        headers = {}
        if self.kind in ("epoch", "date"):
            self._asked_until = self._clock.now + left_s - 1.0
            at = self._clock.time + timedelta(seconds=left_s)
            is_epoch = self.kind == "epoch"
            headers["Retry-After"] = f"{at.timestamp():.0f}" if is_epoch else format_datetime(at)
        status = INTERRUPTIONS[self.kind]
        if not status:
            return httpx.RemoteProtocolError("closed")
        return httpx.Response(status, content=CHALLENGE, headers=headers)

    def problems(self, result: ListResult, waits: int) -> Iterator[str]:
        """What is wrong with a walk that it disturbed."""
        name = f"{self.kind}, {self.seconds} s"
        error = result.error
        if isinstance(error, (AccessError, Unreachable)) or (
            isinstance(error, HttpRejected) and error.status != 404
        ):
            yield f"{name}: not waited for: {error}"
        if self.hasty:
            yield f"{name}: requested {self.hasty} times before the platform permitted it"
        if self.kind == LIMIT:
            answered = sum(self._answered.values())
            if self.refusals > FIRST_REFUSALS_MAX + answered * REFUSALS_SHARE:
                words = f"{self.limit} requests in {self.window_s} s"
                yield f"{words}: {self.refusals} refusals, {answered} answers"
        elif self.refusals > REFUSALS_MAX:
            yield f"{name}: {self.refusals} requests while it lasted"
        if self._ends_at is not None and not waits:
            yield f"{name}: nobody was told of the wait"


class Interrupted(httpx.BaseTransport):
    """A platform behind an interruption, which it does not notice."""

    def __init__(self, platform: UnusualPlatform, interruption: Interruption) -> None:
        self._platform, self._interruption = platform, interruption

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._interruption.answer(self._platform.requests + 1)
        if isinstance(answer, Exception):
            raise answer
        return self._platform.handle_request(request) if answer is None else answer


class _Waits(logging.Handler):
    """Counts what is logged about waits."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += record.levelno == logging.WARNING


@contextmanager
def _counted_waits() -> Iterator[_Waits]:
    waits, log = _Waits(), logging.getLogger(WAITS)
    disabled = logging.root.manager.disable
    logging.disable(logging.NOTSET)  # a campaign has no logs otherwise
    log.addHandler(waits)
    try:
        yield waits
    finally:
        log.removeHandler(waits)
        logging.disable(disabled)


def _walked(
    seed: int, platform: UnusualPlatform, transport: httpx.BaseTransport, clock: SimulatedClock
) -> tuple[ListResult, Tables]:
    """The result of a walk, and the rows in its files."""
    name, family = platform.resource, LISTS[platform.resource].family
    key = LEGACY_KEY if family == "legacy" else V1_KEY
    random.seed(seed)  # delays
    with (
        folder_in_memory() as folder,
        inline(),
        clock.running(),
        mock.patch.object(page_files, "CHECK_ROWS", 1000),
    ):
        known = IdHashes(folder / "known.ids")
        known.append(
            hash_ids(pa.chunked_array([[str(row.id) for row in platform.states[-1]]], pa.string()))
        )
        spools = SpoolFolder(folder / "spool", {"list": name}, key)
        with Client(family, "http://127.0.0.1:9", key, transport=transport) as client:
            options = WalkOptions(
                platform.page_limit,
                window=platform.window,
                known_ids=known,
                known_gap=platform.known_gap,
            )
            result = walk(name, client, folder / "files", spools, options)
        return result, tables_of(result)


def _ids(result: ListResult, tables: Tables) -> list[str]:
    return [str(row["id"]) for row in tables[result.resource]]


def judge_items(tables: Tables) -> Iterator[str]:
    """What is wrong with the items of orders: each has its own in the child table."""
    found = Counter(str(row["order_id"]) for row in tables.get(ITEMS, []))
    orders = [str(row["id"]) for row in tables.get("orders", [])]
    wrong = [order for order in orders if found[order] != items_of(int(order))]
    if wrong:
        yield f"items of {len(wrong)} of {len(orders)} orders are lost or doubled"


def platform_seed(seed: int) -> Outcome:
    clock = SimulatedClock()
    interruption = Interruption(seed, clock)
    platform = UnusualPlatform(seed, LIMITED_ROWS if interruption.kind == LIMIT else None)
    with _counted_waits() as waits:
        result, tables = _walked(seed, platform, Interrupted(platform, interruption), clock)
    ids = _ids(result, tables)
    states = [{str(row.id) for row in state} for state in platform.states]
    problems = list(judge_ids(result, ids, set.intersection(*states), set.union(*states)))
    problems += interruption.problems(result, waits.count)
    problems += judge_items(tables)
    if interruption.refusals and not interruption.sets_a_pace:
        calm = UnusualPlatform(seed)
        expected, expected_tables = _walked(seed, calm, calm, SimulatedClock())
        if (result.verdict, ids) != (expected.verdict, _ids(expected, expected_tables)):
            problems.append(
                f"{interruption.kind}: {result.verdict}, and {expected.verdict} without"
            )
    counts = {
        result.verdict: 1,
        "requests": platform.requests,
        "interruptions": int(interruption.refusals > 0),
        "minutes waited": int(clock.now // 60),
        "refusals": interruption.refusals,
    }
    return Outcome(counts, problems)
