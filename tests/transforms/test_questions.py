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
from orderbridge.transforms.orders.fields import FIELD_QUESTIONS, FieldChoice
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
from orderbridge.transforms.value_questions import (
    country_question,
    login_question,
    order_question,
    zone_question,
)
from orderbridge.transforms.values.dates import ReadDates
from orderbridge.transforms.values.keys import BOOKKEEPING
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


def dates(**forms: str) -> dict[str, ReadDates]:
    """How dates were read: `customers="ambiguous"`; a number is that of times without an offset."""
    read: dict[str, ReadDates] = {}
    for name, form in forms.items():
        naive = int(form) if form.isdigit() else 0
        kind: Any = "iso_naive" if naive else form
        read[name] = ReadDates("at", kind, "9 texts: 9 slashes", naive)
    return read


@pytest.mark.parametrize(
    ("read", "answer", "state", "value", "reason"),
    [
        (dates(orders="iso_offset"), None, None, None, ""),
        (dates(orders="ambiguous"), None, "open", None, "orders: at: 9 texts: 9 slashes"),
        (dates(orders="day_first"), ANSWERED, None, None, ""),
        # the answer is used by one list; another list that proves the other order does not contradict it
        (dates(orders="day_first", customers="month_first"), "day_first", "answered", "day_first", ""),
        (dates(customers="month_first"), "day_first", "contradicted", "day_first",
         "day_first is kept, but the dates of customers prove the other"),
    ],
)  # fmt: skip
def test_the_order_of_day_and_month_is_asked_where_no_value_proves_it(
    read: dict[str, ReadDates],
    answer: Answer | str | None,
    state: str | None,
    value: str | None,
    reason: str,
) -> None:
    given = replace(ANSWERED, value=answer) if isinstance(answer, str) else answer
    found = order_question(read, given)
    assert (found and found.state, found and found.value, found.reason if found else "") == (
        state,
        value,
        reason,
    )


def test_a_time_zone_is_assumed_and_the_question_says_what_it_counts_for() -> None:
    assert zone_question(dates(orders="empty"), None) is None
    for read, words in (
        (dates(orders="7", customers="iso_offset"), "7 times of orders are written without a zone"),
        (
            dates(orders="iso_offset"),
            "every time is written with its zone; days and months are those of UTC",
        ),
    ):
        found = zone_question(read, None)
        assert found is not None
        assert (found.state, found.value) == ("assumed", "UTC")
        assert words in found.evidence.choices[0].evidence


def test_a_country_is_proposed_by_phones_with_a_code_and_never_used_unconfirmed() -> None:
    assert country_question({"511": 30}, 0, None) is None
    found = country_question({"511": 30, "349": 2}, 500, None)
    assert found is not None
    assert (found.state, found.value, found.evidence.proposal) == ("open", None, "PE")
    assert found.reason == "500 phones have no calling code"
    assert [choice.value for choice in found.evidence.choices] == ["PE", "ES"]
    few = country_question({"511": 9, "349": 9}, 500, None)
    assert few is not None
    assert few.evidence.proposal is None


def test_a_login_is_proposed_where_customers_have_what_it_needs_and_not_the_other() -> None:
    def asked(emails: int, codes: int, answer: Answer | None = None) -> Question:
        logins = {"email": Share(emails, 100), "code": Share(codes, 100)}
        found = login_question(logins, answer)
        assert found is not None
        return found

    proposals = {(99, 0): "email", (3, 100): "code", (99, 99): None, (60, 0): None, (0, 0): None}
    for counts, proposal in proposals.items():
        found = asked(*counts)
        assert (found.state, found.value, found.evidence.proposal) == ("open", None, proposal)
    by_email = replace(ANSWERED, value="email", share=Share(99, 100))
    assert asked(99, 0, by_email).state == "answered"
    broken = asked(10, 90, by_email)
    assert (
        broken.reason
        == "email is kept, but 10 of 100 customers have an e-mail address that no other has"
    )
    assert login_question({"email": Share(0, 0), "code": Share(0, 0)}, None) is None


def asked(choice: FieldChoice, field: str = "total") -> Question:
    return next(one for one in choice.questions if one.id == FIELD_QUESTIONS[field])


def seen(rows: pd.DataFrame, new: int) -> pd.DataFrame:
    """Orders of which the last ones are first seen a day after `AT`."""
    times = [AT + timedelta(days=1 if n >= COUNT - new else -1) for n in range(COUNT)]
    return rows.assign(_first_seen_at=column(pa.array(times, BOOKKEEPING["_first_seen_at"])))


def night(rows: pd.DataFrame, share: Share | None = None, **options: Any) -> Question:
    answered = {TOTAL: replace(ANSWERED, value="total", share=share)}
    return asked(choose_fields(rows, CUSTOMERS, answered=answered, **options))


def test_an_answer_is_contradicted_by_rows_since_and_not_by_drift_or_earlier_ones() -> None:
    """Of 60 orders: the last 20 are new, and lose their total; nothing else is contradicted."""
    rows = seen(orders("money: total"), new=20)
    is_new = rows.index >= COUNT - 20
    assert night(rows).state == "answered"
    few = rows.assign(total=rows["total"].where(rows.index >= 4))
    assert night(few).state == "answered", "drift"
    half = rows.assign(total=rows["total"].where(rows.index % 2 == 0))
    assert night(half, Share(30, 60)).state == "answered", "it was so when it was answered"
    without = rows.assign(total=rows["total"].where(~is_new))
    gone = rows["_missing_since"].mask(is_new, AT)
    assert night(without.assign(_missing_since=gone), Share(60, 60)).state == "answered"
    broken = night(without, Share(60, 60))
    assert (broken.state, broken.value) == ("contradicted", "total")
    assert broken.reason == "total is kept, but 0 of 20 new orders have a value"


def test_one_column_that_fits_is_proven_and_several_are_a_question_with_evidence() -> None:
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
    assert words["amount"].startswith(
        "60 of 60 are decimal numbers; 1.21 × total in 60 of 60 orders; such as"
    )
    lines = rows[["id", "total"]].rename(columns={"id": "order_id", "total": "price"})
    beside = asked(choose_fields(rows, CUSTOMERS, lines=lines.assign(quantity=1)))
    of_lines = beside.evidence.choices[2]
    assert (of_lines.value, of_lines.share) == ("sum_of_lines", Share(60, 60))
    come_to = "of 60 are what the lines add up to, quantity × price"
    sums = "these orders sum to {}, their lines to 1,800.00".format
    of_total, of_amount = (choice.evidence for choice in beside.evidence.choices[:2])
    assert f"60 {come_to}; {sums('1,800.00')}" in of_total
    assert f"0 {come_to}; {sums('2,178.00')}" in of_amount
    rows["amount"] = rows["total"] * pd.Series([1.1, 1.2, 1.3] * 20)
    varying = asked(choose_fields(rows, CUSTOMERS))
    assert "×" not in str(varying.evidence), "no ratio is constant"


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
