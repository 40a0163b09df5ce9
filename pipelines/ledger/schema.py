"""The tables of the ledger, their version, and how older versions become the current one.

In: a connection. Out: its tables in the current version. `sent_at`, `doubt_at` and `state_at` of an operation are in
ledger time (`pipelines.ledger.clock`), all other times in wall time. What came first is decided by the number of its
commit (`recorded_in`, `confirmed_in`), not by a time. `key_version` of a plan is the version that hashed the keys of
its claims (`pipelines.ledger.keys.key_hashes`).
"""

from __future__ import annotations

import secrets
import sqlite3
from importlib.resources import files
from typing import Final

from pipelines.ledger.keys import salted

VERSION: Final = 5


def _statements() -> list[str]:
    """The statements that create the tables, that of `ledger` first."""
    return files("pipelines.ledger").joinpath("tables.sql").read_text("utf-8").split(";")[:-1]


def ledger_version(connection: sqlite3.Connection) -> int:
    """The version of a ledger; 0 for an empty database or one of another program."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether a database is new: of version 0 and without tables."""
    if ledger_version(connection):
        return False
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def create_tables(connection: sqlite3.Connection) -> None:
    """Creates the tables in an empty database, or migrates those of an older version, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    version = ledger_version(connection)
    if version == 0:
        for statement in _statements():
            connection.execute(statement)
        _insert_salt(connection)
    if version == 1:
        _migrate_1(connection)
    if version in (1, 2):  # the claims of each plan are completed when it is pushed again: only the plan has its keys
        connection.execute("ALTER TABLE plans ADD COLUMN key_version INTEGER NOT NULL DEFAULT 2")
    if version in (1, 2, 3):
        _add_counts(connection, has_commits=version == 1)
    if version in (1, 2, 3, 4):
        _name_paths(connection)
    if version < VERSION:
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _insert_salt(connection: sqlite3.Connection) -> bytes:
    salt = secrets.token_bytes(32)
    connection.execute("INSERT INTO ledger (salt) VALUES (?)", [salt])
    return salt


def _migrate_1(connection: sqlite3.Connection) -> None:
    """Version 1 had hashes without salt, and wall time only."""
    connection.execute(_statements()[0])
    salt = _insert_salt(connection)
    connection.create_function("salted", 1, lambda key: salted(salt, key), deterministic=True)
    connection.execute("UPDATE claims SET key = salted(key)")
    connection.execute("ALTER TABLE operations ADD COLUMN state_at REAL NOT NULL DEFAULT 0")
    connection.execute("UPDATE operations SET state_at = updated_at")


def _name_paths(connection: sqlite3.Connection) -> None:
    """Versions up to 4 kept the values of variants alone, under the ids of a product and a variant."""
    (confirmed,) = (statement for statement in _statements() if "TABLE confirmed" in statement)
    connection.execute("ALTER TABLE confirmed RENAME TO confirmed_4")
    connection.execute(confirmed)
    connection.execute(
        "INSERT INTO confirmed SELECT host, '/products/' || product_id || '/variants/' || variant_id, field, value,"
        " confirmed_at, plan_id, confirmed_in FROM confirmed_4"
    )
    connection.execute("DROP TABLE confirmed_4")


def _add_counts(connection: sqlite3.Connection, *, has_commits: bool) -> None:
    """Versions up to 3 counted neither pushes nor commits.

    For the numbers of their commits, microseconds are taken: they have the same order, and later commits follow them.
    """
    for table, name in (("plans", "recorded_in"), ("plans", "pushes"), ("confirmed", "confirmed_in")):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0")
    if not has_commits:
        connection.execute("ALTER TABLE ledger ADD COLUMN commits INTEGER NOT NULL DEFAULT 0")
    connection.execute("UPDATE plans SET recorded_in = CAST(opened_at * 1000000 AS INTEGER)")
    connection.execute("UPDATE confirmed SET confirmed_in = CAST(confirmed_at * 1000000 AS INTEGER)")
    connection.execute(
        "UPDATE ledger SET commits = 1 + max(coalesce((SELECT max(recorded_in) FROM plans), 0),"
        " coalesce((SELECT max(confirmed_in) FROM confirmed), 0))"
    )
