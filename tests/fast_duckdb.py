"""DuckDB for some dozen rows: with one thread, without compression, and in the smallest blocks.

Waking the other threads is a fifth of the CPU of a run, and trying each way to compress each column half of that of a
checkpoint. With blocks of 256 KiB, a small warehouse is ten times as large. A file keeps the blocks that it was made
with. Commands that are started as a person starts them, such as those of the tutorial and the crontab, and
benchmarks have what DuckDB has.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, Final

import duckdb

SETTINGS: Final[dict[str, Any]] = {
    "threads": 1,
    "force_compression": "uncompressed",
    "default_block_size": "16384",
}
connect = duckdb.connect


@wraps(connect)
def connect_for_few_rows(
    database: object = ":memory:", read_only: bool = False, config: dict[str, Any] | None = None
) -> duckdb.DuckDBPyConnection:
    return connect(database, read_only=read_only, config={**SETTINGS, **(config or {})})  # type: ignore[arg-type]


duckdb.connect = connect_for_few_rows
