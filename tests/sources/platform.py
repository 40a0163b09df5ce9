"""Platforms in memory, for walks without sockets: lists paged by number, with every ending; by a cursor."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet as pq

from orderbridge.sources.errors import HttpRejected, Unreachable
from orderbridge.sources.extract.result import ListResult, WalkOptions
from orderbridge.sources.extract.spool import SpoolFolder
from orderbridge.sources.extract.walk import walk
from orderbridge.sources.http.exchange import Response
from orderbridge.sources.http.failures import BrokenBody

T = TypeVar("T")
Row = dict[str, Any]


def walked(platform: Any, folder: Path, resource: str = "customers", **options: Any) -> ListResult:
    spools = SpoolFolder(folder / "spool", {"list": resource})
    return walk(resource, platform, folder / "files", spools, WalkOptions(**options))


def rows_of(result: ListResult, table: str) -> list[Row]:
    return [row for path, _ in result.files[table] for row in pq.read_table(path).to_pylist()]


def ids(result: ListResult, table: str = "customers", column: str = "id") -> list[str]:
    return [row[column] for row in rows_of(result, table)]


def rejected(status: int) -> HttpRejected:
    return HttpRejected("refused", family="legacy", verb="GET", path="/customers", status=status)


@dataclass
class Platform:
    """Serves `/customers` by page and limit."""

    ids: list[int]
    ending: str = "empty_page"
    cap: int | None = None
    fixed: int | None = None
    first_page: int = 1
    pagination: bool = False
    requests: list[Mapping[str, Any]] = field(default_factory=list)
    before: Callable[[Platform], None] | None = None
    alter: Callable[[Mapping[str, Any], bytes], bytes] | None = None
    row: Callable[[int], Row] = lambda key: {
        "firstName": f"Zoë {key}",
        "documents": [{"number": "1"}] * (key % 3),
    }
    total_moves: bool = False
    deleted: int = 0
    is_throttled: bool = False

    def get(
        self,
        path: str,
        params: Mapping[str, Any],
        *,
        check: Callable[[bytes], T],
        is_probe: bool = False,
    ) -> tuple[T, Response]:
        self.requests.append(dict(params))
        if self.before is not None:
            self.before(self)
        size = self.fixed or min(int(params["limit"]), self.cap or 10**9)
        page = int(params["page"]) - self.first_page
        pages = max(1, -(-len(self.ids) // size))
        if self.ending == "repeat_last":
            page = min(page, pages - 1)
        elif self.ending.startswith("status") and (page >= pages or page < 0):
            raise rejected(int(self.ending.removeprefix("status_")))
        chosen = self.ids[page * size : (page + 1) * size] if page >= 0 else []
        body: Row = {"data": [{"id": key, **self.row(key)} for key in chosen]}
        if self.pagination:
            body["pagination"] = {
                "page": int(params["page"]),
                "pages": pages,
                "total": len(self.ids)
                + self.deleted
                + (len(self.requests) if self.total_moves else 0),
                "hasPrevPage": page > 0,
                "hasNextPage": page + 1 < pages,
            }
        raw = json.dumps(body).encode()
        raw = self.alter(params, raw) if self.alter else raw
        return check(raw), Response(200, raw)


@dataclass
class Replies:
    """A platform whose response is made by a function of the query; stops a walk that does not end."""

    reply: Callable[[Mapping[str, Any]], bytes]
    requests: list[Mapping[str, Any]] = field(default_factory=list)
    most: int = 2_000
    is_throttled: bool = False

    def get(
        self,
        path: str,
        params: Mapping[str, Any],
        *,
        check: Callable[[bytes], T],
        is_probe: bool = False,
    ) -> tuple[T, Response]:
        self.requests.append(dict(params))
        assert len(self.requests) < self.most, "an endless walk"
        body = self.reply(params)
        try:
            return check(body), Response(200, body)
        except BrokenBody as error:
            raise Unreachable(
                f"the body is broken: {error}", family="legacy", verb="GET", path=path
            ) from None


@dataclass
class Orders:
    """Serves `/orders` by a cursor that counts rows; `rows` gives those of a reading (from 1) at its n-th request.

    `size` is the number of rows on each page, whatever limit is requested.
    """

    rows: Callable[[int, int], list[Row]]
    size: int | None = None
    reading: int = 0
    request: int = 0
    is_throttled: bool = False

    @classmethod
    def of(cls, *readings: list[Row], size: int | None = None) -> Orders:
        return cls(lambda reading, _: readings[min(reading, len(readings)) - 1], size)

    def get(
        self,
        path: str,
        params: Mapping[str, Any],
        *,
        check: Callable[[bytes], T],
        is_probe: bool = False,
    ) -> tuple[T, Response]:
        start, size = int(params.get("startingAfter", "0")), self.size or int(params["limit"])
        self.reading, self.request = (
            (self.reading, self.request + 1) if start else (self.reading + 1, 1)
        )
        rows = self.rows(self.reading, self.request)
        more = start + size < len(rows)
        envelope = {
            "data": rows[start : start + size],
            "hasMore": more,
            "nextCursor": str(start + size) if more else None,
        }
        raw = json.dumps(envelope).encode()
        return check(raw), Response(200, raw)
