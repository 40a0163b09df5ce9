"""All pages of both lists over bare sockets: the contender `requests`, and the floor's way to its bytes.

The protocol says how many requests there are, and which must wait for which: the orders are one chain of cursors, the
pages of customers may be asked for ahead. Nothing is parsed here but lengths, ends and cursors.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

LIMIT = 100
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_CURSOR = re.compile(rb'"nextCursor":"([^"]+)"')
_TAIL = 300
_EMPTY_PAGE = 40


class Connection:
    """One kept-alive connection to the platform that the environment names."""

    def __init__(self) -> None:
        address = urlsplit(os.environ["SOURCES__LEGACY__BASE_URL"])
        self._head = (
            f"HTTP/1.1\r\nHost: {address.netloc}\r\n"
            f"api-key: {os.environ['SOURCES__LEGACY__API_KEY']}\r\n"
            f"Authorization: Bearer {os.environ['SOURCES__PUBLIC_V1__API_KEY']}\r\n\r\n"
        )
        self._socket = socket.create_connection((address.hostname or "", address.port or 80))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get(self, target: str) -> bytes:
        """The body of an answer; raises where it is no 200."""
        self._socket.sendall(f"GET {target} {self._head}".encode())
        got = bytearray()
        while (end := got.find(b"\r\n\r\n")) < 0:
            got += self._received()
        length = _LENGTH.search(got, 0, end + 2)
        if not got.startswith(b"HTTP/1.1 200") or length is None:
            raise RuntimeError(f"{target}: {bytes(got[:200])!r}")
        whole = end + 4 + int(length[1])
        while len(got) < whole:
            got += self._received()
        return bytes(memoryview(got)[end + 4 : whole])

    def _received(self) -> bytes:
        part = self._socket.recv(1 << 18)
        if not part:
            raise RuntimeError("the platform closed the connection")
        return part


def customers(first: int = 1, step: int = 1) -> Iterator[bytes]:
    """Every `step`th page of customers, up to the first one that is empty."""
    connection = Connection()
    page = first
    while len(body := connection.get(f"/customers?page={page}&limit={LIMIT}")) > _EMPTY_PAGE:
        yield body
        page += step


def orders() -> Iterator[bytes]:
    """The pages of orders, along their cursors."""
    connection = Connection()
    target = f"/public/v1/orders?limit={LIMIT}"
    after: str | None = ""
    while after is not None:
        body = connection.get(f"{target}{after}")
        yield body
        cursor = _CURSOR.search(body, max(len(body) - _TAIL, 0))
        after = f"&startingAfter={cursor[1].decode()}" if cursor else None


def main(window: int) -> None:
    """Fetches everything and keeps nothing, with as many pages of customers in flight as a pull has."""
    with ThreadPoolExecutor(window + 1) as pool:
        lists = [orders(), *(customers(1 + n, window) for n in range(window))]
        pages = sum(pool.map(lambda bodies: sum(1 for _ in bodies), lists))
    print(f"{pages} pages")


if __name__ == "__main__":
    main(int(sys.argv[1]))
