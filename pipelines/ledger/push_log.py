"""`ops.push_log` in the warehouse: a copy of the ledger's operations.

In: the ledger. Out: the table, and what the responses revealed about gaps in the interface (`ops.observations`). A run
writes both into its build; a push publishes them itself unless a run is in progress.
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

# One row per gap (sources/gaps.py) that a response reveals something about. A create confirmed by a lookup has no
# status, or the status of the response that left it in doubt.
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


def update_push_log(build: duckdb.DuckDBPyConnection) -> None:
    """Replaces `ops.push_log` with the ledger's operations and adds to `ops.observations`, with the plan's id as run.

    If the ledger cannot be read, it logs a warning and leaves the tables unchanged.
    """
    path = ledger_path()
    if not path.exists():
        return  # nothing was pushed from here; rows of another ledger are kept
    ops.create_missing(build)
    try:
        with Ledger.open(path, readonly=True) as ledger:
            build.register("ledger_log", ledger.log())
            observed = ledger.connection.execute(_OBSERVED).fetchall()
    except UsageError as error:
        log.warning("ops.push_log was not updated: %s", error)
        return
    build.execute("DELETE FROM ops.push_log")
    build.execute("INSERT INTO ops.push_log BY NAME FROM ledger_log")
    build.unregister("ledger_log")
    for what, value, plan_id, *at in observed:
        for seconds in at:
            ops.record_observations(build, plan_id, datetime.fromtimestamp(seconds, UTC), [(what, value)])


def publish_push_log(plan_id: str = "", observed: Sequence[tuple[str, str]] = ()) -> bool:
    """Publishes a warehouse with the updated log.

    Args:
        plan_id: of the plan that was pushed.
        observed: (what, value) observed by this push that the ledger does not record.

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
                    update_push_log(connection)
                    ops.record_observations(connection, plan_id, datetime.now(UTC), observed)
                    build.publish(connection)
            finally:
                build.clear()
    except LockedError:
        return False
    return True
