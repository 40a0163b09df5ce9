"""A platform whose answer to each write is decided beforehand, so that a ledger gets every state.

In: lists of records, and an answer for a word in the body of a write. Out: a server on loopback that counts what was
applied. Unlike the sandbox it is one fixed thing: a change of the sandbox must not change what an old project is.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Literal
from urllib.parse import parse_qs, urlsplit

LEGACY_KEY: Final = "an-old-project"
V1_KEY: Final = "brand_test_anoldproject"
Answer = Literal["applied", "lost", "vanished", "rejected", "silent"]
"""What a write gets. `lost`: applied, without a response. `vanished`: neither. `silent`: applied, and no response while
the client waits."""
Record = dict[str, Any]
_PAGES: Final = ("customers", "promotions")
_PATIENCE_S: Final = 300
_WORD: Final = re.compile(r"[\w-]+")


class Platform(ThreadingHTTPServer):
    """The lists, the answers, and what was applied.

    Attributes:
        lists: the records of each list of the interface, in order.
        answers: the answer to a write, by a word of its body or path; the others are applied.
        applied: how often each write was applied, by its path and body.
        silent: is set when a write waits for a response that does not come.
    """

    daemon_threads = True

    def __init__(self, lists: Mapping[str, list[Record]], address: tuple[str, int]) -> None:
        super().__init__(address, _Handler)
        self.lists = {name: list(records) for name, records in lists.items()}
        self.answers: dict[str, Answer] = {}
        self.applied: Counter[tuple[str, str]] = Counter()
        self.silent = threading.Event()
        self.ended = threading.Event()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"

    def answer(self, path: str, body: str) -> Answer:
        """The answer decided for a write."""
        words = _WORD.findall(f"{path} {body}")
        return next((self.answers[word] for word in words if word in self.answers), "applied")

    def apply(self, path: str, body: str) -> None:
        """Applies a write: a created customer is listed."""
        with self.lock:
            self.applied[path, body] += 1
            if path == "/customers":
                self.add_customer(json.loads(body))

    def add_customer(self, body: Record) -> None:
        """Lists a customer with the next id."""
        fields = {name: body[name] for name in body if name not in ("password", "notification")}
        highest = max((row["id"] for row in self.lists["customers"]), default=0)
        created = {"createdAt": "2024-11-20T08:00:00Z", "priceListId": 1, "documents": []}
        self.lists["customers"].append({"id": highest + 1, **created, **fields})


class _Handler(BaseHTTPRequestHandler):
    server: Platform
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 # the base class's name
        """Requests are not printed."""

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(target.query).items()}
        name = target.path.rsplit("/", 1)[-1]
        with self.server.lock:
            if name in _PAGES:
                self._send(200, self._page(name, query))
            elif name == "whoami":
                self._send(200, {"organization": "org-1", "environment": "SANDBOX", "scopes": []})
            elif name == "orders":
                self._send(200, self._cursor_page(query))
            else:
                self._send(200, {"priceLists": self.server.lists["price_lists"]})

    def _page(self, name: str, query: Mapping[str, str]) -> Record:
        rows = self.server.lists[name]
        page = int(query.get("page", "1"))
        limit = int(query.get("limit", "20"))
        pages = -(-len(rows) // limit)
        pagination = {
            "page": page,
            "pages": pages,
            "total": len(rows),
            "hasPrevPage": page > 1,
            "hasNextPage": page < pages,
        }
        return {"data": rows[(page - 1) * limit : page * limit], "pagination": pagination}

    def _cursor_page(self, query: Mapping[str, str]) -> Record:
        rows, begin = self.server.lists["orders"], int(query.get("startingAfter", "0"))
        end = begin + int(query.get("limit", "20"))
        has_more = end < len(rows)
        cursor = str(end) if has_more else None
        return {"data": rows[begin:end], "hasMore": has_more, "nextCursor": cursor}

    def do_POST(self) -> None:
        self._write(201, {"id": len(self.server.applied) + 1})

    def do_PATCH(self) -> None:
        self._write(204, None)

    def _write(self, status: int, content: Record | None) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answer = self.server.answer(self.path, body)
        if answer in ("applied", "lost", "silent"):
            self.server.apply(self.path, body)
        if answer == "silent":
            self.server.silent.set()
            self.server.ended.wait()
        if answer == "rejected":
            self._send(422, {"errors": [{"message": "not accepted", "code": 1009}]})
        elif answer == "applied":
            self._send(status, content)
        else:
            self.close_connection = True

    def _send(self, status: int, content: Record | None) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serve(
    lists: Mapping[str, list[Record]], address: tuple[str, int] = ("127.0.0.1", 0)
) -> Iterator[Platform]:
    """Serves while the block runs, at a free port by default."""
    with _bound(lists, address) as platform:
        thread = threading.Thread(target=platform.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield platform
        finally:
            platform.ended.set()
            platform.shutdown()
            thread.join()


def _bound(lists: Mapping[str, list[Record]], address: tuple[str, int]) -> Platform:
    """A platform at an address, which another process may use for a while."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return Platform(lists, address)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
