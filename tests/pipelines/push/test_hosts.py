"""The same platform under another name gets nothing twice, and a host that did not change asks nothing."""

from __future__ import annotations

import os

import pytest

from orderbridge.pipelines.plan.make import PlanOptions, make_plan
from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.push.model import PushOptions
from orderbridge.pipelines.push.verify import verify
from orderbridge.pipelines.questions.platforms import Platforms
from orderbridge.sources.errors import UsageError
from tests.pipelines.bridge import command
from tests.pipelines.push.plans import Place, customer, patch, write_plan

FILE = "productId,variantId,sku,price\n1,1,S1,5\n1,2,S2,6\n"


def other_name(at: Place) -> str:
    """From now on the settings name the platform otherwise."""
    os.environ["SOURCES__LEGACY__BASE_URL"] = at.platform.url.replace("127.0.0.1", "localhost")
    return os.environ["SOURCES__LEGACY__BASE_URL"]


def environment(at: Place) -> dict[str, str]:
    """For the command, with the name of the platform that counts now."""
    return {
        **at.environment(),
        "SOURCES__LEGACY__BASE_URL": os.environ["SOURCES__LEGACY__BASE_URL"],
    }


def imported(at: Place) -> tuple[int, str]:
    done = command("import", "variants", "in.csv", "--yes", env=environment(at), cwd=at.folder)
    return done.code, done.err


def answer(at: Place, value: str) -> None:
    (asked,) = Platforms().asked()
    done = command("answer", asked.id, value, env=environment(at), cwd=at.folder)
    assert done.code == 0, done.err
    assert not Platforms().asked()


def test_nothing_is_sent_to_another_name_before_somebody_says_it_is_the_same(
    at: Place,
) -> None:
    (at.folder / "in.csv").write_text(FILE, "utf-8")
    assert imported(at)[0] == 0
    assert not Platforms().asked()
    applied = at.variant(1)
    other_name(at)
    requests = at.platform.state.requests
    code, said = imported(at)
    assert (code, at.platform.state.requests) == (2, requests)
    assert "this ledger has 4 confirmed variants of http://127.0.0.1" in said
    host = at.platform.url.removeprefix("http://")
    assert f"orderbridge answer platform:{host} same" in said
    checked = command("check", env=environment(at), cwd=at.folder)
    assert (checked.code, f"platform:{host} same" in checked.out) == (2, True), checked.out
    answer(at, "same")
    code, said = imported(at)
    assert (code, at.variant(1)) == (0, applied), said


def test_a_plan_goes_on_under_another_name_once_somebody_says_it_is_the_same(
    at: Place,
) -> None:
    created = at.plan([customer(1)])
    assert at.code(created) == 0
    plan = at.stopped(patch(1, 1, price=7, repeatable=False), patch(2, 2))
    url = other_name(at)
    with pytest.raises(UsageError, match="made for other settings"):
        at.push(plan)
    answer(at, "same")
    with pytest.raises(UsageError, match=f"would be sent to {url}"):
        at.push(plan, PushOptions())
    assert (at.code(plan), at.states(plan)) == (0, ["confirmed", "confirmed"])
    pull(PullOptions(("customers",), accept_new_source=True))
    assert verify(created).outcomes["same"] == 1


def test_an_import_of_customers_goes_on_with_the_warehouse_of_the_other_name(at: Place) -> None:
    (at.folder / "in.csv").write_text("erpCode,firstName,email\n1,Ana,a@x.test\n", "utf-8")
    line = ("import", "customers", "in.csv", "--passwords", "file", "--yes", "--max-age", "0")
    assert command(*line, env=environment(at), cwd=at.folder).code == 0
    other_name(at)
    answer(at, "same")
    done = command(*line, env=environment(at), cwd=at.folder)
    assert (done.code, at.codes()) == (0, ["1"]), done.said
    other = {"SOURCES__LEGACY__ENVIRONMENT": "production"}
    done = command("pull", "customers", env=environment(at) | other, cwd=at.folder)
    assert (done.code, "the data of another source" in done.said) == (2, True), done.said


def test_what_is_open_under_one_name_is_settled_under_the_other(at: Place) -> None:
    lost = at.lost(customer(1))
    url = other_name(at)
    answer(at, "same")
    plan = write_plan(at.folder / "again", url, [customer(1)])
    assert at.code(plan) == 5
    assert at.codes() == ["C00001"]
    done = command("settle", env=environment(at), cwd=at.folder)
    assert done.code in (0, 6), done.err
    assert at.states(lost) != ["planned"]


def test_a_customer_that_was_created_under_one_name_is_not_created_under_the_other(
    at: Place,
) -> None:
    assert at.code(at.plan([customer(1)])) == 0
    for number in at.platform.state.ids("customers"):
        record = {"erpCode": f"other-{number}", "email": f"other-{number}@x.test"}
        at.platform.state.change("customers", number, record)
    url = other_name(at)
    plan = write_plan(at.folder / "again", url, [customer(1)])
    with pytest.raises(UsageError, match="is it the same platform"):
        at.push(plan)
    answer(at, "same")
    assert at.code(plan) == 5
    assert at.codes() == ["C00001"]


def test_another_platform_gets_all_of_it_and_is_asked_about_once(at: Place) -> None:
    (at.folder / "in.csv").write_text(FILE, "utf-8")
    assert imported(at)[0] == 0
    other_name(at)
    answer(at, "different")
    options = PlanOptions("variants", at.folder / "in.csv", out=at.folder / "made")
    assert make_plan(options).manifest.operations == 4
    assert imported(at)[0] == 0


def test_a_host_of_another_environment_is_not_asked_about(
    at: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert at.code(at.plan([patch(1, 1)])) == 0
    other_name(at)
    monkeypatch.setenv("SOURCES__LEGACY__ENVIRONMENT", "production")
    assert not Platforms().asked()
