"""DuckDB with one thread: in a run of some dozen rows, waking the others is a fifth of the CPU.

Commands that are started as a person starts them, such as those of the tutorial and the crontab, and benchmarks have as
many as the machine.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import duckdb

connect = duckdb.connect


@wraps(connect)
def connect_with_one_thread(
    database: object = ":memory:", read_only: bool = False, config: dict[str, Any] | None = None
) -> duckdb.DuckDBPyConnection:
    return connect(database, read_only=read_only, config={"threads": 1, **(config or {})})  # type: ignore[arg-type]


duckdb.connect = connect_with_one_thread
