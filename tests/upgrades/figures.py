"""What a warehouse says, and which of it is gone or different after an upgrade.

In: a warehouse before and after. Out: a line for each column that lost a figure. A number is the same in whichever type
and is rounded to nine decimals, as amounts are; a value may move from a column of its order to the child table of that
name. Figures of the run itself, such as its id and time, are left out.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb

SCHEMAS: Final = ("raw", "reconciled", "bi")
_DECIMALS: Final = Decimal("1e-9")
_HALF_A_CENT: Final = Decimal("0.005")
_EMPTY: Final = (None, "[]", "{}")
"""What is nothing: 0.2 kept the empty lists and objects of orders as texts."""
OF_THE_RUN: Final = (
    "*._run_id",
    "*._last_seen_at",
    "*as_of.as_of",
    "*as_of.today",
    "bi.regular_customers.days_since_last",
    "bi.lists.*",
    "bi.findings*.*",
    "reconciled.exceptions.*",
    "reconciled.erp_pairs.weight",
)
"""Columns that say something about the run, or that each run writes anew. The weight of a pair is by its rules."""
OF_WHAT_IS_UNKNOWN: Final = ("*.unknown_because", "*.unpriced_orders")
"""Columns that say what is not known. A figure that is known now takes their value away."""
Row = tuple[Any, ...]


class Table(NamedTuple):
    """The rows of a table by what names a row."""

    columns: tuple[str, ...]
    rows: list[Row]


Figures = Mapping[str, Table]


def read_figures(warehouse: Path) -> Figures:
    """The tables and views that people read, without the columns of the run."""
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        names = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE list_contains($1, table_schema) ORDER BY ALL",
            [list(SCHEMAS)],
        ).fetchall()
        return dict(_read(connection, f"{schema}.{table}") for schema, table in names)


def _read(connection: duckdb.DuckDBPyConnection, name: str) -> tuple[str, Table]:
    columns = [column for column, *_ in connection.execute(f"DESCRIBE {name}").fetchall()]
    kept = [column for column in columns if _is_figure(f"{name}.{column}")]
    if not kept:
        return name, Table((), [])
    listed = ", ".join(f'"{column}"' for column in kept)
    rows = connection.execute(f"SELECT {listed} FROM {name}").fetchall()
    return name, Table(tuple(kept), [tuple(map(_normal, row)) for row in rows])


def _is_figure(column: str) -> bool:
    return not any(fnmatchcase(column, one) for one in (*OF_THE_RUN, *OF_WHAT_IS_UNKNOWN))


def _normal(value: Any) -> Any:
    """A value regardless of the type of its column."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | Decimal | str):
        try:
            number = Decimal(str(value))
            if number.is_finite():
                return number.quantize(_DECIMALS, ROUND_HALF_UP).normalize()
        except InvalidOperation:
            return value
    return value


def wrong_orders(figures: Figures, orders: list[dict[str, Any]]) -> list[str]:
    """Orders whose total, or number of lines, is not that of the platform's record with `total` and a list of items.

    A figure that an old version had lost must be there again.
    """
    table = figures["reconciled.orders"]
    order_id, total = table.columns.index("order_id"), table.columns.index("total")
    totals = {row[order_id]: row[total] for row in table.rows}
    lines = figures["reconciled.order_lines"]
    owners: Counter[Any] = Counter()
    if lines.rows:
        owner = lines.columns.index("order_id")
        owners.update(row[owner] for row in lines.rows)
    wrong: list[str] = []
    for order in orders:
        name = _normal(order["id"])
        items = next(order[field] for field in ("items", "line_items") if field in order)
        expected, count = _normal(order["total"]), len(items)
        if (totals.get(name), owners[name]) != (expected, count):
            wrong.append(
                f"{name} has {totals.get(name)} and {owners[name]} lines, not {expected} and {count}"
            )
    return wrong


def lost_figures(before: Figures, after: Figures) -> list[str]:
    """What was there and is gone or different, a line for each column with the number of rows and an example."""
    lost: list[str] = []
    for name, table in before.items():
        if not table.rows:
            continue
        if name not in after:
            lost.append(f"{name}: the table is gone, with {len(table.rows)} rows")
            continue
        lost += _lost_of(name, table, after)
    return lost


def _key(table: Table) -> tuple[str, ...]:
    """The columns, from the first on, that name a row; all where rows are equal."""
    key: list[str] = []
    distinct = 0
    for place, column in enumerate(table.columns):
        count = len({row[: place + 1] for row in table.rows})
        if count > distinct:
            key.append(column)
            distinct = count
        if distinct == len(table.rows):
            break
    return tuple(key)


def _by_key(table: Table, key: tuple[str, ...]) -> dict[Row, list[dict[str, Any]]]:
    rows: defaultdict[Row, list[dict[str, Any]]] = defaultdict(list)
    for row in table.rows:
        fields = dict(zip(table.columns, row, strict=True))
        rows[tuple(fields[column] for column in key)].append(fields)
    return rows


def _lost_of(name: str, table: Table, after: Figures) -> Iterator[str]:
    key = _key(table)
    now = after[name]
    if absent := set(key) - set(now.columns):
        yield f"{name}: the column {', '.join(sorted(absent))} is gone"
        return
    rows_now = _by_key(now, key)
    rows_gone: list[Row] = []
    gone: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for values, rows in _by_key(table, key).items():
        if values not in rows_now:
            rows_gone.append(values)
            continue
        for row, row_now in zip(rows, rows_now[values], strict=False):
            for column, value in row.items():
                value_now = row_now.get(column)
                if value in _EMPTY or value == value_now:
                    continue
                if name.startswith("bi.") and _is_in_cents(value, value_now, row):
                    continue
                if _has_moved(name, column, row, value, after):
                    continue
                gone[column] += 1
                examples.setdefault(column, f"{value} is now {value_now}, of {values}")
    if rows_gone:
        yield f"{name}: {len(rows_gone)} of {len(table.rows)} rows are gone, such as {rows_gone[0]}"
    for column, count in gone.items():
        yield f"{name}.{column}: {count} of {len(table.rows)}: {examples[column]}"


def _is_in_cents(value: Any, value_now: Any, row: Mapping[str, Any]) -> bool:
    """Whether an amount is that of before as the views for BI tools show it since 0.3.0: each order in cents."""
    if not isinstance(value, Decimal) or not isinstance(value_now, Decimal):
        return False
    orders = row.get("orders") or 1
    return abs(value - value_now) <= _HALF_A_CENT * orders


def _has_moved(name: str, column: str, row: Mapping[str, Any], value: Any, after: Figures) -> bool:
    """Whether the value of an order is in a child table now; or what was JSON, such as `_extra`, in columns."""
    if not name.partition(".")[2].startswith("orders"):
        return False
    with suppress(TypeError, ValueError):
        parts = json.loads(value)
        if isinstance(parts, dict | list):
            return _is_in_columns(parts, after)
    parent, _, field = column.partition("__")
    child = after.get(f"raw.orders__{parent}")
    if child is None or field not in child.columns:
        return False
    owner = row.get("id", row.get("order_id"))
    id_at = child.columns.index("order_id")
    value_at = child.columns.index(field)
    return any(line[id_at] == owner and line[value_at] == value for line in child.rows)


def _is_in_columns(value: Any, after: Figures) -> bool:
    """Whether each scalar of a JSON value is anywhere in the raw tables, also in `_extra`."""
    if isinstance(value, dict):
        return all(_is_in_columns(one, after) for one in value.values())
    if isinstance(value, list):
        return all(_is_in_columns(one, after) for one in value)
    if value is None:
        return True
    text = str(value)
    for name, table in after.items():
        if not name.startswith("raw.orders"):
            continue
        for row in table.rows:
            if _normal(value) in row or any(isinstance(one, str) and text in one for one in row):
                return True
    return False
