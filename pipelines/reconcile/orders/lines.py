"""The raw lines of the orders of a build, read in parts and as a sample.

In: the raw child table that holds the lines, and those of their discounts. Out: its columns, with the sums of discounts
that a line has in an array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

import duckdb
import pandas as pd
import pyarrow as pa

from orderbridge.pipelines.reconcile.orders.name_pairs import split_pairs
from orderbridge.pipelines.reconcile.parts import Parts
from orderbridge.pipelines.warehouse.sql import columns_of, sql_name, table_names
from orderbridge.transforms.chance import Share
from orderbridge.transforms.frames import from_arrow
from orderbridge.transforms.orders.fields import LineUnits
from orderbridge.transforms.orders.line_fields import LineChoice
from orderbridge.transforms.orders.lines import LINE_FIELDS, ORDER_LINES, LineReading, lines_part
from orderbridge.transforms.orders.names import DISCOUNT_AMOUNTS, DISCOUNT_ARRAYS
from orderbridge.transforms.orders.orders import raw_column_names

KEYS: Final = ("order_id", "position")
"""The columns that name a line."""
PRODUCT: Final = "'product'"
"""The kind of each line (SQL) where all are products."""
_UNREADABLE: Final = "not readable"
"""In place of the sum of discounts of which one is no number."""
_WITH_DISCOUNTS: Final = """
    CREATE OR REPLACE TEMP TABLE lines_with_discounts AS
    SELECT l.*, d.amount AS {name} FROM {table} l LEFT JOIN (
        SELECT order_id, line, if(count(amount) = count(*), sum(amount)::VARCHAR, '{unreadable}') AS amount
        FROM (SELECT n.order_id, n.{line} AS line, {amount} AS amount FROM raw.{child} n) GROUP BY ALL) d
    ON d.order_id = l.order_id AND d.line = l.position ORDER BY l.rowid"""


@dataclass(frozen=True, slots=True)
class RawLines:
    """The raw lines: the `LineColumns` of those of listed orders.

    Attributes:
        tables: reads them.
        table: that is read: the raw one, or a copy with the sums of discounts, and ids and names in place of pairs.
        raw: the table whose columns `reconciled.order_lines` passes on.
        kinds: the type of each column that is read.
        rows: the number of lines of listed orders; of all where no order is listed.
        listed: the condition (SQL) that a line counts.
        share: a sample has the lines of one order in so many.
        kind: of a line (SQL): `product`, `part` or `no_product`.
    """

    tables: Parts
    table: str
    raw: str
    kinds: Mapping[str, pa.DataType]
    rows: int
    listed: str
    share: int = 1
    kind: str = PRODUCT

    @classmethod
    def of(cls, tables: Parts, name: str, share: int = 1) -> RawLines:
        """Those of a raw child table."""
        build = tables.build
        raw = tables.numbered(name)
        table = split_pairs(tables, raw, "lines_with_names")
        discounts = discount_columns(build, name)
        if discounts:
            column, (child, amount) = next(iter(discounts.items()))
            line = f"{name.removeprefix('orders__')}_position"
            sql = _WITH_DISCOUNTS.format(
                table=table,
                name=sql_name(column),
                line=sql_name(line),
                amount=tables.numbers(f"raw.{sql_name(child)}", amount, "n"),
                child=sql_name(child),
                unreadable=_UNREADABLE,
            )
            build.execute(sql)
            table = "temp.lines_with_discounts"
        schema = build.sql(f"FROM {table} LIMIT 0").to_arrow_table().schema
        kinds = dict(zip(schema.names, schema.types, strict=True))
        listed = "_missing_since IS NULL"
        rows = _count(build, table, listed)
        if not rows:
            listed = "true"
            rows = _count(build, table, listed)
        return cls(tables, table, raw, kinds, rows, listed, share)

    @property
    def keys(self) -> Sequence[str]:
        """See `RawColumns`."""
        return [name for name in self.kinds if name in KEYS or name.endswith("_position")]

    def passed_on(self) -> dict[str, str]:
        """The raw columns of `reconciled.order_lines`: their names there by their own."""
        columns = [name for name in columns_of(self.tables.build, self.raw) if name not in KEYS]
        return raw_column_names(ORDER_LINES, columns)

    def parts(self, columns: Iterable[str]) -> Iterator[pd.DataFrame]:
        """See `RawColumns`."""
        missing = f"NOT ({self.listed}) AS is_missing"
        return self.tables.read({self.table: ", ".join([*map(sql_name, columns), missing])})

    def filled_by_run(self, column: str, after: datetime) -> list[Share]:
        """See `RawColumns`."""
        text = f"trim({sql_name(column)}::VARCHAR)"
        sql = f"""
            SELECT count(nullif({text}, '')), count(*) FROM {self.table}
            WHERE {self.listed} AND _first_seen_at > ? GROUP BY _first_seen_at ORDER BY _first_seen_at DESC"""
        return [Share(*row) for row in self.tables.build.execute(sql, [after]).fetchall()]

    def distinct(self, names: Sequence[str]) -> pd.DataFrame:
        """See `RawColumns`."""
        columns = ", ".join(map(sql_name, names))
        sql = f"SELECT {columns}, count(*) AS row_count FROM {self.table} WHERE {self.listed} GROUP BY ALL"
        return from_arrow(self.tables.build.sql(sql).to_arrow_table())

    def sample(self, columns: Mapping[str, str]) -> pd.DataFrame:
        """See `LineColumns`."""
        named = [f"{sql_name(column)} AS {sql_name(name)}" for name, column in columns.items()]
        read = ["order_id", f"{self.kind} AS line_kind", *named]
        sql = f"""
            SELECT {", ".join(read)} FROM {self.table}
            WHERE {self.listed} AND hash(order_id) % {self.share} = 0 AND {self.kind} <> 'part'"""
        return from_arrow(self.tables.build.sql(sql).to_arrow_table())


@dataclass(frozen=True, slots=True)
class ReadLines:
    """The fields of the lines, a row for each raw line in its order.

    Attributes:
        made: how DuckDB reads them.
        counts: for `lines_findings`.
        columns: the raw columns (SQL) that they are read from, by field.
        reading: how they are read.
        is_in_cents: amounts are in cents.
    """

    made: str
    counts: Counter[str]
    columns: str
    reading: LineReading
    is_in_cents: bool


def read_lines(lines: RawLines, choice: LineChoice, units: LineUnits) -> ReadLines:
    """Reads the fields of the lines."""
    named = choice.fields.columns()
    read = [f"{sql_name(column)} AS {name}" for name, column in named.items()]
    columns = ", ".join([*read, f"{lines.kind} AS line_kind"])
    reading = LineReading.of(choice, units.discount, is_unit_known=units.is_known)
    task = partial(lines_part, reading=reading)
    parts = lines.tables.read({lines.table: columns})
    made, counts = lines.tables.fill(LINE_FIELDS, task, parts)
    return ReadLines(made, counts, columns, reading, units.is_in_cents)


def line_sums_sql(lines: RawLines, read: ReadLines) -> str:
    """What the lines of each order come to (SQL: `order_id` and `total`), null where that of a product is null.

    A note has no amount, and parts are in that of their set.
    """
    return f"""
        SELECT l.order_id, if(bool_and(f.line_amount IS NOT NULL OR f.line_kind <> 'product'), sum(f.line_amount), NULL)
            ::DECIMAL(38, 9) AS total
        FROM {lines.table} l POSITIONAL JOIN {read.made} f WHERE f.line_kind <> 'part' GROUP BY l.order_id"""


def discount_columns(build: duckdb.DuckDBPyConnection, name: str) -> dict[str, tuple[str, str]]:
    """The sums of discounts that lines have in arrays: by the name of the column, the child table and its amounts."""
    found: dict[str, tuple[str, str]] = {}
    tables = table_names(build, "raw")
    line = f"{name.removeprefix('orders__')}_position"
    for array in DISCOUNT_ARRAYS:
        child = f"{name}__{array}"
        columns = columns_of(build, f"raw.{sql_name(child)}") if child in tables else {}
        amounts = [amount for amount in DISCOUNT_AMOUNTS if amount in columns]
        if amounts and line in columns:
            found[f"{array}__amount"] = child, amounts[0]
    return found


def _count(build: duckdb.DuckDBPyConnection, table: str, listed: str) -> int:
    ((rows,),) = build.execute(f"SELECT count(*) FROM {table} WHERE {listed}").fetchall()
    return int(rows)
