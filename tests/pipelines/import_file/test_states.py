"""Each state in which an operation can be left × the same file is imported again: no plan is gone on with for ever."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import get_args

import pytest

from orderbridge.pipelines.import_file.run import ImportResult
from orderbridge.pipelines.ledger.model import State
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.questions.model import Given, GivenAnswer
from orderbridge.pipelines.questions.questions import answer_questions
from orderbridge.sources.kinds import KindName
from tests.pipelines.import_file.desk import Desk

RUNS = 3
STATES: tuple[State, ...] = get_args(State)
FILES: dict[str, tuple[KindName, str]] = {
    "a create with a list": (
        "customers",
        "erpCode;firstName;email\nC{n};Ana;ana{n}@example.test\n",
    ),
    "an update that can be repeated": ("variants", "productId;variantId;sku\n1;{n};S{n}\n"),
    "an update that may add": ("variants", "productId;variantId;price\n1;{n};9.5\n"),
    "a create without a list": ("subcategories", "categoryId;name\n7;Sub {n}\n"),
}
BY_A_PERSON = {
    "a create with a list": {"conflict"},
    "an update that can be repeated": {"conflict"},
    "an update that may add": {"in_flight", "in_doubt", "conflict"},
    "a create without a list": {"in_flight", "in_doubt", "conflict"},
}
"""The states that only an answer ends; an import says so, and sends nothing again."""


def leave(desk: Desk, plan: Plan, state: State, *, doubted: bool) -> None:
    """Leaves the operation of a plan in a state, a while ago."""
    with Ledger.open(desk.at.ledger) as ledger, ledger.transaction() as connection:
        connection.execute(
            "UPDATE operations SET state = ?, sent_at = sent_at - 9999,"
            " doubt_at = iif(?, sent_at - 9999, NULL)"
            " WHERE plan = (SELECT plan FROM plans WHERE plan_id = ?)",
            [state, doubted, plan.manifest.plan_id],
        )
        if state == "in_doubt":  # the ledger forgets the values then
            connection.execute("DELETE FROM confirmed WHERE plan_id = ?", [plan.manifest.plan_id])


def answer(result: ImportResult) -> None:
    """Answers what the import has asked."""
    given = Given(by="ana", at=datetime.now(UTC))
    question = f"write:{result.plan.manifest.plan_id[:12]}"
    answer_questions([GivenAnswer(question=question, value="landed")], given)


@pytest.mark.parametrize("what", FILES)
def test_an_import_of_the_same_file_ends_each_state_or_asks_a_person(desk: Desk, what: str) -> None:
    kind, text = FILES[what]
    asked: set[str] = set()
    for number, state in enumerate((*STATES, "abandoned"), 1):
        file = desk.write(text.format(n=1000 + number), f"file-{number}.csv")
        first = desk.run(file, kind)
        assert (first.exit_code, first.plan.manifest.operations) == (0, 1), (state, first)
        doubted = state in ("in_doubt", "conflict") or number > len(STATES)
        leave(desk, first.plan, state, doubted=doubted)
        for _ in range(RUNS):
            desk.said.clear()
            again = desk.run(file, kind)
            if not any(step.startswith("resume") for step in desk.said):
                break
            if "answer" in again.push.actions:
                asked.add(state)
                answer(again)
        else:
            pytest.fail(f"{state} goes on with the old plan: {again.push.lines}")
        is_given_up = again.push.lines["in_doubt", "abandoned"] == 1
        assert again.exit_code == (5 if is_given_up else 0), (state, again.push.lines)
        assert not is_given_up or state == "abandoned", "as a person has answered"
    assert asked == BY_A_PERSON[what]
