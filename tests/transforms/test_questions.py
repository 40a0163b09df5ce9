"""A subject is proven, assumed, answered, open or contradicted, by its evidence and the answer in force alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from orderbridge.transforms.chance import Share
from orderbridge.transforms.frames import column
from orderbridge.transforms.keys import BOOKKEEPING
from orderbridge.transforms.order_fields import FIELD_QUESTIONS, FieldChoice
from orderbridge.transforms.questions import (
    ANY_RIVAL,
    ASSUMPTION,
    Answer,
    Choice,
    Evidence,
    Question,
    question,
    questions,
)
from tests.pipelines.reconcile.in_parts import choose_fields
from tests.transforms.test_order_fields import COUNT, CUSTOMERS, orders

AT = datetime(2026, 1, 5, tzinfo=UTC)
TOTAL = FIELD_QUESTIONS["total"]
OPEN = Evidence("q", dispute="a and b disagree", reason="no column is proven")
ONE = Evidence("q", (Choice("a"),), "a", is_proven=True)
SEVERAL = Evidence("q", (Choice("a"), Choice("b")), "a")
BROKEN = Evidence("q", (Choice("a", against="a is kept, but 0 of 9 fit"), Choice("b")), "b")
GONE = Evidence("q", (Choice("a", against="a is gone", is_possible=False), Choice("b")), "b")
ASSUMED = Answer("a", ASSUMPTION, AT)
ANSWERED = Answer("a", ".dlt/answers.toml", AT)
SET = Answer("a", ".dlt/config.toml")


@pytest.mark.parametrize(
    ("evidence", "answer", "state", "value", "reason"),
    [
        (OPEN, None, "open", None, "a and b disagree"),
        (replace(OPEN, dispute=""), None, "open", None, "no column is proven"),
        (ONE, None, "proven", "a", ""),
        (ONE, ASSUMED, "proven", "a", ""),
        (SEVERAL, None, "assumed", "a", ""),
        (SEVERAL, ASSUMED, "assumed", "a", ""),
        (SEVERAL, ANSWERED, "answered", "a", ""),
        (ONE, SET, "answered", "a", ""),
        # an assumption does not change by itself; what contradicts it is reported
        (replace(SEVERAL, proposal="b"), ASSUMED, "contradicted", "a", "a is kept, b fits better now"),
        (OPEN, ASSUMED, "contradicted", "a", "a is kept, but a and b disagree"),
        (replace(OPEN, dispute=""), ASSUMED, "assumed", "a", ""),
        # a new rule contradicts nothing, a later change does
        (BROKEN, replace(ASSUMED, rival=ANY_RIVAL), "contradicted", "a", "a is kept, but 0 of 9 fit"),
        (replace(SEVERAL, proposal="b"), replace(ASSUMED, rival=ANY_RIVAL), "assumed", "a", ""),
        (replace(SEVERAL, proposal="b"), replace(ASSUMED, rival="b"), "assumed", "a", ""),
        (replace(SEVERAL, proposal="c"), replace(ASSUMED, rival="b"), "contradicted", "a",
         "a is kept, c fits better now"),
        # an answer is contradicted by rows, not by another proposal; a setting by nothing
        (replace(SEVERAL, proposal="b"), ANSWERED, "answered", "a", ""),
        (BROKEN, ANSWERED, "contradicted", "a", "a is kept, but 0 of 9 fit"),
        (BROKEN, SET, "answered", "a", ""),
        # what is gone cannot be used
        (GONE, ANSWERED, "contradicted", "b", "a is gone"),
        (GONE, SET, "answered", "a", ""),
    ],
)  # fmt: skip
def test_the_state_of_a_question_follows_from_evidence_and_answer(
    evidence: Evidence, answer: Answer | None, state: str, value: str | None, reason: str
) -> None:
    found = question(evidence, answer)
    assert (found.state, found.value, found.reason) == (state, value, reason)
    assert questions([evidence], {} if answer is None else {"q": answer}) == [found]


def asked(choice: FieldChoice, field: str = "total") -> Question:
    return next(one for one in choice.questions if one.id == FIELD_QUESTIONS[field])


def seen(rows: pd.DataFrame, new: int) -> pd.DataFrame:
    """Orders of which the last ones are first seen a day after `AT`."""
    times = [AT + timedelta(days=1 if n >= COUNT - new else -1) for n in range(COUNT)]
    return rows.assign(_first_seen_at=column(pa.array(times, BOOKKEEPING["_first_seen_at"])))


def night(rows: pd.DataFrame, share: Share | None = None, **options: Any) -> Question:
    answered = {TOTAL: replace(ANSWERED, value="total", share=share)}
    return asked(choose_fields(rows, CUSTOMERS, answered=answered, **options))


def test_an_answer_is_contradicted_by_the_rows_since_and_not_by_drift_or_what_was_so_before() -> (
    None
):
    """Of 60 orders: the last 20 are new, and lose their total; nothing else is contradicted."""
    rows = seen(orders("money: total"), new=20)
    is_new = rows.index >= COUNT - 20
    assert night(rows).state == "answered"
    few = rows.assign(total=rows["total"].where(rows.index >= 4))
    assert night(few).state == "answered", "drift"
    half = rows.assign(total=rows["total"].where(rows.index % 2 == 0))
    assert night(half, Share(30, 60)).state == "answered", "it was so when it was answered"
    broken = night(rows.assign(total=rows["total"].where(~is_new)), Share(60, 60))
    assert (broken.state, broken.value) == ("contradicted", "total")
    assert broken.reason == "total is kept, but 0 of 20 new orders have a value"


def test_one_column_that_fits_is_proven_and_several_are_a_question_with_the_evidence_of_each() -> (
    None
):
    alone = choose_fields(orders("id: customer_id; money: total; currency: currency"), CUSTOMERS)
    assert {one.state for one in alone.questions} == {"proven", "open"}
    assert asked(alone, "ordered_at").state == "open"
    rows = orders("money: total amount")
    same = asked(choose_fields(rows, CUSTOMERS))
    assert same.state == "proven", "columns of equal values leave no choice"
    rows["amount"] = rows["amount"] * 1.21
    two = asked(choose_fields(rows, CUSTOMERS))
    assert (two.state, two.value) == ("assumed", "total")
    words = {choice.value: choice.evidence for choice in two.evidence.choices}
    assert words["total"] == "60 of 60 are decimal numbers; such as 0.5, 1.5, 2.5"
    assert words["amount"].startswith("60 of 60 are decimal numbers; such as 0.605")


def test_examples_of_a_column_are_no_names_and_no_addresses() -> None:
    rows = orders("other: customer; when: created_at date")
    people = ["ana@shop.example", "Ana García", "C-1"] * 20
    rows["customer"] = pd.Series(people, rows.index, dtype=rows["customer"].dtype)
    words = " ".join(
        choice.evidence
        for one in choose_fields(rows, CUSTOMERS).questions
        for choice in one.evidence.choices
    )
    assert "such as C-1" in words
    assert not [word for word in ("Ana", "ana@", "García") if word in words]
