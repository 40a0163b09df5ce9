"""The tables of the ledger, their version, and how older versions become the current one.

In: a connection. Out: its tables in the current version. `sent_at`, `doubt_at` and `state_at` of an operation are in
ledger time (`pipelines.ledger.clock`), all other times in wall time. What came first is decided by the number of its
commit (`recorded_in`, `confirmed_in`), not by a time.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections import defaultdict
from contextlib import closing
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec

from orderbridge.pipelines.ledger.folders import locate
from orderbridge.pipelines.ledger.keys import record_hash, salted
from orderbridge.sources.command_line import run_again
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.settings import find_root

VERSION: Final = 5
_CONVERTED: Final = (3, 4)
"""The versions that are converted: those of orderbridge 0.2."""
_COUNTS: Final = (
    ("ledger", "commits"),
    ("plans", "recorded_in"),
    ("plans", "pushes"),
    ("confirmed", "confirmed_in"),
)
"""Columns that version 3 and the first ledgers of version 4 lack: they counted neither commits nor pushes."""


_ADDED: Final = "IF NOT EXISTS"
_FIRST: Final = {"ledger", "plans", "operations", "claims", "confirmed"}
"""The tables of each ledger of this version."""


def ledger_version(connection: sqlite3.Connection, path: Path) -> int:
    """The version of a ledger; 0 for an empty database.

    Raises:
        UsageError: the database of another program, or a version that cannot be converted.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise UsageError(f"{path} is not a ledger", "Set LEDGER__PATH to the right file.")
    if version > VERSION:
        raise UsageError(
            f"{path} was written by a newer orderbridge (ledger version {version})",
            "Install that version or a newer one (in a checkout: git pull && make setup), "
            f"then {run_again()}",
        )
    if version not in (0, *_CONVERTED, VERSION):
        raise UsageError(
            f"{path} was written by orderbridge 0.1 (ledger version {version})",
            "Run `orderbridge status` of version 0.2 once, which converts it: docs/upgrade.md.",
        )
    return int(version)


def create_tables(connection: sqlite3.Connection) -> None:
    """Creates the tables in an empty database, or converts those of an older version, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    statements = (
        files("orderbridge.pipelines.ledger")
        .joinpath("tables.sql")
        .read_text("utf-8")
        .split(";")[:-1]
    )
    if version == 0:
        for statement in statements:
            connection.execute(statement)
        connection.execute("INSERT INTO ledger (salt) VALUES (?)", [secrets.token_bytes(32)])
    if version in _CONVERTED:
        _add_counts(connection)
        _name_paths(connection, statements)
        _claim_records(connection)
    for statement in statements:
        # to ledgers of this version too: an older orderbridge does not miss it
        if _ADDED in statement:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def has_tables(connection: sqlite3.Connection) -> bool:
    """Whether a ledger of this version has its tables, each with its columns; those that came later may be missing."""
    found = _columns(connection)
    needed = _needed_columns().items()
    return (
        all(columns <= found.get(table, columns) for table, columns in needed)
        and set(found) >= _FIRST
    )


@cache
def _needed_columns() -> dict[str, frozenset[str]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create_tables(connection)
        return _columns(connection)


def _columns(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """The columns of each table."""
    rows = connection.execute(
        "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'"
    )
    columns: dict[str, set[str]] = defaultdict(set)
    for table, column in rows:
        columns[table].add(column)
    return {table: frozenset(names) for table, names in columns.items()}


def _add_counts(connection: sqlite3.Connection) -> None:
    """Adds the missing counts. For the numbers of commits, microseconds are taken: they have the same order.

    Later commits follow them.
    """
    added: set[str] = set()
    for table, column in _COUNTS:
        columns = connection.execute("SELECT name FROM pragma_table_info(?)", [table])
        if (column,) not in columns.fetchall():
            connection.execute(
                f"ALTER TABLE {table} ADD COLUMN {column} INTEGER NOT NULL DEFAULT 0"
            )
            added.add(column)
    if "commits" not in added:
        return
    connection.execute("UPDATE plans SET recorded_in = CAST(opened_at * 1000000 AS INTEGER)")
    connection.execute(
        "UPDATE confirmed SET confirmed_in = CAST(confirmed_at * 1000000 AS INTEGER)"
    )
    connection.execute(
        "UPDATE ledger SET commits = 1 + max(coalesce((SELECT max(recorded_in) FROM plans), 0),"
        " coalesce((SELECT max(confirmed_in) FROM confirmed), 0))"
    )


def _name_paths(connection: sqlite3.Connection, statements: list[str]) -> None:
    """Stores confirmed values by path. Up to version 4, only variants had them, by the ids in their path."""
    (confirmed,) = (statement for statement in statements if "TABLE confirmed" in statement)
    connection.execute("ALTER TABLE confirmed RENAME TO confirmed_4")
    connection.execute(confirmed)
    connection.execute(
        "INSERT INTO confirmed SELECT host, '/products/' || product_id || '/variants/' || variant_id, field,"
        " value, confirmed_at, plan_id, confirmed_in FROM confirmed_4"
    )
    connection.execute("DROP TABLE confirmed_4")


def _claim_records(connection: sqlite3.Connection) -> None:
    """Claims creates that no list shows by what names their record.

    The first plans of 0.2 claimed them by their whole body alone: with another description, a subcategory would be
    created a second time. The bodies are in the plans; where a plan is gone, its claims stay as they are.
    """
    (salt,) = connection.execute("SELECT salt FROM ledger").fetchone()
    plans = connection.execute(
        "SELECT plan, plan_id, kind, host, folder, operations_sha256 FROM plans"
    )
    root = find_root()
    for plan, plan_id, kind_name, host, folder, sha256 in plans.fetchall():
        kind = KINDS[kind_name]
        if kind.is_listed or kind.is_update:
            continue
        for operation in _operations(Path(locate(root, plan_id, folder)), sha256):
            record = record_hash(operation.path, operation.body, kind.unique_fields)
            connection.execute(
                "INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)",
                [host, salted(salt, record), plan, operation.id],
            )


class _Operation(msgspec.Struct):
    id: int
    path: str
    body: dict[str, Any]


def _operations(folder: Path, sha256: str) -> list[_Operation]:
    """The operations of a plan; none where its file is gone or was changed."""
    try:
        content = (folder / "operations.jsonl").read_bytes()
    except OSError:
        return []
    if hashlib.sha256(content).hexdigest() != sha256:
        return []
    return msgspec.json.Decoder(_Operation).decode_lines(content)
