"""The contender `floor`: the least that has to be done, with nothing kept for the day on which something goes wrong.

Bare sockets, a thread per list; batches of pages parsed by pyarrow with a declared schema, a thread per list; Arrow
straight into DuckDB. No retries, no proof, no unknown fields, no file that changes as a whole.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from queue import Queue
from threading import Thread
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as pajson

from tests.bench.fetch import customers, orders

PAGES = 100
"""Pages in a batch that is parsed at once."""
AHEAD = 2
"""Batches that wait for the next stage: memory does not grow with the list."""

_DOCUMENT = pa.struct(
    {
        **dict.fromkeys(("number", "fiscalName", "fiscalAddress", "email"), pa.string()),
        **dict.fromkeys(("isDefault", "forTaxes"), pa.bool_()),
    }
)
_CUSTOMER = pa.struct(
    {
        "id": pa.int64(),
        **dict.fromkeys(("firstName", "lastName", "phone", "email", "loginCode", "createdAt"), pa.string()),
        "priceListId": pa.int64(),
        **dict.fromkeys(("erpCode", "birthdate"), pa.string()),
        "documents": pa.list_(_DOCUMENT),
    }
)
_NAMED_RATE = pa.struct({"name": pa.string(), "rate": pa.float64()})
_LINE = pa.struct(
    {
        "position": pa.int64(),
        **dict.fromkeys(("sku", "name"), pa.string()),
        **dict.fromkeys(("quantity", "unitPrice"), pa.float64()),
        "taxes": pa.list_(_NAMED_RATE),
        "discount": _NAMED_RATE,
    }
)
_ADDRESS = pa.struct(
    {
        "line": pa.string(),
        "divisions": pa.struct({"level1": pa.string(), "level2": pa.string()}),
        "coordinates": pa.list_(pa.float64()),
    }
)
_ORDER = pa.struct(
    {
        "id": pa.string(),
        "number": pa.int64(),
        **dict.fromkeys(("status", "createdAt", "currency"), pa.string()),
        "total": pa.float64(),
        "customer": pa.struct({"id": pa.int64(), "erpCode": pa.string()}),
        "shipping": pa.struct({"method": pa.string(), "address": _ADDRESS}),
        "notes": pa.string(),
        "lines": pa.list_(_LINE),
    }
)

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


@dataclass(frozen=True)
class Listed:
    """A list: its name, its pages, the form of a record, and the field that becomes a child table."""

    name: str
    pages: Iterator[bytes]
    record: Any
    child: str

    def tables(self, bodies: list[bytes]) -> list[tuple[str, Any]]:
        """The Arrow tables of a batch of pages, by name."""
        text = b"\n".join(bodies)
        reported = pajson.read_json(
            pa.BufferReader(text),
            read_options=pajson.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=pajson.ParseOptions(
                explicit_schema=pa.schema([("data", pa.list_(self.record))]), unexpected_field_behavior="ignore"
            ),
        )
        rows = pc.list_flatten(reported["data"].combine_chunks())
        parents = pa.Table.from_struct_array(rows)
        nested = parents[self.child].combine_chunks()
        children = pa.Table.from_struct_array(pc.list_flatten(nested))
        ids = parents["id"].take(pc.list_parent_indices(nested))
        return [
            (self.name, parents.drop_columns([self.child])),
            (f"{self.name}__{self.child}", children.append_column("parent", ids)),
        ]


Parsed = Queue[list[tuple[str, Any]] | BaseException | None]


def fetched(of: Listed, batches: Queue[list[bytes] | BaseException | None]) -> None:
    """Thread: pages into batches."""
    try:
        batch: list[bytes] = []
        for body in of.pages:
            batch.append(body)
            if len(batch) == PAGES:
                batches.put(batch)
                batch = []
        if batch:
            batches.put(batch)
        batches.put(None)
    except BaseException as error:
        batches.put(error)


def parsed(of: Listed, batches: Queue[list[bytes] | BaseException | None], tables: Parsed) -> None:
    """Thread: batches into Arrow tables."""
    try:
        while isinstance(batch := batches.get(), list):
            tables.put(of.tables(batch))
        tables.put(batch)
    except BaseException as error:
        tables.put(error)


def main(file: str) -> None:
    """Fills the file."""
    lists = [Listed("customers", customers(), _CUSTOMER, "documents"), Listed("orders", orders(), _ORDER, "lines")]
    tables: Parsed = Queue(AHEAD)
    for of in lists:
        batches: Queue[list[bytes] | BaseException | None] = Queue(AHEAD)
        Thread(target=fetched, args=(of, batches), daemon=True).start()
        Thread(target=parsed, args=(of, batches, tables), daemon=True).start()
    running = len(lists)
    made: set[str] = set()
    with duckdb.connect(file) as connection:
        while running:
            item = tables.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                running -= 1
                continue
            for name, table in item:
                connection.register("batch", table)
                into = f"INSERT INTO {name}" if name in made else f"CREATE TABLE {name} AS"
                connection.execute(f"{into} SELECT {_COLUMNS[name]} FROM batch")
                connection.unregister("batch")
                made.add(name)


if __name__ == "__main__":
    main(sys.argv[1])
