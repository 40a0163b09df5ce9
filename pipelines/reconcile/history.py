"""The history of customers: a row for each version of what the platform said of one, and from when until when.

In: a build with the customers as they are now, raw and reconciled, and the history as it was published. Out:
`reconciled.customer_history` in the build. What makes a version are the platform's own fields (`OWN`) and documents: a
new way of ours to write a phone number, or a price list that is renamed, makes none, and neither do fields beside the
interface, which may change with every look. The derived columns of a version are those of the last run that saw it.

The raw tables decide what is missing, and they mark that from a proven walk only. So a customer that an unproven or
short walk did not see keeps its version; one that is marked ends at `_missing_since`, and one that returns begins a new
one. All instants are those of the walks: the same raw tables give the same history, however often. What came and went
between two runs that were not reconciled is not in it.
"""

from __future__ import annotations

from typing import Final

import duckdb

from pipelines.warehouse.merge import columns_of

NAME: Final = "customer_history"
TABLE: Final = f"reconciled.{NAME}"
OWN: Final = (
    "erp_code",
    "login_code",
    "first_name",
    "last_name",
    "email",
    "phone",
    "birthdate",
    "created_at_text",
    "price_list_id",
    "documents",
)
"""What makes a version. `documents` is JSON text of their fields, in the order of those: of an order of the platform's
nothing is shown."""
PERIOD: Final = {
    "version": "INTEGER",
    "valid_from": "TIMESTAMPTZ",
    "valid_to": "TIMESTAMPTZ",
    "is_current": "BOOLEAN",
    "ended_by": "VARCHAR",
}
"""`version` counts from 1 for each customer. `valid_from`: the instant that saw it first. `valid_to`: the instant that
saw another, or saw it missing; null while it holds. `ended_by`: `changed` or `missing`."""
_NOT_KEPT: Final = ("_run_id", "_first_seen_at", "_missing_since", "_extra", "is_missing")
"""Columns of the reconciled customers that are of the record and not of its version."""
_DOCUMENT: Final = ("number", "fiscal_name", "fiscal_address", "email", "is_default", "for_taxes")


def record(build: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """Brings the history up to the reconciled customers of the build.

    Args:
        build: open for writing; `reconciled.customers` is made of the raw tables in it.

    Returns:
        How many versions there are, and how many are open.
    """
    columns = {name: kind for name, kind in columns_of(build, "reconciled.customers").items() if name not in _NOT_KEPT}
    columns["documents"] = "VARCHAR"
    listed = ", ".join(f'"{name}" {kind}' for name, kind in (PERIOD | columns).items())
    build.execute(f"CREATE TABLE IF NOT EXISTS {TABLE} ({listed})")
    for name, kind in columns.items():
        build.execute(f'ALTER TABLE {TABLE} ADD COLUMN IF NOT EXISTS "{name}" {kind}')
    document = ", ".join(f'"{name}" := "{name}"' for name in _DOCUMENT)
    order = ", ".join(f'"{name}"' for name in _DOCUMENT)
    build.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE seen AS
        SELECT c.*, coalesce(d.documents, '[]') AS documents
        FROM reconciled.customers c LEFT JOIN (
            SELECT customer_id, to_json(list(struct_pack({document}) ORDER BY {order}))::VARCHAR AS documents
            FROM raw.customers__documents GROUP BY customer_id
        ) d USING (customer_id)"""
    )
    build.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE latest AS
        FROM {TABLE} QUALIFY row_number() OVER (PARTITION BY customer_id ORDER BY version DESC) = 1"""
    )
    _rebuild(build, list(columns))
    build.execute("DROP TABLE seen; DROP TABLE latest")
    count, current = build.execute(f"SELECT count(*), count(*) FILTER (is_current) FROM {TABLE}").fetchone() or (0, 0)
    return int(count), int(current)


def _rebuild(build: duckdb.DuckDBPyConnection, columns: list[str]) -> None:
    """The versions that stay, the open ones as they are now or ended, and the new ones.

    A version begins where there is none; where the open one is of other values; and where the last one ended as missing
    and the customer was seen since. It ends at once where the customer is missing by now. A clock that went back lets
    no version end before it began.
    """
    differs = "(" + " OR ".join(f'l."{name}" IS DISTINCT FROM s."{name}"' for name in OWN) + ")"
    kept, old, now = (", ".join(f'{of}"{name}"' for name in columns) for of in ("", "l.", "s."))
    began = "greatest(s._last_seen_at, coalesce(l.valid_to, l.valid_from, s._last_seen_at))"

    gone = "s._missing_since IS NOT NULL"

    def ending(begin: str) -> str:
        return f"""CASE WHEN {gone} THEN greatest(s._missing_since, {begin}) END AS valid_to,
            NOT ({gone}) AS is_current,
            CASE WHEN {gone} THEN 'missing' END AS ended_by"""

    build.execute(
        f"""
        CREATE OR REPLACE TABLE {TABLE} AS
        SELECT {", ".join(PERIOD)}, {kept} FROM {TABLE} WHERE NOT is_current
        UNION ALL BY NAME
        SELECT l.version, l.valid_from, greatest(s._last_seen_at, l.valid_from) AS valid_to, false AS is_current,
            'changed' AS ended_by, {old}
        FROM latest l JOIN seen s USING (customer_id) WHERE l.is_current AND {differs}
        UNION ALL BY NAME
        SELECT l.version, l.valid_from, {ending("l.valid_from")}, {now}
        FROM latest l JOIN seen s USING (customer_id) WHERE l.is_current AND NOT {differs}
        UNION ALL BY NAME
        SELECT coalesce(l.version, 0) + 1 AS version, {began} AS valid_from, {ending(began)}, {now}
        FROM seen s LEFT JOIN latest l USING (customer_id)
        WHERE l.version IS NULL OR (l.is_current AND {differs})
            OR (NOT l.is_current AND (s._missing_since IS NULL OR s._last_seen_at > l.valid_to))
        UNION ALL BY NAME
        SELECT {", ".join(f"l.{name}" for name in PERIOD)}, {old}
        FROM latest l ANTI JOIN seen s USING (customer_id) WHERE l.is_current
        ORDER BY customer_id, version"""
    )
