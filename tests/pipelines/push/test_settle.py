"""Doubts end without the input, the mapping, the settings or the plan from which they came."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import msgspec
import pytest

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.push import verify as verifying
from orderbridge.pipelines.push.listing import differing_fields, keys_in_row
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.resolutions import Answers
from orderbridge.pipelines.push.rules import SETTLE_S, PushRules
from orderbridge.pipelines.push.settle import SettleResult, settle
from orderbridge.pipelines.push.verify import VerifyResult, verify
from orderbridge.pipelines.warehouse.answers.reviews import write_reviews
from orderbridge.sources.contract import CUSTOMER
from orderbridge.sources.errors import ExitCode, HttpRejected, UsageError
from orderbridge.sources.http.exchange import WriteOutcome
from orderbridge.sources.kinds import KINDS
from tests.pipelines.push.plans import (
    LOST,
    WAITS,
    Place,
    altered,
    customer,
    ids,
    listed,
    means,
    outcomes,
    patch,
    place,
    results,
    subcategory,
)


def settled(
    at: Place, plan: str | None = None, settle_s: float = 0.0, **answers: frozenset[int]
) -> SettleResult:
    return settle(plan, Answers(**answers), settle_s, dependencies=at.means)


def there(at: Place) -> list[str]:
    """The codes of the customers on the platform that pushes created."""
    codes = [record.get("erpCode") for record in at.platform.state.records("customers")]
    return sorted(code for code in codes if code in at.codes() or code == "C00003")


def change_input(plan: Path) -> None:
    plan.with_name(f"{plan.name}.csv").write_text("tonight's export", "utf-8")


def test_a_push_settles_and_answers_its_doubts_whatever_was_changed_since(at: Place) -> None:
    customers = at.lost(customer(1), customer(2))
    at.platform.state.remove("customers", at.platform.state.ids("customers")[-1])
    stocks = at.lost(*(patch(n, n, stock=5, repeatable=False) for n in (1, 2, 3)))
    change_input(customers)
    os.environ |= {"SOURCES__LEGACY__LOGIN_MODE": "code", "SOURCES__LEGACY__STOCK_SEMANTICS": "set"}
    assert at.code(customers) == 0  # one is found, the other is absent and sent again
    assert there(at) == ["C00001", "C00002"]
    at.push(stocks, landed=ids(1), abandon=ids(2))
    assert at.states(stocks) == ["confirmed", "abandoned", "in_doubt"]


def test_what_was_never_sent_waits_for_a_new_plan_once_something_was_changed(at: Place) -> None:
    plan = at.lost(*(subcategory(n) for n in range(1, 9)), fault="reset_before")
    left = at.states(plan).count("planned")
    change_input(plan)
    assert at.push(plan, not_landed=ids(1), abandon=ids(2, 3, 4, 5)).exit_code == 5
    assert [body["name"] for body in at.platform.state.subcategories] == ["Sub 1"]
    blocked = [row for row in results(plan)["unsent"] if row["outcome"] == "blocked"]
    assert len(blocked) == left
    assert "plan it again" in blocked[0]["words"]


def test_an_absent_customer_whose_password_is_gone_waits_and_holds_up_no_other(
    at: Place,
) -> None:
    plan = at.plan([customer(1, password="input"), customer(2)])
    at.means = means(read_passwords=lambda plan, lines: dict.fromkeys(lines, "secret"))
    at.lose(plan, arrives=False)
    change_input(plan)
    assert at.code(plan) == 6
    assert at.states(plan) == ["in_doubt", "confirmed"]
    assert "its password is in the input" in results(plan)["in_doubt"][0]["words"]


@pytest.mark.parametrize("is_lost", [True, False])
@pytest.mark.parametrize("is_absent", [True, False])
def test_a_settled_doubt_of_another_plan_keeps_nobody_waiting(
    at: Place, is_absent: bool, is_lost: bool
) -> None:
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
    # a plan that is there records it itself
    found = "unsent.exists_now" if is_lost else "unsent.blocked"
    assert outcomes(tonight)["2"] == ("confirmed.confirmed" if is_absent else found)
    assert there(at) == ["C00001", "C00002"]
    if not is_lost:
        code = at.code(first, WAITS)
        assert (code, at.states(first)) == ((5, ["abandoned"]) if is_absent else (0, ["confirmed"]))


def test_settle_ends_the_doubts_of_plans_that_are_gone(at: Place) -> None:
    found, absent, several = (at.plan([customer(n)]) for n in (1, 2, 3))
    at.lose(found)
    at.lose(absent, arrives=False)
    at.lose(several)
    at.platform.state.add("customers", {"erpCode": "C00003"})
    updates = at.lost(patch(1, 1, stock=5, repeatable=False))
    tonight = at.plan([patch(1, 1, stock=6, repeatable=False)])
    for plan in (found, absent, several, updates):
        shutil.rmtree(plan)
    # is not taken for it
    at.plan([customer(1, erpCode="other", email="other@example.test")], name=found.name)
    assert (at.code(tonight), at.variant(1)) == (5, {"stock": 5})
    result = settled(at, str(updates), not_landed=ids(1))
    assert dict(result.settled) == {"confirmed": 1, "planned": 2, "conflict": 1}
    assert at.code(tonight) == 0
    (left,) = result.left
    assert (result.exit_code, left.operation, left.folder) == (6, 3, str(several))
    assert settled(at, left.plan_id[:8], landed=ids(3)).exit_code == 0
    with Ledger.open(at.ledger, readonly=True) as ledger:
        assert PlanLedger.all_unsettled(ledger, at.platform.url) == []
    assert there(at) == ["C00001", "C00003", "C00003"]


def test_settle_compares_values_where_the_plan_exists_and_waits_to_settle(
    at: Place,
) -> None:
    at.stop_clock()
    plan = at.lost(customer(1), customer(2), customer(3))
    gone, changed = at.platform.state.ids("customers")[-2:]
    at.platform.state.remove("customers", gone)
    at.platform.state.change("customers", changed, {"firstName": "Eva"})
    early = settled(at, settle_s=SETTLE_S)
    assert (early.exit_code, len(early.left), dict(early.settled)) == (6, 3, {})
    again = f"orderbridge push {plan} --yes"
    assert early.left[0].advice == f"run it again from 1970-01-12 14:01:40 UTC on: {again}"
    row = at.rows(plan)[0]._replace(sent_at=1.0, doubt_at=61.0)
    assert PushRules(SETTLE_S, resend=True).settles_at(row) == 61.0 + SETTLE_S, (
        "however long it was waited for"
    )
    at.now += SETTLE_S + 1
    result = settled(at, settle_s=SETTLE_S)
    assert at.states(plan) == ["confirmed", "in_doubt", "conflict"]
    assert result.left[0].advice == f"run it again: {again}"
    assert "firstName differ" in result.left[1].advice


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


def test_a_lost_update_ends_no_wait_for_an_earlier_one_of_its_record(at: Place) -> None:
    at.stop_clock()
    at.lost(patch(1, 1, repeatable=False, stock=5))
    plan = at.plan([patch(1, 1, sku="A"), patch(2, 1, repeatable=False, stock=6)])
    _, client = at.answered(plan, LOST, asked=WAITS)
    assert [b"sku" in body for _, body in client.sent] == [True, True], "sent, and repeated"
    assert outcomes(plan)["3"] == "unsent.blocked"


def test_a_repeat_ends_no_wait_for_the_first_attempt_and_its_refusal_no_doubt(at: Place) -> None:
    at.stop_clock()
    first, refused = at.plan([patch(1, 1, sku="A")]), at.plan([patch(1, 2, sku="A")])
    pushed, _ = at.answered(first, LOST, asked=WAITS)
    assert pushed.states == {"confirmed": 1}
    second = at.plan([patch(1, 1, sku="B")])
    assert at.code(second, WAITS) == 5
    assert (
        "had an unknown outcome and may still arrive; run it again from"
        in results(second)["unsent"][0]["words"]
    )
    rejected = WriteOutcome("answered", 400, error=HttpRejected("no", status=400))
    pushed, _ = at.answered(refused, LOST, rejected, rejected, rejected, asked=WAITS)
    assert pushed.states == {"in_doubt": 1}


def test_an_older_plan_ends_where_a_later_one_that_is_lost_has_its_fields_in_doubt(
    at: Place,
) -> None:
    at.stop_clock()
    older = at.stopped(patch(1, 1, sku="A"))
    later = at.plan([patch(1, 1, sku="B")])
    at.answered(later, LOST, *[WriteOutcome("in_doubt", 500)] * 3, asked=WAITS)
    shutil.rmtree(later)
    at.now += 10 * SETTLE_S
    pushed, client = at.answered(older, asked=WAITS)
    assert (pushed.exit_code, outcomes(older), client.sent) == (5, {"2": "unsent.superseded"}, [])
    with Ledger.open(at.ledger, readonly=True) as ledger:
        assert [one.folder for one in ledger.open_plans()] == [str(later)]


def test_a_create_that_was_given_up_unsent_keeps_no_other_of_its_plan_waiting(at: Place) -> None:
    plan = at.stopped(customer(1), customer(2, email="ana1@example.test"))
    assert at.code(plan, abandon=ids(1)) == 5
    assert at.states(plan) == ["abandoned", "confirmed"]


def test_what_a_killed_push_left_in_flight_is_in_doubt_for_every_later_push(at: Place) -> None:
    plan = at.plan([customer(1)])
    killed = mock.patch("orderbridge.pipelines.push.send.SendLoop._receive", side_effect=SystemExit)
    with killed, pytest.raises(SystemExit):
        at.push(plan)
    shutil.rmtree(plan)
    assert settled(at, settle_s=-1000.0).settled.total() == 1


def test_a_code_that_the_platform_writes_in_other_letters_is_no_conflict(at: Place) -> None:
    plan = at.lost(
        customer(1, erpCode="c1", email="a@x.test"), customer(2, erpCode="c2", lastName="B")
    )
    first, second = at.platform.state.ids("customers")[-2:]
    at.platform.state.change("customers", first, {"erpCode": "C1", "email": None})
    at.platform.state.change("customers", second, {"erpCode": "C2", "lastName": "other"})
    assert at.code(plan) == 6
    # one lost its e-mail address, the other has another name
    assert at.states(plan) == [
        "conflict",
        "conflict",
    ]
    at.platform.state.change("customers", first, {"email": "a@x.test"})
    again = at.lost(customer(1, erpCode="c3", email="c@x.test"))
    at.platform.state.change("customers", at.platform.state.ids("customers")[-1], {"erpCode": "C3"})
    assert at.code(again) == 0
    assert "erpCode in another spelling there" in results(again)["confirmed"][0]["words"]


def test_a_doubt_about_a_variant_that_is_gone_ends_with_what_a_later_plan_finds(at: Place) -> None:
    first = at.plan([patch(1, 1, sku="A"), patch(2, 2, sku="A", stock=1)])
    at.answered(first, *[LOST] * 8)
    assert at.states(first) == ["in_doubt", "in_doubt"]
    later = at.plan([patch(1, 1, sku="B"), patch(2, 2, sku="B")])
    gone = WriteOutcome("in_doubt", 404, error=HttpRejected("no", status=404))
    at.answered(later, gone, gone, gone, gone)
    assert at.states(later)[0] == "rejected"
    assert at.states(first) == ["abandoned", "in_doubt"], "a stock may add up: a person decides"


def test_codes_that_are_alike_are_of_two_customers(at: Place) -> None:
    assert at.code(at.plan([customer(1, erpCode="C0012")])) == 0
    assert at.code(at.plan([customer(2, erpCode="C12")])) == 0
    assert there(at) == ["C0012", "C12"]


def test_a_doubt_of_a_plan_whose_file_has_changed_is_ended_by_the_next_push(at: Place) -> None:
    lost = at.lost(customer(1), customer(2), fault="lost_answer")
    at.platform.state.remove("customers", at.platform.state.ids("customers")[-1])
    tonight = at.plan([customer(3)])
    assert at.code(tonight) == 0
    assert at.states(lost) == ["in_doubt", "in_doubt"], "its import goes on with it"
    change_input(lost)
    assert at.code(tonight) == 0, "a plan that sends nothing looks them up as well"
    assert at.states(lost) == ["confirmed", "abandoned"]
    assert there(at) == ["C00001", "C00003"]


@pytest.mark.parametrize("by", ["settle", "a later plan"])
def test_a_customer_of_a_lost_plan_is_found_however_the_platform_spells_its_code(
    at: Place, by: str
) -> None:
    lost = at.lost(customer(1, erpCode="00a7", email=""), customer(2, erpCode="00a8", email=""))
    for number, code in zip(at.platform.state.ids("customers")[-2:], ("A7", "A9"), strict=True):
        at.platform.state.change("customers", number, {"erpCode": code})
    shutil.rmtree(lost)
    if by == "settle":
        assert dict(settled(at).settled) == {"confirmed": 1, "planned": 1}
    assert at.code(at.plan([customer(1, erpCode="00a7", email="")])) == 5
    codes = [record["erpCode"] for record in at.platform.state.records("customers")]
    assert codes[-2:] == ["A7", "A9"], "it is there, and was not created again"


def test_what_was_sent_is_compared_field_by_field_with_what_was_pulled_since(at: Place) -> None:
    document = {"number": "B1", "isDefault": True}
    created = [customer(n, documents=[document]) for n in range(1, 7)]
    plan = at.plan(created).rename(at.folder / "a plan")
    with pytest.raises(UsageError, match="never pushed") as caught:
        verify(plan)
    assert caught.value.hint == f"Push it: orderbridge push '{plan}' --yes"
    assert at.code(plan) == 0
    with pytest.raises(UsageError, match="no warehouse"):
        verify(plan)
    doubted, state = at.lost(customer(7)), at.platform.state
    ids = {str(row.get("erpCode")): row["id"] for row in state.records("customers")}
    state.change("customers", ids["C00001"], {"firstName": "Otra"})
    state.change("customers", ids["C00002"], {"documents": [{"number": "B2"}]})
    state.remove("customers", ids["C00003"])
    # found by its id
    state.change("customers", ids["C00004"], {"email": "new@example.test", "erpCode": "X1"})
    state.add("customers", {"erpCode": "C00005", "firstName": "Otra"})  # no twin
    state.add(
        "customers",
        {name: value for name, value in created[5].body.items() if name != "notification"},
    )
    at.pull("customers")
    result = verify(plan)
    outcomes = {"same": 1, "differs": 3, "missing": 1, "several": 1, "unsettled": 0}
    assert (result.outcomes, result.exit_code) == (outcomes, ExitCode.REJECTED)
    assert dict(result.fields) == {"firstName": 1, "documents": 1, "erpCode": 1, "email": 1}
    _, first, _, third, *_, last = (plan / verifying.VERIFY_FILE).read_text().splitlines()
    assert first.endswith(",differs," + str(ids["C00001"]) + ',firstName,"""Ana""","""Otra"""')
    assert (third.split(",")[2], last.startswith("7,6,several,")) == ("missing", True)
    done = at.command("verify", str(plan))
    assert (done.code, "3  differ" in done.out, "Otra" in done.out) == (5, True, False)
    result = verify(doubted)
    assert (result.in_doubt, result.exit_code) == (1, ExitCode.IN_DOUBT)
    at.push(later := at.plan([customer(8), customer(9)]))
    with Ledger.open(at.ledger) as ledger, ledger.transaction() as connection:
        earlier = "UPDATE operations SET updated_at = updated_at - 3607 WHERE id = 8"
        connection.execute(earlier)
    altered(later, organization="org-1")
    for sql, words in (
        ("", "before the last of them was sent"),
        (
            "UPDATE ops.coverage SET ended_at = ended_at + INTERVAL 1 DAY",
            "before the last of them was sent",
        ),
        (
            "UPDATE ops.warehouse SET organization = 'org-2'",
            "organization than the plan: organization org-2, not",
        ),
        (
            "UPDATE ops.runs SET legacy_host = 'other.test'",
            r"were read from other\.test, not from ",
        ),
        ("DELETE FROM ops.coverage", "no customers read from the platform"),
    ):
        with duckdb.connect(str(at.folder / "warehouse.duckdb")) as connection:
            connection.execute(sql)
        with pytest.raises(UsageError, match=words):
            verify(later)


def test_a_customer_missing_from_an_unproven_list_is_coverage() -> None:
    codes = {"complete": ExitCode.REJECTED, "unproven": ExitCode.COVERAGE}
    missing = Counter({"missing": 1, "same": 2})
    assert codes == {
        verdict: VerifyResult("customers", missing, verdict=verdict).exit_code for verdict in codes
    }


def test_what_cannot_be_read_back_is_counted(at: Place) -> None:
    at.push(plan := at.plan([patch(1, 1), patch(2, 2, sku=7)]))
    done = at.command("verify", str(plan))
    assert done.code == 0
    assert "1  accepted; the API cannot read them back (requests)" in done.out
    assert "1  not sent, rejected or with unknown outcome" in done.out


UNREADABLE = {"password", "notification"}
"""Fields of a create that the list does not show under their name: what `verify` cannot compare."""
ODD = {"id": 901, "birthdate": 7}
"""What puts a row in quarantine: a date that is a number."""


def records(folder: Path, *rows: dict[str, object] | str, count: int = 30) -> Path:
    """A folder of the sandbox's customers; a text is a row as it stands."""
    good = [{"id": n, "email": f"x{n}@example.test", "firstName": "X"} for n in range(1, count)]
    texts = [row if isinstance(row, str) else json.dumps(row) for row in (*good, *rows)]
    (folder / "given").mkdir()
    (folder / "given" / "customers.json").write_text(f"[{','.join(texts)}]", "utf-8")
    return folder / "given"


def test_a_customer_whose_row_is_refused_is_not_created_again_whatever_is_accepted(
    tmp_path: Path,
) -> None:
    rows: tuple[dict[str, object] | str, ...] = (
        {**ODD, "erpCode": "C00001", "email": ["a"]},
        {**ODD, "email": " ANA2@Example.test", "loginCode": "L1"},
        '{"id":901,"erpCode":"C00003","erpCode":"C00009"}',
    )
    with place(tmp_path, records=records(tmp_path, *rows)) as at:
        plan = at.plan([customer(number) for number in range(1, 5)])
        pushed = at.push(plan, accept_unproven=True)
        assert (pushed.exit_code, pushed.error) == (5, None)
        assert outcomes(plan) == {
            **dict.fromkeys("234", "unsent.exists_now"),
            "5": "confirmed.confirmed",
        }
        assert (
            "in a quarantined row of the list: after `orderbridge pull"
            in results(plan)["unsent"][0]["words"]
        )


def test_creates_wait_while_a_row_may_be_anybodys(tmp_path: Path) -> None:
    with place(tmp_path, records=records(tmp_path, {**ODD, "firstName": "Ana"})) as at:
        pushed = at.push(plan := at.plan([customer(1)]))
        assert (pushed.exit_code, at.codes()) == (7, [])
        reported = str(pushed.error)
        assert reported.startswith(
            "1 row of the list of customers may be any customer: each is in quarantine, or"
        )
        assert ("--accept-unproven" in reported, "when the list changes less" in reported) == (
            True,
            False,
        )
        assert at.code(plan, accept_unproven=True) == 0


def test_a_number_is_a_key_too(tmp_path: Path) -> None:
    with place(tmp_path, records=records(tmp_path, {"id": 901, "erpCode": 9})) as at:
        creates = [customer(1, erpCode="0009"), customer(2, erpCode="9")]
        assert at.code(plan := at.plan(creates)) == 5
        assert outcomes(plan) == {"2": "unsent.held", "3": "unsent.exists_now"}
        write_reviews({"code 0009 = 901": ("reject", "")}, "ana")
        assert at.code(plan := at.plan(creates)) == 7, "it may have lost other zeros"
        assert outcomes(plan) == {"2": "unsent.blocked", "3": "unsent.exists_now"}
        assert at.code(plan, accept_unproven=True) == 5
        assert at.codes() == ["0009"]


@pytest.mark.parametrize(
    ("row", "keys", "is_certain"),
    [
        (b'{"erpCode":7.0,"email":"A@b.c"}', {("erpCode", "7"), ("email", "a@b.c")}, False),
        (b'{"erpCode":"007","email":null}', {("erpCode", "007")}, True),
        (b'{"erpCode":"E1","priceListId":NaN}', {("erpCode", "E1")}, False),
        (b'{"erpCode":"E1","firstName":"\xff"}', {("erpCode", "E1")}, False),
        (b'{"erpCode":"E1","erpCode":"E2"}', {("erpCode", "E1"), ("erpCode", "E2")}, False),
        (b'{"erpCode":"E1\\u0000"}', {("erpCode", "E1\0")}, False),
        (b"[]", set(), False),
        (b"[" * 100_000, set(), False),
        (b'{"email":" "}', set(), False),
    ],
)
def test_the_keys_of_a_refused_row_are_read_as_far_as_they_can_be(
    row: bytes, keys: set[tuple[str, str]], is_certain: bool
) -> None:
    assert keys_in_row(row) == (keys, is_certain)


def test_a_list_that_is_not_whole_is_not_made_so_by_what_its_refused_rows_tell(
    tmp_path: Path,
) -> None:
    given = records(tmp_path, {**ODD, "erpCode": "C00009"}, count=60)
    with place(tmp_path, records=given, readings={"legacy_limit": "ignored"}) as at:
        pushed = at.push(at.plan([customer(1)]))
        assert (pushed.exit_code, at.codes()) == (7, [])
        assert str(pushed.error).startswith(
            "the list of customers is partial: 1 customer not sent, since they may exist already"
        )
        assert "quarantine" not in str(pushed.error)


def test_a_create_in_doubt_is_not_sent_again_after_an_unproven_list(at: Place) -> None:
    plan = at.lose(at.plan([customer(1)]), arrives=False)
    whole = at.means
    at.means = replace(whole, read_customers=lambda keys: listed([], keys, is_whole=False))
    assert (at.code(plan), at.states(plan), at.codes()) == (6, ["in_doubt"], ["C00001"])
    (unknown,) = results(plan)["in_doubt"]
    assert "not found, but the list of customers is partial" in unknown["words"]
    at.means = whole
    assert (at.code(plan), at.states(plan), at.codes()) == (0, ["confirmed"], ["C00001"] * 2)


def test_a_create_in_doubt_that_a_row_may_be_waits_for_a_person(
    at: Place,
) -> None:
    plan = at.lost(customer(1, erpCode="0009"), customer(2))
    known, unidentified = at.platform.state.ids("customers")[-2:]
    at.platform.state.change("customers", known, {"birthdate": 7})
    at.platform.state.change(
        "customers", unidentified, {"birthdate": 7, "erpCode": None, "email": None}
    )
    for _ in range(2):
        assert (at.code(plan), at.states(plan), at.codes()) == (
            6,
            ["in_doubt"] * 2,
            ["0009", "C00002"],
        )
    first, second = (row["words"] for row in results(plan)["in_doubt"])
    assert (
        "a quarantined row of the list has its erpCode" in first,
        "orderbridge answer write:" in first,
    ) == (
        True,
        True,
    )
    assert (
        "not found, but a row of the list that is in quarantine" in second,
        "orderbridge answer write:" in second,
    ) == (True, True)
    assert at.code(plan, landed=ids(1, 2)) == 0


def test_a_create_without_a_code_is_looked_up_by_its_email_alone(at: Place) -> None:
    uncoded = customer(4)
    plan = at.plan([msgspec.structs.replace(uncoded, keys={"email": uncoded.keys["email"]})])
    at.platform.state.add("customers", {"erpCode": "C00004", "email": "other@example.test"})
    assert (at.code(plan), at.codes()) == (0, ["C00004"])


ONE, TWO = {"number": "1"}, {"number": "2"}


@pytest.mark.parametrize(
    ("name", "sent", "actual", "is_same"),
    [
        ("documents", [ONE], [{**ONE, "id": 7}], True),
        ("documents", [ONE], None, False),
        ("documents", [ONE], [ONE, TWO], False),
        ("email", "maría@ſhop.es", "MaRíA@ſhop.es", True),
        ("email", "maría@ſhop.es", "MARÍA@ſhop.es", False),
        ("priceListId", 7, "7.0", False),
        ("priceListId", 7.0, "7", True),
        ("priceListId", [7.0, 8], "[7,8]", True),  # a list of values, in its column
        ("firstName", " Ana", "Ana ", True),
        ("lastName", "", None, True),
        ("startDate", "2026-12-01", "2026-12-01T00:00:00Z", True),
        ("erpCode", "2026-12-01", "2026-12-01-A", False),
    ],
)
def test_a_value_is_the_same_only_as_far_as_the_platform_may_write_it_otherwise(
    name: str, sent: Any, actual: Any, is_same: bool
) -> None:
    assert differing_fields({name: sent}, {name: actual}, "ES") == ([] if is_same else [name])


def test_every_field_of_a_create_is_compared_or_named_as_unreadable() -> None:
    names = {field.name for field in KINDS["customers"].record.fields}
    record = dict.fromkeys(field.name for field in CUSTOMER.fields)
    assert {
        name for name in names if differing_fields({name: "sent"}, record)
    } == names - UNREADABLE


def test_an_id_that_verify_finds_is_kept_and_names_the_customer_in_any_spelling(
    at: Place,
) -> None:
    real = at.means
    at.answering(lambda *_: None)
    assert at.code(plan := at.plan([customer(1)])) == 0
    assert at.rows(plan)[0].remote_id is None
    at.means = real
    record = at.platform.state.add("customers", {**customer(1).body, "erpCode": "c00001"})
    at.pull("customers")
    assert verify(plan).spelling == {"erpCode": 1}
    assert at.rows(plan)[0].remote_id == str(record["id"])
