"""The contenders `requests` and `floor`: the least that has to be done, with nothing kept for the day of a failure.

`requests` fetches all pages over bare sockets and parses nothing but ends and cursors; `floor` has batches of pages
parsed by pyarrow, with the schema of the first batch, and puts them into DuckDB, a thread per list.

The protocol forces how many requests there are, and which must wait for which: the orders are one chain of cursors, the
pages of customers may be requested ahead. No retries, no proof, no unknown fields, no file that changes as a whole.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from threading import Lock
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pajson

LIMIT = 100
BATCH_PAGES = 100
_CURSOR = re.compile(rb'"nextCursor":"([^"]+)"')
_TAIL = 300
_EMPTY_PAGE = 40
_CHILDREN = {"customers": ("documents", "customer_id"), "orders": ("lines", "order_id")}


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
        self._received = self._socket.makefile("rb", 1 << 18)

    def get(self, target: str) -> bytes:
        """The body of an answer; raises where it is no 200."""
        self._socket.sendall(f"GET {target} {self._head}".encode())
        status, *lines = iter(self._received.readline, b"\r\n")
        if b" 200 " not in status:
            raise RuntimeError(f"{target}: {status!r}")
        length = next(line for line in lines if line.lower().startswith(b"content-length:"))
        body: bytes = self._received.read(int(length.partition(b":")[2]))
        return body


def customers(first: int = 1, step: int = 1) -> Iterator[bytes]:
    """Every `step`th page of customers, up to the first one that is empty."""
    connection, page = Connection(), first
    while len(body := connection.get(f"/customers?page={page}&limit={LIMIT}")) > _EMPTY_PAGE:
        yield body
        page += step


def orders() -> Iterator[bytes]:
    connection, after = Connection(), ""
    while True:
        body = connection.get(f"/public/v1/orders?limit={LIMIT}{after}")
        yield body
        if (cursor := _CURSOR.search(body, max(len(body) - _TAIL, 0))) is None:
            return
        after = f"&startingAfter={cursor[1].decode()}"


def requests(window: str) -> int:
    """Fetches everything and keeps nothing, with as many pages of customers in flight as a pull has; counts pages."""
    with ThreadPoolExecutor(int(window) + 1) as pool:
        lists = [orders(), *(customers(1 + n, int(window)) for n in range(int(window)))]
        return sum(pool.map(lambda bodies: sum(1 for _ in bodies), lists))


def _flat(rows: pa.Table) -> pa.Table:
    while any(pa.types.is_struct(field.type) for field in rows.schema):
        rows = rows.flatten()
    names = [
        re.sub(r"([A-Z])", r"_\1", name).lower().replace(".", "__") for name in rows.column_names
    ]
    return rows.rename_columns(names)


def tables(
    name: str, bodies: list[bytes], schema: pa.Schema | None
) -> tuple[dict[str, pa.Table], pa.Schema]:
    """The rows of a list and of its children from some pages, and the schema for the next ones."""
    text, (child, parent) = b"\n".join(bodies), _CHILDREN[name]
    parsed = pajson.read_json(
        pa.BufferReader(text),
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pajson.ParseOptions(
            schema, unexpected_field_behavior="ignore" if schema else "infer"
        ),
    ).select(["data"])
    rows = pa.Table.from_struct_array(pc.list_flatten(parsed["data"].combine_chunks()))
    nested = rows[child].combine_chunks()
    children = _flat(pa.Table.from_struct_array(pc.list_flatten(nested)))
    ids = rows["id"].take(pc.list_parent_indices(nested))
    made = {
        name: _flat(rows.drop_columns([child])),
        f"{name}__{child}": children.append_column(parent, ids),
    }
    return made, parsed.schema


def floor(file: str) -> None:
    """Fills the file: of each list one batch is requested while the one before it is parsed and inserted."""
    lock = Lock()

    def fill(name: str, pages: Iterator[bytes]) -> None:
        schema = None
        with ThreadPoolExecutor(1) as requesting:
            waiting = requesting.submit(lambda: list(islice(pages, BATCH_PAGES)))
            while batch := waiting.result():
                waiting = requesting.submit(lambda: list(islice(pages, BATCH_PAGES)))
                is_first = schema is None
                parsed, schema = tables(name, batch, schema)
                with lock:
                    for table, rows in parsed.items():
                        connection.register("batch", rows)
                        into = (
                            f"CREATE TABLE {table} AS"
                            if is_first
                            else f"INSERT INTO {table} BY NAME"
                        )
                        connection.execute(f"{into} FROM batch")

    with duckdb.connect(file) as connection, ThreadPoolExecutor(2) as pool:
        for task in [
            pool.submit(fill, "customers", customers()),
            pool.submit(fill, "orders", orders()),
        ]:
            task.result()
