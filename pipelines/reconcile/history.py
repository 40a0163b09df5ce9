"""The histories of customers, promotions and price lists: a row for each version, with its period.

In: a build with the records as they are now, and the histories as published. Out: `reconciled.customer_history`,
`.promotion_history` and `.price_list_history` in the build. The platform's own fields make a version. What this program
derives from them makes none (a new notation of phone numbers, the status of a promotion), nor do fields that the
interface does not name. The derived columns of a version are those of the last run that saw it.

The raw tables decide what is missing, and only a complete walk marks that. A record that a short walk did not see keeps
its version; one that is marked ends at `_missing_since`, and one that returns begins a new version. All instants are
those of the walks, so the same raw tables always give the same history. Changes between two runs without `reconcile`
are not recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import duckdb

from pipelines.warehouse.merge import columns_of

PERIOD: Final = {
    "version": "INTEGER",
    "valid_from": "TIMESTAMPTZ",
    "valid_to": "TIMESTAMPTZ",
    "is_current": "BOOLEAN",
    "ended_by": "VARCHAR",
}
"""`version` counts from 1 for each record. `valid_from`: when the version was first seen. `valid_to`: when another
version was seen, or the record was seen to be missing; null while it is valid. `ended_by`: `changed` or `missing`."""
_NOT_IN_HISTORY: Final = ("_run_id", "_first_seen_at", "_missing_since", "_extra", "is_missing")
"""Columns that describe the record as a whole and not its version."""
_DOCUMENT: Final = ("number", "fiscal_name", "fiscal_address", "email", "is_default", "for_taxes")


@dataclass(frozen=True, slots=True)
class History:
    """A table of versions.

    Attributes:
        name: of the table.
        entity: the reconciled table of the records.
        key: column that identifies a record.
        fields: columns that make a version.
        records: SQL of the records; empty: all columns of the reconciled table.
    """

    name: str
    entity: str
    key: str
    fields: tuple[str, ...]
    records: str = ""

    @property
    def table(self) -> str:
        """The table with its schema."""
        return f"reconciled.{self.name}"


HISTORIES: Final = (
    History(
        "customer_history",
        "customers",
        "customer_id",
        (
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
        ),
        # As JSON, in the order of their values: no order of documents is shown.
        records=f"""SELECT c.*, coalesce(d.documents, '[]') AS documents FROM reconciled.customers c LEFT JOIN (
            SELECT customer_id, to_json(list(struct_pack({", ".join(f"{c} := {c}" for c in _DOCUMENT)})
                ORDER BY {", ".join(_DOCUMENT)}))::VARCHAR AS documents
            FROM raw.customers__documents GROUP BY customer_id) d USING (customer_id)""",
    ),
    History(
        "promotion_history",
        "promotions",
        "promotion_id",
        # Not use_count: each order that uses a promotion would make a version.
        ("name", "is_active", "usage_limit", "start_date", "expiration_date"),
    ),
    History(
        "price_list_history",
        "price_lists",
        "price_list_id",
        ("name", "source_price_list_id", "adjustment_type", "adjustment_value"),
    ),
)


def record_history(build: duckdb.DuckDBPyConnection, history: History) -> tuple[int, int]:
    """Brings a history up to the reconciled records of the build, which is open for writing.

    Returns:
        The number of versions, and of those that are current.
    """
    build.execute(f"CREATE OR REPLACE TEMP TABLE seen AS {history.records or f'FROM reconciled.{history.entity}'}")
    columns = {name: kind for name, kind in columns_of(build, "seen").items() if name not in _NOT_IN_HISTORY}
    declared = ", ".join(f'"{name}" {kind}' for name, kind in (PERIOD | columns).items())
    build.execute(f"CREATE TABLE IF NOT EXISTS {history.table} ({declared})")
    stored = columns_of(build, history.table)
    for name in [name for name in columns if name not in stored]:
        build.execute(f'ALTER TABLE {history.table} ADD COLUMN "{name}" {columns[name]}')
    build.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE latest AS
        FROM {history.table} QUALIFY row_number() OVER (PARTITION BY {history.key} ORDER BY version DESC) = 1"""
    )
    _rebuild(build, history, list(columns))
    build.execute("DROP TABLE seen; DROP TABLE latest")
    ((versions, current),) = build.execute(
        f"SELECT count(*), count(*) FILTER (is_current) FROM {history.table}"
    ).fetchall()
    return versions, current


def _rebuild(build: duckdb.DuckDBPyConnection, history: History, columns: list[str]) -> None:
    """Writes the versions that stay, the current ones as they are now or ended, and the new ones.

    A version begins where a record has none, where its fields differ from those of the current one, and where the last
    one ended as missing and the record was seen since. It ends at once where the record is missing by now. No version
    ends before it begins, even if a clock went back.
    """
    key = history.key
    differs = "(" + " OR ".join(f'l."{name}" IS DISTINCT FROM s."{name}"' for name in history.fields) + ")"
    kept, old, now = (", ".join(f'{alias}"{name}"' for name in columns) for alias in ("", "l.", "s."))
    began = "greatest(s._last_seen_at, coalesce(l.valid_to, l.valid_from, s._last_seen_at))"
    is_missing = "s._missing_since IS NOT NULL"

    def ending(begin: str) -> str:
        return f"""CASE WHEN {is_missing} THEN greatest(s._missing_since, {begin}) END AS valid_to,
            NOT ({is_missing}) AS is_current,
            CASE WHEN {is_missing} THEN 'missing' END AS ended_by"""

    build.execute(
        f"""
        CREATE OR REPLACE TABLE {history.table} AS
        SELECT {", ".join(PERIOD)}, {kept} FROM {history.table} WHERE NOT is_current
        UNION ALL BY NAME
        SELECT l.version, l.valid_from, greatest(s._last_seen_at, l.valid_from) AS valid_to, false AS is_current,
            'changed' AS ended_by, {old}
        FROM latest l JOIN seen s USING ({key}) WHERE l.is_current AND {differs}
        UNION ALL BY NAME
        SELECT l.version, l.valid_from, {ending("l.valid_from")}, {now}
        FROM latest l JOIN seen s USING ({key}) WHERE l.is_current AND NOT {differs}
        UNION ALL BY NAME
        SELECT coalesce(l.version, 0) + 1 AS version, {began} AS valid_from, {ending(began)}, {now}
        FROM seen s LEFT JOIN latest l USING ({key})
        WHERE l.version IS NULL OR (l.is_current AND {differs})
            OR (NOT l.is_current AND (s._missing_since IS NULL OR s._last_seen_at > l.valid_to))
        UNION ALL BY NAME
        SELECT {", ".join(f"l.{name}" for name in PERIOD)}, {old}
        FROM latest l ANTI JOIN seen s USING ({key}) WHERE l.is_current
        ORDER BY {key}, version"""
    )
