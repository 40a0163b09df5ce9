"""Of what kind the raw lines of the orders are: products, parts of another line, or no products.

In: the raw lines of a build, and the rows of the table of kinds that are answered or assumed. Out: the rows of that
table with counts, and the kind of a line as SQL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
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
    SELECT trim({column}::VARCHAR) AS value, count(*), count_if({price} < 0) = count(*) AS are_negative
    FROM {table} l WHERE {condition} AND value <> ''
    GROUP BY 1 ORDER BY 3 DESC, 2 DESC, 1 LIMIT {most}"""
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_NEGATIVE: Final = "all of their prices are negative"
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


def kind_rows(
    lines: RawLines, decided: Collection[str], answered: Mapping[str, str] = _NOTHING
) -> list[KindRow]:
    """The rows of the table of kinds: of the columns that may say it, and those that are decided before.

    Args:
        lines: the raw ones.
        decided: the names of rows.
        answered: the columns that are answered, by field.
    """
    price = _first_of(lines, ("unit_price", "line_total"), answered)
    amounts = "NULL" if price is None else lines.tables.numbers(lines.table, price, "l")
    rows = [*_valued_rows(lines, amounts), *_parent_rows(lines)]
    product = _first_of(lines, ("product", "product_name"), answered)
    if price is not None and product is not None:
        rows += _negative_rows(lines, product, amounts, rows)
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


def _first_of(
    lines: RawLines, fields: tuple[str, ...], answered: Mapping[str, str] = _NOTHING
) -> str | None:
    """The column of the first field that has one: as answered, else by its names; None: none has."""
    for field in fields:
        for name in (answered.get(field, ""), *LINE_NAMES[field]):
            if name in lines.kinds:
                return name
    return None


def _valued_rows(lines: RawLines, price: str) -> Iterator[KindRow]:
    """Those of the columns that say of what kind a line is."""
    for column in (*LINE_KIND_NAMES["columns"], *LINE_KIND_NAMES["flags"]):
        values = _values(lines, column, price, lines.listed) if column in lines.kinds else []
        if len(values) > STATUSES_MAX:
            continue
        for value, count, are_negative in values:
            name = f"{column}: {value}"
            kind = kind_of_value(column, value)
            if kind == "product" and are_negative:
                yield KindRow(name, count, "no_product", _NEGATIVE)
            else:
                yield KindRow(name, count, kind)


def _negative_rows(
    lines: RawLines, product: str, price: str, rows: Collection[KindRow]
) -> Iterator[KindRow]:
    """Those of products whose prices are all negative, such as vouchers, among the lines that others leave products."""
    known = {row.name: row.proposal for row in rows if row.proposal != "product"}
    condition = f"{lines.listed} AND {kind_sql(known)} = {PRODUCT}"
    for value, count, are_negative in _values(lines, product, price, condition)[:STATUSES_MAX]:
        if are_negative:
            yield KindRow(f"{product}: {value}", count, "no_product", _NEGATIVE)


def _values(
    lines: RawLines, column: str, price: str, condition: str
) -> list[tuple[str, int, bool]]:
    """The values of a column with their lines, and whether all of their prices are negative: these come first."""
    sql = _VALUES.format(
        column=sql_name(column),
        price=price,
        table=lines.table,
        condition=condition,
        most=STATUSES_MAX + 1,
    )
    return lines.tables.build.execute(sql).fetchall()


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
    amount = _first_of(lines, ("line_total", "unit_price"))
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
