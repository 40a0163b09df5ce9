"""Walks of platforms that page unusually, without an error: replicas, caches, caps, unstable order, moving rows.

A seed draws how a platform orders, cuts and answers its list. A request is a moment of time, before which the list may
change. A `complete` list has all records that were there in every state that an answer could show, and none that never
was. Left out is what no reading can notice (docs/completeness.md): rows that are on no page.
"""

from __future__ import annotations

import random
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from unittest import mock

import httpx
import pyarrow as pa
import pyarrow.parquet as pq

from sandbox.config import LEGACY_KEY, V1_KEY
from sources.contract import LISTS
from sources.extract import page_files
from sources.extract.ids import IdHashes, hash_ids
from sources.extract.result import ListResult, WalkOptions
from sources.extract.spool import SpoolFolder
from sources.extract.walk import walk
from sources.http.client import Client
from tests.soak.outcome import Outcome
from tests.soak.transport import requested_url
from tests.soak.walks import MEMORY, inline

GROWTH_MAX: Final = 1000
"""Requests after which the list does not grow any more: pages in a random order would never end."""
AGE_MAX: Final = 40
"""Moments by which a replica or a cache is behind at most; the list existed for as long before the walk."""
STEPS: Final = (1, 2, 5, 10, 20, 50)
PAGINATION: Final = ("page", "pages", "total", "hasPrevPage", "hasNextPage")


@dataclass(frozen=True)
class Record:
    """A row in one state of the list: its id, and the moment of its last change."""

    id: int
    changed: int


@dataclass(frozen=True)
class PlatformSeed:
    """What a seed draws: a list, and how its platform behaves.

    Attributes:
        count: rows, long before the walk.
        changes: rates of inserts, deletes and touches, per request.
        limit: `honoured`, `capped` (at `cap`), `stepped` (down to a permitted size), `ignored` (`cap` rows).
        order: `id` or `changed`, ascending or descending; `unstable` for any order in each answer.
        end: after the last page: `empty`, `repeat`, `status_404`, or `wrap` (from page 1 again).
        pagination: members of the object; none where there is none.
        shrunk: rate of pages with half of the rows, but not the last page; `is_shifted` if it also begins earlier.
        capped_from: number of the request from which on `cap` holds.
        lags: moments by which each replica is behind; `balancing` by page, at random or in turn.
        cached_by: what a proxy knows an answer by, `url` or `page`; `ttl` is its moments.
        cursor: where the next page begins: `offset`, `id`, `changed`, or `snapshot` (an offset into an old state).
        deleted: rows that no page has, and `total` counts; `known_gap` of them are known, truly or not.
    """

    resource: str
    count: int
    page_limit: int
    window: int
    changes: tuple[float, float, float]
    limit: str
    cap: int
    order: str
    end: str
    pagination: tuple[str, ...]
    shrunk: float
    is_shifted: bool
    capped_from: int
    lags: tuple[int, ...]
    balancing: str
    cached_by: str
    ttl: int
    cursor: str
    deleted: int
    known_gap: int

    @classmethod
    def drawn(cls, seed: int) -> PlatformSeed:
        draw = random.Random(seed)
        rate = draw.choice((0.0, 0.0, 0.02, 0.1, 0.3))
        lags = tuple(draw.randrange(AGE_MAX) for _ in range(draw.choice((1, 2, 3))))
        return cls(
            resource=draw.choice(("customers", *(name for name, listed in LISTS.items() if listed.paging != "none"))),
            count=draw.choice((1, 2, 5, 10, 20, 21, 41, 60)),
            page_limit=draw.choice((3, 5, 7, 10, 20, 25)),
            window=draw.choice((1, 4)),
            changes=(rate * draw.choice((0, 1)), rate * draw.choice((0, 1)), rate * draw.choice((0, 1))),
            limit=draw.choice(("honoured", "honoured", "honoured", "capped", "stepped", "ignored")),
            cap=draw.choice((5, 10, 20)),
            order=draw.choice(("id", "id", "-id", "changed", "-changed", "unstable")),
            end=draw.choice(("empty", "empty", "empty", "repeat", "status_404", "wrap")),
            pagination=draw.choice(((), (), (), PAGINATION, PAGINATION[:2], ("total",), ("hasNextPage",))),
            shrunk=draw.choice((0.0, 0.0, 0.0, 0.05, 0.3)),
            is_shifted=draw.random() < 0.5,
            capped_from=draw.randrange(20) if draw.random() < 0.1 else 1_000_000,
            lags=lags if draw.random() < 0.2 else (0,),
            balancing=draw.choice(("page", "random", "turn")),
            cached_by=draw.choice(("", "", "", "", "url", "page")),
            ttl=draw.randrange(1, AGE_MAX),
            cursor=draw.choice(("id", "id", "changed", "offset", "snapshot")),
            deleted=(deleted := draw.choice((0, 0, 1, 3))),
            known_gap=draw.choice((0, deleted, 1)),
        )


class UnusualPlatform(httpx.BaseTransport):
    """Answers the requests of a walk."""

    def __init__(self, seed: int, drawn: PlatformSeed) -> None:
        self._draw, self._drawn = random.Random(f"{seed}:platform"), drawn
        self._serial = drawn.count
        self._cache: dict[str, tuple[int, httpx.Response]] = {}
        self._snapshots: list[list[Record]] = []
        self.requests = 0
        self.states = [[Record(number, number) for number in range(1, drawn.count + 1)]]
        for _ in range(AGE_MAX):
            self._change()

    def _change(self) -> None:
        rows, draw, now = list(self.states[-1]), self._draw, self._drawn.count + 2 * len(self.states)
        inserts, deletes, touches = (draw.random() < rate for rate in self._drawn.changes)
        if inserts and self.requests < GROWTH_MAX:
            self._serial += 1
            rows.append(Record(self._serial, now))
        if rows and deletes:
            rows.pop(draw.randrange(len(rows)))
        if rows and touches:
            touched = rows.pop(draw.randrange(len(rows)))
            rows.append(replace(touched, changed=now + 1))  # never at the same moment as an insert
        self.states.append(rows if rows != self.states[-1] else self.states[-1])

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        self._change()
        url, drawn = requested_url(request), self._drawn
        query = dict(url.params)
        is_cursor = LISTS[drawn.resource].paging == "cursor"
        # a cursor is bound to its limit: no answer to it is used for another one
        key = query["page"] if drawn.cached_by == "page" and not is_cursor else str(url)
        if drawn.cached_by and key in self._cache and self.requests - self._cache[key][0] <= drawn.ttl:
            return self._cache[key][1]
        answer = self._cursor_page(query) if is_cursor else self._numbered_page(query)
        self._cache[key] = self.requests, answer
        return answer

    def _state(self, page: int, order: str) -> list[Record]:
        """What the replica that answers has: always the first one where a cursor (page 0) follows the last changes.

        A row that moves to the end is on no page where the last one comes from an older replica.
        """
        lags, draw = self._drawn.lags if page or order != "changed" else self._drawn.lags[:1], self._draw
        number = {"page": page, "random": draw.randrange(len(lags)), "turn": self.requests}[self._drawn.balancing]
        rows = self.states[-1 - lags[number % len(lags)]]
        if order == "unstable":
            return draw.sample(rows, len(rows))
        return sorted(rows, key=lambda row: getattr(row, order.strip("-")), reverse=order.startswith("-"))

    def _size(self, limit: int) -> int:
        drawn = self._drawn
        if drawn.limit == "ignored":
            return drawn.cap
        if drawn.limit == "capped" or self.requests >= drawn.capped_from:
            return min(limit, drawn.cap)
        return STEPS[bisect_right(STEPS, limit) - 1] if drawn.limit == "stepped" else limit

    def _numbered_page(self, query: dict[str, str]) -> httpx.Response:
        drawn, page = self._drawn, max(1, int(query["page"]))
        rows, stride = self._state(page, drawn.order), self._size(int(query["limit"]))
        is_shrunk = self._draw.random() < drawn.shrunk
        half = max(1, stride // 2)
        stride = half if is_shrunk and drawn.is_shifted else stride
        pages = max(1, -(-len(rows) // stride))
        if page > pages:
            if drawn.end == "status_404":
                return httpx.Response(404, json={"errors": []})
            page = {"repeat": pages, "wrap": (page - 1) % pages + 1}.get(drawn.end, page)
        begin, size = (page - 1) * stride, half if is_shrunk and page < pages else stride
        values = dict(zip(PAGINATION, (page, pages, len(rows) + drawn.deleted, page > 1, page < pages), strict=True))
        members = {name: values[name] for name in drawn.pagination}
        return self._response(rows[begin : begin + size], {"pagination": members} if members else {})

    def _cursor_page(self, query: dict[str, str]) -> httpx.Response:
        drawn = self._drawn
        number, _, after = query.get("startingAfter", "0:0").partition(":")
        if drawn.cursor == "snapshot" and "startingAfter" in query:
            rows = self._snapshots[int(number)]
        else:
            rows = self._state(0, "id" if drawn.cursor in ("offset", "snapshot") else drawn.cursor)
            self._snapshots.append(rows)
            number = str(len(self._snapshots) - 1)
        by_value = drawn.cursor in ("id", "changed")
        begin = sum(getattr(row, drawn.cursor) <= int(after) for row in rows) if by_value else int(after)
        size = self._size(int(query["limit"]))
        end = begin + (max(1, size // 2) if self._draw.random() < drawn.shrunk else size)
        if end >= len(rows):
            return self._response(rows[begin:], {"hasMore": False, "nextCursor": None})
        position = getattr(rows[end - 1], drawn.cursor) if by_value else end
        return self._response(rows[begin:end], {"hasMore": True, "nextCursor": f"{number}:{position}"})

    def _response(self, rows: list[Record], members: dict[str, Any]) -> httpx.Response:
        records = [{"id": row.id, "name": "A"} for row in rows]
        return httpx.Response(200, json={LISTS[self._drawn.resource].rows_field: records, **members})


def platform_seed(seed: int) -> Outcome:
    drawn = PlatformSeed.drawn(seed)
    platform = UnusualPlatform(seed, drawn)
    family = LISTS[drawn.resource].family
    key = LEGACY_KEY if family == "legacy" else V1_KEY
    with (
        tempfile.TemporaryDirectory(prefix="walk-", dir=MEMORY) as name,
        inline(),
        mock.patch.object(page_files, "CHECK_ROWS", 1000),
    ):
        folder = Path(name)
        known = IdHashes(folder / "known.ids")
        known.append(hash_ids(pa.chunked_array([[str(row.id) for row in platform.states[-1]]], pa.string())))
        spools = SpoolFolder(folder / "spool", {"list": drawn.resource}, key)
        with Client(family, "http://127.0.0.1:9", key, transport=platform) as client:
            options = WalkOptions(drawn.page_limit, window=drawn.window, known_ids=known, known_gap=drawn.known_gap)
            result = walk(drawn.resource, client, folder / "files", spools, options)
        problems = list(_judge(result, platform))
    return Outcome({result.verdict: 1, "requests": platform.requests}, problems)


def _judge(result: ListResult, platform: UnusualPlatform) -> Iterator[str]:
    if result.verdict == "incomplete":
        if result.error is None or result.error.exit_code < 3:
            yield f"internal error: {result.error}"
        return
    files = result.files.get(result.resource, [])
    ids = [int(row["id"]) for path, _ in files for row in pq.read_table(path, columns=["id"]).to_pylist()]
    states = [{row.id for row in state} for state in platform.states]
    always = set.intersection(*states)
    if len(ids) != len(set(ids)):
        yield "rows are doubled"
    if not set(ids) <= set.union(*states):
        yield "rows are invented"
    if result.verdict == "complete" and not always <= set(ids):
        yield f"false complete: {len(always - set(ids))} of {len(always)} rows are missing"
