"""`ops.push_log` in the warehouse: a copy of the ledger's operations.

In: the ledger. Out: the table, and what the responses revealed about gaps in the interface (`ops.observations`). A run
writes both into its build; a push publishes them itself unless a run is in progress.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import UTC, datetime
from importlib.resources import files

import duckdb

from orderbridge.pipelines.ledger.store import HOW_TO_RESTORE, Ledger
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.build import Build, warehouse_errors
from orderbridge.sources.errors import LockedError, UsageError
from orderbridge.sources.settings import ledger_path, warehouse_path

log = logging.getLogger("orderbridge.push_log")


def missing_attempts(warehouse: duckdb.DuckDBPyConnection, ledger: Ledger) -> int:
    """How many requests the copy in the warehouse has that the ledger lacks: it is an older one, or another."""
    tables = warehouse.execute(
        "SELECT 1 FROM duckdb_tables() WHERE (schema_name, table_name) = ('ops', 'push_log')"
    )
    if tables.fetchone() is None:
        return 0
    copied = warehouse.execute(
        "SELECT plan_id, sum(attempts) FROM ops.push_log GROUP BY 1"
    ).fetchall()
    sql = "SELECT plan_id, sum(attempts) FROM operations JOIN plans USING (plan) GROUP BY plan"
    attempts = dict(ledger.connection.execute(sql).fetchall())
    return sum(max(0, int(count) - attempts.get(plan_id, 0)) for plan_id, count in copied)


def older_ledger(missing: int) -> UsageError:
    """The error for a ledger that lacks so many requests of its copy."""
    return UsageError(
        f"the ledger is older than its copy in the warehouse (ops.push_log), which has {missing} more requests",
        HOW_TO_RESTORE,
    )


def update_push_log(
    build: duckdb.DuckDBPyConnection, *, accept_older: bool = False
) -> UsageError | None:
    """Replaces `ops.push_log` with the ledger's operations and adds to `ops.observations`, with the plan's id as run.

    Returns:
        Why the tables are as they were: the ledger cannot be read, or is older than the copy and `accept_older` is
        not set. None where they were replaced.
    """
    path = ledger_path()
    if not path.exists():
        return None  # nothing was pushed from here; rows of another ledger are kept
    ops.create_missing(build)
    sql = files("orderbridge.pipelines.ledger").joinpath("observed.sql").read_text("utf-8")
    try:
        with Ledger.open(path, readonly=True) as ledger:
            if not accept_older and (missing := missing_attempts(build, ledger)):
                return older_ledger(missing)
            build.register("ledger_log", ledger.log())
            observed = ledger.connection.execute(sql).fetchall()
    except UsageError as error:
        return error
    build.execute("DELETE FROM ops.push_log")
    build.execute("INSERT INTO ops.push_log BY NAME FROM ledger_log")
    build.unregister("ledger_log")
    seen: list[ops.Seen] = []
    for what, value, plan_id, *at in observed:
        for seconds in at:
            seen.append(ops.Seen(what, value, plan_id, datetime.fromtimestamp(seconds, UTC)))
    # a plan may have been resumed after a later one was pushed
    ops.record_seen(build, sorted(seen, key=lambda one: one.at))
    return None


def publish_push_log(
    plan_id: str = "", observed: Collection[tuple[str, str]] = (), *, accept_older: bool = False
) -> bool:
    """Publishes a warehouse with the updated log.

    Args:
        plan_id: of the plan that was pushed.
        observed: (what, value) observed by this push that the ledger does not record.
        accept_older: take a ledger that is older than the copy for the newest.

    Returns:
        Whether it was published. A run in progress publishes it instead.

    Raises:
        UsageError: a disk error; the published file is unchanged.
    """
    path = warehouse_path()
    if not path.exists():
        return False
    build = Build(path)
    try:
        with build.locked("push"):
            build.start()
            try:
                with warehouse_errors(path.parent), build.open() as connection:
                    connection.begin()  # otherwise each statement would be synced to disk
                    problem = update_push_log(connection, accept_older=accept_older)
                    if problem is not None:
                        log.warning("ops.push_log was not updated: %s", problem)
                    ops.record_observations(
                        connection, plan_id, datetime.now(UTC), sorted(observed)
                    )
                    connection.commit()
                    build.publish(connection)
            finally:
                build.clear()
    except LockedError:
        return False
    return True
