"""The reconciled entities: what each is made from, in the order in which they are made.

In: the raw tables of a build, the settings, and the entities made before. Out: a frame for each reconciled table, with
its findings and how its dates were read. The transforms make the frames. The columns that orders are read from
are questions, which the run keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import duckdb
import pandas as pd

from orderbridge.pipelines.reconcile.customers import reconcile_customers
from orderbridge.pipelines.reconcile.odd_values import odd_values
from orderbridge.pipelines.reconcile.orders.duplicates import duplicate_orders
from orderbridge.pipelines.reconcile.orders.line_kinds import kind_rows, kind_sql
from orderbridge.pipelines.reconcile.orders.lines import (
    RawLines,
    ReadLines,
    line_sums_sql,
    read_lines,
)
from orderbridge.pipelines.reconcile.orders.orders import (
    NO_SUMS,
    RawOrders,
    fewer_known_customers,
    match_customers,
    reconcile_orders,
)
from orderbridge.pipelines.reconcile.orders.questions import (
    check_line_settings,
    check_settings,
    last_matched_share,
    lines_findings,
    lines_question,
    record_used_fields,
)
from orderbridge.pipelines.reconcile.orders.recent_amounts import lost_line_amounts, lost_totals
from orderbridge.pipelines.reconcile.orders.refunds import find_refunds
from orderbridge.pipelines.reconcile.orders.statuses import OrderStatuses
from orderbridge.pipelines.reconcile.orders.totals import reconcile_customer_orders, reconcile_lines
from orderbridge.pipelines.reconcile.parts import Findings, Mapper, Parts, folder_of
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.accepted import Accepted
from orderbridge.pipelines.warehouse.answers.questions import LINES, RunQuestions
from orderbridge.pipelines.warehouse.answers.reviews import Review
from orderbridge.pipelines.warehouse.raw import coverage
from orderbridge.pipelines.warehouse.raw.recent_rows import RecentRows
from orderbridge.sources.settings import ReconcileSettings
from orderbridge.transforms.findings import combine_findings
from orderbridge.transforms.frames import BIGINT, constant, frame, from_arrow
from orderbridge.transforms.orders.customer_evidence import CUSTOMER, NOTATION
from orderbridge.transforms.orders.customer_index import (
    CUSTOMER_EMAILS,
    ORDERING_CUSTOMERS,
    CustomerIndex,
)
from orderbridge.transforms.orders.fields import (
    COLUMN_QUESTIONS,
    ORDER_FIELDS,
    FieldChoice,
    choose_fields,
)
from orderbridge.transforms.orders.line_fields import (
    LINE_QUESTIONS,
    LineFields,
    choose_line_fields,
)
from orderbridge.transforms.orders.line_kinds import LINE_KINDS, kinds_in_force, kinds_question
from orderbridge.transforms.orders.lines import ORDER_LINES
from orderbridge.transforms.orders.statuses import STATUSES
from orderbridge.transforms.orders.total_candidates import SUM_OF_PAYMENTS, SUMS
from orderbridge.transforms.price_lists import CUSTOMER_PRICE_LISTS, price_lists
from orderbridge.transforms.promotions import promotions
from orderbridge.transforms.questions import Answer, Question, table_of
from orderbridge.transforms.value_questions import CLOCK
from orderbridge.transforms.values.dates import DateContext, ReadDates


@dataclass(slots=True)
class StepInputs:
    """What entities are made from.

    Attributes:
        build: open for writing, with the raw tables.
        run_id: of this run.
        settings: of reconciling.
        dates: the instant of the run, and how dates are read.
        map_tasks: maps a function over parts of tables.
        accepted: changes that a person has accepted.
        reviews: what people decided about pairs of the match with the ERP.
        questions: the answers in force, and what the steps ask.
        findings: what the steps find.
        parts: reads and writes long tables.
        reads: the last published read of each list.
        unknown: why customers, dates or totals of the orders are not known, by field.
        lines: the raw table of the lines of the orders.
        read_lines: the lines, the columns of their fields, and these fields as they are read.
    """

    build: duckdb.DuckDBPyConnection
    run_id: str
    settings: ReconcileSettings
    dates: DateContext
    map_tasks: Mapper
    accepted: Accepted
    reviews: Mapping[str, Review]
    questions: RunQuestions
    findings: Findings = field(init=False)
    parts: Parts = field(init=False)
    reads: Mapping[str, ops.LastRead] = field(init=False)
    unknown: Mapping[str, str] = field(default_factory=dict)
    lines: str | None = None
    read_lines: tuple[RawLines, LineFields, ReadLines] | None = None

    def __post_init__(self) -> None:
        self.reads = ops.last_reads(self.build)
        self.findings = Findings(folder_of(self.build))
        self.parts = Parts(self.build, self.findings, self.map_tasks)

    def raw(self, table: str) -> pd.DataFrame:
        """The raw table of a list. It is read when it is needed and not kept: lists may have millions of rows."""
        return from_arrow(self.build.sql(f"FROM {self.parts.numbered(table)}").to_arrow_table())

    def reconciled(self, table: str, columns: Iterable[str] = ("*",)) -> pd.DataFrame:
        """A table that an earlier step made, sorted by its first column; see `raw`."""
        sql = f"SELECT {', '.join(columns)} FROM reconciled.{table} ORDER BY 1"
        return from_arrow(self.build.sql(sql).to_arrow_table())

    def row_count(self, table: str) -> int:
        """The number of rows of a table of the build, which is named with its schema."""
        ((count,),) = self.build.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(count)

    def recent(self, resource: str) -> RecentRows:
        """The new and changed rows of a list."""
        return RecentRows(self.build, resource, self.run_id, self.dates.as_of)

    def coverage_gap(self, listed: str, named_by: str | None = None) -> str:
        """Why a list may hold records that its raw table lacks; empty where it is proven to hold none."""
        return coverage.coverage_gap(self.build, self.reads, listed, named_by)


@dataclass(frozen=True, slots=True)
class Entity:
    """A reconciled table.

    Attributes:
        table: its rows; None: the build has them already.
        dates: how its dates were read; None where it has none.
        raw_rows: of the table that it is made from; None: the raw table of its name.
        order_fields: of orders: the columns of the raw table by the field that they hold.
        proposed: of orders: the fields that no setting names, with their evidence.
        left_revenue: of orders: what a new version does not count as revenue any more, in lines.
    """

    table: pd.DataFrame | None = None
    dates: ReadDates | None = None
    raw_rows: int | None = None
    order_fields: Mapping[str, str | None] = field(default_factory=dict)
    proposed: Mapping[str, str] = field(default_factory=dict)
    left_revenue: Sequence[str] = ()


def _customers(inputs: StepInputs) -> Entity:
    gap = inputs.coverage_gap("price_lists", "customers")
    price_lists_read = inputs.raw("price_lists")
    return Entity(dates=reconcile_customers(inputs.parts, price_lists_read, inputs.dates, gap))


def _promotions(inputs: StepInputs) -> Entity:
    table, findings, dates = promotions(inputs.raw("promotions"), inputs.dates)
    inputs.findings.add(findings)
    read = ReadDates("startDate, expirationDate", dates.form, dates.evidence, dates.zone_count)
    return Entity(table, read)


def _price_lists(inputs: StepInputs) -> Entity:
    gap = inputs.coverage_gap("price_lists")
    known = inputs.reconciled("customers", CUSTOMER_PRICE_LISTS)
    table, findings = price_lists(inputs.raw("price_lists"), known, gap)
    inputs.findings.add(findings)
    if "customers" not in inputs.reads:
        table["customer_count"] = constant(None, table.index, BIGINT)
    return Entity(table)


def _orders(inputs: StepInputs) -> Entity:
    build = inputs.build
    answers = inputs.questions.answers
    lines = lines_question(build, answers.get(LINES))
    if lines is not None:
        inputs.lines = lines.value
        inputs.findings.add(lines_findings(lines))
    raw = RawOrders.of(inputs.parts)
    if inputs.lines is not None:
        raw = _with_lines(raw, inputs, inputs.lines)
    check_settings(answers, raw.kinds)
    emails = partial(inputs.reconciled, "customers", CUSTOMER_EMAILS)
    index = replace(
        CustomerIndex.of(inputs.reconciled("customers", ORDERING_CUSTOMERS)), emails=emails
    )
    cancelled = _cancelled_values(inputs.settings)
    choice = choose_fields(raw, index, answers, cancelled)
    inputs.findings.add(choice.findings)
    choice = find_refunds(raw, choice)
    choice = replace(choice, is_in_utc=inputs.settings.orders.clock == "utc")
    assumption = inputs.questions.assumptions.get(STATUSES)
    statuses = OrderStatuses.of(raw, choice, answers.get(STATUSES), assumption, cancelled)
    cancellation = choice.cancellation.with_classes(statuses.classes, raw.kinds)
    choice = replace(choice, cancellation=cancellation)
    last_share = last_matched_share(build, inputs.accepted)
    notation = answers.get(NOTATION)
    named = answers.get(CUSTOMER)
    if named is None or named.is_own_assumption:
        index = replace(index, emails=None)
    customers = match_customers(raw, index, choice.fields.customer_id, notation, last_share)
    del index  # of a million customers: not while the orders are worked on
    inputs.questions.add(lines, *choice.questions, customers.notation, *raw.line_choice.questions)
    _add_up(raw, choice, inputs)
    gap = inputs.coverage_gap("customers", "orders")
    clock = answers.get(CLOCK)
    dates, inputs.unknown = reconcile_orders(
        raw, choice, customers, inputs.dates, gap, None if clock is None else clock.value
    )
    inputs.questions.add(statuses.question())
    left = statuses.left_revenue()
    inputs.findings.add(left.findings())
    inputs.findings.add(combine_findings([*duplicate_orders(build)]))
    record_used_fields(
        build, inputs.run_id, inputs.dates.as_of, choice, customers, inputs.lines, last_share
    )
    knows_customers = not customers.unknown and not gap
    _compare_recent_orders(raw, choice, inputs, knows_customers=knows_customers)
    return Entity(
        dates=dates,
        order_fields=dict.fromkeys(ORDER_FIELDS) | choice.fields.columns(),
        proposed=_proposed_fields(choice, answers),
        left_revenue=left.lines(),
    )


def _with_lines(raw: RawOrders, inputs: StepInputs, table: str) -> RawOrders:
    """The orders with their lines, which are in a table, and the columns that hold the fields of these."""
    answers = inputs.questions.answers
    lines = RawLines.of(inputs.parts, table, raw.share)
    check_line_settings(answers, lines.kinds)
    kinds = _line_kinds(lines, inputs.questions)
    lines = replace(lines, kind=kind_sql(kinds_in_force(kinds)))
    inputs.questions.add(kinds)
    choice = choose_line_fields(lines, answers, raw.totals())
    inputs.findings.add(choice.findings)
    return replace(raw, lines=lines, line_choice=choice)


def _add_up(raw: RawOrders, choice: FieldChoice, inputs: StepInputs) -> None:
    """Reads the lines, and keeps the totals of orders that are the sum of lines or of payments."""
    sums = NO_SUMS
    if raw.lines is not None:
        read = read_lines(raw.lines, raw.line_choice, choice.lines)
        inputs.read_lines = raw.lines, raw.line_choice.fields, read
        sums = line_sums_sql(raw.lines, read)
    if choice.fields.total == SUM_OF_PAYMENTS:
        sums = raw.payment_sums()
    if choice.fields.total in SUMS:
        raw.keep_sums(sums)


def _compare_recent_orders(
    raw: RawOrders, choice: FieldChoice, inputs: StepInputs, *, knows_customers: bool
) -> None:
    """Adds what new and changed orders have otherwise than those before: forms of values, customers, totals."""
    recent = inputs.recent("orders")
    inputs.findings.add(combine_findings(odd_values(recent, inputs.accepted)))
    if choice.fields.customer_id is not None and knows_customers:
        fewer = fewer_known_customers(recent, choice.fields.customer_id, inputs.accepted)
        inputs.findings.add(combine_findings([*fewer]))
    if choice.fields.total not in (None, *SUMS):
        lost = lost_totals(recent, choice.fields.total, raw.passed_on(), inputs.accepted)
        inputs.findings.add(combine_findings([*lost]))


def _proposed_fields(choice: FieldChoice, answers: Mapping[str, Answer]) -> dict[str, str]:
    """The fields that no setting names, with the evidence of their columns."""
    proposed: dict[str, str] = {}
    for name, column in choice.fields.columns().items():
        answer = answers.get(COLUMN_QUESTIONS[name])
        if answer is None or answer.is_assumption:
            proposed[name] = choice.evidence.get(column, "used by the last run")
    return proposed


def _line_kinds(lines: RawLines, questions: RunQuestions) -> Question | None:
    """The question of what kind the lines are; None where all are products."""
    answer = questions.answers.get(LINE_KINDS)
    assumption = questions.assumptions.get(LINE_KINDS)
    decided: dict[str, str] = {}
    for one in (assumption, answer):
        if one is not None:
            decided |= table_of(one.value)
    answered = {
        name: questions.answers[key].value
        for name, key in LINE_QUESTIONS.items()
        if key in questions.answers
    }
    return kinds_question(kind_rows(lines, decided, answered), answer, assumption)


def _cancelled_values(settings: ReconcileSettings) -> tuple[str, ...] | None:
    values = settings.orders.cancelled
    return None if values is None else tuple(map(str.strip, values.split(",")))


def _order_lines(inputs: StepInputs) -> Entity:
    if inputs.lines is None or inputs.read_lines is None:
        return Entity(frame(ORDER_LINES), raw_rows=0)
    lines, fields, read = inputs.read_lines
    raw_rows = reconcile_lines(lines, read)
    passed_on = lines.passed_on()
    columns = {
        name: column
        for name, column in fields.columns().items()
        if name in ("quantity", "unit_price", "line_total") and column in passed_on
    }
    recent = inputs.recent("orders")
    lost = lost_line_amounts(recent, inputs.lines, columns, passed_on, inputs.accepted)
    inputs.findings.add(combine_findings([*lost]))
    return Entity(raw_rows=raw_rows)


def _customer_orders(inputs: StepInputs) -> Entity:
    orders = inputs.row_count("reconciled.orders")
    of_known = inputs.row_count("reconciled.orders WHERE customer_status IN ('matched', 'none')")
    unknown = dict(inputs.unknown)
    read = inputs.reads.get("orders")
    if read is None:
        unknown["customer_id"] = "orders were not read"
    elif not orders and read.quarantined_rows:
        unknown["customer_id"] = f"orders: all {read.quarantined_rows} rows were quarantined"
    elif orders and not of_known:
        unknown.setdefault("customer_id", "customer_id: no order is of a known customer")
    reconcile_customer_orders(inputs.build, inputs.dates, unknown)
    return Entity(raw_rows=inputs.row_count("reconciled.customers"))


STEPS: Final[dict[str, Callable[[StepInputs], Entity]]] = {
    "customers": _customers,
    "promotions": _promotions,
    "price_lists": _price_lists,
    "orders": _orders,
    "order_lines": _order_lines,
    "customer_orders": _customer_orders,
}
"""What makes each reconciled table, in order: a step may read the tables of those before it. Each list has one."""
