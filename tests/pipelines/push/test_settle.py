"""Doubts end without the input, the mapping, the settings or the plan from which they came."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from pipelines.ledger.store import Ledger
from pipelines.plan.make import PlanOptions, make_plan
from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from pipelines.push.eligibility import format_time
from pipelines.push.model import SETTLE_S
from pipelines.push.resolutions import Answers
from pipelines.push.settle import SettleResult, settle
from tests.pipelines.push.plans import (
    WAITS,
    YES,
    Place,
    customer,
    ids,
    means,
    outcomes,
    patch,
    place,
    results,
    subcategory,
)


def settled(at: Place, plan: str | None = None, settle_s: float = 0.0, **answers: frozenset[int]) -> SettleResult:
    return settle(plan, Answers(**answers), settle_s, dependencies=at.means)


def there(at: Place) -> list[str]:
    """The codes of the customers on the platform that pushes created."""
    codes = [record.get("erpCode") for record in at.platform.state.records("customers")]
    return sorted(code for code in codes if code in at.codes() or code == "C00003")


def overwritten(plan: Path) -> None:
    plan.with_name(f"{plan.name}.csv").write_text("tonight's export", "utf-8")


def remapped(plan: Path) -> None:
    manifest = json.loads((plan / "plan.json").read_text("utf-8"))
    (plan / "plan.json").write_text(json.dumps({**manifest, "mapping": {"path": "/none", "sha256": "0"}}), "utf-8")


def set_up_anew(plan: Path) -> None:
    os.environ["SOURCES__LEGACY__LOGIN_MODE"] = "code"
    os.environ["SOURCES__LEGACY__STOCK_SEMANTICS"] = "set"


CHANGES: list[Callable[[Path], None]] = [overwritten, remapped, set_up_anew]


@pytest.mark.parametrize("change", CHANGES)
def test_a_push_settles_and_answers_its_doubts_whatever_was_changed_since(
    at: Place, change: Callable[[Path], None]
) -> None:
    customers = at.lost(customer(1), customer(2))
    at.platform.state.remove("customers", at.platform.state.ids("customers")[-1])
    stocks = at.lost(*(patch(n, n, stock=5, repeatable=False) for n in (1, 2, 3)))
    for plan in (customers, stocks):
        change(plan)
    assert at.code(customers) == 0  # one is found, the other is absent and sent again
    assert there(at) == ["C00001", "C00002"]
    at.push(stocks, landed=ids(1), abandon=ids(2))
    assert at.states(stocks) == ["confirmed", "abandoned", "in_doubt"]


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_never_sent_waits_for_a_new_plan_once_something_was_changed(
    at: Place, change: Callable[[Path], None]
) -> None:
    plan = at.lost(*(subcategory(n) for n in range(1, 9)), fault="reset_before")
    left = at.states(plan).count("planned")
    change(plan)
    if change is set_up_anew:
        assert at.code(plan, abandon=ids(1)) == 6  # these settings are none of its kind
        return
    pushed = at.push(plan, not_landed=ids(1), abandon=ids(2, 3, 4, 5))
    assert pushed.exit_code == 5
    assert [body["name"] for body in at.platform.state.subcategories] == ["Sub 1"]
    blocked = [row for row in results(plan)["unsent"] if row["outcome"] == "blocked"]
    assert len(blocked) == left
    assert "plan it again" in blocked[0]["words"]


def test_an_absent_customer_whose_password_is_gone_waits_and_keeps_no_other_from_being_sent(at: Place) -> None:
    plan = at.plan([customer(1, password="input"), customer(2)])
    at.means = means(read_passwords=lambda plan, lines: dict.fromkeys(lines, "secret"))
    at.lose(plan, arrives=False)
    overwritten(plan)
    assert at.code(plan) == 6
    assert at.states(plan) == ["in_doubt", "confirmed"]
    assert "its password is in the input" in results(plan)["in_doubt"][0]["words"]


@pytest.mark.parametrize("is_lost", [True, False])
@pytest.mark.parametrize("is_absent", [True, False])
def test_a_settled_doubt_of_another_plan_keeps_nobody_waiting(at: Place, is_absent: bool, is_lost: bool) -> None:
    at.stop_clock()
    first = at.plan([customer(1)])
    at.lose(first, arrives=not is_absent)
    if is_lost:
        shutil.rmtree(first)
    tonight = at.plan([customer(1, phone="2"), customer(2)])
    assert at.code(tonight, WAITS) == 5
    assert outcomes(tonight) == {"2": "unsent.blocked", "3": "confirmed.confirmed"}
    assert "run it again from 1970-01-12 14:01:40 UTC" in results(tonight)["unsent"][0]["words"]
    at.now += SETTLE_S + 1
    at.push(tonight, WAITS)
    found = "unsent.exists_now" if is_lost else "unsent.blocked"  # a plan that is there records it itself
    assert outcomes(tonight)["2"] == ("confirmed.confirmed" if is_absent else found)
    assert there(at) == ["C00001", "C00002"]
    if not is_lost:
        code = at.code(first, WAITS)
        assert (code, at.states(first)) == ((5, ["abandoned"]) if is_absent else (0, ["confirmed"]))


def test_an_unproven_list_takes_no_create_from_another_plan(tmp_path: Path) -> None:
    with place(tmp_path, customers=60, readings={"legacy_limit": "ignored"}) as at:
        first = at.plan([customer(1)])
        at.lose(first, asked=replace(YES, accept_unproven=True))
        at.platform.state.remove("customers", at.platform.state.ids("customers")[-1])
        tonight = at.plan([customer(1, phone="2")])
        assert at.code(tonight, accept_unproven=True) == 5
        assert (at.states(first), there(at)) == (["in_doubt"], [])


def test_settle_ends_the_doubts_of_plans_that_are_gone(at: Place) -> None:
    found, absent, several = (at.plan([customer(n)]) for n in (1, 2, 3))
    at.lose(found)
    at.lose(absent, arrives=False)
    at.lose(several)
    at.platform.state.add("customers", {"erpCode": "C00003"})
    for plan in (found, absent, several):
        shutil.rmtree(plan)
    result = settled(at)
    assert dict(result.settled) == {"confirmed": 1, "planned": 1, "conflict": 1}
    (left,) = result.left
    assert (result.exit_code, left.operation, left.folder) == (6, 3, str(several))
    assert settled(at, left.plan_id[:8], landed=ids(3)).exit_code == 0
    with Ledger.open(at.ledger, readonly=True) as ledger:
        assert ledger.unsettled_plans(at.platform.url) == []
    assert there(at) == ["C00001", "C00003", "C00003"]


@pytest.mark.parametrize(
    ("zone", "shown"),
    [("America/Lima", "1970-01-01 21:00:00 (1970-01-02 02:00:00 UTC)"), ("UTC", "1970-01-02 02:00:00 UTC")],
)
def test_a_time_is_that_of_the_machine(monkeypatch: pytest.MonkeyPatch, zone: str, shown: str) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", zone)
        time.tzset()
        assert format_time(26 * 3600) == shown
    time.tzset()


def test_another_plan_in_the_folder_of_a_lost_one_is_not_taken_for_it(at: Place) -> None:
    lost = at.plan([customer(1)], name="x")
    at.lose(lost)
    shutil.rmtree(lost)
    at.plan([customer(1, erpCode="other", email="other@example.test")], name="x")
    assert dict(settled(at).settled) == {"confirmed": 1}


def test_settle_compares_values_where_the_plan_is_there_and_waits_for_the_settle_time(at: Place) -> None:
    at.stop_clock()
    plan = at.lost(customer(1), customer(2), customer(3))
    gone, changed = at.platform.state.ids("customers")[-2:]
    at.platform.state.remove("customers", gone)
    at.platform.state.change("customers", changed, {"firstName": "Eva"})
    early = settled(at, settle_s=SETTLE_S)
    assert (early.exit_code, len(early.left), dict(early.settled)) == (6, 3, {})
    assert early.left[0].advice == "it can be looked up from 1970-01-12 14:01:40 UTC"
    at.now += SETTLE_S + 1
    result = settled(at, settle_s=SETTLE_S)
    assert at.states(plan) == ["confirmed", "in_doubt", "conflict"]
    assert "push its plan again" in result.left[0].advice
    assert "firstName differ" in result.left[1].advice


def test_answers_about_a_plan_that_is_gone_free_its_records(at: Place) -> None:
    lost = at.lost(patch(1, 1, stock=5, repeatable=False), patch(2, 2, stock=5, repeatable=False))
    shutil.rmtree(lost)
    tonight = at.plan([patch(1, 1, stock=6, repeatable=False), patch(2, 2, stock=6, repeatable=False)])
    assert at.code(tonight) == 5
    assert "orderbridge settle" in results(tonight)["unsent"][0]["words"]
    result = settled(at, str(lost), landed=ids(1), not_landed=ids(2))
    assert (result.exit_code, dict(result.settled)) == (0, {"confirmed": 1, "planned": 1})
    assert at.code(tonight) == 0
    assert [variant.fields["stock"] for variant in at.platform.state.variants.values()] == [6, 6]


def test_a_later_value_ends_the_doubt_about_an_earlier_one_and_is_not_undone(at: Place) -> None:
    at.stop_clock()
    first = at.lost(patch(1, 1, sku="A"))
    second = at.plan([patch(1, 1, sku="B")])
    assert at.code(second, WAITS) == 5  # the first may still arrive
    at.now += SETTLE_S + 1
    assert at.code(second, WAITS) == 0
    assert at.code(first, WAITS) == 5
    assert at.states(first) == ["abandoned"]
    assert "another update has set these fields since" in results(first)["in_doubt"][0]["words"]
    assert at.variant(1) == {"sku": "B"}


def test_an_earlier_value_is_not_sent_over_a_later_one_in_doubt(at: Place) -> None:
    at.stop_clock()
    first, second = (at.plan([patch(1, 1, sku=sku)]) for sku in "AB")
    at.lose(first)
    at.now += SETTLE_S + 1
    at.lose(second)
    at.now += SETTLE_S + 1
    at.push(first, WAITS)
    assert at.variant(1) == {"sku": "B"}
    assert at.code(second, WAITS) == 0


def test_what_a_killed_push_left_in_flight_is_in_doubt_for_every_later_push(
    at: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = at.plan([customer(1)])
    monkeypatch.setattr("pipelines.push.send.SendLoop._receive", mock.Mock(side_effect=SystemExit))
    with pytest.raises(SystemExit):
        at.push(plan)
    monkeypatch.undo()
    shutil.rmtree(plan)
    assert settled(at, settle_s=-1000.0).settled.total() == 1


def test_the_very_same_plan_made_again_sends_what_was_found_to_be_absent(at: Place) -> None:
    pull(PullOptions(("customers",)))
    file = at.folder / "in.csv"
    file.write_text("erpCode,firstName,email\nC1,Ana,ana@example.test\n", "utf-8")

    def make() -> Path:
        folder = at.folder / f"made-{len(list(at.folder.glob('made-*')))}"
        return make_plan(PlanOptions("customers", file, out=folder, passwords="mail")).folder

    first = make()
    at.lose(first, arrives=False)
    shutil.rmtree(first)
    assert settled(at).exit_code == 0
    assert at.code(make()) == 0
    assert at.codes() == ["C1", "C1"]


def test_a_code_that_the_platform_writes_in_other_letters_is_no_conflict(at: Place) -> None:
    plan = at.lost(customer(1, erpCode="c1", email="a@x.test"), customer(2, erpCode="c2", lastName="B"))
    first, second = at.platform.state.ids("customers")[-2:]
    at.platform.state.change("customers", first, {"erpCode": "C1", "email": None})
    at.platform.state.change("customers", second, {"erpCode": "C2", "lastName": "other"})
    assert at.code(plan) == 6
    assert at.states(plan) == ["conflict", "conflict"]  # one lost its e-mail address, the other has another name
    at.platform.state.change("customers", first, {"email": "a@x.test"})
    again = at.lost(customer(1, erpCode="c3", email="c@x.test"))
    at.platform.state.change("customers", at.platform.state.ids("customers")[-1], {"erpCode": "C3"})
    assert at.code(again) == 0
    assert "erpCode in other letters there" in results(again)["confirmed"][0]["words"]
