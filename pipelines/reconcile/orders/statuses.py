"""Which orders are sales: the classes of their statuses, the question about them, and what a new version changes.

In: the raw orders of a build, the answers in force, and the reconciled orders of the run before. Out: the class of each
status, its question with orders and amounts, and, once after an upgrade, what leaves the revenue by month.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

import duckdb
import pandas as pd

from orderbridge.pipelines.reconcile.orders.orders import RawOrders
from orderbridge.pipelines.warehouse.sql import columns_of, has_tables, sql_name
from orderbridge.sources.words import number
from orderbridge.transforms.findings import combine_findings, table_finding
from orderbridge.transforms.frames import from_arrow
from orderbridge.transforms.orders.cancelled import (
    NO_STATUS,
    STATUSES_MAX,
    second_columns,
    split_row,
    test_row,
)
from orderbridge.transforms.orders.columns import texts_of
from orderbridge.transforms.orders.fields import FieldChoice
from orderbridge.transforms.orders.statuses import (
    STATUSES,
    StatusEvidence,
    classes_in_force,
    given_classes,
    proposed_classes,
    status_question,
)
from orderbridge.transforms.questions import Answer, Question, table_of, table_text

_MONTHS_SHOWN: Final = 12
_VALUES_MAX: Final = 500
"""So many values of a column are classified; one that a person has named by mistake may have a million."""
_COUNTED: Final = "counted_before"
"""The orders of an older version, which knew no classes, and whether it counted them as revenue."""
_COUNTED_BEFORE: Final = f"""
    CREATE OR REPLACE TEMP TABLE {_COUNTED} AS
    SELECT order_id, {{is_counted}} AS is_counted FROM reconciled.orders"""
_COUNTED_STATUSES: Final = f"""
    SELECT {{column}}, bool_or(c.is_counted) AS is_counted
    FROM {{orders}} o JOIN {_COUNTED} c ON c.order_id = o.id GROUP BY 1"""
_AMOUNTS: Final = """
    SELECT coalesce(order_status, ?), count(*), currency, sum(total) FROM reconciled.orders
    WHERE NOT is_missing GROUP BY ALL ORDER BY 2 DESC, 1, 3"""
_TEST_AMOUNTS: Final = """
    SELECT count(*), currency, sum(total) FROM reconciled.orders
    WHERE NOT is_missing AND status_class = 'test' GROUP BY ALL ORDER BY 1 DESC, 2"""
_BESIDE: Final = """
    SELECT coalesce(o.order_status, ?), r.{column}::VARCHAR, count(*)
    FROM {orders} r POSITIONAL JOIN reconciled.orders o
    WHERE o.is_sale AND NOT o.is_missing AND r.{column} IS NOT NULL GROUP BY ALL ORDER BY ALL"""
_LEFT: Final = f"""
    SELECT CAST(date_trunc('month', o.ordered_date) AS DATE) AS month, o.currency, sum(o.total) AS before,
        CASE WHEN count(o.is_sale) > 0 AND count(o.total) > 0
            THEN coalesce(sum(o.total) FILTER (o.is_sale), 0) END AS now,
        count(*) FILTER (o.is_sale IS NOT true) AS orders
    FROM reconciled.orders o SEMI JOIN {_COUNTED} c ON c.order_id = o.order_id AND c.is_counted WHERE NOT o.is_missing
    GROUP BY ALL HAVING count(*) FILTER (o.is_sale IS NOT true) > 0 ORDER BY ALL"""
_LEFT_STATUSES: Final = f"""
    SELECT DISTINCT coalesce(o.order_status, '{NO_STATUS}'), o.status_class
    FROM reconciled.orders o SEMI JOIN {_COUNTED} c ON c.order_id = o.order_id AND c.is_counted
    WHERE NOT o.is_missing AND o.is_sale IS NOT true ORDER BY 1"""


class LeftMonth(NamedTuple):
    """What an older version counted as revenue in a month, and this one does not.

    Attributes:
        month: its first day; None: of orders without a date.
        currency: None: not known.
        before, now: the revenue with and without these orders; None: no total is known.
        orders: how many are no longer counted.
    """

    month: date | None
    currency: str | None
    before: Decimal | None
    now: Decimal | None
    orders: int

    @property
    def name(self) -> str:
        """The month in words."""
        return "no date" if self.month is None else f"{self.month:%Y-%m}"

    @property
    def words(self) -> str:
        """The month with both sums."""
        currency = f" {self.currency}" if self.currency else ""
        orders = number(self.orders, "order")
        sums = f"{_amount(self.before)} → {_amount(self.now)}{currency}"
        return f"{self.name}: {sums}, {orders} not counted any more"


@dataclass(frozen=True, slots=True)
class LeftRevenue:
    """What an older version counted as revenue, and this one does not.

    Attributes:
        months: by month and currency, the last month last.
        answer: the one that counts it again; empty: no status is the reason, but another column.
    """

    months: Sequence[LeftMonth] = ()
    answer: str = ""

    @property
    def command(self) -> str:
        """What counts these orders again, in words."""
        if not self.answer:
            return "refunds, or another column than that of the status, say so"
        end_of_options = "-- " if self.answer.startswith("-") else ""
        return f"to count them: orderbridge answer {STATUSES} {end_of_options}{shlex.quote(self.answer)}"

    def lines(self) -> list[str]:
        """What a run prints."""
        if not self.months:
            return []
        shown = self.months[-_MONTHS_SHOWN:]
        more = len(self.months) - len(shown)
        return [
            "not counted as revenue any more, as these orders are no sales:",
            *(
                [f"  {number(more, 'earlier month')}: see the findings orders.revenue_left"]
                if more
                else []
            ),
            *(f"  {one.words}" for one in shown),
            f"  {self.command}",
        ]

    def findings(self) -> pd.DataFrame:
        """A finding for each month."""
        found = [
            table_finding("orders", "revenue_left", f"{one.words}; {self.command}", one.name)
            for one in self.months
        ]
        return combine_findings(found)


@dataclass(slots=True)
class OrderStatuses:
    """The classes of the statuses of a run.

    Attributes:
        orders: the raw ones.
        known: the values of the column of statuses.
        proposed: the class of each value without an answer.
        answer: in force; an assumption is part of `proposed`.
        is_upgraded: the run before was of a version that knew no classes.
    """

    orders: RawOrders
    known: StatusEvidence
    proposed: Mapping[str, str]
    answer: Answer | None
    is_upgraded: bool

    @classmethod
    def of(
        cls,
        orders: RawOrders,
        choice: FieldChoice,
        answer: Answer | None,
        assumption: Answer | None,
        cancelled: tuple[str, ...] | None,
    ) -> OrderStatuses:
        """Decides the class of each status, before the orders are reconciled."""
        build = orders.tables.build
        column = choice.fields.order_status
        is_upgraded = _note_counted(build)
        is_of_column = assumption is not None and assumption.about in ("", column)
        assumed = table_of(assumption.value) if assumption is not None and is_of_column else {}
        given = given_classes(answer)
        listed, others = (
            ([], []) if column is None else _values(orders, column, {**assumed, **given})
        )
        counted: set[str] = set()
        left_out: set[str] = set()
        if is_upgraded and column is not None:
            counted, left_out = _values_before(orders, column)
        flags = tuple(map(test_row, choice.cancellation.test_columns))
        known = StatusEvidence(
            column,
            tuple(listed),
            tuple(others),
            flags,
            tuple(row for row in given if _is_of_other_column(row, orders) and row not in flags),
            frozenset(counted),
            frozenset(left_out),
            None if cancelled is None else frozenset(map(str.casefold, cancelled)),
        )
        proposed = proposed_classes(known, assumed, given)
        return cls(orders, known, proposed, answer, is_upgraded)

    @property
    def build(self) -> duckdb.DuckDBPyConnection:
        """Open for writing."""
        return self.orders.tables.build

    @property
    def classes(self) -> dict[str, str]:
        """The class of each value, in lower case."""
        return classes_in_force(self.known, self.proposed, self.answer)

    def question(self) -> Question | None:
        """The question with the orders and amounts of each status; `reconciled.orders` is made."""
        words: dict[str, list[str]] = {}
        orders: dict[str, int] = {}
        for status, count, currency, total in self.build.execute(_AMOUNTS, [NO_STATUS]).fetchall():
            orders[status] = orders.get(status, 0) + count
            words.setdefault(status, []).append(_money(total, currency))
        for status, of_others in self._beside().items():
            words.setdefault(status, []).extend(of_others)
        counts = {
            status: ", ".join([number(count, "order"), *filter(None, words[status])])
            for status, count in orders.items()
        }
        tests = self.build.execute(_TEST_AMOUNTS).fetchall()
        of_tests = [number(sum(count for count, *_ in tests), "order")]
        of_tests += [_money(total, currency) for _, currency, total in tests]
        counts.update(dict.fromkeys(self.known.flags, ", ".join(filter(None, of_tests))))
        return status_question(self.known, self.proposed, self.answer, counts)

    def _beside(self) -> dict[str, list[str]]:
        """What other columns of statuses say of the sales, by the status: such as `payment_status: pending in 8`."""
        words: dict[str, list[str]] = {}
        for name in second_columns(self.orders.kinds, self.known.column):
            sql = _BESIDE.format(column=sql_name(name), orders=self.orders.name)
            rows = self.build.execute(sql, [NO_STATUS]).fetchall()
            if 1 < len({value for _, value, _ in rows}) <= STATUSES_MAX:
                for status, value, count in rows:
                    words.setdefault(status, []).append(f"{name}: {value} in {count}")
        return words

    def left_revenue(self) -> LeftRevenue:
        """What leaves the revenue by the first run after an upgrade; nothing in other runs."""
        if not self.is_upgraded:
            return LeftRevenue()
        months = [LeftMonth(*row) for row in self.build.execute(_LEFT).fetchall()]
        statuses: dict[str, str] = {}
        for status, of_status in self.build.execute(_LEFT_STATUSES).fetchall():
            if self.classes.get(status.casefold()) not in ("sale", None):
                statuses[status] = "sale"
            elif of_status == "test":
                statuses.update(dict.fromkeys(self.known.flags, "sale"))
        return LeftRevenue(months, table_text(statuses) if statuses else "")


def _is_of_other_column(row: str, orders: RawOrders) -> bool:
    column, _ = split_row(row)
    return column in orders.kinds


def _note_counted(build: duckdb.DuckDBPyConnection) -> bool:
    """Keeps which orders an older version counted as revenue. Returns whether the run before was of one."""
    if not has_tables(build, "reconciled", "orders"):
        return False
    columns = columns_of(build, "reconciled.orders")
    if "status_class" in columns:
        return False
    # 0.2 had no such column: it counted every order.
    is_counted = "NOT is_cancelled" if "is_cancelled" in columns else "true"
    build.execute(_COUNTED_BEFORE.format(is_counted=is_counted))
    return True


def _values_before(orders: RawOrders, column: str) -> tuple[set[str], set[str]]:
    """The values of the column of statuses that an older version counted, and those that it counted in no order."""
    sql = _COUNTED_STATUSES.format(column=sql_name(column), orders=orders.name)
    rows = from_arrow(orders.tables.build.sql(sql).to_arrow_table())
    texts = texts_of(rows[column]).fillna(NO_STATUS)
    is_counted = rows["is_counted"].fillna(True).to_numpy(bool)
    counted = {*texts[is_counted]}
    return counted, {*texts[~is_counted]} - counted


def _values(
    orders: RawOrders, column: str, decided: Collection[str]
) -> tuple[list[str], list[str]]:
    """The values of the column of statuses that listed orders have, the most frequent first, and the others.

    Of too many, those that nothing has decided come first: answers bring on the next ones.
    """
    rows = orders.distinct([column], where="true")
    texts = texts_of(rows[column]).fillna(NO_STATUS)
    counts: dict[str, int] = {}
    for text, count in zip(texts, rows["row_count"], strict=True):
        counts[text] = counts.get(text, 0) + int(count)
    listed = sorted((one for one in counts if counts[one]), key=lambda one: (-counts[one], one))
    if len(listed) > _VALUES_MAX:
        known = {one.casefold() for one in decided}
        listed.sort(key=lambda one: one.casefold() in known)
    others = [one for one in counts if not counts[one]]
    return listed[:_VALUES_MAX], others[:_VALUES_MAX]


def _amount(total: Decimal | None) -> str:
    return "unknown" if total is None else f"{total:.2f}"


def _money(total: Decimal | None, currency: str | None) -> str:
    return "" if total is None else f"{total:.2f} {currency or ''}".strip()
