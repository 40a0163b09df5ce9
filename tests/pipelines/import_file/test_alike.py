"""A new customer whose code the platform has in another spelling is held until somebody says whether it is the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orderbridge.pipelines.cli.push import next_steps
from orderbridge.pipelines.plan.alike import ALIKE_FILE
from orderbridge.pipelines.plan.lost_zeros import ZEROS_FILE, kept_zeros
from orderbridge.pipelines.plan.make import PlanOptions, make_plan
from orderbridge.pipelines.plan.wording import problem_in
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


def test_a_customer_of_another_project_since_the_plan_holds_a_create_back_too(
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


TWICE = "erpCode;firstName;loginCode\nA-31;Ana;A-31\na031;Eva;a031\n"


@pytest.mark.parametrize(("value", "created"), [("same", 1), ("different", 2)])
def test_of_two_new_codes_alike_the_second_is_asked_about_once_the_first_exists(
    desk: Desk, value: str, created: int
) -> None:
    file = desk.write(TWICE)
    first = desk.run(file)
    assert (first.exit_code, desk.at.codes()) == (5, ["A-31"])
    (held,) = results(first.plan.folder)["unsent"]
    assert (held["outcome"], held["code"]) == ("held", "nearly_repeated")
    assert held["words"].startswith(
        "erpCode: a031 may be the customer of line 2, whose code is A-31"
    )
    spanish = problem_in(Texts("es"), held["code"], held["words"])
    assert spanish.startswith("código en el ERP: a031 puede ser el cliente de la línea 2")
    (step,) = next_steps(first.push, None)
    assert step.command.endswith(f"import customers {file.name} --passwords file"), step
    summary = (first.plan.folder / "summary.md").read_text("utf-8")
    assert "differs from that of another line" not in summary, "a fact is said once"
    assert desk.run(file).exit_code == 5
    (asked,) = Pairs().asked()
    answer(asked.id, value)
    assert desk.run(file).exit_code == 0
    assert len(desk.at.codes()) == created


@pytest.mark.parametrize(
    ("address", "codes"), [("", ["A-31"]), ("a@x.test", []), ("b@x.test", ["A-31", "a031"])]
)
def test_two_new_customers_of_a_file_are_told_apart_by_different_addresses(
    desk: Desk, address: str, codes: list[str]
) -> None:
    rows = f"A-31;Ana;A-31;a@x.test\na031;Eva;a031;{address}\n"
    desk.run(desk.write(f"erpCode;firstName;loginCode;email\n{rows}"))
    assert desk.at.codes() == codes


def test_of_each_group_of_codes_alike_the_first_is_sent_and_the_others_are_held(
    desk: Desk,
) -> None:
    """A group of three, one told apart by addresses, one alike in the login alone, and one of its own."""
    lines = (
        "erpCode;firstName;loginCode;email",
        "A-31;Ana;A-31;",
        "B-7;Bea;B-7;b@x.test",
        "a031;Eva;a031;e@x.test",
        "b7;Bob;b7;bob@x.test",
        "A31;Ada;A31;",
        "X-1;Cid;L-5;",
        "Y-2;Dan;l05;",
        "Z-1;Zoe;Z-1;",
    )
    done = desk.run(desk.write("\n".join([*lines, ""])))
    assert sorted(desk.at.codes()) == ["A-31", "B-7", "X-1", "Z-1", "b7"]
    held = {
        row["line"]: row["words"].partition(",")[0] for row in results(done.plan.folder)["unsent"]
    }
    assert held == {
        "4": "erpCode: a031 may be the customer of line 2",
        "6": "erpCode: A31 may be the customer of line 2",
        "8": "loginCode: l05 may be the customer of line 7",
    }


def test_a_damaged_file_of_held_lines_is_named_and_no_bug(desk: Desk) -> None:
    plan = desk.run(desk.write(FILE)).plan.folder
    (plan / ALIKE_FILE).write_bytes(b"{")
    with pytest.raises(UsageError, match=f"{ALIKE_FILE} is damaged"):
        Pairs().asked()
    (plan / ALIKE_FILE).unlink()
    (plan / ZEROS_FILE).write_bytes(b"{}")
    with pytest.raises(UsageError, match=f"{ZEROS_FILE} is damaged"):
        list(kept_zeros(plan))
