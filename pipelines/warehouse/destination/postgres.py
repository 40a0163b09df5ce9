"""Tables of a copy in Postgres whose rows are replaced in place: grants and other people's views stay.

In: the columns of a table before and after. Out: the statements that turn one into the other, and the connection that
runs them while no other run can. Other databases have neither grants nor views of such a kind: their views find a table
by its name, and its grants are those of the schema.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from orderbridge.pipelines.warehouse.destination.changes import REMOVED, TableChanges
from orderbridge.pipelines.warehouse.sql import sql_name, sql_text
from orderbridge.sources.errors import PlatformError
from orderbridge.sources.urls import is_loopback

SqlClient = Any
"""A client of dlt, which gives it no type."""
ColumnTypes = dict[str, str]
"""Quoted names of columns → types, in order."""

_UNENCRYPTED_MODES: Final = ("disable", "allow", "prefer")
"""Values of `sslmode` with which libpq may connect without TLS; without a value it takes `prefer`."""
_LOCK_WAIT_S: Final = 5.0
_LOCK_POLL_S: Final = 0.2
LOCK_LIMIT: Final = "1h"
"""How long each statement of a copy waits for others who use its table; a `lock_timeout` of the role goes first."""
_COLUMNS: Final = """
    SELECT c.relname, quote_ident(a.attname), format_type(a.atttypid, a.atttypmod)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = to_regnamespace(%s) AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY c.relname, a.attnum"""


def tls_warning(credentials: Any) -> str:  # noqa: ANN401 # of dlt, which does not type its parts
    """What is wrong with the protection of a connection, in words; empty where nothing is.

    Args:
        credentials: of dlt's settings of the destination.
    """
    query = credentials.get_query()
    host = str(query.get("host") or credentials.host)
    mode = query.get("sslmode") or os.environ.get("PGSSLMODE") or "prefer"
    is_here = host.startswith("/") or is_loopback(host)  # a path is the folder of a socket
    if is_here or mode not in _UNENCRYPTED_MODES:
        return ""
    return (
        f"the copy may go to {host} unencrypted (sslmode {mode}): the data and the password's exchange can be read "
        "on the way. Add ?sslmode=verify-full&sslrootcert=FILE to the address of the destination: FILE has the "
        "certificate of the server's authority"
    )


@contextmanager
def exclusive_client(client: SqlClient, prefix: str) -> Iterator[SqlClient]:
    """A connection that keeps other runs from copying to the same datasets until it is closed.

    The transaction that replaces the tables must use this connection: if it broke, the lock is gone.

    Raises:
        PlatformError: another run is copying to them.
    """
    with client:
        if not _is_locked(client, prefix):
            raise PlatformError(
                f"another run is copying to the datasets {prefix}_* at the moment: nothing was touched",
                "Run again when it has ended, or name another prefix in WAREHOUSE__DESTINATION_DATASET.",
            )
        client.execute_sql(
            "SELECT set_config('lock_timeout', %s, false) WHERE current_setting('lock_timeout') = '0'",
            LOCK_LIMIT,
        )
        yield client


def _is_locked(client: SqlClient, prefix: str) -> bool:
    """Whether this connection got the lock. That of a copy which has just ended is there until the server notices."""
    deadline = time.monotonic() + _LOCK_WAIT_S
    while True:
        ((is_locked,),) = client.execute_sql(
            "SELECT pg_try_advisory_lock(hashtext(%s))", f"orderbridge copy {prefix}"
        )
        if is_locked or time.monotonic() > deadline:
            return bool(is_locked)
        time.sleep(_LOCK_POLL_S)


def table_columns(client: SqlClient, schema: str) -> dict[str, ColumnTypes]:
    """The columns of each table in a schema, whose name is quoted where it has to be."""
    columns: dict[str, ColumnTypes] = {}
    for table, name, kind in client.execute_sql(_COLUMNS, schema) or ():
        columns.setdefault(str(table), {})[str(name)] = str(kind)
    return columns


def unquoted(name: str) -> str:
    """A column's name without the quotes of `quote_ident`."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def update_table(
    table: str, staged: str, changes: TableChanges, old: ColumnTypes, new: ColumnTypes
) -> Iterator[str]:
    """The statements that give a table the columns and rows of a staged one, in one transaction.

    Where not all rows are sent: the rows of the staged keys, and the other rows their new stamps.
    """
    columns = {name: kind for name, kind in new.items() if name != REMOVED}
    if changes.is_sent:
        yield from _change_columns(table, old, columns)
        same_key = " AND ".join(f"t.{name} = s.{name}" for name in map(sql_name, changes.key))
        # not TRUNCATE: a transaction that began before it would find the table empty
        yield f"DELETE FROM {table} t" + (f" USING {staged} s WHERE {same_key}" if same_key else "")
    if changes.moves:
        yield _move_stamps(table, changes, old)
    if changes.is_sent:
        names = ", ".join(columns)
        present = f" WHERE NOT {REMOVED}" if REMOVED in new else ""
        yield f"INSERT INTO {table} ({names}) SELECT {names} FROM {staged}{present}"


def _change_columns(table: str, old: ColumnTypes, new: ColumnTypes) -> Iterator[str]:
    """The statements that give a table these columns; one of another type is made anew."""
    changed = [name for name, kind in old.items() if new.get(name) != kind]
    for name in changed:
        yield f"ALTER TABLE {table} DROP COLUMN {name}"
    for name, kind in new.items():
        if name not in old or name in changed:
            yield f"ALTER TABLE {table} ADD COLUMN {name} {kind}"


def _move_stamps(table: str, changes: TableChanges, types: ColumnTypes) -> str:
    """The statement that gives the rows of a run, which are otherwise the same, the stamps of this one."""
    stamps = changes.stamps
    values = ", ".join(f"({', '.join(map(sql_text, texts))})" for texts in changes.moves)
    names = ", ".join([*(f"old{name}" for name in stamps), *(f"new{name}" for name in stamps)])
    moved = ", ".join(f"{name} = m.new{name}::{types[name]}" for name in stamps)
    before = " AND ".join(f"t.{name} = m.old{name}::{types[name]}" for name in stamps)
    return f"UPDATE {table} t SET {moved} FROM (VALUES {values}) AS m ({names}) WHERE {before}"
