"""A platform in memory, for walks without sockets: lists paged by number, with drift and every ending."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from sources.errors import HttpRejected
from sources.http.exchange import Response

T = TypeVar("T")


@dataclass
class Platform:
    """Serves `/customers` by page and limit; `drift` is the chance of a change before each answer."""

    ids: list[int]
    ending: str = "empty_page"
    cap: int | None = None
    fixed: int | None = None
    first_page: int = 1
    pagination: bool = False
    drift: float = 0.0
    random: Random = field(default_factory=lambda: Random(1))
    requests: list[Mapping[str, Any]] = field(default_factory=list)
    before: Callable[[Platform], None] | None = None
    total_moves: bool = False
    deleted: int = 0
    """Rows that `total` counts and no page has."""

    def __post_init__(self) -> None:
        self.always = set(self.ids)
        self.ever = set(self.ids)
        self._next = max(self.ids, default=0) + 1

    def row(self, key: int) -> dict[str, Any]:
        return {"id": key, "firstName": f"Zoë {key}", "documents": [{"number": str(key)}] * (key % 3)}

    def move(self) -> None:
        if self.random.random() >= self.drift:
            return
        if self.random.random() < 0.5 and self.ids:
            gone = self.ids.pop(self.random.randrange(len(self.ids)))
            self.always.discard(gone)
        else:
            self.ids.insert(self.random.randrange(len(self.ids) + 1), self._next)
            self.ever.add(self._next)
            self._next += 1

    def get(self, path: str, params: Mapping[str, Any], *, check: Callable[[bytes], T]) -> tuple[T, Response]:
        self.requests.append(dict(params))
        if self.before is not None:
            self.before(self)
        self.move()
        size = self.fixed or min(int(params["limit"]), self.cap or 10**9)
        page = int(params["page"]) - self.first_page
        pages = max(1, -(-len(self.ids) // size))
        if self.ending == "repeat_last":
            page = min(page, pages - 1)
        elif self.ending.startswith("status") and (page >= pages or page < 0):
            status = int(self.ending.removeprefix("status_"))
            raise HttpRejected("refused", family="legacy", verb="GET", path=path, status=status)
        chosen = self.ids[page * size : (page + 1) * size] if page >= 0 else []
        body: dict[str, Any] = {"data": [self.row(key) for key in chosen]}
        if self.pagination:
            body["pagination"] = {
                "page": int(params["page"]),
                "pages": pages,
                "total": len(self.ids) + self.deleted + (len(self.requests) if self.total_moves else 0),
                "hasPrevPage": page > 0,
                "hasNextPage": page + 1 < pages,
            }
        raw = json.dumps(body).encode()
        return check(raw), Response(200, raw)
