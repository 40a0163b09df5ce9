"""The project's own checks: each `checks/NAME.sql` is a SELECT of wrong rows, which become findings.

In: the files, and a build whose reconciled tables and views are made. Out: findings of the rule `check_NAME`, with the
memory, acceptance and exit code of all others. A check runs in a database of its own in memory, with copies of the
tables that it names: it reaches no file and no network, and what it does to memory or time ends the check alone.

    -- Orders above 10,000 without a customer
    -- severity: warning
    -- entity: orders
    SELECT order_id FROM bi.orders WHERE total > 10000 AND customer_id IS NULL
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import duckdb
import pandas as pd
import pyarrow as pa

from orderbridge.pipelines.warehouse.sql import failure_words, is_one_select, sql_name
from orderbridge.sources.disk import unreadable
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.ownership import check_private
from orderbridge.sources.settings.root import find_root
from orderbridge.transforms.findings import FINDINGS, combine_findings, table_finding
from orderbridge.transforms.frames import from_arrow
from orderbridge.transforms.rules import OWN_CHECK, SEVERITIES, Severity

FOLDER: Final = "checks"
"""Of the project."""
ROWS_MAX: Final = 10_000
"""Rows of a check that become findings; what is beyond is one finding."""
SECONDS_MAX: Final = 60
"""For one check, with the copies of its tables."""
MEMORY_MB_MAX: Final = 1000
"""Of a check; what does not fit is written next to the build as far as DuckDB can."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,59}")
_ENTITY: Final = re.compile(r"[a-z][a-z0-9_]{0,59}")
_IS_THERE: Final = """
    SELECT 1 FROM information_schema.tables
    WHERE table_catalog = current_database() AND table_schema = $1 AND table_name = $2"""
_DEFAULT_ENTITY: Final = "checks"
_HEADER: Final = re.compile(r"--\s*(severity|entity)\s*:\s*(.*)")
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": f"{MEMORY_MB_MAX}MB",
    "threads": 2,
}


@dataclass(frozen=True, slots=True)
class OwnCheck:
    """A file of the folder.

    Attributes:
        name: of the file, without its ending.
        sql: the text of the file.
        description: its first comment that is no setting; empty if there is none.
        entity: the table that the ids of its rows are of.
        severity: of its findings.
        problem: why it cannot be run; empty if it can be tried.
    """

    name: str
    sql: str = ""
    description: str = ""
    entity: str = _DEFAULT_ENTITY
    severity: Severity = "error"
    problem: str = ""


def read_checks() -> list[OwnCheck]:
    """The checks of the project, by name; none without a folder `checks`. Raises UsageError, see `check_private`."""
    folder = find_root() / FOLDER
    files = sorted(folder.glob("*.sql"))
    if files:
        check_private(folder)
    return [_read(file) for file in files]


def _read(file: Path) -> OwnCheck:
    check_private(file)
    try:
        text = file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        return OwnCheck(file.stem, problem="it is not UTF-8")
    except OSError as error:
        raise unreadable(file, error) from None
    return _parsed(file.stem, text)


def _parsed(name: str, text: str) -> OwnCheck:
    """A check by the comments above its statement."""
    given = {"severity": "error", "entity": _DEFAULT_ENTITY}
    description = ""
    for line in text.splitlines():
        if line.strip() and not line.startswith("--"):
            break
        if header := _HEADER.match(line):
            given[header[1]] = header[2].strip()
        elif not description:
            description = line.removeprefix("--").strip()
    problem = ""
    if not _NAME.fullmatch(name):
        problem = "its name has other characters than a-z, 0-9 and _"
    elif given["severity"] not in SEVERITIES:
        problem = f"its severity is none of {', '.join(SEVERITIES)}"
    elif not _ENTITY.fullmatch(given["entity"]):
        problem = "its entity is not the name of a table, such as orders"
    if problem:
        return OwnCheck(name, problem=problem)
    severity = cast(Severity, given["severity"])
    return OwnCheck(name, text, description, given["entity"], severity)


def check_findings(
    build: duckdb.DuckDBPyConnection, checks: Sequence[OwnCheck], folder: Path
) -> pd.DataFrame:
    """The findings of all checks (the columns of `FINDINGS`); one that cannot run is a finding too.

    Args:
        build: with the tables and views; nothing is changed in it.
        checks: to run.
        folder: where DuckDB may write what does not fit into memory.
    """
    return combine_findings([_findings_of(build, check, folder) for check in checks])


def _findings_of(build: duckdb.DuckDBPyConnection, check: OwnCheck, folder: Path) -> pd.DataFrame:
    if check.problem:
        return _cannot_run(check, check.problem)
    try:
        ids = _wrong_ids(build, check, folder)
    except duckdb.InterruptException:
        return _cannot_run(check, f"it took more than {SECONDS_MAX} seconds")
    except duckdb.Error as error:
        return _cannot_run(check, failure_words(error))
    except UsageError as error:
        return _cannot_run(check, error.message)
    return _rows(check, ids)


def _cannot_run(check: OwnCheck, why: str) -> pd.DataFrame:
    file = f"{FOLDER}/{check.name}.sql"
    return table_finding("checks", "cannot_run", f"{file}: {why}", subject=file)


def _wrong_ids(build: duckdb.DuckDBPyConnection, check: OwnCheck, folder: Path) -> list[str | None]:
    """The first column of the rows of a check, as text, and one more than are listed."""
    own = folder / f"check-{check.name}"
    with duckdb.connect(":memory:", config={**_CONFIG, "temp_directory": str(own)}) as memory:
        memory.execute("SET TimeZone = 'UTC'")
        if not is_one_select(memory, check.sql):
            raise UsageError("it is not one SELECT")
        with _time_limit(memory):
            for schema, table in _tables_named(memory, check.sql):
                _copy_table(build, memory, schema, table)
            rows = memory.execute(check.sql).fetchmany(ROWS_MAX + 1)
    return [None if row[0] is None else str(row[0]) for row in rows]


@contextmanager
def _time_limit(memory: duckdb.DuckDBPyConnection) -> Iterator[None]:
    timer = threading.Timer(SECONDS_MAX, memory.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _tables_named(memory: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[str, str]]:
    """Schema and name of each table in a SELECT; names of its own WITH have no schema."""
    ((tree,),) = memory.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    found: set[tuple[str, str]] = set()
    nodes: list[object] = [json.loads(tree)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes += node
        elif isinstance(node, dict):
            nodes += node.values()
            if node.get("type") == "BASE_TABLE":
                found.add((node["schema_name"], node["table_name"]))
    return sorted(found)


def _copy_table(
    build: duckdb.DuckDBPyConnection, memory: duckdb.DuckDBPyConnection, schema: str, table: str
) -> None:
    """Copies a table or view of the build. Where there is none, the check fails with DuckDB's own words."""
    is_there = build.execute(_IS_THERE, [schema, table]).fetchone()
    if is_there is None:
        return
    rows = build.sql(f"FROM {sql_name(schema, table)}").to_arrow_reader()
    memory.execute(f"CREATE SCHEMA IF NOT EXISTS {sql_name(schema)}")
    memory.register("source_rows", rows)
    memory.execute(f"CREATE TABLE {sql_name(schema, table)} AS FROM source_rows")
    memory.unregister("source_rows")


def _rows(check: OwnCheck, ids: Sequence[str | None]) -> pd.DataFrame:
    rule = OWN_CHECK + check.name
    detail = check.description or f"{FOLDER}/{check.name}.sql"
    details = [detail] * len(ids)
    listed = list(ids)
    if len(ids) > ROWS_MAX:
        listed[ROWS_MAX] = None
        details[ROWS_MAX] = f"{detail}: more than {ROWS_MAX} rows, of which these are the first"
    columns = {
        "entity": [check.entity] * len(ids),
        "entity_id": listed,
        "rule": [rule] * len(ids),
        "severity": [check.severity] * len(ids),
        "detail": details,
        "subject": [None] * len(ids),
    }
    return from_arrow(pa.table(columns, schema=pa.schema(list(FINDINGS.items()))))
