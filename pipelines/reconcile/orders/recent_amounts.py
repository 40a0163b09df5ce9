"""Amounts that could be read, and cannot be in new or changed orders: a platform that writes them in another way.

In: the reconciled orders and lines of a build, with their raw columns. Out: findings of severity error by column, where
chance does not explain so few readable amounts. An order counts once, however many lines it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from orderbridge.pipelines.warehouse.answers.accepted import Accepted, place_subject
from orderbridge.pipelines.warehouse.raw.recent_rows import (
    ALL_ROWS,
    KINDS,
    RECENT,
    Count,
    Measure,
    RecentRows,
    RowKind,
)
from orderbridge.pipelines.warehouse.sql import sql_name
from orderbridge.transforms.chance import Share
from orderbridge.transforms.findings import table_finding

if TYPE_CHECKING:
    import pandas as pd

FALL_MIN: Final = 0.05
"""Least part of the orders by which those with readable amounts have to fall."""
_RULE: Final = "amounts_lost"
_READ: Final = f"""
    SELECT batch, {{shares}} FROM (
        SELECT s.batch, s.id, {{of_order}} FROM {RECENT} s JOIN reconciled.{{table}} r ON r.order_id = s.id
        WHERE r._missing_since IS NULL GROUP BY s.batch, s.id)
    GROUP BY batch"""
_OF_ORDER: Final = (
    "bool_and(r.{field} IS NOT NULL) FILTER (trim(r.{column}::VARCHAR) <> '') AS {field}"
)
_SHARES: Final = "count_if({field}), count({field})"


@dataclass(frozen=True, slots=True)
class _Amounts:
    """Where amounts are read from and to.

    Attributes:
        raw, table: the raw table and the reconciled one.
        columns: the column of the raw table by field, which is that of the reconciled one.
        passed_on: the names of the raw columns in the reconciled table, by their own.
    """

    raw: str
    table: str
    columns: Mapping[str, str]
    passed_on: Mapping[str, str]

    def sql(self) -> str:
        """For each batch and field: how many orders have an amount that is read, and how many have one (SQL)."""
        of_order = [
            _OF_ORDER.format(field=field, column=sql_name(self.passed_on[column]))
            for field, column in self.columns.items()
        ]
        shares = [_SHARES.format(field=field) for field in self.columns]
        return _READ.format(
            table=self.table, of_order=", ".join(of_order), shares=", ".join(shares)
        )


def lost_totals(
    rows: RecentRows, column: str, passed_on: Mapping[str, str], accepted: Accepted
) -> Iterator[pd.DataFrame]:
    """Findings about the totals of orders, which `column` holds; `reconciled.orders` is made, see `_Amounts`."""
    yield from _lost(rows, _Amounts("orders", "orders", {"total": column}, passed_on), accepted)


def lost_line_amounts(
    rows: RecentRows,
    table: str,
    columns: Mapping[str, str],
    passed_on: Mapping[str, str],
    accepted: Accepted,
) -> Iterator[pd.DataFrame]:
    """Findings about the amounts of lines, in columns of a raw table by field; see `lost_totals`."""
    yield from _lost(rows, _Amounts(table, "order_lines", columns, passed_on), accepted)


def _lost(rows: RecentRows, amounts: _Amounts, accepted: Accepted) -> Iterator[pd.DataFrame]:
    def count(kind: RowKind) -> Iterator[Count]:
        if not amounts.columns:
            return
        for batch, *counts in rows.build.execute(amounts.sql()).fetchall():
            shares = zip(counts[::2], counts[1::2], strict=True)
            for column, (read, given) in zip(amounts.columns.values(), shares, strict=True):
                if given:
                    yield Count(batch, f"{amounts.raw}: {column}", Share(read, given))

    measure = Measure(
        f"read {amounts.table}",
        count,
        _is_large,
        dict.fromkeys(KINDS, ALL_ROWS.format("orders")),
    )
    for fall in rows.fallen(measure, partial(accepted.is_changed, f"orders.{_RULE}")):
        words = fall.words("with an amount there have one that can be read")
        yield table_finding("orders", _RULE, f"{fall.place}: {words}", place_subject(fall.place))


def _is_large(now: Share, before: Share) -> bool:
    return now.part <= before.part - FALL_MIN
