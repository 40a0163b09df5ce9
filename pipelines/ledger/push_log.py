"""What was pushed, in the warehouse: `ops.push_log`, a copy of the ledger without anything that it keeps for itself.

In: the ledger. Out: the table, and what the answers showed of the interface's gaps (`ops.observations`), in the build
of a run; or, after a push, published at once where no run is at work.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import duckdb

from pipelines.ledger.store import Ledger
from pipelines.warehouse import ops
from pipelines.warehouse.build import Build, exclusive, warehouse_errors
from sources.errors import LockedError, UsageError
from sources.settings import ledger_path, warehouse_path

log = logging.getLogger("orderbridge.push_log")

# Of each answer: the gap that it shows something of (sources/contract.py), and what. A confirmed create may have been
# found by a look-up instead: then it has no status, or that of the answer that was no answer.
_OBSERVED: Final = """
    WITH answers AS (
        SELECT plan_id, kind, method, fields, o.state, status, code, remote_id, o.updated_at
        FROM operations o JOIN plans USING (plan) WHERE status IS NOT NULL
    ), seen AS (
        SELECT iif(method = 'POST', 'created_status', 'no_content_status') what, status || '' value, plan_id, updated_at
        FROM answers WHERE state = 'confirmed' AND status BETWEEN 200 AND 299
        UNION ALL
        SELECT 'created_body', kind || iif(remote_id IS NULL, ': no id in it', ': an id in it'), plan_id, updated_at
        FROM answers WHERE state = 'confirmed' AND status BETWEEN 200 AND 299 AND method = 'POST'
        UNION ALL
        SELECT 'legacy_error_status', kind || ': status ' || status || ', code ' || iif(code = '', 'none', code),
            plan_id, updated_at
        FROM answers WHERE state = 'rejected'
        UNION ALL
        SELECT 'subcategory_required', iif(state = 'confirmed', 'what was sent was enough', 'status ' || status),
            plan_id, updated_at
        FROM answers WHERE kind = 'subcategories' AND state IN ('confirmed', 'rejected')
        UNION ALL
        SELECT name || '_semantics', 'confirmed; whether it was set or added cannot be read back', plan_id, updated_at
        FROM answers JOIN (SELECT 'price' AS name UNION ALL SELECT 'stock')
        WHERE state = 'confirmed' AND ',' || fields || ',' LIKE '%,' || name || ',%'
    )
    SELECT what, value, plan_id, min(updated_at), max(updated_at) FROM seen GROUP BY 1, 2, 3 ORDER BY 4, 5, 3"""


def into(build: duckdb.DuckDBPyConnection) -> int:
    """Brings `ops.push_log` up to the ledger, and into `ops.observations` what it saw: its runs are the plans.

    A ledger that cannot be read is told, and leaves the tables as they were.

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
            observed = ledger.connection.execute(_OBSERVED).fetchall()
    except UsageError as error:
        log.warning("what was pushed is not brought into the warehouse: %s", error)
        return 0
    build.execute("DELETE FROM ops.push_log")
    build.execute("INSERT INTO ops.push_log BY NAME FROM ledger_log")
    build.unregister("ledger_log")
    for what, value, plan_id, *at in observed:
        for seconds in at:
            ops.record_observations(build, plan_id, datetime.fromtimestamp(seconds, UTC), [(what, value)])
    (rows,) = build.execute("SELECT count(*) FROM ops.push_log").fetchone() or (0,)
    return int(rows)


def publish(plan_id: str = "", observed: Sequence[tuple[str, str]] = ()) -> bool:
    """Brings the log into the published warehouse. Whether it did: the next run does, where one is at work now.

    Args:
        plan_id: what was pushed.
        observed: (what, value) that this push saw beside its answers.

    Raises:
        UsageError: the disk refuses. The published file is as it was.
    """
    path = warehouse_path()
    if not path.exists():
        return False
    build = Build(path)
    try:
        with exclusive(build, "push"):
            try:
                build.start()
                with warehouse_errors(path.parent), build.open() as connection:
                    into(connection)
                    ops.record_observations(connection, plan_id, datetime.now(UTC), observed)
                    build.publish(connection)
            finally:
                build.clear([folder.name for folder in build.spools.glob("*")])
    except LockedError:
        return False
    return True
