"""Columns of pairs of an id and a name, as Odoo writes a reference: `[24, "Lamp"]`, or `false` where there is none.

In: a raw table of orders or of their lines, which holds such a pair as its JSON text. Out: the table itself, or a copy
of it in which the column is the id, and `product_id__name` beside it the name.
"""

from __future__ import annotations

from typing import Final

from orderbridge.pipelines.reconcile.parts import Parts
from orderbridge.pipelines.warehouse.sql import columns_of, sql_name, sql_text

_PAIR: Final = r'\[-?[0-9]+,\s*"([^"\\]|\\.)*"\]'
_NONE: Final = "false"
_LOOKED_AT: Final = 1000
"""So many rows show which columns may have pairs; of these, all rows are then read."""
_ARE_PAIRS: Final = (
    "coalesce(bool_and({column} = {none} OR regexp_full_match({column}, {pair})), false)"
)
_IS_ANY_PAIR: Final = "coalesce(bool_or({column} <> {none}), false)"
_ID: Final = "CASE WHEN {column} <> {none} THEN {column} ->> '$[0]' END AS {column}"
_NAME: Final = "CASE WHEN {column} <> {none} THEN {column} ->> '$[1]' END AS {name}"


def split_pairs(tables: Parts, table: str, copy: str) -> str:
    """The table, or a copy with ids and names in place of pairs; `copy` is its name among the temporary ones."""
    kinds = columns_of(tables.build, table)
    texts = [name for name, kind in kinds.items() if kind == "VARCHAR" and name[0] != "_"]
    pairs = _pairs(tables, f"(FROM {table} LIMIT {_LOOKED_AT})", texts)
    pairs = _pairs(tables, table, pairs)
    if not pairs:
        return table
    ids = ", ".join(_filled(_ID, name) for name in pairs)
    names = [_filled(_NAME, name) for name in pairs if f"{name}__name" not in kinds]
    columns = ", ".join([f"* REPLACE ({ids})", *names])
    tables.build.execute(
        f"CREATE OR REPLACE TEMP TABLE {copy} AS SELECT {columns} FROM {table} ORDER BY rowid"
    )
    return f"temp.{copy}"


def _pairs(tables: Parts, table: str, names: list[str]) -> list[str]:
    """The columns that have pairs and nothing else."""
    if not names:
        return []
    conditions = [
        f"{_filled(_ARE_PAIRS, name)} AND {_filled(_IS_ANY_PAIR, name)}" for name in names
    ]
    (found,) = tables.build.execute(f"SELECT {', '.join(conditions)} FROM {table}").fetchall()
    return [name for name, are_pairs in zip(names, found, strict=True) if are_pairs]


def _filled(sql: str, name: str) -> str:
    return sql.format(
        column=sql_name(name),
        name=sql_name(f"{name}__name"),
        none=sql_text(_NONE),
        pair=sql_text(_PAIR),
    )
