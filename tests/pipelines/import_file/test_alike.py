"""A new customer whose code the platform has in another spelling is held until somebody says whether it is the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orderbridge.pipelines.plan.alike import ALIKE_FILE
from orderbridge.pipelines.plan.lost_zeros import ZEROS_FILE, kept_zeros
from orderbridge.pipelines.plan.make import PlanOptions, make_plan
from orderbridge.pipelines.questions.model import Given, GivenAnswer
from orderbridge.pipelines.questions.pairs import Pairs
from orderbridge.pipelines.questions.questions import answer_questions
from orderbridge.sources.errors import UsageError
from orderbridge.sources.texts import Texts
from tests.pipelines.import_file.desk import Desk
from tests.pipelines.push.plans import place, results

FILE = "erpCode;firstName;loginCode\n00007;Ana;00007\n00008;Eva;00008\n"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk beside a platform whose customers log in with a code, one of them with 7."""
    monkeypatch.chdir(tmp_path)
    with place(tmp_path, login_mode="code", customers=2) as at:
        monkeypatch.setenv("SOURCES__LEGACY__LOGIN_MODE", "code")
        known = {"erpCode": "7", "loginCode": "7", "email": None}
        at.platform.state.change("customers", at.platform.state.ids("customers")[0], known)
        yield Desk(at)


def answer(question: str, value: str) -> None:
    given = Given(by="ana", at=datetime.now(UTC))
    answer_questions([GivenAnswer(question=question, value=value)], given)


@pytest.mark.parametrize(
    ("value", "created"), [("same", ["00008"]), ("different", ["00008", "00007"])]
)
def test_a_code_in_another_spelling_is_a_question_whoever_created_the_customer(
    desk: Desk, value: str, created: list[str]
) -> None:
    file = desk.write(FILE)
    first = desk.run(file)
    assert (first.exit_code, desk.at.codes()) == (5, ["00008"])
    assert first.push.lines["unsent", "held"] == 1
    (asked,) = Pairs().asked()
    assert asked.id == f"match:code 00007/{desk.at.platform.state.ids('customers')[0]}"
    words = results(first.plan.folder)["unsent"][0]["words"]
    assert f"orderbridge answer '{asked.id}' same" in words
    assert Texts("es").reworded(words, "reject.nearly_known").startswith("erpCode 00007 puede ser")
    assert desk.run(file).exit_code == 5, "until it is answered"
    answer(asked.id, value)
    assert Pairs().asked() == []
    assert (desk.run(file).exit_code, desk.at.codes()) == (0, created)


def test_a_customer_that_another_project_created_since_the_plan_holds_a_create_back_too(
    desk: Desk,
) -> None:
    state = desk.at.platform.state
    known = state.ids("customers")[0]
    state.change("customers", known, {"erpCode": "X", "loginCode": "X"})
    desk.at.pull("customers")
    made = make_plan(PlanOptions("customers", desk.write(FILE), passwords="file"))
    assert made.manifest.operations == 2
    state.change("customers", known, {"erpCode": "7", "loginCode": "7"})
    pushed = desk.at.push(made.folder)
    assert (pushed.lines["unsent", "held"], desk.at.codes()) == (1, ["00008"])


def test_different_addresses_tell_customers_apart(desk: Desk) -> None:
    state = desk.at.platform.state
    state.change("customers", state.ids("customers")[0], {"email": "other@example.test"})
    text = "erpCode;firstName;loginCode;email\n00007;Ana;00007;ana@example.test\n"
    assert desk.run(desk.write(text)).exit_code == 0
    assert desk.at.codes() == ["00007"]


def test_a_damaged_file_of_held_lines_is_named_and_no_bug(desk: Desk) -> None:
    plan = desk.run(desk.write(FILE)).plan.folder
    (plan / ALIKE_FILE).write_bytes(b"{")
    with pytest.raises(UsageError, match=f"{ALIKE_FILE} is damaged"):
        Pairs().asked()
    (plan / ALIKE_FILE).unlink()
    (plan / ZEROS_FILE).write_bytes(b"{}")
    with pytest.raises(UsageError, match=f"{ZEROS_FILE} is damaged"):
        list(kept_zeros(plan))
