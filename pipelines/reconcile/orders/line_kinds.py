"""Of what kind the raw lines of the orders are: products, parts of another line, or no products.

In: the raw lines of a build, and the rows of the table of kinds that are answered or assumed. Out: the rows of that
table with counts, and the kind of a line as SQL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from orderbridge.pipelines.reconcile.orders.lines import PRODUCT, RawLines
from orderbridge.pipelines.warehouse.sql import sql_name, sql_text
from orderbridge.transforms.orders.cancelled import STATUSES_MAX, split_row
from orderbridge.transforms.orders.columns import SCALARS
from orderbridge.transforms.orders.line_kinds import ANY, KindRow, LineKind, kind_of_value
from orderbridge.transforms.orders.names import LINE_KIND_NAMES, LINE_NAMES

_ID_ENDS: Final = ("id", "key", "number", "code", "sku", "identifier")
_SHARE_MIN: Final = 0.9
"""The least share of lines with a parent that is one of the same order, and of sets whose amounts count once."""
_NO_PARENT: Final = "('', '0', 'false')"
_VALUES: Final = """
    SELECT trim({column}::VARCHAR) AS value, count(*) FROM {table} WHERE {listed} AND value <> ''
    GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {most}"""
_COUNT: Final = "SELECT count(*) FROM {table} WHERE {listed} AND {condition}"
_PARTS: Final = """
    CREATE OR REPLACE TEMP TABLE line_parts AS
    SELECT order_id, {parent}::VARCHAR AS parent, {amount} AS amount, {keys} FROM {table} l
    WHERE {listed} AND hash(order_id) % {share} = 0"""
_FOUND: Final = """
    SELECT count(*), count(k.order_id) FROM line_parts p
    LEFT JOIN (SELECT DISTINCT order_id, {key} AS key FROM line_parts) k ON k.order_id = p.order_id AND k.key = p.parent
    WHERE p.parent NOT IN {no_parent} AND p.parent IS DISTINCT FROM p.{key}"""
_COUNTED_ONCE: Final = """
    SELECT count(*), count(*) FILTER (coalesce(abs(parts) < 0.005 OR abs(parts - amount) < 0.05, true))
    FROM (
        SELECT max(s.amount) AS amount, sum(p.amount) AS parts
        FROM line_parts s JOIN line_parts p ON p.order_id = s.order_id AND p.parent = s.{key}
        GROUP BY s.order_id, s.{key})"""


def kind_rows(lines: RawLines, decided: Collection[str]) -> list[KindRow]:
    """The rows of the table of kinds: of the columns that may say it, and those that are decided before."""
    rows = [*_valued_rows(lines), *_parent_rows(lines)]
    known = {row.name.casefold() for row in rows}
    for name in decided:
        column, _ = split_row(name)
        if name.casefold() not in known and column in lines.kinds:
            rows.append(KindRow(name, _count(lines, name), "product"))
    return rows


def kind_sql(kinds: Mapping[str, LineKind]) -> str:
    """The kind of a line (SQL), from the rows of the table that are no products."""
    parts_first = sorted(kinds.items(), key=lambda row: row[1] != "part")
    cases = [f"WHEN {_condition(name)} THEN {sql_text(kind)}" for name, kind in parts_first]
    return f"CASE {' '.join(cases)} ELSE {PRODUCT} END" if cases else PRODUCT


def _valued_rows(lines: RawLines) -> Iterator[KindRow]:
    """Those of the columns that say of what kind a line is; of none where all values mean products."""
    for column in (*LINE_KIND_NAMES["columns"], *LINE_KIND_NAMES["flags"]):
        if column not in lines.kinds:
            continue
        sql = _VALUES.format(
            column=sql_name(column), table=lines.table, listed=lines.listed, most=STATUSES_MAX + 1
        )
        values = lines.tables.build.execute(sql).fetchall()
        if len(values) <= STATUSES_MAX:
            for value, count in values:
                yield KindRow(f"{column}: {value}", count, kind_of_value(column, value))


def _parent_rows(lines: RawLines) -> Iterator[KindRow]:
    """Those of columns that name another line of the same order."""
    keys = [one for one in lines.kinds if one.endswith(_ID_ENDS) and lines.kinds[one] in SCALARS]
    for parent in LINE_KIND_NAMES["parents"]:
        if parent not in lines.kinds or lines.kinds[parent] not in SCALARS:
            continue
        name = f"{parent}: {ANY}"
        count = _count(lines, name)
        key = _key_of(lines, parent, [one for one in keys if one != parent]) if count else None
        if key is None:
            continue
        sets, counted_once = _pair(lines, _COUNTED_ONCE.format(key=sql_name(key)))
        if counted_once >= _SHARE_MIN * sets:
            yield KindRow(name, count, "part", f"each names a line of its order by {key}")
        else:
            note = f"each names a line of its order by {key}, and has an amount of its own"
            yield KindRow(name, count, "product", note)


def _key_of(lines: RawLines, parent: str, keys: list[str]) -> str | None:
    """The column by whose value lines name another one of their order; None where none is it."""
    amounts = [*LINE_NAMES["line_total"], *LINE_NAMES["unit_price"]]
    amount = next((one for one in amounts if one in lines.kinds), None)
    read = "NULL::DOUBLE" if amount is None else lines.tables.numbers(lines.table, amount, "l")
    sql = _PARTS.format(
        parent=sql_name(parent),
        amount=f"{read}::DOUBLE",
        keys=", ".join(f"{sql_name(key)}::VARCHAR AS {sql_name(key)}" for key in keys)
        or "NULL AS nothing",
        table=lines.table,
        listed=lines.listed,
        share=lines.share,
    )
    lines.tables.build.execute(sql)
    for key in keys:
        sql = _FOUND.format(key=sql_name(key), no_parent=_NO_PARENT)
        named, found = _pair(lines, sql)
        if found and found >= _SHARE_MIN * named:
            return key
    return None


def _condition(name: str) -> str:
    """That a line has the value of a row of the table (SQL)."""
    column, value = split_row(name)
    text = f"lower(trim({sql_name(column)}::VARCHAR))"
    if value == ANY:
        return f"coalesce({text} NOT IN {_NO_PARENT}, false)"
    return f"{text} = {sql_text(value.lower())}"


def _count(lines: RawLines, name: str) -> int:
    sql = _COUNT.format(table=lines.table, listed=lines.listed, condition=_condition(name))
    ((count,),) = lines.tables.build.execute(sql).fetchall()
    return int(count)


def _pair(lines: RawLines, sql: str) -> tuple[int, int]:
    ((one, other),) = lines.tables.build.execute(sql).fetchall()
    return int(one), int(other)
