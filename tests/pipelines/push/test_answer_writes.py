"""Unknown outcomes are questions, one by one or by plan, and an answer ends them without a request."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

import pytest

from orderbridge.pipelines.questions.model import Given, GivenAnswer
from orderbridge.pipelines.questions.questions import answer_questions, asked_questions
from orderbridge.sources.errors import UsageError
from tests.pipelines.push.plans import Place, patch

GIVEN = Given(by="ana", at=datetime(2026, 11, 29, tzinfo=UTC))


def asked() -> list[str]:
    return [one.id for one in asked_questions() if one.id.startswith("write:")]


def answer(**values: str) -> None:
    """Answers by id of the question, `/` written as two underscores."""
    given = [
        GivenAnswer(question=f"write:{name.replace('__', '/')}", value=value)
        for name, value in values.items()
    ]
    answer_questions(given, GIVEN)


def test_requests_without_an_answer_are_asked_and_ended_by_a_person_all_or_none(at: Place) -> None:
    plan = at.lost(*(patch(n, n, stock=5, repeatable=False) for n in (1, 2, 3)))
    ids = asked()
    name = ids[0].removeprefix("write:").partition("/")[0]
    assert ids == [f"write:{name}/{n}" for n in (1, 2, 3)]
    notes = {one.note for one in asked_questions() if one.id in ids}
    assert notes == {f"all 3 of this plan at once: orderbridge answer write:{name} landed"}
    before = at.states(plan)
    for wrong in ({f"{name}__1": "landed", f"{name}__9": "landed"}, {f"{name}__1": "maybe"}):
        with pytest.raises(UsageError):
            answer(**wrong)
        assert at.states(plan) == before
    with pytest.raises(UsageError, match="may still arrive"):
        answer(**{f"{name}__1": "not_landed"})
    shutil.rmtree(plan)
    requests = len(at.platform.state.variants)
    answer(**{f"{name}__1": "landed"})
    assert asked() == ids[1:]
    answer(**{name: "abandon"})
    assert (asked(), len(at.platform.state.variants)) == ([], requests)
    with pytest.raises(UsageError, match="no request of the plan"):
        answer(**{name: "landed"})
    assert asked() == []


def test_a_plan_with_many_unknown_outcomes_is_one_question(at: Place) -> None:
    at.lost(*(patch(n, n, stock=5, repeatable=False) for n in range(1, 13)))
    (one,) = [found for found in asked_questions() if found.id.startswith("write:")]
    assert "/" not in one.id
    assert "12 requests of this plan: 1, 2, 3" in one.reason
    answer(**{f"{one.id.removeprefix('write:')}__1,3-12": "landed"})
    assert asked() == [f"{one.id}/2"]
