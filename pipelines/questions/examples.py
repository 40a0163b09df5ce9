"""Records by which a person can judge a question: orders side by side, lines that share a code, the clock of an order.

In: the published warehouse, and the question. Out: lines of text. They have names of customers, so they are looked up
when somebody asks, and kept nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, cast
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd

from orderbridge.pipelines.questions.findings import GONE, PREFIX
from orderbridge.pipelines.questions.model import AskedQuestion
from orderbridge.pipelines.questions.semantics import semantics_key, sent_articles
from orderbridge.pipelines.questions.writes import PREFIX as WRITE
from orderbridge.pipelines.questions.writes import write_examples
from orderbridge.pipelines.warehouse.answers.questions import last_assumptions, last_evidence
from orderbridge.pipelines.warehouse.answers.run_answers import RunAnswers
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.ops import ERP_FILE, last_observed
from orderbridge.pipelines.warehouse.raw.held_lists import held_lists
from orderbridge.pipelines.warehouse.source import read_source
from orderbridge.pipelines.warehouse.sql import columns_of, sql_name
from orderbridge.sources.kinds import ADDED_FIELDS
from orderbridge.sources.settings import warehouse_path
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.sources.words import number
from orderbridge.transforms.erp.match_keys import code
from orderbridge.transforms.frames import Column, from_arrow
from orderbridge.transforms.orders.columns import texts_of
from orderbridge.transforms.orders.customer_evidence import CUSTOMER, NOTATION
from orderbridge.transforms.orders.customer_index import (
    ORDERING_CUSTOMERS,
    CustomerIndex,
    CustomerNotation,
)
from orderbridge.transforms.orders.fields import FIELD_QUESTIONS
from orderbridge.transforms.orders.line_discounts import DISCOUNT_UNIT
from orderbridge.transforms.orders.orders import is_named_utc
from orderbridge.transforms.questions import Answer, Evidence
from orderbridge.transforms.value_questions import CLOCK, DATE_ORDER, TIMEZONE
from orderbridge.transforms.values.date_forms import DateOrder
from orderbridge.transforms.values.dates import read_dates
from orderbridge.transforms.values.keys import clean_text

_UTC: Final = "UTC"
_CLOCK: Final = "%H:%M on %Y-%m-%d"
_SEMANTICS: Final = tuple(map(semantics_key, ADDED_FIELDS))
_SHOWN: Final = 3
_SHOWN_OF_CODE: Final = 5
_INDEX: Final = f"SELECT {', '.join(ORDERING_CUSTOMERS)} FROM reconciled.customers"
_NAMES: Final = """
    SELECT customer_id, concat_ws(', ', nullif(full_name, ''), nullif(default_fiscal_name, ''))
    FROM reconciled.customers WHERE list_contains(?, customer_id)"""
_RAW_NAMES: Final = """
    SELECT id, concat_ws(' ', first_name, last_name) FROM raw.customers WHERE list_contains(?, id)"""
_PAIRS: Final = """
    SELECT {left} AS left_value, {right} AS right_value, count(*) AS row_count, max(id) AS order_id
    FROM raw.orders WHERE _missing_since IS NULL GROUP BY ALL"""
_COLUMN_OF: Final = "SELECT value FROM reconciled.meanings WHERE question = ?"
_NEWEST_TIME: Final = """
    SELECT id, {column} AS written FROM raw.orders WHERE id = (
        SELECT order_id FROM reconciled.orders WHERE ordered_at IS NOT NULL AND NOT is_missing
        ORDER BY ordered_at DESC, order_id LIMIT 1)"""
_NEWEST: Final = """
    SELECT id FROM raw.{table} WHERE _missing_since IS NULL ORDER BY _first_seen_at DESC, id DESC LIMIT 1"""
_WRITTEN_DATES: Final = """
    SELECT id, {column} AS written FROM raw.{table}
    WHERE _missing_since IS NULL AND {column} IS NOT NULL ORDER BY id DESC LIMIT 100"""
_SOME_TOTALS: Final = """
    SELECT id, {columns} FROM raw.orders WHERE _missing_since IS NULL AND {first} IS NOT NULL
    ORDER BY _first_seen_at DESC, id DESC LIMIT 3"""
_DISCOUNTED: Final = """
    SELECT l.order_id, l.line_discount, l.quantity, l.unit_price, l.line_total, o.total
    FROM reconciled.order_lines AS l JOIN reconciled.orders AS o USING (order_id)
    WHERE l.line_discount <> 0 AND l._missing_since IS NULL
    ORDER BY o.ordered_at DESC NULLS LAST, l.order_id DESC, l.line_number LIMIT 3"""
_ORDERS: Final[tuple[DateOrder, ...]] = ("day_first", "month_first")
_OF_FINDINGS: Final = """
    WHERE id IN (
        SELECT entity_id FROM reconciled.exceptions WHERE entity = ? AND rule = ? AND NOT is_accepted)"""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, and the warehouse.

    Attributes:
        subject: the id of a question about a meaning; the rule of one about findings.
        value: that is used now; None: none.
        warehouse: open for reading.
    """

    subject: str
    value: str | None
    warehouse: duckdb.DuckDBPyConnection

    @property
    def evidence(self) -> Evidence:
        """The evidence of the last run about a meaning."""
        evidence = last_evidence(self.warehouse)
        return next((one for one in evidence if one.question == self.subject), Evidence(""))

    def answer(self, question: str) -> Answer | None:
        """The answer in force to a question about a meaning."""
        given = RunAnswers.read().in_force(read_source(self.warehouse))
        return {**last_assumptions(self.warehouse), **given}.get(question)


class _Side(NamedTuple):
    """One of two readings of orders: of a column, by a notation; `words` are of a value that is read so."""

    column: str
    notation: CustomerNotation | None
    words: str


def examples_for(asked: AskedQuestion) -> list[str]:
    """The examples for a question, a line each; none for most kinds."""
    if asked.id.startswith(WRITE):
        return write_examples(asked.id)
    if asked.id in _SEMANTICS:
        return sent_articles(asked.id)
    subject = asked.id.removeprefix(PREFIX).partition("/")[0]
    examples = _EXAMPLES.get(subject)
    if examples is None or not warehouse_path().is_file():
        return []
    with open_warehouse() as warehouse:
        return [*examples(_Asked(subject, asked.value, warehouse))]


def _rival_columns(asked: _Asked) -> Iterator[str]:
    """Orders for which two columns name different customers."""
    evidence = asked.evidence
    known = columns_of(asked.warehouse, "raw.orders")
    wanted = dict.fromkeys([asked.value, evidence.proposal, *evidence.rivals])
    notation = asked.answer(NOTATION)
    given = None if notation is None or notation.is_assumption else _notation(notation.value)
    sides = [_Side(name, given, f"{name} {{}}") for name in wanted if name in known]
    for other in sides[1:]:
        yield from _different_customers(asked.warehouse, sides[0], other)


def _both_notations(asked: _Asked) -> Iterator[str]:
    """Orders that are of another customer if their column is read as ids, or as ERP codes."""
    column = asked.evidence.about
    if column in columns_of(asked.warehouse, "raw.orders"):
        ids = _Side(column, "ids", "{} as an id")
        codes = _Side(column, "codes", "{} as an ERP code")
        yield from _different_customers(asked.warehouse, ids, codes)


def _notation(value: str) -> CustomerNotation:
    return "codes" if value == "codes" else "ids"


def _different_customers(
    warehouse: duckdb.DuckDBPyConnection, left: _Side, right: _Side
) -> Iterator[str]:
    """How many orders are of different customers by two readings, and a few of them side by side."""
    sql = _PAIRS.format(left=sql_name(left.column), right=sql_name(right.column))
    rows = from_arrow(warehouse.sql(sql).to_arrow_table())
    index = CustomerIndex.of(from_arrow(warehouse.sql(_INDEX).to_arrow_table()))
    for name, side in (("left", left), ("right", right)):
        texts = texts_of(rows[f"{name}_value"])
        match = index.match(texts, side.column, side.notation, rows["row_count"])
        rows[f"{name}_text"] = texts
        rows[f"{name}_customer"] = match.customer_id
    both = rows.dropna(subset=["left_customer", "right_customer"])
    different = both[both["left_customer"] != both["right_customer"]]
    if not len(different):
        return
    shown = different.sort_values("order_id", ascending=False).head(_SHOWN)
    ids = [*shown["left_customer"], *shown["right_customer"]]
    names = dict(warehouse.execute(_NAMES, [ids]).fetchall())
    count = int(different["row_count"].sum())
    yield (
        f"{count} of {int(both['row_count'].sum())} orders are of different customers. Who placed these?"
    )
    for row in shown.to_dict("records"):
        yield f"  order {row['order_id']}"
        for name, side in (("left", left), ("right", right)):
            customer = names.get(row[f"{name}_customer"]) or "without a name"
            yield f"    {side.words.format(row[f'{name}_text'])}: {customer}"


def _clocks(asked: _Asked) -> Iterator[str]:
    """When the newest order was made, by the clocks of each zone that is proposed."""
    column = _column_of_dates(asked.warehouse)
    if not column:
        return
    sql = _NEWEST_TIME.format(column=sql_name(column))
    rows = from_arrow(asked.warehouse.sql(sql).to_arrow_table())
    order = asked.answer(DATE_ORDER)
    texts = texts_of(rows["written"])
    read = partial(read_dates, texts, None if order is None else cast(DateOrder, order.value))
    written = read()
    zones = dict.fromkeys([_UTC, asked.value or _UTC, SETTINGS[TIMEZONE].example])
    for order_id, text, at, is_day in zip(
        rows["id"], texts, written.at, written.day_only, strict=True
    ):
        if pd.isna(at) or is_day:
            return
        if written.zone_count and not is_named_utc(column):
            yield f"order {order_id} is written as {text}, without a zone. Answer with the zone of your office."
            yield "if its clock showed another time then, say so next: orderbridge questions reconcile.order_clock"
            times = {zone: read(timezone=zone).at[0] for zone in zones}
            for zone, time in times.items():
                yield f"  read as the time of {zone}, it is {time:{_CLOCK}} in UTC"
        else:
            yield f"order {order_id} is written as {text}. What did your clock show then?"
            for zone in zones:
                yield f"  {at.astimezone(ZoneInfo(zone)):{_CLOCK}} in {zone}"


def _two_clocks(asked: _Asked) -> Iterator[str]:
    """When the newest order was made by each of two clocks, with the time zone of the last run."""
    column = _column_of_dates(asked.warehouse)
    zone = asked.answer(TIMEZONE)
    if not column or zone is None:
        return
    sql = _NEWEST_TIME.format(column=sql_name(column))
    rows = from_arrow(asked.warehouse.sql(sql).to_arrow_table())
    texts = texts_of(rows["written"])
    in_utc = read_dates(texts, timezone=_UTC).at
    for order_id, text, at in zip(rows["id"], texts, in_utc, strict=True):
        if pd.isna(at):
            return
        yield f"order {order_id} is written as {text}. What did the clock in {zone.value} show then?"
        yield f"  {at:{_CLOCK}}, if local"
        yield f"  {at.astimezone(ZoneInfo(zone.value)):{_CLOCK}}, if utc"


def _column_of_dates(warehouse: duckdb.DuckDBPyConnection) -> str:
    """The column of raw.orders with the time of the order; empty where none is known or it is gone."""
    found = warehouse.execute(_COLUMN_OF, [FIELD_QUESTIONS["ordered_at"]]).fetchone()
    column = "" if found is None else str(found[0])
    return column if column in columns_of(warehouse, "raw.orders") else ""


def _two_days(asked: _Asked) -> Iterator[str]:
    """A date that is another day if day or month is first, as one is written in a list where neither is proven."""
    for table, column in _date_columns(asked.warehouse):
        sql = _WRITTEN_DATES.format(table=sql_name(table), column=sql_name(column))
        rows = from_arrow(asked.warehouse.sql(sql).to_arrow_table())
        texts = texts_of(rows["written"])
        days = {order: read_dates(texts, order).at for order in _ORDERS}
        is_other = (days["day_first"] != days["month_first"]).fillna(False)
        for n in rows.index[is_other][:1]:
            yield f"{_record(table)} {rows['id'][n]} is written as {texts[n]}. On which day was it made?"
            for order, of_order in days.items():
                yield f"  {of_order[n].day} {of_order[n]:%B %Y} if {order}"
            return


def _date_columns(warehouse: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
    """The raw columns whose order of day and month can be in question, by table."""
    for table, column in (
        ("orders", _column_of_dates(warehouse)),
        ("customers", "created_at"),
        ("promotions", "start_date"),
    ):
        if column in columns_of(warehouse, f"raw.{table}"):
            yield table, column


def _both_totals(asked: _Asked) -> Iterator[str]:
    """The newest orders with what each column that may be the total says."""
    known = columns_of(asked.warehouse, "raw.orders")
    filled = [one.value for one in asked.evidence.choices if one.share and one.share.hits]
    names = [name for name in filled if name in known]
    if len(names) < 2:
        return
    columns = ", ".join(map(sql_name, names))
    sql = _SOME_TOTALS.format(columns=columns, first=sql_name(names[0]))
    rows = from_arrow(asked.warehouse.sql(sql).to_arrow_table())
    yield "look at one of these orders on the platform:"
    for n, order_id in enumerate(rows["id"]):
        values = [f"{name} {texts_of(rows[name])[n]}" for name in names]
        yield f"  order {order_id}: {', '.join(values)}"


def _discounted_lines(asked: _Asked) -> Iterator[str]:
    """Lines with a discount, with the amounts by which a person can see what it is."""
    columns = columns_of(asked.warehouse, "reconciled.order_lines")
    if "line_discount" not in columns:
        return
    rows = asked.warehouse.execute(_DISCOUNTED).fetchall()
    if rows:
        yield "look at one of these lines on the platform:"
    for order_id, discount, *amounts, total in rows:
        words = ("quantity", "price", "amount")
        known = [
            f"{word} {amount.normalize():f}"
            for word, amount in zip(words, amounts, strict=True)
            if amount is not None
        ]
        of_order = "" if total is None else f"; total of the order {total.normalize():f}"
        yield f"  order {order_id}: {', '.join([*known, f'discount {discount.normalize():f}'])}{of_order}"


class _Coded(NamedTuple):
    """Records that have an ERP code: `sql` gives `id`, `erp_code` and `name`; `same` makes equal codes equal."""

    sql: str
    same: Callable[[Column[Any]], Column[Any]]
    word: str


_CODED: Final = {
    "customers.erp_code_duplicate": _Coded(
        "SELECT customer_id AS id, erp_code, full_name AS name FROM reconciled.customers",
        clean_text,
        "customer",
    ),
    "erp_customers.erp_code_duplicate": _Coded(
        "SELECT line::VARCHAR AS id, erp_code, name FROM reconciled.erp_customers", code, "line"
    ),
}


def _shared_codes(asked: _Asked) -> Iterator[str]:
    """The records of each code that several have, with their names."""
    coded = _CODED[asked.subject]
    entity, _, name = asked.subject.partition(".")
    sql = f"SELECT * FROM ({coded.sql}) {_OF_FINDINGS} ORDER BY try_cast(id AS BIGINT), id"
    rows = from_arrow(asked.warehouse.execute(sql, [entity, name]).to_arrow_table())
    file = last_observed(asked.warehouse, ERP_FILE) if entity == "erp_customers" else None
    if file is not None:
        yield f"in {file}:"
    groups = rows.groupby(coded.same(rows["erp_code"]), sort=False)
    for shared, of_code in islice(groups, _SHOWN):
        yield f"  code {shared}: {', '.join(_records(coded.word, of_code))}"
    if groups.ngroups > _SHOWN:
        yield f"  and {number(groups.ngroups - _SHOWN, 'more code', 'more codes')}"


def _records(word: str, rows: pd.DataFrame) -> Iterator[str]:
    """The first records that share a code, with their names."""
    for record, name in zip(rows["id"][:_SHOWN_OF_CODE], rows["name"], strict=False):
        yield f"{word} {record} ({'no name' if pd.isna(name) else name})"
    if len(rows) > _SHOWN_OF_CODE:
        yield f"{len(rows) - _SHOWN_OF_CODE} more"


def _gone_customers(asked: _Asked) -> Iterator[str]:
    """Some of the customers that are not in the list any more, with their names."""
    for held in held_lists(asked.warehouse):
        if asked.subject == f"list:{held.resource}":
            ids = held.examples.split(", ")
            names = dict(asked.warehouse.execute(_RAW_NAMES, [ids]).fetchall())
            yield from (f"{one}: {names.get(one) or 'without a name'}" for one in ids if one)


def _newest_record(asked: _Asked) -> Iterator[str]:
    """The newest record of a list whose fields lost their values, to look at on the platform."""
    entity = asked.subject.partition(".")[0]
    row = asked.warehouse.execute(_NEWEST.format(table=sql_name(entity))).fetchone()
    if row is not None:
        yield f"to look at on the platform: {_record(entity)} {row[0]}"


def _record(entity: str) -> str:
    """What a record of a list is called."""
    return entity.removesuffix("s").replace("_", " ")


_EXAMPLES: Final[Mapping[str, Callable[[_Asked], Iterator[str]]]] = {
    "list:customers": _gone_customers,
    CUSTOMER: _rival_columns,
    FIELD_QUESTIONS["total"]: _both_totals,
    DISCOUNT_UNIT: _discounted_lines,
    DATE_ORDER: _two_days,
    NOTATION: _both_notations,
    TIMEZONE: _clocks,
    CLOCK: _two_clocks,
    **dict.fromkeys(_CODED, _shared_codes),
    **dict.fromkeys(GONE, _newest_record),
}
