"""The tables of the ledger, their version, and how older versions become the current one.

In: a connection. Out: its tables in the current version. `sent_at`, `doubt_at` and `state_at` of an operation are in
ledger time (`pipelines.ledger.clock`), all other times in wall time. What came first is decided by the number of its
commit (`recorded_in`, `confirmed_in`), not by a time.
"""

from __future__ import annotations

import secrets
import sqlite3
from importlib.resources import files
from pathlib import Path
from typing import Final

from orderbridge.sources.errors import UsageError

VERSION: Final = 5
_CONVERTED: Final = 4
"""The version that is converted: that of orderbridge 0.2."""


def ledger_version(connection: sqlite3.Connection, path: Path) -> int:
    """The version of a ledger; 0 for an empty database.

    Raises:
        UsageError: the database of another program, or a version that cannot be converted.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == 0 and connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise UsageError(f"{path} is not a ledger", "Set LEDGER__PATH to the right file.")
    if version not in (0, _CONVERTED, VERSION):
        hint = (
            "Use the orderbridge that wrote it. One of version 0.1 is converted by orderbridge 0.2."
        )
        raise UsageError(f"{path} is a ledger of another version", hint)
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
    if (
        version == _CONVERTED
    ):  # it kept the values of variants alone, under the ids of a product and a variant
        connection.execute("ALTER TABLE confirmed RENAME TO confirmed_4")
        connection.execute(
            next(statement for statement in statements if "TABLE confirmed" in statement)
        )
        connection.execute(
            "INSERT INTO confirmed SELECT host, '/products/' || product_id || '/variants/' || variant_id, field,"
            " value, confirmed_at, plan_id, confirmed_in FROM confirmed_4"
        )
        connection.execute("DROP TABLE confirmed_4")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
