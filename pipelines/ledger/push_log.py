"""`ops.push_log` in the warehouse: a copy of the ledger's operations.

In: the ledger. Out: the table, and what the responses showed about gaps in the interface (`ops.observations`), in the
build of a run; after a push, published at once unless a run is in progress.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import duckdb

from pipelines.ledger.store import Ledger
from pipelines.warehouse import ops
from pipelines.warehouse.build import Build, warehouse_errors
from sources.errors import LockedError, UsageError
from sources.settings import ledger_path, warehouse_path

log = logging.getLogger("orderbridge.push_log")

# For each response: the gap (sources/gaps.py) that it shows something about, and what. A create that was confirmed by a
# lookup has no status, or that of the response that left it in doubt.
_OBSERVED: Final = """
    WITH answers AS (
        SELECT plan_id, kind, method, fields, o.state, status, code, remote_id, o.updated_at
        FROM operations o JOIN plans USING (plan) WHERE status IS NOT NULL
    ), observations AS (
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
    SELECT what, value, plan_id, min(updated_at), max(updated_at) FROM observations GROUP BY 1, 2, 3 ORDER BY 4, 5, 3"""


def update_push_log(build: duckdb.DuckDBPyConnection) -> int:
    """Updates `ops.push_log` from the ledger, and `ops.observations`, where the plan takes the place of the run.

    If the ledger cannot be read, a warning is logged and the tables are unchanged.

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
        log.warning("ops.push_log was not updated: %s", error)
        return 0
    build.execute("DELETE FROM ops.push_log")
    build.execute("INSERT INTO ops.push_log BY NAME FROM ledger_log")
    build.unregister("ledger_log")
    for what, value, plan_id, *at in observed:
        for seconds in at:
            ops.record_observations(build, plan_id, datetime.fromtimestamp(seconds, UTC), [(what, value)])
    (rows,) = build.execute("SELECT count(*) FROM ops.push_log").fetchone() or (0,)
    return int(rows)


def publish_push_log(plan_id: str = "", observed: Sequence[tuple[str, str]] = ()) -> bool:
    """Publishes a warehouse with the updated log.

    Args:
        plan_id: of the plan that was pushed.
        observed: (what, value) seen by this push that the ledger does not record.

    Returns:
        Whether it was published; if a run is in progress, that run does it.

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
                    update_push_log(connection)
                    ops.record_observations(connection, plan_id, datetime.now(UTC), observed)
                    build.publish(connection)
            finally:
                build.clear()
    except LockedError:
        return False
    return True
