"""Quarantined rows cost little: a platform may send hundreds of thousands."""

from __future__ import annotations

from time import process_time

import duckdb

from pipelines.warehouse import ops
from sources.contract import CUSTOMER
from sources.decode.documented import decode
from sources.decode.rows import Page
from sources.extract.result import ListResult


def test_quarantined_rows_cost_little() -> None:
    rows = b",".join(b'{"id":%d,"email":true,"documents":[{"number":"%d"}]}' % (n, n) for n in range(100))
    pages = [Page(number, b"[" + rows + b"]") for number in range(1, 201)]
    connection = duckdb.connect()
    ops.create_missing(connection)
    started = process_time()
    result = ListResult("customers", quarantined=decode(CUSTOMER, pages).quarantined)
    ops.record_coverage(connection, "run", result, published=True)
    assert process_time() - started < 3  # 6 s with a statement for each row
    sql = "SELECT count(*), min(page), max(page), max(position), any_value(reason) FROM ops.quarantine"
    assert connection.execute(sql).fetchall() == [(20_000, 1, 200, 100, "email: expected string, found boolean")]
