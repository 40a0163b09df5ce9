"""The answers in force during a run, the questions that its steps decide, and what is remembered of them.

In: what people answered, and the assumptions of earlier runs. Out: `ops.questions`, the only memory of
a question: the assumption in force, and when it was first and last asked; and `reconciled.meanings`, made anew by each
run, with the state and the evidence of each subject.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

import duckdb
import msgspec

from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.accepted import Accepted
from orderbridge.pipelines.warehouse.sql import (
    columns_of,
    has_tables,
    insert_rows,
    sql_name,
    table_names,
)
from orderbridge.sources import __version__
from orderbridge.transforms.chance import Share
from orderbridge.transforms.orders.amount_unit import CENTS, UNIT, UNITS
from orderbridge.transforms.orders.customer_evidence import NOTATION
from orderbridge.transforms.orders.fields import FIELD_QUESTIONS, NO_COLUMN
from orderbridge.transforms.orders.line_discounts import DISCOUNT_UNIT
from orderbridge.transforms.orders.line_fields import LINE_QUESTIONS
from orderbridge.transforms.orders.names import LINE_NAMES, ORDER_NAMES
from orderbridge.transforms.orders.total_candidates import SUM_OF_LINES
from orderbridge.transforms.questions import ANY_RIVAL, ASSUMPTION, Answer, Evidence, Question
from orderbridge.transforms.value_questions import CLOCK
from orderbridge.transforms.values.currencies import CURRENCIES
from orderbridge.transforms.values.date_forms import SHARE_MIN

LINES: Final = "reconcile.order_lines"
_LINE_FIELDS: Final = {
    f"line_{name.removeprefix('line_')}": question for name, question in LINE_QUESTIONS.items()
}
_PINS: Final = {**FIELD_QUESTIONS, "lines": LINES, **_LINE_FIELDS}
"""The fields as findings name them, and as `ops.order_fields` has the columns that 0.3 had chosen."""
_ASSUMPTIONS: Final = """
    SELECT question, assumption, since, fits, rows, coalesce(about, ''), coalesce(rival, '') FROM ops.questions
    WHERE assumption IS NOT NULL"""
_OF_ASSUMPTION: Final = ("assumption", "since", "fits", "rows", "about", "rival")
_LAST_VERSION: Final = """
    SELECT r.version FROM ops.runs r SEMI JOIN (
        FROM ops.control_totals WHERE entity LIKE 'reconciled.%') t ON t.run_id = r.run_id
    ORDER BY r.rowid DESC LIMIT 1"""
_CONTRADICTED: Final = "SELECT question FROM reconciled.meanings WHERE state = 'contradicted'"
_CHANGED_FIELDS: Final = """
    SELECT DISTINCT split_part(detail, ':', 1) FROM reconciled.exceptions
    WHERE entity = 'orders' AND rule = 'field_changed'"""
_ON_CONFLICT: Final = """
    ON CONFLICT DO UPDATE SET
        assumption = excluded.assumption, since = excluded.since, fits = excluded.fits, rows = excluded.rows,
        about = excluded.about, rival = excluded.rival, first_run_id = coalesce(first_run_id, excluded.first_run_id),
        first_seen_at = coalesce(first_seen_at, excluded.first_seen_at),
        last_run_id = coalesce(excluded.last_run_id, last_run_id),
        last_seen_at = coalesce(excluded.last_seen_at, last_seen_at)"""
_MEANINGS: Final = """
    CREATE OR REPLACE TABLE reconciled.meanings (
        question VARCHAR, state VARCHAR, value VARCHAR, reason VARCHAR, evidence VARCHAR)"""


class RunQuestions:
    """The answers in force during a run, and the questions that its steps decide.

    Attributes:
        answers: in force, by the id of the question: given ones, else the assumptions of earlier runs.
        assumptions: those of earlier runs, also where there is an answer.
    """

    def __init__(
        self, build: duckdb.DuckDBPyConnection, given: Mapping[str, Answer], accepted: Accepted
    ) -> None:
        """Reads the assumptions of a build with the tables of `ops`."""
        ((remembered,),) = build.execute("SELECT count(*) FROM ops.questions").fetchall()
        self._is_first = remembered == 0
        self.assumptions = _without_changed(_assumptions(build), accepted)
        self._decided: dict[str, Question] = {}
        self.answers: dict[str, Answer] = {**self.assumptions, **given}

    def add(self, *decided: Question | None) -> None:
        """Keeps questions that a step has decided; None is none."""
        self._decided.update({one.id: one for one in decided if one is not None})

    @property
    def decided(self) -> list[Question]:
        """All questions that the steps have decided, in their order."""
        return [*self._decided.values()]

    def record(self, build: duckdb.DuckDBPyConnection, run_id: str, at: datetime) -> list[Question]:
        """Writes `ops.questions` and `reconciled.meanings`. What no step decided stays remembered as it is.

        Returns:
            The questions that are asked for the first time; none on the first night of this version.
        """
        known = first_asked(build)
        asked = [one for one in self.decided if one.is_asked]
        asked_ids = {one.id for one in asked}
        remembered: dict[str, Answer | None] = dict(self.assumptions)
        remembered.update({one.id: self._assumption(one, at) for one in self.decided})
        rows: list[dict[str, object]] = []
        for key, answer in remembered.items():
            seen = (run_id, at) if key in asked_ids else (None, None)
            rows.append(_remembered_row(key, answer, *seen))
        insert_rows(build, "ops.questions", rows, _ON_CONFLICT)
        build.execute(_MEANINGS)
        meanings: list[dict[str, object]] = []
        for one in self.decided:
            evidence = msgspec.json.encode(one.evidence).decode()
            row = {"question": one.id, "state": one.state, "value": one.value}
            meanings.append({**row, "reason": one.reason, "evidence": evidence})
        insert_rows(build, "reconciled.meanings", meanings)
        return [] if self._is_first else [one for one in asked if one.id not in known]

    def _assumption(self, decided: Question, at: datetime) -> Answer | None:
        """The assumption to remember: that of earlier runs, or the proposal that came into force."""
        known = self.assumptions.get(decided.id)
        evidence = decided.evidence
        if evidence.is_table:
            return _table_assumption(known, evidence, at)
        if known is not None and known.about not in ("", evidence.about):
            known = None
        if known is not None and known.rival == ANY_RIVAL:
            return replace(known, rival=evidence.rival_of(known.value))
        if known is not None or decided.value is None or decided.state == "answered":
            return known
        share = evidence.choice(decided.value).share
        return Answer(decided.value, ASSUMPTION, at, share=share, about=evidence.about)


def _remembered_row(
    question: str, answer: Answer | None, run_id: str | None, at: datetime | None
) -> dict[str, object]:
    """A row of `ops.questions`: the assumption in force, and the run that asks; None where there is none."""
    row: dict[str, object] = {"question": question, "first_run_id": run_id, "first_seen_at": at}
    row |= {"last_run_id": run_id, "last_seen_at": at}
    nothing: dict[str, object] = dict.fromkeys(_OF_ASSUMPTION)
    if answer is None:
        return {**row, **nothing}
    known = {"assumption": answer.value, "since": answer.at}
    depends = {"about": answer.about, "rival": answer.rival}
    share = answer.share
    counts = {} if share is None else {"fits": share.hits, "rows": share.rows}
    return {**row, **nothing, **known, **depends, **counts}


def _table_assumption(known: Answer | None, evidence: Evidence, at: datetime) -> Answer | None:
    """The rows of a table that are assumed: those of earlier runs stay, and new ones are added."""
    if not evidence.assumed_rows:
        return None
    if known is None or known.about != evidence.about:
        known = Answer("", ASSUMPTION, at, about=evidence.about)
    return replace(known, value=evidence.assumed_rows)


def _assumptions(build: duckdb.DuckDBPyConnection) -> dict[str, Answer]:
    """The assumptions of earlier runs, by the id of the question.

    On the first night of a version, other proposals are those of its new rules and contradict no assumption, unless
    the run before reported the same.
    """
    ((count,),) = build.execute("SELECT count(*) FROM ops.questions").fetchall()
    known = _remembered(build) if count else _pinned(build)
    last_version = build.execute(_LAST_VERSION).fetchone()
    if count and last_version == (__version__,):
        return known
    contradicted = _contradicted(build)
    return {
        key: answer if key in contradicted else replace(answer, rival=ANY_RIVAL)
        for key, answer in known.items()
    }


def _remembered(build: duckdb.DuckDBPyConnection) -> dict[str, Answer]:
    rows = build.execute(_ASSUMPTIONS).fetchall()
    known: dict[str, Answer] = {}
    for key, value, since, fits, of_rows, about, rival in rows:
        share = None if fits is None else Share(fits, of_rows)
        known[key] = Answer(value, ASSUMPTION, since, share=share, about=about, rival=rival)
    return known


def _pinned(build: duckdb.DuckDBPyConnection) -> dict[str, Answer]:
    """What 0.3 had pinned: it stays in use, as an assumption."""
    last = ops.last_order_fields(build)
    pinned = {
        _PINS[name]: Answer(column, ASSUMPTION, last.at)
        for name, column in last.columns.items()
        if name in _PINS
    }
    if last.notation is not None and "customer_id" in last.columns:
        about = last.columns["customer_id"]
        pinned[NOTATION] = Answer(last.notation, ASSUMPTION, last.at, about=about)
    if "total" in last.columns:
        unit = CENTS if last.columns.get("total_unit") == "cents" else UNITS
        pinned[UNIT] = Answer(unit, ASSUMPTION, last.at, about=last.columns["total"])
        if "currency" not in last.columns and _lack_codes(build):
            pinned[FIELD_QUESTIONS["currency"]] = Answer(NO_COLUMN, ASSUMPTION, last.at)
    if "lines" in last.columns:
        pinned |= _pinned_lines(build, last.columns["lines"], last.at)
    if _have_amounts(pinned):
        pinned[DISCOUNT_UNIT] = Answer("included", ASSUMPTION, last.at)
        pinned.setdefault(UNIT, Answer(UNITS, ASSUMPTION, last.at, about=SUM_OF_LINES))
    return pinned


def _lack_codes(build: duckdb.DuckDBPyConnection) -> bool:
    """Whether orders have several words for currencies, too few of them codes: 0.3 added up the totals beside these."""
    columns = columns_of(build, "raw.orders")
    named = [sql_name(name) for name in ORDER_NAMES["currency"] if name in columns]
    has_several = False
    for name in named:
        ((rows, words, codes),) = build.execute(
            f"""
            SELECT count(*), count(DISTINCT text), count_if(list_contains($1, text))
            FROM (SELECT upper(trim({name}::VARCHAR)) AS text FROM raw.orders WHERE _missing_since IS NULL)""",
            [sorted(CURRENCIES)],
        ).fetchall()
        if codes >= SHARE_MIN * rows:
            return False
        has_several = has_several or words > 1
    return has_several


def _have_amounts(pinned: Mapping[str, Answer]) -> bool:
    """Whether 0.3 read what lines come to. It took off no discount, and no amount was in cents."""
    has_price = LINE_QUESTIONS["quantity"] in pinned and LINE_QUESTIONS["unit_price"] in pinned
    return has_price or LINE_QUESTIONS["line_total"] in pinned


def _pinned_lines(
    build: duckdb.DuckDBPyConnection, table: str, at: datetime | None
) -> dict[str, Answer]:
    """The columns of lines that 0.3 used: the first of their names with a value of a listed order.

    A field that 0.3 read of no line is not pinned: only a new version knows the name of such a column.
    """
    if not has_tables(build, "raw", table):
        return {}
    columns = columns_of(build, f"raw.{sql_name(table)}")
    read = _read_fields(build)
    pinned: dict[str, Answer] = {}
    for field, question in LINE_QUESTIONS.items():
        named = [name for name in LINE_NAMES[field] if name in columns]
        if field not in read or not named:
            continue
        counts = ", ".join(f"count(nullif(trim({sql_name(name)}::VARCHAR), ''))" for name in named)
        sql = f"SELECT count(*), {counts} FROM raw.{sql_name(table)} WHERE _missing_since IS NULL"
        ((rows, *given),) = build.execute(sql).fetchall()
        filled = [(name, count) for name, count in zip(named, given, strict=True) if count]
        if filled:
            column, count = filled[0]
            pinned[question] = Answer(column, ASSUMPTION, at, share=Share(count, rows))
    return pinned


def _read_fields(build: duckdb.DuckDBPyConnection) -> set[str]:
    """The fields of lines of which the last run read a value; discounts are none of 0.3."""
    if not has_tables(build, "reconciled", "order_lines"):
        return set()
    columns = columns_of(build, "reconciled.order_lines")
    fields = [name for name in LINE_QUESTIONS if name in columns]
    counts = ", ".join(f"count({sql_name(name)})" for name in fields)
    (row,) = build.execute(f"SELECT {counts} FROM reconciled.order_lines").fetchall()
    return {name for name, count in zip(fields, row, strict=True) if count}


def _contradicted(build: duckdb.DuckDBPyConnection) -> Collection[str]:
    """The questions whose assumption the last run reported as contradicted."""
    tables = table_names(build, "reconciled")
    if "meanings" in tables:
        return {question for (question,) in build.execute(_CONTRADICTED).fetchall()}
    if "exceptions" in tables:
        names = [name for (name,) in build.execute(_CHANGED_FIELDS).fetchall()]
        return {_PINS[name] for name in names if name in _PINS}
    return ()


def _without_changed(known: Mapping[str, Answer], accepted: Accepted) -> dict[str, Answer]:
    """The assumptions but those of fields whose change a person has accepted since they came into force."""
    fields = {question: name for name, question in _PINS.items()}
    changed = {
        question
        for question, answer in known.items()
        if question in fields
        and accepted.is_changed("orders.field_changed", fields[question], answer.at)
    }
    dependent = {
        NOTATION: FIELD_QUESTIONS["customer_id"],
        UNIT: FIELD_QUESTIONS["total"],
        CLOCK: FIELD_QUESTIONS["ordered_at"],
        DISCOUNT_UNIT: LINE_QUESTIONS["discount"],
    }
    return {
        question: answer
        for question, answer in known.items()
        if question not in changed and dependent.get(question) not in changed
    }


def last_evidence(warehouse: duckdb.DuckDBPyConnection) -> list[Evidence]:
    """The evidence that the last run that reconciled had; none where no run of this version did."""
    if not has_tables(warehouse, "reconciled", "meanings"):
        return []
    rows = warehouse.execute("SELECT evidence FROM reconciled.meanings ORDER BY rowid").fetchall()
    return [msgspec.json.decode(text, type=Evidence) for (text,) in rows]


def last_assumptions(warehouse: duckdb.DuckDBPyConnection) -> dict[str, Answer]:
    """The assumptions in force, by the id of the question."""
    return _remembered(warehouse) if has_tables(warehouse, "ops", "questions") else {}


def first_asked(warehouse: duckdb.DuckDBPyConnection) -> dict[str, datetime]:
    """When each question was first asked."""
    if not has_tables(warehouse, "ops", "questions"):
        return {}
    sql = "SELECT question, first_seen_at FROM ops.questions WHERE first_seen_at IS NOT NULL"
    return dict(warehouse.execute(sql).fetchall())
