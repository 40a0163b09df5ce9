"""Each fault for each kind of write, resumption, and everything that ends or refuses a push."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import socket
import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest

from pipelines.cli.push import print_result
from pipelines.ledger.clock import ClockReading
from pipelines.ledger.store import Ledger
from pipelines.plan.make import PlanOptions, make_plan
from pipelines.plan.model import PlannedOperation
from pipelines.push import passwords, send
from pipelines.push.model import SETTLE_S, PushOptions, PushResult
from pipelines.push.plan_ledger import PlanLedger
from pipelines.push.run import PROBES_MAX
from pipelines.push.send import DOUBTS_MAX, INTENT_MAX_AGE_S, INTENTS_AHEAD
from sandbox import public_v1
from sources.errors import HttpRejected, LockedError, Unreachable, UsageError
from sources.files.formulas import people_rows
from sources.http.client import Client
from sources.http.exchange import WriteOutcome
from sources.kinds import KindName
from tests.pipelines.push.plans import (
    YES,
    Place,
    customer,
    means,
    outcomes,
    patch,
    place,
    results,
    subcategory,
    warehouse,
    write_plan,
)

KINDS: dict[KindName, list[PlannedOperation]] = {
    "customers": [customer(1), customer(2)],
    "variants": [patch(1, 1), patch(2, 2)],
    "subcategories": [subcategory(1), subcategory(2)],
    "warehouses": [warehouse(1), warehouse(2)],
}


def written(made: Place, kind: KindName) -> int:
    """How many writes the sandbox has applied."""
    state = made.platform.state
    if kind == "variants":
        return sum(kept.applied for kept in state.variants.values())
    return len({"customers": state.customer_inputs, "subcategories": state.subcategories}.get(kind, state.warehouses))


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_is_sent_once_however_often_it_is_pushed(at: Place, kind: KindName) -> None:
    plan = at.plan(KINDS[kind], kind)
    assert [at.push(plan).exit_code for _ in range(3)] == [0, 0, 0]
    assert written(at, kind) == 2
    assert outcomes(plan) == {"2": "confirmed.confirmed", "3": "confirmed.confirmed"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["lost_answer", "applied_5xx"])
def test_a_write_that_was_applied_but_not_answered_is_in_doubt(at: Place, kind: KindName, fault: str) -> None:
    plan = at.plan(KINDS[kind], kind)
    at.platform.set_faults({fault: 1.0})
    assert at.push(plan).exit_code == 6
    assert outcomes(plan) == {"2": "in_doubt.in_doubt", "3": "in_doubt.in_doubt"}
    times = written(at, kind)
    at.platform.set_faults({})
    pushed = at.push(plan)
    if kind in ("customers", "variants"):  # the one is looked up, the other may be repeated
        assert pushed.exit_code == 0
        assert outcomes(plan) == {"2": "confirmed.confirmed", "3": "confirmed.confirmed"}
    else:
        assert pushed.exit_code == 6
    assert written(at, kind) == (times + 2 if kind == "variants" else 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_that_may_not_have_happened_is_in_doubt_and_only_sent_again_where_that_is_sure(
    at: Place, kind: KindName
) -> None:
    plan = at.plan(KINDS[kind], kind)
    at.platform.set_faults({"reset_before": 1.0})
    at.means = replace(at.means, read_customers=_nobody)
    assert at.push(plan).exit_code == 6
    assert written(at, kind) == 0
    at.platform.set_faults({})
    at.means = means()
    pushed = at.push(plan)
    if kind in ("customers", "variants"):
        assert (pushed.exit_code, written(at, kind)) == (0, 2)
    else:
        assert (pushed.exit_code, written(at, kind)) == (6, 0)
        pushed = at.push(plan, replace(YES, not_landed=frozenset({1}), landed=frozenset({2})))
        assert (pushed.exit_code, written(at, kind)) == (0, 1)


def _nobody(keys: object) -> Any:
    from pipelines.push.listing import CustomerListing

    return CustomerListing(True, "complete")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["html_200", "error_500", "error_503", "redirect", "stall"])
def test_no_answer_of_a_stranger_confirms_or_refuses_a_write(at: Place, kind: KindName, fault: str) -> None:
    plan = at.plan(KINDS[kind], kind)
    at.means = replace(at.means, read_customers=_nobody)
    at.platform.set_faults({fault: 1.0})
    assert at.push(plan).exit_code == 6
    assert set(outcomes(plan).values()) == {"in_doubt.in_doubt"}
    assert written(at, kind) == 0


@pytest.mark.parametrize("fault", ["reset_amid", "reset_after", "truncated_json", "gzip_truncated"])
def test_a_create_whose_answer_is_broken_is_never_sent_twice(at: Place, fault: str) -> None:
    plan = at.plan(KINDS["customers"])
    at.platform.set_faults({fault: 0.0})
    at.means = replace(at.means, read_customers=_nobody)
    at.platform.set_faults({fault: 1.0})
    at.push(plan)
    at.platform.set_faults({})
    at.means = means()
    assert at.push(plan).exit_code == 0
    assert sorted(at.codes()) == ["C00001", "C00002"]


@pytest.mark.parametrize("fault", ["rate_429", "rate_429_retry_after"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_429_waits_and_goes_on(tmp_path: Path, kind: KindName, fault: str) -> None:
    with place(tmp_path, faults={fault: 0.4}, seed=3) as at:
        at.means = replace(at.means, read_customers=_nobody)
        plan = at.plan(KINDS[kind], kind)
        assert at.push(plan).exit_code == 0
        assert written(at, kind) == 2


def test_a_platform_that_stays_busy_ends_the_push_and_leaves_the_rest_unsent(at: Place) -> None:
    plan = at.plan(KINDS["variants"], "variants")
    at.platform.set_faults({"rate_429": 1.0})
    pushed = at.push(plan)
    assert pushed.exit_code == 4
    assert set(outcomes(plan).values()) == {"unsent.not_sent"}
    assert set(at.states(plan)) == {"planned"}


class Answering(Client):
    """A client whose answers to writes are given."""

    def __init__(self, answers: list[WriteOutcome]) -> None:
        self.answers = answers
        self.sent: list[tuple[str, bytes]] = []

    def send(self, verb: Any, path: str, json_body: bytes) -> WriteOutcome:
        self.sent.append((path, json_body))
        return self.answers.pop(0) if self.answers else WriteOutcome("answered", 204 if verb == "PATCH" else 201)

    def close(self) -> None:
        """Nothing is open."""


def answered(at: Place, plan: Path, *answers: WriteOutcome, asked: PushOptions = YES) -> tuple[PushResult, Answering]:
    client = Answering(list(answers))
    at.means = means(client=lambda settings, stop: client, read_customers=_nobody)
    return at.push(plan, replace(asked, concurrency=1)), client


def test_a_retry_after_beyond_all_patience_ends_the_push(at: Place) -> None:

    busy = WriteOutcome("answered", 429, error=Unreachable("busy"), retry_after_s=3600.0)
    pushed, client = answered(at, at.plan(KINDS["variants"], "variants"), busy)
    assert (pushed.exit_code, len(client.sent)) == (4, 1)


@pytest.mark.parametrize("reading", ["401_errors", "403_errors", "401_empty", "403_text"])
def test_a_key_that_is_refused_ends_the_push_and_nothing_is_in_doubt(tmp_path: Path, reading: str) -> None:
    with place(tmp_path, readings={"legacy_auth_failure": reading}) as at:
        plan = at.plan(KINDS["variants"], "variants")
        os.environ["SOURCES__LEGACY__API_KEY"] = "another-key"
        assert at.push(plan).exit_code == 3
        assert set(outcomes(plan).values()) == {"unsent.not_sent"}
        os.environ["SOURCES__LEGACY__API_KEY"] = at.platform.legacy_key
        assert at.push(plan).exit_code == 0


def test_a_platform_that_is_not_there_leaves_everything_planned(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with place(tmp_path) as at:
            os.environ["SOURCES__LEGACY__BASE_URL"] = host
            plan = write_plan(tmp_path / "plan", host, KINDS["variants"], "variants")
            assert at.push(plan).exit_code == 4
            assert set(at.states(plan)) == {"planned"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_platform_refuses_is_rejected_with_its_code(
    at: Place, kind: KindName, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = {
        "customers": customer(1, firstName=7),
        "variants": patch(1, 1, sku=7),
        "subcategories": subcategory(1, name=7),
        "warehouses": replace_body(warehouse(1), {"name": ""}),
    }[kind]
    plan = at.plan([bad, KINDS[kind][1]], kind)
    assert at.push(plan).exit_code == 5
    (row,) = results(plan)["rejected"]
    assert (row["line"], row["outcome"], row["status"]) == ("2", "rejected", "400")
    assert row["code"]
    assert outcomes(plan)["3"] == "confirmed.confirmed"
    again = at.push(plan)
    assert again.exit_code == 5
    print_result(again, "plain")
    assert "\nresults/rejected.csv has each reason; correct these lines" in capsys.readouterr().out
    assert written(at, kind) == 1


def replace_body(operation: PlannedOperation, body: dict[str, Any]) -> PlannedOperation:
    return msgspec.structs.replace(operation, body=body)


@pytest.mark.parametrize("kind", KINDS)
def test_the_platforms_words_are_in_the_private_results_and_nowhere_else(
    at: Place, kind: KindName, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = at.plan(KINDS[kind], kind)
    refused = WriteOutcome("answered", 400, error=HttpRejected("no", status=400), message="=Ana is not wanted")
    lost = WriteOutcome("in_doubt", 500, error=HttpRejected("no", status=500), message="we are out")
    asked = replace(YES, settle_s=SETTLE_S, concurrency=1)
    print_result(answered(at, plan, refused, *[lost] * 9, asked=asked)[0], "plain")
    (row,), (doubt,) = results(plan)["rejected"], results(plan)["in_doubt"]
    assert (row["platform_message"], doubt["platform_message"]) == ("'=Ana is not wanted", "we are out")
    answered(at, plan, asked=replace(asked, abandon=frozenset({2})))
    assert results(plan)["rejected"][0]["platform_message"] == "'=Ana is not wanted"
    assert "wanted" not in caplog.text + "".join(capsys.readouterr())
    assert b"wanted" not in b"".join(path.read_bytes() for path in at.folder.glob("ledger.sqlite*"))
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in plan.glob(".platform*"))


def test_a_create_in_doubt_without_a_key_waits_for_a_person(at: Place) -> None:
    plan = at.plan([msgspec.structs.replace(customer(1), keys={"email": " "})])
    lost = WriteOutcome("in_doubt", error=Unreachable("lost"))
    for count in (1, 0):
        pushed, client = answered(at, plan, lost)
        assert (pushed.exit_code, len(client.sent)) == (6, count)
    assert "--landed" in results(plan)["in_doubt"][0]["words"]


def test_a_create_in_doubt_that_another_plan_has_made_since_waits_for_a_person(at: Place) -> None:
    first, other = (at.plan([subcategory(1)], "subcategories", name=name) for name in ("a", "b"))
    lost = WriteOutcome("in_doubt", error=Unreachable("lost"))
    answered(at, first, lost)
    answered(at, first, asked=replace(YES, abandon=frozenset({1})))
    answered(at, other, lost, asked=replace(YES, accept_unproven=True))
    answered(at, first, asked=replace(YES, landed=frozenset({1})))
    pushed, client = answered(at, other)
    assert (pushed.exit_code, client.sent) == (6, [])
    assert "--landed" in results(other)["in_doubt"][0]["words"]


def test_a_refusal_after_a_doubt_leaves_the_doubt(at: Place) -> None:

    plan = at.plan([patch(1, 1)], "variants")
    lost = WriteOutcome("in_doubt", error=Unreachable("lost"))
    refused = WriteOutcome("answered", 400, error=HttpRejected("refused", status=400))
    pushed, client = answered(at, plan, lost, refused, refused, refused)
    assert pushed.exit_code == 6
    assert (at.states(plan), len(client.sent)) == (["in_doubt"], 3)
    pushed, _ = answered(at, plan, refused, asked=replace(YES, not_landed=frozenset({1})))
    assert (pushed.exit_code, at.states(plan)) == (5, ["rejected"])


def test_too_many_doubts_in_a_row_end_the_push(at: Place) -> None:
    plan = at.plan([subcategory(n) for n in range(1, 20)], "subcategories")
    at.platform.set_faults({"reset_before": 1.0})
    pushed = at.push(plan)
    assert (pushed.exit_code, pushed.broke) == (6, True)
    assert at.states(plan).count("in_doubt") == DOUBTS_MAX
    assert at.states(plan).count("planned") == 19 - DOUBTS_MAX


class Failing(Client):
    """A platform that fails for some operations, and takes the others."""

    def __init__(self, status: int, bad: Callable[[str], bool]) -> None:  # of a client's own it has nothing
        self.status, self.bad, self.sent = status, bad, list[str]()

    def close(self) -> None:
        """Nothing is open."""

    def send(self, verb: Any, path: str, json_body: bytes) -> WriteOutcome:
        self.sent.append(record := path + json_body.decode())
        if self.bad(record):
            return WriteOutcome("in_doubt", self.status, error=HttpRejected("no", status=self.status))
        return WriteOutcome("answered", 204 if verb == "PATCH" else 201)


def failing(at: Place, status: int, bad: Callable[[str], bool]) -> Failing:
    client = Failing(status, bad)
    at.means = means(client=lambda settings, stop: client, read_customers=_nobody)
    return client


def test_customers_that_always_fail_keep_no_other_from_being_created(at: Place) -> None:
    client = failing(at, 500, lambda record: any(f"C0000{n}" in record for n in range(1, 7)))
    plan = at.plan([customer(n) for n in range(1, 31)])
    assert at.push(plan).exit_code == 6
    assert at.states(plan) == ["in_doubt"] * 6 + ["confirmed"] * 24
    for night in range(2, 5):
        client.sent.clear()
        assert at.push(plan).exit_code == 6
        assert (len(client.sent), at.states(plan).count("in_doubt")) == (6, 6)
        assert f"failed {night} times" in results(plan)["in_doubt"][0]["words"]


def test_what_was_never_sent_goes_before_what_is_repeated(at: Place) -> None:
    client = failing(at, 500, lambda record: True)
    plan = at.plan([customer(n) for n in range(1, 41)])
    assert at.push(plan).broke
    assert at.states(plan).count("in_doubt") == DOUBTS_MAX + PROBES_MAX
    earlier, client.sent[:], client.bad = list(client.sent), [], lambda record: False
    assert at.push(plan).exit_code == 0
    code = re.compile("C[0-9]{5}")
    first, again = ([code.findall(one)[0] for one in sent] for sent in (earlier, client.sent))
    assert sorted(again[-8:]) == sorted(first)


@pytest.mark.parametrize("bad", [range(1, 101), range(101, 201), range(1, 301, 3)])
def test_variants_that_are_gone_keep_no_other_from_being_updated(at: Place, bad: range) -> None:
    client = failing(at, 404, lambda record: int(re.findall("variants/([0-9]+)", record)[0]) in bad)
    plan = at.plan([patch(n, n) for n in range(1, 301)], "variants")
    pushes = 0
    while at.push(plan).exit_code == 6 and at.states(plan).count("confirmed") < 200 and pushes < 3:
        pushes += 1
    assert at.states(plan).count("confirmed") == 200
    assert pushes <= 1
    client.sent.clear()
    at.push(plan)
    assert len(client.sent) <= 100 + 1


def test_doubts_that_do_not_follow_one_another_do_not_end_the_push(at: Place) -> None:
    """Issue 16, item 7."""
    count = 2 * (DOUBTS_MAX + 1)
    plan = at.plan([subcategory(n) for n in range(1, count + 1)], "subcategories")
    lost, created = WriteOutcome("in_doubt", error=Unreachable("lost")), WriteOutcome("answered", 201)
    pushed, client = answered(at, plan, *([lost, created] * (DOUBTS_MAX + 1)))
    assert (pushed.broke, len(client.sent)) == (False, count)
    assert at.states(plan) == ["in_doubt", "confirmed"] * (DOUBTS_MAX + 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("concurrency", [1, 4])
def test_an_intent_is_committed_before_a_byte_leaves(
    at: Place, kind: KindName, concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 16, item 7: what another connection reads in the ledger while a request is being sent; commits are slow."""
    committed: list[str] = []
    commit = PlanLedger.commit

    def slow_commit(*arguments: Any) -> None:
        time.sleep(0.005)
        commit(*arguments)

    monkeypatch.setattr(PlanLedger, "commit", slow_commit)

    class Reading(Answering):
        def send(self, verb: Any, path: str, json_body: bytes) -> WriteOutcome:
            with lock:
                rows = at.rows(plan)
                name = json.loads(json_body).get("erpCode") or json.loads(json_body).get("name") or path
                index = order.index(name) if name in order else order.index(path)
                committed.append(rows[index].state)
            return super().send(verb, path, json_body)

    lock = threading.Lock()
    operations = KINDS[kind]
    order = [op.body.get("erpCode") or op.body.get("name") or op.path for op in operations]
    plan = at.plan(operations, kind)
    client = Reading([])
    at.means = means(client=lambda settings, stop: client, read_customers=_nobody)
    assert at.push(plan, replace(YES, concurrency=concurrency)).exit_code == 0
    assert committed == ["in_flight"] * len(operations)


def test_no_request_leaves_long_after_its_intent(at: Place) -> None:
    """A doubt that a kill leaves is dated by the intent: `INTENT_MAX_AGE_S` bounds what the request may be later."""
    now = [1_000_000.0]
    sent: dict[str, float] = {}

    class Slow(Answering):
        def send(self, verb: Any, path: str, json_body: bytes) -> WriteOutcome:
            sent[path] = now[0]
            now[0] += INTENT_MAX_AGE_S / 2 + 1
            return super().send(verb, path, json_body)

    client = Slow([])
    at.means = means(client=lambda settings, stop: client, clock=lambda: now[0])
    plan = at.plan([patch(n, n) for n in range(1, 9)], "variants")
    assert at.push(plan, replace(YES, concurrency=1)).states == {"confirmed": 8}
    rows = at.rows(plan)
    assert [row.attempts for row in rows][:2] == [1, 1]
    assert all(row.attempts > 1 for row in rows[2:])
    assert all(0 <= sent[row.path] - (row.sent_at or 0) <= INTENT_MAX_AGE_S for row in rows)


def test_an_outcome_is_decided_at_once_and_others_are_committed_together(
    at: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 16, item 5: workers wake the loop for what ends or changes the push, not for each confirmation."""

    class Losing(Answering):
        def send(self, verb: Any, path: str, json_body: bytes) -> WriteOutcome:
            if self.answers and self.answers[0].state == "in_doubt":
                time.sleep(0.02)  # the loop can react
            return super().send(verb, path, json_body)

    monkeypatch.setattr(send, "WAIT_STEP_S", 5.0)
    commits = mock.Mock()
    commit = PlanLedger.commit
    monkeypatch.setattr(PlanLedger, "commit", lambda *given: (commits(), commit(*given)))
    client = Losing([WriteOutcome("answered", 204), *[WriteOutcome("in_doubt", error=Unreachable("lost"))] * 50])
    at.means = means(client=lambda settings, stop: client)
    operations = [patch(n, n) for n in range(1, 101)]
    assert at.push(at.plan(operations, "variants"), replace(YES, concurrency=1)).broke
    assert len(client.sent) <= 1 + DOUBTS_MAX + 1 + 2 * PROBES_MAX
    at.means = means(client=lambda settings, stop: Answering([]))
    commits.reset_mock()
    result = at.push(at.plan([patch(n, n) for n in range(200, 300)], "variants"), replace(YES, concurrency=1))
    assert result.states == {"confirmed": 100}
    assert commits.call_count <= 100 / (INTENTS_AHEAD / 2) + INTENTS_AHEAD


def test_retry_after_is_honoured_before_the_next_request(at: Place) -> None:
    """Issue 16, item 7: the backoff of the tests alone would take two milliseconds."""
    times: list[float] = []

    class Timing(Answering):
        def send(self, verb: Any, path: str, json_body: bytes) -> WriteOutcome:
            times.append(time.monotonic())
            return super().send(verb, path, json_body)

    client = Timing([WriteOutcome("answered", 429, error=Unreachable("busy"), retry_after_s=0.5)])
    at.means = means(client=lambda settings, stop: client)
    plan = at.plan(KINDS["variants"], "variants")
    assert at.push(plan, replace(YES, concurrency=1)).exit_code == 0
    assert times[1] - times[0] >= 0.5


@pytest.mark.parametrize("semantics", ["unknown", "increment"])
def test_what_may_add_is_never_repeated(tmp_path: Path, semantics: str) -> None:
    readings = {"stock_semantics": "increment", "price_semantics": "increment"}
    with place(tmp_path, readings=readings) as at:
        os.environ |= dict.fromkeys(("SOURCES__LEGACY__STOCK_SEMANTICS", "SOURCES__LEGACY__PRICE_SEMANTICS"), semantics)
        # that it is called repeatable does not help: the settings of the push count too
        plan = at.plan([patch(1, 1, stock=5, repeatable=True), patch(2, 2, price=1.5, repeatable=False)], "variants")
        at.platform.set_faults({"lost_answer": 1.0})
        assert at.push(plan).exit_code == 6
        at.platform.set_faults({})
        assert [at.push(plan).exit_code for _ in range(2)] == [6, 6]
        variants = at.platform.state.variants
        assert (variants[1, 1].fields, variants[1, 2].fields) == ({"stock": 5}, {"price": 1.5})
        assert at.push(plan, replace(YES, landed=frozenset({1, 2}))).exit_code == 0
        with Ledger.open(at.ledger, readonly=True) as ledger:
            values = ledger.confirmed(at.platform.url)["value"].to_pylist()
        assert sorted(values) == (["1.5", "5"] if semantics == "unknown" else [])


def test_a_stock_that_is_set_is_sent_every_night(at: Place) -> None:
    os.environ["SOURCES__LEGACY__STOCK_SEMANTICS"] = "set"
    file = at.folder / "stock.csv"
    file.write_text("productId,variantId,sku,stock\n1,7,A,39\n", "utf-8")
    for night in range(3):
        made = make_plan(PlanOptions(kind="variants", file=file, out=at.folder / f"night-{night}"))
        assert at.push(made.folder).exit_code == 0
        assert at.push(made.folder).exit_code == 0  # resumed: nothing is left
        variant = at.platform.state.variants[1, 7]
        assert (variant.fields["stock"], variant.counts["stock"], variant.counts["sku"]) == (39, night + 1, 1)
        variant.fields["stock"] = 2  # orders of the day


def test_what_was_left_out_is_counted_apart_from_what_was_confirmed(
    at: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = at.plan([patch(1, 1)], "variants", lines=[(n, "unchanged", None, "", "", "") for n in (3, 4)])
    print_result(at.push(plan), "plain")
    shown = capsys.readouterr().out
    assert "1  confirmed\n" in shown
    assert "2  left out: as last confirmed" in shown


def test_a_stock_that_is_set_may_be_repeated(at: Place) -> None:
    os.environ["SOURCES__LEGACY__STOCK_SEMANTICS"] = "set"
    plan = at.plan([patch(1, 1, stock=5, repeatable=True)], "variants")
    at.platform.set_faults({"lost_answer": 1.0})
    at.push(plan)
    at.platform.set_faults({})
    assert at.push(plan).exit_code == 0
    assert at.platform.state.variants[1, 1].fields == {"stock": 5}


def test_a_create_in_doubt_is_not_looked_for_before_it_has_settled(at: Place) -> None:
    now = [1_000_000.0]
    at.means = means(clock=lambda: now[0])
    asked = PushOptions(agreed=True, settle_s=SETTLE_S)
    plan = at.plan([customer(1)])
    at.platform.set_faults({"lost_answer": 1.0})
    at.push(plan, asked)
    at.platform.set_faults({})
    requests = at.platform.state.requests
    pushed = at.push(plan, asked)
    assert (pushed.exit_code, pushed.settles_at) == (6, 1_000_900.0)
    assert at.platform.state.requests == requests
    assert "1970-01-12 14:01:40 UTC" in results(plan)["in_doubt"][0]["words"]
    now[0] += 900
    assert at.push(plan, asked).exit_code == 0
    assert at.codes() == ["C00001"]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_clock_set_forward_settles_no_doubt_early(at: Place, restarted: bool) -> None:
    """Issue 12, item 6."""
    clock = [ClockReading(1_000_000.0, "boot", 5_000.0)]
    at.means = means(read_clock=lambda: clock[0])
    options = PushOptions(agreed=True, settle_s=SETTLE_S)
    plan = at.plan([customer(1)])
    at.platform.set_faults({"reset_before": 1.0})
    at.means = replace(at.means, read_customers=_nobody)
    assert at.push(plan, options).exit_code == 6
    at.platform.set_faults({})
    clock[0] = ClockReading(1_000_000.0 + 7200, *(("next boot", 60.0) if restarted else ("boot", 5_060.0)))
    pushed = at.push(plan, options)
    assert (pushed.exit_code, at.codes()) == (6, [])
    assert pushed.settles_at == 1_000_000.0 + 7200 + 840
    other = at.plan([customer(1, phone="1")])
    at.push(other, options)
    assert (outcomes(other), at.codes()) == ({"2": "unsent.blocked"}, [])
    clock[0] = clock[0]._replace(wall=clock[0].wall + 841, uptime=clock[0].uptime + 841)
    assert at.push(plan, options).exit_code == 0
    assert at.codes() == ["C00001"]


def test_a_doubt_about_the_built_in_sandbox_settles_at_once_since_it_says_so(at: Place) -> None:
    plan = at.plan([customer(1)])
    at.platform.set_faults({"lost_answer": 1.0})
    assert at.push(plan, PushOptions(agreed=True)).exit_code == 6
    at.platform.set_faults({"late_apply": 0.0})  # a platform that applies writes later does not
    assert at.push(plan, PushOptions(agreed=True)).exit_code == 6
    at.platform.set_faults({})
    assert at.push(plan, PushOptions(agreed=True)).exit_code == 0
    assert at.codes() == ["C00001"]


def test_a_create_that_lands_late_is_found_and_not_sent_again(tmp_path: Path) -> None:
    with place(tmp_path, late_s=0.3) as at:
        plan = at.plan([customer(1)])
        at.platform.set_faults({"late_apply": 1.0})
        assert at.push(plan, replace(YES, settle_s=0.6)).exit_code == 6
        at.platform.set_faults({})
        assert at.push(plan, replace(YES, settle_s=0.6, wait=True)).exit_code == 0
        assert at.codes() == ["C00001"]


def test_production_sends_an_absent_create_again_only_where_it_is_reported(tmp_path: Path) -> None:
    with place(tmp_path) as at:
        os.environ["SOURCES__LEGACY__ENVIRONMENT"] = "production"
        now = [1_000_000.0]
        at.means = means(clock=lambda: now[0])
        plan = at.plan([customer(1)], environment="production")
        asked = PushOptions(confirm=1, settle_s=SETTLE_S)
        at.platform.set_faults({"reset_before": 1.0})
        at.means = replace(at.means, read_customers=_nobody)
        assert at.push(plan, asked).exit_code == 6
        at.platform.set_faults({})
        at.means = means(clock=lambda: now[0])
        now[0] += 901
        assert at.push(plan, asked).exit_code == 6
        assert "--resend" in results(plan)["in_doubt"][0]["words"]
        assert at.codes() == []
        assert at.push(plan, replace(asked, resend=True)).exit_code == 0
        assert at.codes() == ["C00001"]


def test_a_record_that_differs_or_is_there_twice_is_a_conflict(at: Place) -> None:
    plan = at.plan([customer(1), customer(2), customer(3)])
    at.means = replace(at.means, read_customers=_nobody)
    at.platform.set_faults({"reset_before": 1.0})
    at.push(plan)
    at.platform.set_faults({})
    state = at.platform.state
    state.add("customers", {"erpCode": "C00001", "firstName": "Otra", "email": "ana1@example.test"})
    state.add("customers", {"erpCode": "C00002", "firstName": "Ana", "email": "x@example.test"})
    state.add("customers", {"erpCode": "x", "firstName": "Ana", "email": "ANA2@example.test"})
    at.means = means()
    pushed = at.push(plan)
    assert pushed.exit_code == 6
    assert at.states(plan) == ["conflict", "conflict", "confirmed"]
    found = {row["operation"]: row["words"] for row in results(plan)["in_doubt"]}
    assert "firstName" in found["1"]
    assert "2 customers" in found["2"]
    assert "Otra" not in str(results(plan))
    pushed = at.push(plan, replace(YES, landed=frozenset({1}), abandon=frozenset({2})))
    assert (pushed.exit_code, at.states(plan)) == (5, ["confirmed", "abandoned", "confirmed"])


@pytest.mark.parametrize(
    ("sent", "stored", "country", "is_same"),
    [
        ("+34 600-11 22 33", "34600112233", "", True),
        ("0034600112233", "+34600112233", "", True),
        ("600 112 233", "+34600112233", "ES", True),
        ("600 112 233", "600112234", "", False),
    ],
)
def test_a_phone_that_the_platform_writes_in_another_way_is_no_conflict(
    at: Place, sent: str, stored: str, country: str, is_same: bool
) -> None:
    """Issue 12, item 4."""
    if country:
        os.environ["RECONCILE__COUNTRY"] = country
    plan = at.plan([customer(1, phone=sent)])
    at.platform.set_faults({"lost_answer": 1.0})
    assert at.push(plan).exit_code == 6
    at.platform.set_faults({})
    at.platform.state.change("customers", at.platform.state.ids("customers")[-1], {"phone": stored})
    assert at.push(plan).exit_code == (0 if is_same else 6)
    assert at.states(plan) == (["confirmed"] if is_same else ["conflict"])


@pytest.mark.parametrize(
    ("stored", "state"), [("MARÍA@ſhop.es", "conflict"), ("maría@shop.es", "conflict"), ("MaRíA@ſhop.es", "confirmed")]
)
def test_a_doubt_finds_an_address_that_looks_alike_and_takes_only_the_same_one_for_it(
    at: Place, stored: str, state: str
) -> None:
    """Issue 12: one rule for comparing e-mail addresses in plan and push."""
    plan = at.plan([customer(1, erpCode="", email="maría@ſhop.es")])
    at.platform.set_faults({"lost_answer": 1.0})
    assert at.push(plan).exit_code == 6
    at.platform.set_faults({})
    at.platform.state.change("customers", at.platform.state.ids("customers")[-1], {"email": stored})
    at.push(plan)
    assert at.states(plan) == [state]


def test_a_customer_whose_address_looks_alike_is_not_created(at: Place) -> None:
    at.platform.state.add("customers", {"email": "ana1@①.test"})
    plan = at.plan([customer(1, erpCode="", email="ana1@1.test")])
    assert at.push(plan).exit_code == 5
    assert outcomes(plan) == {"2": "unsent.exists_now"}


def test_a_customer_that_exists_by_now_is_not_created(at: Place) -> None:
    at.platform.state.add("customers", {"email": "ANA2@example.test"})
    plan = at.plan([customer(1), customer(2)])
    assert at.push(plan).exit_code == 5
    assert outcomes(plan) == {"2": "confirmed.confirmed", "3": "unsent.exists_now"}
    assert at.codes() == ["C00001"]
    for options in (YES, replace(YES, abandon=frozenset({2})), YES):
        assert at.push(plan, options).exit_code == 5
        with Ledger.open(at.ledger, readonly=True) as ledger:
            assert bool(ledger.open_plans()) == (options is YES and "abandoned" not in at.states(plan))
    assert (outcomes(plan)["3"], at.codes()) == ("unsent.abandoned", ["C00001"])


def test_creates_wait_for_a_list_that_is_proven_complete(tmp_path: Path) -> None:
    with place(tmp_path, customers=60, readings={"legacy_limit": "ignored"}) as at:
        plan = at.plan([customer(1)])
        pushed = at.push(plan)
        assert (pushed.exit_code, at.codes()) == (7, [])
        assert "--accept-unproven" in str(pushed.error)
        assert at.push(plan, replace(YES, accept_unproven=True)).exit_code == 0
        assert at.codes() == ["C00001"]


def test_the_same_customer_in_two_plans_is_created_once(at: Place) -> None:
    first, second = at.plan([customer(1)]), at.plan([customer(1, phone="1"), customer(2)])
    at.platform.set_faults({"lost_answer": 1.0})
    at.push(first)
    at.platform.set_faults({})
    at.means = replace(at.means, read_customers=_nobody)  # what was sent may not be in the list yet
    assert at.push(second, replace(YES, settle_s=SETTLE_S)).exit_code == 5
    assert outcomes(second) == {"2": "unsent.blocked", "3": "confirmed.confirmed"}
    assert "push again from" in results(second)["unsent"][0]["words"]
    assert at.codes() == ["C00001", "C00002"]


def test_a_customer_that_was_deleted_on_the_platform_can_be_created_by_another_plan(at: Place) -> None:
    now, waits = [1_000_000.0], replace(YES, settle_s=SETTLE_S)
    at.means = means(clock=lambda: now[0])
    at.push(at.plan([customer(1)]))
    at.platform.state.remove("customers", at.platform.state.ids("customers")[-1])
    early, later = at.plan([customer(1, phone="1")]), at.plan([customer(1, phone="2")])
    assert at.push(early, waits).exit_code == 5  # a list may be behind
    assert at.codes() == ["C00001"]
    now[0] += SETTLE_S + 1
    assert at.push(later, replace(waits, accept_unproven=True)).exit_code == 5
    assert at.codes() == ["C00001"]
    assert at.push(later, waits).exit_code == 0
    assert at.codes() == ["C00001", "C00001"]


def test_an_update_waits_while_one_of_another_plan_may_still_land_on_its_fields(at: Place) -> None:
    now = [1_000_000.0]
    at.means = means(clock=lambda: now[0])
    asked = PushOptions(agreed=True, settle_s=SETTLE_S)
    first = at.plan([patch(1, 1, sku="A")], "variants")
    second = at.plan([patch(1, 1, sku="B"), patch(2, 1, weight=2, line=3), patch(3, 2, sku="C", line=4)], "variants")
    at.platform.set_faults({"lost_answer": 1.0})
    at.push(first, asked)
    at.platform.set_faults({})
    assert at.push(first, asked).exit_code == 0  # the repeat is confirmed; the first attempt may still land
    assert at.push(second, asked).exit_code == 5
    assert outcomes(second) == {"2": "unsent.blocked", "3": "confirmed.confirmed", "4": "confirmed.confirmed"}
    now[0] += 901
    assert at.push(second, asked).exit_code == 0
    assert at.platform.state.variants[1, 1].fields == {"sku": "B", "weight": 2}


def test_what_a_later_plan_has_changed_is_not_put_back_by_an_older_one(at: Place) -> None:
    stop = threading.Event()
    first = at.plan([patch(1, 1, sku="old"), patch(2, 2, sku="old")], "variants")
    stop.set()
    assert at.push(first, stop=stop).stopped
    second = at.plan([patch(1, 1, sku="new")], "variants")
    assert at.push(second).exit_code == 0
    assert at.push(first).exit_code == 5
    assert outcomes(first) == {"2": "unsent.blocked", "3": "confirmed.confirmed"}
    assert at.platform.state.variants[1, 1].fields == {"sku": "new"}


def test_a_clock_set_back_does_not_let_an_older_plan_put_back_what_a_later_one_changed(at: Place) -> None:
    clock = [ClockReading(1_000_000.0, "boot", 5_000.0)]
    at.means = means(read_clock=lambda: clock[0])
    stop = threading.Event()
    stop.set()
    first = at.plan([patch(1, 1, sku="old")], "variants")
    assert at.push(first, stop=stop).stopped
    clock[0] = ClockReading(1_000_000.0 - 3600, "boot", 5_060.0)
    assert at.push(at.plan([patch(1, 1, sku="new")], "variants")).exit_code == 0
    assert at.push(first).exit_code == 5
    assert at.platform.state.variants[1, 1].fields == {"sku": "new"}
    clock[0] = ClockReading(1_000_000.0 - 3000, "boot", 5_660.0)
    assert at.push(at.plan([patch(1, 1, sku="newer")], "variants")).exit_code == 0  # a later one is sent
    assert at.platform.state.variants[1, 1].fields == {"sku": "newer"}


def test_a_plan_made_before_a_push_that_changed_the_same_fields_is_refused(at: Place) -> None:
    folders: list[Path] = []

    def make(**fields: str) -> Path:
        folder = at.folder / f"made-{len(folders)}"
        file = folder.with_suffix(".csv")
        file.write_text(f"productId,variantId,{','.join(fields)}\n1,7,{','.join(fields.values())}\n", "utf-8")
        make_plan(PlanOptions(kind="variants", file=file, out=folder))
        folders.append(folder)
        return folder

    monday, other, tuesday = make(sku="A"), make(weight="2"), make(sku="B")
    assert [at.push(plan).exit_code for plan in (other, tuesday, tuesday)] == [0, 0, 0]
    with pytest.raises(UsageError, match="another push has changed fields that this plan changes") as error:
        at.push(monday)
    assert f"orderbridge plan variants {at.folder}/made-0.csv" in error.value.hint
    assert at.platform.state.variants[1, 7].fields == {"sku": "B", "weight": 2}
    assert at.push(make(sku="A", weight="3")).exit_code == 0
    assert at.platform.state.variants[1, 7].fields == {"sku": "A", "weight": 3}


def test_a_line_withheld_because_of_a_later_plan_can_be_planned_again(at: Place) -> None:
    """The later plans left the values that the first one replaces, so that the same plan is made from its file."""

    def make(sku: str) -> Path:
        file = at.folder / f"{sku}.csv"
        file.write_text(f"productId,variantId,sku\n1,7,{sku}\n", "utf-8")
        folder = at.folder / f"made-{len(list(at.folder.glob('made-*')))}"
        return make_plan(PlanOptions(kind="variants", file=file, out=folder)).folder

    assert at.push(make("A")).exit_code == 0
    first, stop = make("B"), threading.Event()
    stop.set()
    assert at.push(first, stop=stop).stopped
    assert [at.push(make(sku)).exit_code for sku in "CA"] == [0, 0]
    assert (at.push(first).exit_code, outcomes(first)) == (5, {"2": "unsent.blocked"})
    assert at.push(make("B")).exit_code == 0
    assert at.platform.state.variants[1, 7].fields == {"sku": "B"}
    assert (at.push(first).exit_code, at.platform.state.requests) == (5, 4)


def test_a_second_push_at_once_is_refused(at: Place) -> None:
    from pipelines.push.run import ledger_lock

    plan = at.plan([customer(1)])
    with ledger_lock(at.ledger), pytest.raises(LockedError):
        at.push(plan)
    assert at.push(plan).exit_code == 0


@pytest.mark.parametrize(
    "what", ["input", "operations.jsonl", "lines.csv", "plan.json", "host", "environment", "login"]
)
def test_a_plan_that_is_not_as_it_was_made_is_refused_before_anything_is_sent(at: Place, what: str) -> None:
    plan = at.plan([customer(1)])
    if what == "input":
        plan.with_name(f"{plan.name}.csv").write_text("other", "utf-8")
    elif what == "host":
        os.environ["SOURCES__LEGACY__BASE_URL"] = at.platform.url + "/other"
    elif what == "environment":
        os.environ["SOURCES__LEGACY__ENVIRONMENT"] = "production"
    elif what == "login":
        os.environ["SOURCES__LEGACY__LOGIN_MODE"] = "code"
    else:
        (plan / what).write_bytes((plan / what).read_bytes() + b"x")
    with pytest.raises(UsageError):
        at.push(plan)
    assert at.platform.state.requests == 0
    assert not at.ledger.exists()


@pytest.mark.parametrize(("planned", "pushed"), [("increment", "set"), ("set", "unknown"), ("unknown", "increment")])
@pytest.mark.parametrize("field", ["stock", "price"])
def test_a_push_under_other_semantics_than_planned_is_refused_and_names_them(
    at: Place, field: str, planned: str, pushed: str
) -> None:
    """Issue 12, item 2."""
    os.environ[f"SOURCES__LEGACY__{field.upper()}_SEMANTICS"] = planned
    plan = at.plan([patch(1, 1, repeatable=False, **{field: -2})], "variants")
    os.environ[f"SOURCES__LEGACY__{field.upper()}_SEMANTICS"] = pushed
    with pytest.raises(UsageError, match=f"{field}_semantics was {planned}, now {pushed}"):
        at.push(plan)
    assert at.platform.state.requests == 0
    os.environ[f"SOURCES__LEGACY__{field.upper()}_SEMANTICS"] = planned
    assert at.push(plan).exit_code == 0


def test_all_settings_that_differ_from_the_plans_are_named_at_once(at: Place) -> None:
    plan = at.plan([customer(1)])
    os.environ |= {"SOURCES__LEGACY__ENVIRONMENT": "production", "SOURCES__LEGACY__LOGIN_MODE": "code"}
    with pytest.raises(UsageError) as error:
        at.push(plan)
    for words in ("environment was sandbox, now production", "login_mode was email, now code"):
        assert words in error.value.message
    assert "orderbridge plan customers " in error.value.hint


def test_operations_edited_while_the_push_waits_are_not_sent(at: Place) -> None:
    plan = at.plan([patch(1, 1, sku="A"), patch(2, 2, sku="B")], "variants")

    def edit(done: int, total: int) -> None:
        if not done:
            path = plan / "operations.jsonl"
            path.write_text(path.read_text("utf-8").replace('"B"', '"X"'), "utf-8")

    with pytest.raises(UsageError, match=r"operations\.jsonl was changed"):
        at.push(plan, on_operation=edit)
    assert at.platform.state.variants == {}


@pytest.mark.parametrize("changed", ["lookup", "mapping"])
def test_a_lookup_or_mapping_that_changed_since_the_plan_is_named(at: Place, changed: str) -> None:
    plan = at.plan([customer(1)])
    manifest = json.loads((plan / "plan.json").read_text("utf-8"))
    file = at.folder / "ids.csv"
    file.write_text("sku,id\nA,1\n", "utf-8")
    entry = {"path": str(file), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
    manifest |= {"lookups": [entry]} if changed == "lookup" else {"mapping": entry}
    (plan / "plan.json").write_text(json.dumps(manifest), "utf-8")
    file.write_text("sku,id\nA,2\n", "utf-8")
    with pytest.raises(UsageError, match=f"the {changed} {file} was changed after the plan was made") as error:
        at.push(plan)
    assert f"--{changed} {file}" in error.value.hint
    assert at.platform.state.requests == 0


def test_a_plan_whose_ledger_is_gone_is_not_sent_again(at: Place) -> None:
    plan = at.plan([patch(1, 1, stock=5, repeatable=False)], "variants")
    assert at.push(plan).exit_code == 0
    for path in at.folder.glob("ledger.sqlite*"):
        path.unlink()
    with pytest.raises(UsageError, match="but not with the ledger"):
        at.push(plan)
    assert at.platform.state.variants[1, 1].applied == 1


@pytest.mark.parametrize("moment", ["before the results", "while the results are replaced"])
def test_a_plan_of_a_killed_push_is_not_sent_again_with_another_ledger(
    at: Place, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = at.plan([patch(1, 1, stock=5, repeatable=False)], "variants")
    if moment == "before the results":
        monkeypatch.setattr("pipelines.push.run.results.ResultsWriter.write", mock.Mock(side_effect=SystemExit))
        with pytest.raises(SystemExit):
            at.push(plan)
    else:
        at.push(plan)
        (plan / "results").rename(plan / ".results.old")
    monkeypatch.setenv("LEDGER__PATH", str(at.folder / "other.sqlite"))
    with pytest.raises(UsageError, match="but not with the ledger"):
        at.push(plan)
    assert at.platform.state.variants[1, 1].applied == 1


def test_an_older_ledger_is_noticed_although_it_has_an_attempt_of_each_request(at: Place) -> None:
    plan = at.plan([patch(1, 1, stock=5, repeatable=False)], "variants")
    at.platform.set_faults({"rate_429": 1.0})
    at.push(plan)
    old = shutil.copy(at.ledger, at.folder / "old.sqlite")
    at.platform.set_faults({})
    assert at.push(plan).exit_code == 0
    shutil.copy(old, at.ledger)
    with pytest.raises(UsageError, match="older copy"):
        at.push(plan)
    assert at.platform.state.variants[1, 1].applied == 1


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_ledger_that_lost_its_log_or_was_copied_during_a_push_is_noticed(at: Place, is_killed: bool) -> None:
    plan = at.plan([patch(number, number, stock=5, repeatable=False) for number in (1, 2)], "variants")
    stop = threading.Event()
    stop.set()
    at.push(plan, stop=stop)
    old, one_at_a_time = at.folder / "old.sqlite", replace(YES, concurrency=1)

    def on_operation(done: int, total: int) -> None:
        if not done:
            return
        if is_killed:
            raise SystemExit
        with closing(sqlite3.connect(at.ledger)) as source, closing(sqlite3.connect(old)) as target:
            source.backup(target)

    if is_killed:  # the file itself, without its log, has nothing of the second push
        shutil.copy(at.ledger, old)
        with pytest.raises(SystemExit):
            at.push(plan, one_at_a_time, on_operation=on_operation)
    else:
        assert at.push(plan, one_at_a_time, on_operation=on_operation).exit_code == 0
    for path in at.folder.glob("ledger.sqlite*"):
        path.unlink()
    shutil.copy(old, at.ledger)
    before = at.platform.state.variants[1, 1].applied
    for _ in range(2):
        with pytest.raises(UsageError, match="older copy"):
            at.push(plan)
    assert at.platform.state.variants[1, 1].applied == before == 1


def test_a_damaged_count_of_pushes_is_named_with_what_to_do(at: Place) -> None:
    plan = at.plan([subcategory(1)], "subcategories")
    assert at.push(plan).exit_code == 0
    mark = plan / ".pushes"
    mark.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="was changed") as caught:
        at.push(plan)
    assert "newest ledger, remove that file" in caught.value.hint
    mark.unlink()
    assert (at.push(plan).exit_code, mark.read_text()) == (0, "4")


def test_a_list_of_customers_that_cannot_be_written_is_no_internal_error(at: Place) -> None:
    (at.folder / ".ledger.sqlite.walk").write_bytes(b"")
    pushed = at.push(at.plan([customer(1)]))
    assert (pushed.exit_code, outcomes(at.folder / "plan-0"), at.codes()) == (2, {"2": "unsent.not_sent"}, [])


def test_a_plan_whose_ledger_is_older_than_its_results_is_not_sent_again(at: Place) -> None:
    plan = at.plan([patch(number, number, stock=5, repeatable=False) for number in (1, 2)], "variants")
    stop = threading.Event()
    stop.set()
    at.push(plan, stop=stop)
    old = shutil.copy(at.ledger, at.folder / "old.sqlite")
    assert at.push(plan).exit_code == 0
    for path in at.folder.glob("ledger.sqlite*"):
        path.unlink()
    shutil.copy(old, at.ledger)
    with pytest.raises(UsageError, match="older copy"):
        at.push(plan)
    assert [at.platform.state.variants[1, number].applied for number in (1, 2)] == [1, 1]


def test_the_other_familys_key_of_another_environment_is_refused(at: Place) -> None:
    plan = at.plan([customer(1)])
    os.environ["SOURCES__PUBLIC_V1__BASE_URL"] = at.platform.url
    os.environ["SOURCES__PUBLIC_V1__API_KEY"] = at.platform.v1_live_key
    with pytest.raises(UsageError, match="different environments"):
        at.push(plan)
    os.environ["SOURCES__PUBLIC_V1__API_KEY"] = at.platform.v1_key
    live = replace(public_v1.KEYS[at.platform.v1_key], environment="PRODUCTION")
    with (
        mock.patch.dict(public_v1.KEYS, {at.platform.v1_key: live}),
        pytest.raises(UsageError, match="is for production according to the platform, for sandbox according to its"),
    ):
        at.push(plan)
    assert at.codes() == []
    assert at.push(plan).exit_code == 0
    assert "/public/v1/whoami" in [logged.path for logged in at.platform.state.log]


def test_a_plan_for_another_organization_is_refused(at: Place) -> None:
    """Organizations share a host: the records of one are not those that the plan was made for."""
    creates: list[tuple[KindName, PlannedOperation]] = [
        ("customers", customer(1)),
        ("variants", patch(1, 1)),
        ("subcategories", subcategory(1)),
        ("warehouses", warehouse(1)),
    ]
    os.environ["SOURCES__PUBLIC_V1__BASE_URL"] = at.platform.url
    os.environ["SOURCES__PUBLIC_V1__API_KEY"] = at.platform.v1_key
    for kind, operation in creates:
        plan = at.plan([operation], kind)
        file = plan / "plan.json"
        manifest = json.loads(file.read_bytes())
        file.write_text(json.dumps({**manifest, "organization": "org-2"}))
        with pytest.raises(UsageError, match="made for the organization org-2, the key of public v1 is of ") as refused:
            at.push(plan)
        assert {entry.path for entry in at.platform.state.log} == {"/public/v1/whoami"}
    assert at.codes() == []
    (of_the_key,) = re.findall(r"the key of public v1 is of (.+)", refused.value.message)
    for known in (of_the_key, manifest["organization"]):  # not known: warehouse of one family, or none
        file.write_text(json.dumps({**manifest, "organization": known}))
        assert at.push(plan).exit_code == 0


@pytest.mark.parametrize(
    ("environment", "asked", "wanted"),
    [
        ("sandbox", PushOptions(), "--yes"),
        ("production", PushOptions(agreed=True), "--confirm 2"),
        ("production", PushOptions(confirm=3), "not the number of operations"),
        ("production", PushOptions(confirm=2, settle_s=60.0), "--settle"),
    ],
)
def test_nothing_is_sent_without_consent(at: Place, environment: Any, asked: PushOptions, wanted: str) -> None:
    os.environ["SOURCES__LEGACY__ENVIRONMENT"] = environment
    plan = at.plan(KINDS["customers"], environment=environment, messages=2)
    with pytest.raises(UsageError) as refused:
        at.push(plan, asked)
    assert wanted in str(refused.value)
    text = "2 customers would be sent to .*, and the platform would send 2 messages to customers"
    assert bool(re.search(text, str(refused.value))) == (wanted != "--settle")
    assert at.platform.state.requests == 0


def test_a_person_can_only_speak_of_what_is_in_doubt_and_has_settled(at: Place) -> None:
    plan = at.plan([subcategory(1), subcategory(2)], "subcategories")
    at.platform.set_faults({"reset_before": 1.0})
    at.push(plan)
    one, nine = frozenset({1}), frozenset({9})
    for asked, wanted in (
        (replace(YES, landed=nine), "not in doubt"),
        (replace(YES, landed=one, abandon=one), "named twice"),
        (replace(YES, not_landed=one, settle_s=600.0), "may still arrive"),
    ):
        with pytest.raises(UsageError, match=wanted):
            at.push(plan, asked)
    assert at.states(plan) == ["in_doubt", "in_doubt"]


def test_a_doubt_has_what_was_sent_and_no_password(at: Place) -> None:
    """Issue 12, item 5."""
    plan = at.plan([customer(1, lastName="=A1")])
    at.platform.set_faults({"lost_answer": 1.0})
    at.push(plan)
    (row,) = results(plan)["in_doubt"]
    sent = json.loads(row["values"])
    assert (sent["erpCode"], sent["lastName"]) == ("C00001", "=A1")
    assert "password" not in row["values"]
    assert kept(plan)["1"] not in "".join(map(str, results(plan).values()))


def test_two_updates_of_a_target_are_never_under_way_at_once(tmp_path: Path) -> None:
    under_way: set[str] = set()
    together: list[str] = []
    lock = threading.Lock()

    class Watching(Answering):
        def send(self, verb: Any, path: str, json_body: bytes) -> WriteOutcome:
            with lock:
                together.extend([path] if path in under_way else [])
                under_way.add(path)
            threading.Event().wait(0.003)
            with lock:
                under_way.discard(path)
            return super().send(verb, path, json_body)

    with place(tmp_path) as at:
        client = Watching([])
        at.means = means(client=lambda settings, stop: client)
        operations = [patch(n, n % 3, line=n + 1, weight=n) for n in range(1, 60)]
        assert at.push(at.plan(operations, "variants"), replace(YES, concurrency=4)).exit_code == 0
    assert together == []
    for variant in range(3):
        sent = [body for path, body in client.sent if path.endswith(f"/{variant}")]
        assert sent == sorted(sent, key=lambda body: int(body.split(b":")[1].rstrip(b"}"))), "in the plan's order"


def test_the_rate_is_kept(at: Place) -> None:

    plan = at.plan([patch(n, n) for n in range(1, 7)], "variants")
    began = time.monotonic()
    assert at.push(plan, replace(YES, rate=20.0)).exit_code == 0
    assert time.monotonic() - began >= 5 / 20


def test_a_stop_leaves_a_clean_point_and_the_next_push_goes_on(at: Place) -> None:
    stop = threading.Event()
    plan = at.plan([patch(n, n) for n in range(1, 50)], "variants")

    def watch(done: int, total: int) -> None:
        if done >= 10:
            stop.set()

    pushed = at.push(plan, stop=stop, on_operation=watch)
    assert (pushed.exit_code, pushed.stopped) == (130, True)
    states = at.states(plan)
    assert set(states) == {"confirmed", "planned"}
    assert len(outcomes(plan)) == 49
    assert at.push(plan).exit_code == 0
    assert {kept.applied for kept in at.platform.state.variants.values()} == {1}


def test_lines_of_the_input_are_each_in_one_file(at: Place) -> None:
    lines = [
        (10, "rejected", None, "email", "required", "it is missing"),
        (11, "merged", 2, "", "", ""),
        (12, "exists_same", None, "", "", ""),
        (13, "exists_differs", None, "", "", ""),
        (14, "ambiguous", None, "", "", ""),
        (15, "skipped", None, "", "blank", "it is blank"),
        (16, "merged", 12, "", "", ""),
        (17, "merged", 3, "", "", ""),
    ]
    plan = at.plan([customer(1), customer(2, firstName=7)], lines=lines)
    pushed = at.push(plan)
    assert pushed.exit_code == 5
    assert outcomes(plan) == {
        "2": "confirmed.confirmed",
        "3": "rejected.rejected",
        "10": "rejected.rejected",
        "11": "confirmed.merged",
        "12": "confirmed.exists_same",
        "13": "unsent.exists_differs",
        "14": "unsent.ambiguous",
        "15": "unsent.skipped",
        "16": "confirmed.merged",
        "17": "rejected.merged",
    }
    assert sum(pushed.lines.values()) == 10
    assert {stat.S_IMODE(path.stat().st_mode) for path in (plan / "results").iterdir()} == {0o600}


def test_a_line_of_two_operations_has_the_graver_outcome(at: Place) -> None:
    plan = at.plan(
        [patch(1, 1), patch(2, 1, line=2, sku=7), patch(3, 2, line=3), patch(4, 2, line=3, weight=2)], "variants"
    )
    assert at.push(plan).exit_code == 5
    assert outcomes(plan) == {"2": "rejected.rejected", "3": "confirmed.confirmed"}


@pytest.mark.parametrize("kind", ["subcategories", "warehouses"])
def test_what_to_do_about_a_doubt_is_reported_by_the_push_that_left_it(at: Place, kind: KindName) -> None:
    plan = at.plan(KINDS[kind], kind)
    at.platform.set_faults({"lost_answer": 1.0})
    at.push(plan)
    for row in results(plan)["in_doubt"]:
        assert "is not HTTP; look on the platform" in row["words"]
        assert "pass --landed, --not-landed or --abandon with the operation's number" in row["words"]


def test_a_doubt_that_a_look_up_or_a_repeat_settles_has_the_advice_to_push_again(at: Place) -> None:
    at.means = means(clock=lambda: 1_000_000.0)
    at.platform.set_faults({"lost_answer": 1.0})
    create, update = at.plan([customer(1)]), at.plan([patch(1, 1)], "variants")
    for plan, words in (
        (create, "looked up from 1970-01-12 14:01:40 UTC: push again then"),
        (update, "push again: it will be sent again"),
    ):
        assert at.push(plan, PushOptions(agreed=True, settle_s=SETTLE_S)).exit_code == 6
        assert results(plan)["in_doubt"][0]["words"].endswith(words)


def test_a_line_whose_operations_are_both_in_doubt_reports_the_one_that_waits_for_a_person(at: Place) -> None:
    operations = [patch(1, 1, line=2, sku="A"), patch(2, 1, line=2, price=2.5, repeatable=False)]
    plan = at.plan(operations, "variants")
    at.platform.set_faults({"lost_answer": 1.0})
    at.push(plan)
    (row,) = results(plan)["in_doubt"]
    assert (row["line"], row["operation"]) == ("2", "2")
    assert "--landed" in row["words"]
    at.platform.set_faults({})
    assert at.push(plan).exit_code == 6
    assert at.states(plan) == ["confirmed", "in_doubt"]
    assert at.push(plan, replace(YES, landed=frozenset({2}))).exit_code == 0


def test_a_line_of_which_one_operation_was_given_up_reports_the_one_in_doubt(at: Place) -> None:
    operations = [patch(1, 1, line=2, price=2.5, repeatable=False), patch(2, 1, line=2, sku="A")]
    plan = at.plan(operations, "variants")
    at.platform.set_faults({"lost_answer": 1.0})
    at.push(plan)
    at.push(plan, replace(YES, abandon=frozenset({1})))
    assert [row["operation"] for row in results(plan)["in_doubt"]] == ["2"]


def test_what_was_given_up_is_neither_done_nor_in_doubt(at: Place, capsys: pytest.CaptureFixture[str]) -> None:
    stop = threading.Event()
    stop.set()
    plan = at.plan([subcategory(1), subcategory(2)], "subcategories")
    at.push(plan, stop=stop)
    pushed = at.push(plan, replace(YES, abandon=frozenset({2})))
    assert (pushed.exit_code, outcomes(plan)) == (5, {"2": "confirmed.confirmed", "3": "unsent.abandoned"})
    assert results(plan)["unsent"][0]["words"] == "abandoned before it was sent"
    at.platform.set_faults({"lost_answer": 1.0})
    lost = at.plan([subcategory(3)], "subcategories", lines=[(9, "merged", 4, "", "", "")])
    assert at.push(lost).exit_code == 6
    for asked in (replace(YES, abandon=frozenset({3})), YES):
        pushed = at.push(lost, asked)
        assert (pushed.exit_code, outcomes(lost)) == (5, {"4": "in_doubt.abandoned", "9": "in_doubt.abandoned"})
        assert results(lost)["in_doubt"][0]["words"] == "abandoned: not known whether it arrived"
        print_result(pushed, "plain")
        reported = capsys.readouterr().out
        assert "2  abandoned: not known whether it arrived\n" in reported
        assert "in doubt" not in reported


@pytest.mark.parametrize("kind", ["subcategories", "warehouses"])
def test_an_abandoned_create_that_may_have_landed_is_not_made_by_another_plan_until_a_person_answers(
    at: Place, kind: KindName
) -> None:
    made = subcategory if kind == "subcategories" else warehouse
    now = [1_000_000.0]
    at.means = means(clock=lambda: now[0])
    first = at.plan([made(1), made(2)], kind)
    at.platform.set_faults({"lost_answer": 1.0})
    assert at.push(first).exit_code == 6
    at.platform.set_faults({})
    assert at.push(first, replace(YES, abandon=frozenset({1, 2}))).exit_code == 5
    now[0] += 2 * 900
    other = at.plan([subcategory(1, order=9) if made is subcategory else made(1), made(2), made(3)], kind)
    for _ in range(2):
        assert at.push(other).exit_code == 5
        assert outcomes(other) == {"2": "unsent.blocked", "3": "unsent.blocked", "4": "confirmed.confirmed"}
        assert "orderbridge settle" in results(other)["unsent"][0]["words"]
    with pytest.raises(UsageError, match="not in doubt: operation 1"):
        at.push(first, replace(YES, abandon=frozenset({1})))
    pushed = at.push(first, replace(YES, landed=frozenset({1}), not_landed=frozenset({2})))
    assert (pushed.exit_code, at.states(first)) == (0, ["confirmed", "confirmed"])
    assert at.push(other).exit_code == 5
    assert outcomes(other) == {"2": "unsent.exists_now", "3": "unsent.exists_now", "4": "confirmed.confirmed"}


def test_an_abandoned_create_whose_plan_is_gone_is_made_by_another_plan_if_a_person_says_so(at: Place) -> None:
    now = [1_000_000.0]
    at.means = means(clock=lambda: now[0])
    first = at.plan([subcategory(1)], "subcategories")
    at.platform.set_faults({"reset_before": 1.0})
    assert at.push(first).exit_code == 6
    at.platform.set_faults({})
    assert at.push(first, replace(YES, abandon=frozenset({1}))).exit_code == 5
    shutil.rmtree(first)
    other = at.plan([subcategory(1, order=9)], "subcategories")
    absent = replace(YES, accept_unproven=True, settle_s=900.0)
    for options, code in ((YES, 5), (absent, 5)):
        assert at.push(other, options).exit_code == code
        assert outcomes(other) == {"2": "unsent.blocked"}  # also while it may still arrive
    now[0] += 901
    assert at.push(other, YES).exit_code == 5
    assert at.push(other, absent).exit_code == 0


def test_an_update_that_was_given_up_takes_no_later_answer(at: Place) -> None:
    at.platform.set_faults({"lost_answer": 1.0})
    first = at.plan([patch(1, 1, repeatable=False, stock=5)], "variants")
    assert at.push(first).exit_code == 6
    at.platform.set_faults({})
    at.push(first, replace(YES, abandon=frozenset({1})))
    assert at.push(at.plan([patch(1, 1, repeatable=False, stock=6)], "variants")).exit_code == 0
    with pytest.raises(UsageError, match="not in doubt: operation 1"):  # 6 would be taken for 5
        at.push(first, replace(YES, landed=frozenset({1})))


def test_results_that_do_not_add_up_fail_the_push(at: Place) -> None:
    from sources.errors import BridgeError

    plan = at.plan([customer(1)])
    manifest = json.loads((plan / "plan.json").read_text())
    (plan / "plan.json").write_text(json.dumps({**manifest, "lines": 2}))
    with pytest.raises(BridgeError, match="2 lines, the results have 1"):
        at.push(plan)
    twice, orphan = (2, "skipped", None, "", "", ""), (3, "merged", 9, "", "", "")
    for line, words in ((twice, "line 2 of the input has two results"), (orphan, "line 3 .* has no result")):
        with pytest.raises(BridgeError, match=words):
            at.push(at.plan([customer(1)], lines=[line]))


def test_made_passwords_are_on_disk_before_the_send_and_stay_the_same(at: Place) -> None:
    seen: list[dict[str, str]] = []

    class Looking(Answering):
        def send(self, verb: Any, path: str, json_body: bytes) -> WriteOutcome:
            seen.append(kept(plan))
            return super().send(verb, path, json_body)

    plan = at.plan([customer(1), customer(2)])
    client = Looking([WriteOutcome("in_doubt", error=Unreachable("lost"))])
    at.means = means(client=lambda settings, stop: client, read_customers=_nobody)
    assert at.push(plan).exit_code == 6
    assert at.push(plan).exit_code == 0
    assert len(client.sent) == 3
    assert all(len(found) == 2 for found in seen)
    assert seen[0] == seen[-1] == kept(plan)
    sent = [json.loads(body)["password"] for _, body in client.sent]
    assert sent == [seen[0]["1"], seen[0]["2"], seen[0]["1"]]
    assert len(set(sent)) == 2
    assert stat.S_IMODE((plan / passwords.PASSWORDS_FILE).stat().st_mode) == 0o600


def test_no_cell_of_the_passwords_runs_in_a_spreadsheet(at: Place) -> None:
    """Issue 12, item 3."""
    plan = at.plan([customer(1, erpCode="=1+1"), customer(2, erpCode="-5")])
    assert at.push(plan).exit_code == 0
    rows = people_rows(plan / passwords.PASSWORDS_FILE, passwords.PASSWORD_COLUMNS)
    assert [row["erpCode"] for row in rows] == ["'=1+1", "-5"]
    assert at.codes() == ["=1+1", "-5"]


def test_a_copy_of_a_plan_that_was_stopped_gives_passwords_and_the_first_one_reports_none_for_them(at: Place) -> None:
    plan = at.plan([customer(number) for number in range(1, 5)])
    copy = Path(shutil.copytree(plan, plan.with_name("copy")))
    stop = threading.Event()
    at.push(plan, stop=stop, on_operation=lambda done, total: stop.set() if done else None)
    first = kept(plan)
    assert 0 < len(first) < 4
    assert at.push(copy).exit_code == 0
    assert at.push(plan).exit_code == 0
    reported = {**first, **kept(copy)}
    assert kept(plan) == first
    assert len(first) + len(kept(copy)) == len(reported) == 4
    assert [body["password"] for body in at.platform.state.customer_inputs] == [reported[str(n)] for n in range(1, 5)]


def kept(plan: Path) -> dict[str, str]:
    rows = people_rows(plan / passwords.PASSWORDS_FILE, passwords.PASSWORD_COLUMNS)
    return {row["operation"]: row["password"] for row in rows}


def test_mailed_passwords_are_kept_nowhere_and_the_platform_is_asked_to_mail_them(at: Place) -> None:
    plan = at.plan([customer(1, password="mailed")])
    assert at.push(plan).exit_code == 0
    (body,) = at.platform.state.customer_inputs
    assert body["notification"] == {"send": True, "withCredentials": True}
    secret = body["password"].encode()
    assert len(secret) == passwords.LENGTH
    assert not [path for path in at.folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


def test_passwords_of_the_file_are_read_again_by_line(at: Place) -> None:
    asked: list[set[int]] = []

    def reader(plan: object, lines: Any) -> dict[int, str]:
        asked.append(set(lines))
        return {2: "planted-one", 3: "planted-two"}

    at.means = replace(at.means, read_passwords=reader)
    plan = at.plan([customer(1, password="input"), customer(2, password="input")])
    assert at.push(plan).exit_code == 0
    assert [body["password"] for body in at.platform.state.customer_inputs] == ["planted-one", "planted-two"]
    assert asked == [{2, 3}]
    assert not [path for path in at.folder.rglob("*") if path.is_file() and b"planted-" in path.read_bytes()]


@pytest.mark.parametrize(
    ("changed", "before", "after"),
    [
        ("clientes.csv", "planted-one", "planted-two"),
        ("clientes.toml", 'Clave = "password"\nTel = "phone"', 'Clave = "phone"\nTel = "password"'),
    ],
)
def test_passwords_of_an_input_or_mapping_edited_while_the_push_waits_are_not_sent(
    at: Place, changed: str, before: str, after: str
) -> None:
    contents = {
        "clientes.csv": "Codigo;Correo;Clave;Tel\nC00001;ana1@example.test;planted-one;600111222\n",
        "clientes.toml": 'kind = "customers"\n[columns]\nCodigo = "erpCode"\nCorreo = "email"\nClave = "password"\n'
        'Tel = "phone"\n',
    }
    files = []
    for name, content in contents.items():
        (at.folder / name).write_text(content, "utf-8")
        files.append({"path": str(at.folder / name), "sha256": hashlib.sha256(content.encode()).hexdigest()})
    plan = at.plan([customer(1, password="input")])
    manifest = json.loads((plan / "plan.json").read_text("utf-8")) | {"input": files[0], "mapping": files[1]}
    (plan / "plan.json").write_text(json.dumps(manifest), "utf-8")

    def edit(*progress: object) -> None:
        (at.folder / changed).write_text(contents[changed].replace(before, after), "utf-8")

    pushed = at.push(plan, on_page=edit)
    assert (pushed.exit_code, f"{changed} was changed" in str(pushed.error)) == (2, True), pushed.error
    assert at.codes() == []
    (at.folder / changed).write_text(contents[changed], "utf-8")
    assert at.push(plan).exit_code == 0
    assert [body["password"] for body in at.platform.state.customer_inputs] == ["planted-one"]


def test_a_line_without_its_password_is_reported_before_anything_is_sent(at: Place) -> None:
    at.means = replace(at.means, read_passwords=lambda plan, lines: {2: "one"})
    plan = at.plan([customer(1, password="input"), customer(2, password="input")])
    pushed = at.push(plan)
    assert (pushed.exit_code, at.codes()) == (2, [])
    assert "line 3" in str(pushed.error)


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        ("customers", patch(2, 1001)),
        ("customers", subcategory(2)),
        ("customers", msgspec.structs.replace(customer(2), path="/customers/7")),
        ("variants", customer(2)),
        ("variants", msgspec.structs.replace(patch(2, 1001), path="/products/1/variants/1001/images")),
        ("variants", msgspec.structs.replace(patch(2, 1001), method="POST")),
    ],
)
def test_an_operation_that_is_no_request_of_its_kind_is_an_error_before_anything_is_sent(
    at: Place, kind: Any, operation: PlannedOperation
) -> None:
    plan = at.plan([customer(1) if kind == "customers" else patch(1, 1000), operation], kind)
    before = at.platform.state.requests
    with pytest.raises(UsageError, match=r"operation 2 of .* is not "):
        at.push(plan)
    assert at.platform.state.requests == before


def test_a_password_file_that_was_changed_is_not_written_over(at: Place) -> None:
    plan = at.plan([customer(1)])
    (plan / passwords.PASSWORDS_FILE).write_text("my own notes\n")
    assert at.push(plan).exit_code == 2
    assert (plan / passwords.PASSWORDS_FILE).read_text() == "my own notes\n"
    assert at.codes() == []


def planted(plan: Path, mode: int = 0o600) -> Path:
    """A password file as somebody else may have prepared it."""
    path = plan / passwords.PASSWORDS_FILE
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([passwords.PASSWORD_COLUMNS, (1, 2, "C00001", "", "", "planted-password")])
    path.chmod(mode)
    return path


def test_a_planted_password_is_not_used_for_an_operation_that_was_never_sent(at: Place) -> None:
    plan = at.plan([customer(1)])
    planted(plan)
    assert at.push(plan).exit_code == 0
    (body,) = at.platform.state.customer_inputs
    assert body["password"] == kept(plan)["1"] != "planted-password"


def test_a_ledger_that_cannot_be_written_sends_nothing(at: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = PlanLedger.commit

    def full(self: PlanLedger, changes: Any, now: float) -> None:
        if any(change.to == "in_flight" for change in changes):
            raise UsageError("no space left on the disk")
        commit(self, changes, now)

    monkeypatch.setattr(PlanLedger, "commit", full)
    plan = at.plan(KINDS["variants"], "variants")
    assert at.push(plan).exit_code == 2
    assert written(at, "variants") == 0
