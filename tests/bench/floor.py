"""The contenders `requests` and `floor`: the least that has to be done, with nothing kept for the day of a failure.

    python -m tests.bench.floor requests WINDOW     all pages over bare sockets; nothing is parsed but ends and cursors
    python -m tests.bench.floor FILE                batches of pages parsed by pyarrow with a declared schema, and put
                                                    into DuckDB, a thread per list

The protocol forces how many requests there are, and which must wait for which: the orders are one chain of cursors, the
pages of customers may be requested ahead. No retries, no proof, no unknown fields, no file that changes as a whole.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pajson

LIMIT = 100
BATCH_PAGES = 100
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


def requests(window: int) -> None:
    """Fetches everything and keeps nothing, with as many pages of customers in flight as a pull has."""
    with ThreadPoolExecutor(window + 1) as pool:
        lists = [orders(), *(customers(1 + n, window) for n in range(window))]
        print(sum(pool.map(lambda bodies: sum(1 for _ in bodies), lists)), "pages")


def _struct(texts: str, **others: Any) -> Any:
    return pa.struct({**dict.fromkeys(texts.split(), pa.string()), **others})


_NAMED_RATE = _struct("name", rate=pa.float64())
_DOCUMENT = _struct("number fiscalName fiscalAddress email", isDefault=pa.bool_(), forTaxes=pa.bool_())
_LINE = _struct(
    "sku name", position=pa.int64(), quantity=pa.float64(), unitPrice=pa.float64(), taxes=pa.list_(_NAMED_RATE),
    discount=_NAMED_RATE,
)  # fmt: skip
_ADDRESS = _struct("line", divisions=_struct("level1 level2"), coordinates=pa.list_(pa.float64()))
_RECORDS = {
    "customers": _struct(
        "firstName lastName phone email loginCode createdAt erpCode birthdate",
        id=pa.int64(), priceListId=pa.int64(), documents=pa.list_(_DOCUMENT),
    ),
    "orders": _struct(
        "id status createdAt currency notes", number=pa.int64(), total=pa.float64(),
        customer=_struct("erpCode", id=pa.int64()), shipping=_struct("method", address=_ADDRESS), lines=pa.list_(_LINE),
    ),
}  # fmt: skip
_CHILDREN = {"customers": "documents", "orders": "lines"}
_COLUMNS = {
    "customers": "id, firstName first_name, lastName last_name, phone, email, loginCode login_code, "
    "createdAt created_at, priceListId price_list_id, erpCode erp_code, birthdate::DATE birthdate",
    "customers__documents": "parent customer_id, number, fiscalName fiscal_name, fiscalAddress fiscal_address, email, "
    "isDefault is_default, forTaxes for_taxes",
    "orders": "id, number, status, createdAt created_at, currency, total, customer.id customer__id, "
    "customer.erpCode customer__erp_code, shipping.method shipping__method, shipping.address shipping__address, notes",
    "orders__lines": "parent order_id, position, sku, name, quantity, unitPrice unit_price, taxes, "
    "discount.name discount__name, discount.rate discount__rate",
}


def tables(name: str, bodies: list[bytes]) -> dict[str, pa.Table]:
    text, child = b"\n".join(bodies), _CHILDREN[name]
    schema = pa.schema([("data", pa.list_(_RECORDS[name]))])
    parsed = pajson.read_json(
        pa.BufferReader(text),
        read_options=pajson.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    parents = pa.Table.from_struct_array(pc.list_flatten(parsed["data"].combine_chunks()))
    nested = parents[child].combine_chunks()
    children = pa.Table.from_struct_array(pc.list_flatten(nested))
    ids = parents["id"].take(pc.list_parent_indices(nested))
    return {name: parents.drop_columns([child]), f"{name}__{child}": children.append_column("parent", ids)}


def floor(file: str) -> None:
    """Fills the file: of each list one batch is requested while the one before it is parsed and inserted."""
    lock, made = Lock(), set[str]()

    def fill(name: str, pages: Iterator[bytes]) -> None:
        def upcoming() -> list[bytes]:
            return list(islice(pages, BATCH_PAGES))

        with ThreadPoolExecutor(1) as requesting:
            waiting = requesting.submit(upcoming)
            while batch := waiting.result():
                waiting = requesting.submit(upcoming)
                parsed = tables(name, batch)
                with lock:
                    for table, rows in parsed.items():
                        connection.register("batch", rows)
                        into = f"INSERT INTO {table}" if table in made else f"CREATE TABLE {table} AS"
                        connection.execute(f"{into} SELECT {_COLUMNS[table]} FROM batch")
                        made.add(table)

    with duckdb.connect(file) as connection, ThreadPoolExecutor(2) as pool:
        for task in [pool.submit(partial(fill, "customers", customers())), pool.submit(fill, "orders", orders())]:
            task.result()


if __name__ == "__main__":
    if sys.argv[1] == "requests":
        requests(int(sys.argv[2]))
    else:
        floor(sys.argv[1])
