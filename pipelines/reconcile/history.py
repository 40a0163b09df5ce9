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
from uuid import uuid4

import duckdb

from orderbridge.pipelines.reconcile.parts import folder_of
from orderbridge.pipelines.warehouse.sql import columns_of, sql_text

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
DOCUMENTS_IN_MEMORY: Final = 400_000
_DOCUMENT: Final = ("number", "fiscal_name", "fiscal_address", "email", "is_default", "for_taxes")


@dataclass(frozen=True, slots=True)
class History:
    """A table of versions.

    Attributes:
        name: of the table.
        entity: the reconciled table of the records.
        key: column that identifies a record.
        fields: columns that make a version.
        documents: the table of the documents of records, which are a column of theirs; empty: they have none.
    """

    name: str
    entity: str
    key: str
    fields: tuple[str, ...]
    documents: str = ""

    @property
    def table(self) -> str:
        """The table with its schema."""
        return f"reconciled.{self.name}"


_OF_CUSTOMER: Final = ("erp_code", "login_code", "first_name", "last_name", "email", "phone", "birthdate",
    "created_at_text", "price_list_id", "documents")  # fmt: skip
# Not use_count: each order that uses a promotion would make a version.
_OF_PROMOTION: Final = ("name", "is_active", "usage_limit", "start_date", "expiration_date")
_OF_PRICE_LIST: Final = ("name", "source_price_list_id", "adjustment_type", "adjustment_value")
HISTORIES: Final = (
    History(
        "customer_history",
        "customers",
        "customer_id",
        _OF_CUSTOMER,
        documents="raw.customers__documents",
    ),
    History("promotion_history", "promotions", "promotion_id", _OF_PROMOTION),
    History("price_list_history", "price_lists", "price_list_id", _OF_PRICE_LIST),
)


def record_history(build: duckdb.DuckDBPyConnection, history: History) -> tuple[int, int]:
    """Brings a history up to the reconciled records of the build, which is open for writing.

    Returns:
        The number of versions, and of those that are current.
    """
    records = f"FROM reconciled.{history.entity}"
    if history.documents:
        documents = f"LEFT JOIN {_documents(build, history)} d USING ({history.key})"
        records = f"SELECT c.*, coalesce(d.documents, '[]') AS documents {records} c {documents}"
    build.execute(f"CREATE OR REPLACE TEMP VIEW seen AS {records}")
    columns = {
        name: kind
        for name, kind in columns_of(build, "seen").items()
        if name not in _NOT_IN_HISTORY
    }
    declared = ", ".join(f'"{name}" {kind}' for name, kind in (PERIOD | columns).items())
    build.execute(f"CREATE TABLE IF NOT EXISTS {history.table} ({declared})")
    stored = columns_of(build, history.table)
    for name in [name for name in columns if name not in stored]:
        build.execute(f'ALTER TABLE {history.table} ADD COLUMN "{name}" {columns[name]}')
    _rebuild(build, history, list(columns))
    build.execute("DROP VIEW seen; DROP TABLE newest; DROP TABLE renewed")
    ((versions, current),) = build.execute(
        f"SELECT count(*), count(*) FILTER (is_current) FROM {history.table}"
    ).fetchall()
    return versions, current


def _documents(build: duckdb.DuckDBPyConnection, history: History) -> str:
    """Writes the documents of each record, as JSON in the order of their values: no order of documents is shown.

    DuckDB holds lists that it makes in memory, so they are made in parts. Returns how it reads them.
    """
    ((rows,),) = build.execute(f"SELECT count(*) FROM {history.documents}").fetchall()
    parts = rows // DOCUMENTS_IN_MEMORY + 1
    name = folder_of(build) / uuid4().hex
    documents = f"to_json(list_sort(list(struct_pack({', '.join(f'{c} := {c}' for c in _DOCUMENT)}))))::VARCHAR"
    for part in range(parts):
        build.execute(
            f"""COPY (SELECT {history.key}, {documents} AS documents FROM {history.documents}
                WHERE hash({history.key}) % {parts} = {part} GROUP BY {history.key})
                TO {sql_text(f"{name}-{part}.parquet")} (FORMAT parquet)"""
        )
    return f"read_parquet({sql_text(f'{name}-*.parquet')})"


def _rebuild(build: duckdb.DuckDBPyConnection, history: History, columns: list[str]) -> None:
    """Writes the versions that stay, the current ones as they are now or ended, and the new ones.

    A version begins where a record has none, where its fields differ from those of the current one, and where the last
    one ended as missing and the record was seen since. It ends at once where the record is missing by now. No version
    ends before it begins, even if a clock went back.
    """
    key, table = history.key, history.table
    differs = (
        "("
        + " OR ".join(f'l."{name}" IS DISTINCT FROM s."{name}"' for name in history.fields)
        + ")"
    )
    kept, old, now = (
        ", ".join(f'{alias}"{name}"' for name in columns) for alias in ("", "h.", "s.")
    )
    build.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE newest AS
        SELECT {key}, coalesce(l.is_current AND NOT {differs}, false) AS goes_on,
            coalesce(l.version, 0) + CASE WHEN goes_on THEN 0 ELSE 1 END AS version,
            CASE WHEN goes_on THEN l.valid_from
                ELSE greatest(s._last_seen_at, coalesce(l.valid_to, l.valid_from, s._last_seen_at)) END AS begins,
            CASE WHEN s._missing_since IS NOT NULL THEN greatest(s._missing_since, begins) END AS ends,
            greatest(s._last_seen_at, l.valid_from) AS last_ends
        FROM seen s LEFT JOIN (
            FROM {table} SEMI JOIN (SELECT {key}, max(version) AS version FROM {table} GROUP BY ALL)
            USING ({key}, version)
        ) l USING ({key})
        WHERE l.version IS NULL OR l.is_current OR s._missing_since IS NULL OR s._last_seen_at > l.valid_to"""
    )
    # The records are wide: they must not be the side that a join holds, nor be joined at the same time as the versions.
    build.execute("SET disabled_optimizers = 'build_side_probe_side,join_order'")
    build.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE renewed AS
        SELECT n.version, n.begins AS valid_from, n.ends AS valid_to, n.ends IS NULL AS is_current,
            CASE WHEN n.ends IS NOT NULL THEN 'missing' END AS ended_by, {now}
        FROM seen s JOIN newest n USING ({key})"""
    )
    build.execute(
        f"""
        CREATE OR REPLACE TABLE {table} AS
        SELECT {", ".join(PERIOD)}, {kept} FROM {table} WHERE NOT is_current
        UNION ALL BY NAME
        SELECT h.version, h.valid_from, n.last_ends AS valid_to, n.version IS NULL AS is_current,
            CASE WHEN n.version IS NOT NULL THEN 'changed' END AS ended_by, {old}
        FROM {table} h LEFT JOIN newest n USING ({key}) WHERE h.is_current AND n.goes_on IS NOT true
        UNION ALL BY NAME FROM renewed"""
    )
    build.execute("RESET disabled_optimizers")
