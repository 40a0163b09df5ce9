"""What was pushed, in the warehouse: `ops.push_log`, a copy of the ledger without anything that it keeps for itself.

In: the ledger. Out: the table, in the build of a run; or, after a push, published at once where no run is at work.
"""

from __future__ import annotations

import logging

import duckdb

from pipelines import ops
from pipelines.ledger import Ledger
from pipelines.warehouse import Build, disk_errors
from sources.errors import LockedError, UsageError
from sources.settings import ledger_path, warehouse_path

log = logging.getLogger("orderbridge.push_log")


def into(build: duckdb.DuckDBPyConnection) -> int:
    """Brings `ops.push_log` up to the ledger. One that cannot be read is told, and leaves the table as it was.

    Args:
        build: open for writing.

    Returns:
        Rows in the table now.
    """
    path = ledger_path()
    if not path.exists():
        return 0  # nothing was ever sent from here; another ledger's rows stay
    ops.create_missing(build)
    try:
        with Ledger.open(path, readonly=True) as ledger:
            build.register("ledger_log", ledger.log())
    except UsageError as error:
        log.warning("what was pushed is not brought into the warehouse: %s", error)
        return 0
    build.execute("DELETE FROM ops.push_log")
    build.execute("INSERT INTO ops.push_log BY NAME FROM ledger_log")
    build.unregister("ledger_log")
    (rows,) = build.execute("SELECT count(*) FROM ops.push_log").fetchone() or (0,)
    return int(rows)


def publish() -> bool:
    """Brings the log into the published warehouse. Whether it did: the next run does, where one is at work now.

    Raises:
        UsageError: the disk refuses. The published file is as it was.
    """
    from pipelines.pull import exclusive

    path = warehouse_path()
    if not path.exists():
        return False
    build = Build(path)
    try:
        with exclusive(build, "push"):
            try:
                build.start()
                with disk_errors(path.parent), build.open() as connection:
                    into(connection)
                    build.publish(connection)
            finally:
                build.clear([folder.name for folder in build.spools.glob("*")])
    except LockedError:
        return False
    return True
