"""Amounts that could be read, and cannot be in new or changed orders: a platform that writes them in another way.

In: the reconciled orders and lines of a build, beside the raw ones. Out: findings of severity error by column, where
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
    SELECT batch, count_if(is_read), count(*) FROM (
        SELECT s.batch, s.id, bool_and(m.{{amount}} IS NOT NULL) AS is_read
        FROM {RECENT} s JOIN raw.{{raw}} r ON r.{{key}} = s.id JOIN reconciled.{{made}} m ON {{same}}
        WHERE r._missing_since IS NULL AND trim(r.{{column}}::VARCHAR) <> ''
        GROUP BY s.batch, s.id)
    GROUP BY batch"""


@dataclass(frozen=True, slots=True)
class _Amounts:
    """Where amounts are read from and to.

    Attributes:
        raw, made: the raw table and the reconciled one.
        key: the column of the raw table that holds the id of the order.
        same: the condition (SQL) under which a row `m` of the one is made of a row `r` of the other.
        columns: the column of the raw table by that of the reconciled one.
    """

    raw: str
    made: str
    key: str
    same: str
    columns: Mapping[str, str]


def lost_totals(rows: RecentRows, column: str, accepted: Accepted) -> Iterator[pd.DataFrame]:
    """Findings about the totals of orders, which `column` holds; `reconciled.orders` is made."""
    totals = _Amounts("orders", "orders", "id", "m.order_id = r.id", {"total": column})
    yield from _lost(rows, totals, accepted)


def lost_line_amounts(
    rows: RecentRows, table: str, columns: Mapping[str, str], accepted: Accepted
) -> Iterator[pd.DataFrame]:
    """Findings about the amounts of lines, in columns of a raw table by field; `reconciled.order_lines` is made."""
    same = "m.order_id = r.order_id AND m.line_number = r.position"
    yield from _lost(rows, _Amounts(table, "order_lines", "order_id", same, columns), accepted)


def _lost(rows: RecentRows, amounts: _Amounts, accepted: Accepted) -> Iterator[pd.DataFrame]:
    def count(kind: RowKind) -> Iterator[Count]:
        for amount, column in amounts.columns.items():
            sql = _READ.format(
                amount=amount,
                raw=sql_name(amounts.raw),
                key=amounts.key,
                made=amounts.made,
                same=amounts.same,
                column=sql_name(column),
            )
            for batch, read, given in rows.build.execute(sql).fetchall():
                yield Count(batch, f"{amounts.raw}: {column}", Share(read, given))

    measure = Measure(
        f"read {amounts.made}",
        count,
        _is_large,
        dict.fromkeys(KINDS, ALL_ROWS.format("orders")),
    )
    for fall in rows.fallen(measure, partial(accepted.is_changed, f"orders.{_RULE}")):
        words = fall.words("with an amount there have one that can be read")
        yield table_finding("orders", _RULE, f"{fall.place}: {words}", place_subject(fall.place))


def _is_large(now: Share, before: Share) -> bool:
    return now.part <= before.part - FALL_MIN
