"""The views of the schema `bi`, for BI tools: what is listed now, with names, days and sums in place of keys and codes.

In: a build with the reconciled tables, and `views.sql`. Out: the views in it. They are portable SQL, so that the same
statements make them over a copy in Postgres and other databases (`orderbridge views`).
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

import duckdb

from orderbridge.pipelines.warehouse.ops import RECONCILED_READS
from orderbridge.pipelines.warehouse.sql import table_names
from orderbridge.sources.contract import LISTS

SCHEMA: Final = "bi"
_IS_RECONCILED: Final = f"""c.published AND c.read_number <= coalesce(
    (SELECT max(t.value) FROM ops.control_totals t WHERE t.entity = '{RECONCILED_READS}'), c.read_number)"""
"""Whether the reconciled tables were made from a read or a later one: a pull alone leaves them as they are."""
VIEWS: Final = {
    name: statement
    for statement, name in re.findall(
        r"(CREATE OR REPLACE VIEW bi\.(\w+) AS\n.*?);\n",
        files("orderbridge.pipelines.warehouse.bi").joinpath("views.sql").read_text("utf-8"),
        re.DOTALL,
    )
}
"""The statements of `views.sql` by view, each after those that it reads."""


def create_views(build: duckdb.DuckDBPyConnection) -> None:
    """Makes the views in a build whose reconciled tables are there, unless a schema of that name holds tables."""
    if table_names(build, SCHEMA):
        return
    for statement in statements():
        build.execute(statement)


def statements(prefix: str = "") -> list[str]:
    """The statements that make the views; `prefix` comes before each schema, as in a copy (`orderbridge_`)."""
    resources = " UNION ALL ".join(
        f"SELECT CAST('{name}' AS VARCHAR) AS resource" for name in LISTS
    )
    complete_columns = ", ".join(
        f"max(CASE WHEN l.resource = '{name}' THEN c.complete_at END) AS {name}_complete_at"
        for name in LISTS
    )
    parts = {
        "is_reconciled": _IS_RECONCILED,
        "lists": resources,
        "complete_columns": complete_columns,
    }
    made = [f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"]
    made += [sql.format(**parts) for sql in VIEWS.values()]
    return [re.sub(r" (reconciled|ops|bi)\b", rf" {prefix}\1", sql) for sql in made]
