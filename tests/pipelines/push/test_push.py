"""Each fault for each kind of write, resumption, and everything that ends or refuses a push."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sqlite3
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Container
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest

from orderbridge.pipelines.cli.push import print_result
from orderbridge.pipelines.ledger.clock import ClockReading
from orderbridge.pipelines.ledger.lock import ledger_lock
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.make import PlanOptions, make_plan
from orderbridge.pipelines.plan.model import Plan, PlannedOperation, file_sha256
from orderbridge.pipelines.push import passwords, send
from orderbridge.pipelines.push.listing import CustomerListing, Key
from orderbridge.pipelines.push.model import PushOptions, PushResult
from orderbridge.pipelines.push.pace import SETBACKS_MAX
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.rules import SETTLE_S
from orderbridge.pipelines.push.run import PROBES_MAX
from orderbridge.pipelines.push.send import DOUBTS_MAX, INTENTS_AHEAD
from orderbridge.pipelines.questions.creates import Creates
from orderbridge.sandbox import public_v1
from orderbridge.sources.errors import (
    BridgeError,
    HttpRejected,
    LockedError,
    Unreachable,
    UsageError,
)
from orderbridge.sources.http.exchange import WriteOutcome
from orderbridge.sources.kinds import KindName
from tests.pipelines.push.plans import (
    LOST,
    WAITS,
    YES,
    Answer,
    Place,
    altered,
    customer,
    ids,
    listed,
    means,
    nobody,
    outcomes,
    patch,
    place,
    results,
    subcategory,
    warehouse,
)
from tests.spreadsheet import spreadsheet_rows

KINDS: dict[KindName, list[PlannedOperation]] = {
    "customers": [customer(1), customer(2)],
    "variants": [patch(1, 1), patch(2, 2)],
    "subcategories": [subcategory(1), subcategory(2)],
    "warehouses": [warehouse(1), warehouse(2)],
}


def answer_of(status: int, *, state: Any = "answered", **more: Any) -> WriteOutcome:
    return WriteOutcome(state, status, error=HttpRejected("no", status=status), **more)


def written(at: Place, kind: KindName) -> int:
    """How many writes the sandbox has applied."""
    state = at.platform.state
    if kind == "variants":
        return sum(variant.applied for variant in state.variants.values())
    return len(
        {"customers": state.customer_inputs, "subcategories": state.subcategories}.get(
            kind, state.warehouses
        )
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["lost_answer", "reset_before"])
def test_an_unanswered_write_is_in_doubt_and_only_sent_again_where_that_is_sure(
    at: Place, kind: KindName, fault: str
) -> None:
    at.means = replace(at.means, read_customers=nobody)
    plan = at.lost(*KINDS[kind], fault=fault)
    assert set(outcomes(plan).values()) == {"in_doubt.in_doubt"}
    times = written(at, kind)
    assert (times > 0) == (fault != "reset_before")
    at.means = means()
    if kind in ("customers", "variants"):  # the one is looked up, the other may be repeated
        assert (at.code(plan), set(outcomes(plan).values())) == (0, {"confirmed.confirmed"})
        assert written(at, kind) == (2 if kind == "customers" else times + 2)
        return
    assert (at.code(plan), written(at, kind)) == (6, times)
    words = results(plan)["in_doubt"][0]["words"]
    assert re.search("orderbridge answer write:[0-9a-f]{12}/1 landed$", words), words
    assert at.code(plan, not_landed=ids(1), landed=ids(2)) == 0
    assert (written(at, kind), at.rows(plan)[0].doubt_at) == (times + 1, None)


def test_retry_after_is_honoured_and_ends_the_push_where_it_is_beyond_all_patience(
    at: Place,
) -> None:
    times: list[float] = []

    def answer(number: int, *_: object) -> WriteOutcome | None:
        times.append(time.monotonic())
        return None if number else answer_of(429, retry_after_s=0.3)

    at.answering(answer)
    assert at.code(at.plan(KINDS["variants"]), concurrency=1) == 0
    assert times[1] - times[0] >= 0.3
    pushed, client = at.answered(
        plan := at.plan([patch(1, 7), patch(2, 8)]), answer_of(429, retry_after_s=3600.0)
    )
    assert pushed.observed == {("rate_limit", "legacy: 429 received")}
    assert (pushed.exit_code, len(client.sent), at.states(plan)) == (4, 1, ["planned"] * 2)


def test_setbacks_end_a_push_only_where_nothing_gets_through_in_between(at: Place) -> None:
    count, done = SETBACKS_MAX + 2, WriteOutcome("answered", 204)
    for n, setback in enumerate(
        (answer_of(429, retry_after_s=0.0), answer_of(0, state="not_sent"))
    ):
        plan = at.plan([patch(k, k + 100 * n) for k in range(1, count + 1)])
        pushed, client = at.answered(plan, *[setback] * (SETBACKS_MAX + 1))
        assert (pushed.exit_code, len(client.sent), set(at.states(plan))) == (
            4,
            SETBACKS_MAX + 1,
            {"planned"},
        )
        pushed, client = at.answered(plan, *[setback, done] * count)
        assert (pushed.exit_code, len(client.sent)) == (0, 2 * count)


def test_a_key_that_is_refused_ends_the_push_and_nothing_is_in_doubt(tmp_path: Path) -> None:
    with place(tmp_path, readings={"legacy_auth_failure": "403_errors"}) as at:
        plan = at.plan(KINDS["variants"])
        os.environ["SOURCES__LEGACY__API_KEY"] = "another-key"
        pushed = at.push(plan)
        assert (pushed.exit_code, set(outcomes(plan).values())) == (3, {"unsent.not_sent"})
        ((what, value),) = pushed.observed
        assert (what, bool(re.fullmatch("status 403, code (?!none).+", value))) == (
            "legacy_auth_failure",
            True,
        )
        os.environ["SOURCES__LEGACY__API_KEY"] = at.platform.legacy_key
        assert at.code(plan) == 0


def test_the_platforms_words_are_in_the_private_results_and_nowhere_else(
    at: Place, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = at.plan(KINDS["customers"])
    refused = answer_of(400, message="=Ana is not wanted")
    lost = answer_of(500, state="in_doubt", message="we are out")
    print_result(at.answered(plan, refused, *[lost] * 9, asked=WAITS)[0], "plain")
    (row,), (doubt,) = results(plan)["rejected"], results(plan)["in_doubt"]
    assert (row["platform_message"], doubt["platform_message"]) == (
        "'=Ana is not wanted",
        "we are out",
    )
    at.answered(plan, asked=WAITS, abandon=ids(2))
    assert results(plan)["rejected"][0]["platform_message"] == "'=Ana is not wanted"
    assert "wanted" not in caplog.text + "".join(capsys.readouterr())
    assert b"wanted" not in b"".join(path.read_bytes() for path in at.folder.glob("ledger.sqlite*"))
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in plan.glob(".platform*"))


def test_too_many_doubts_in_a_row_end_the_push_and_others_do_not(at: Place) -> None:
    count = 2 * (DOUBTS_MAX + 1)
    plan, other = (at.plan([subcategory(n) for n in range(k, k + count)]) for k in (1, 101))
    pushed, _ = at.answered(plan, *[LOST] * count)
    assert (pushed.exit_code, pushed.broke) == (6, True)
    assert Counter(at.states(plan)) == {"in_doubt": DOUBTS_MAX, "planned": count - DOUBTS_MAX}
    pushed, client = at.answered(other, *([LOST, WriteOutcome("answered", 201)] * (DOUBTS_MAX + 1)))
    assert (pushed.broke, len(client.sent)) == (False, count)
    assert at.states(other) == ["in_doubt", "confirmed"] * (DOUBTS_MAX + 1)
    keyless = at.plan([msgspec.structs.replace(customer(1), keys={"email": " "})])
    for times in (1, 0):
        pushed, client = at.answered(keyless, LOST)
        assert (pushed.exit_code, len(client.sent)) == (6, times)
    assert "orderbridge answer write:" in results(keyless)["in_doubt"][0]["words"]


REFUSED = answer_of(404, state="in_doubt", message="no such variant")
"""A 4xx whose body is not the error body that the interface shows."""


def gone(is_gone: Callable[[str], bool]) -> Answer:
    """Answers of a platform that has deleted some records, and takes the others."""
    return lambda _, path, body: REFUSED if is_gone(path) else None


def both_parts(variant: int) -> list[PlannedOperation]:
    """An update of a variant that can be repeated, and one of its stock, which cannot."""
    first, second = 2 * variant - 1, 2 * variant
    return [
        patch(first, variant, line=variant + 1),
        patch(second, variant, line=variant + 1, repeatable=False, stock=7),
    ]


def test_updates_of_deleted_records_are_rejected_in_the_push_that_sends_them(at: Place) -> None:
    plan = at.plan([part for variant in range(1, 61) for part in both_parts(variant)])
    client = at.answering(gone(lambda path: int(path.rsplit("/", 1)[1]) <= 30))
    assert at.code(plan) == 5
    sent = Counter(path for path, _ in client.sent)
    assert {sent[f"/products/1/variants/{n}"] for n in range(1, 31)} == {2}
    assert b"stock" not in b"".join(
        body for path, body in client.sent if int(path.rsplit("/", 1)[1]) <= 30
    )
    assert Counter(outcomes(plan).values()) == {
        "rejected.rejected": 30,
        "confirmed.confirmed": 30,
    }
    assert {row["platform_message"] for row in results(plan)["rejected"]} == {"no such variant"}
    assert {row.doubt_at for row in at.rows(plan) if row.state == "rejected"} == {None}
    client.sent.clear()
    assert (at.code(plan), client.sent) == (5, [])


def test_a_refusal_that_passes_is_confirmed_and_what_waited_is_sent_once(
    at: Place,
) -> None:
    pushed, client = at.answered(plan := at.plan([*both_parts(1), *both_parts(2)]), REFUSED)
    assert (pushed.exit_code, set(at.states(plan))) == (0, {"confirmed"})
    bodies = Counter((path, body) for path, body in client.sent)
    assert bodies["/products/1/variants/1", b'{"stock":7}'] == 1
    assert len(client.sent) == 5
    plan = at.plan(both_parts(3))
    pushed, _ = at.answered(plan, REFUSED, answer_of(401))
    assert (pushed.exit_code, at.states(plan)) == (4, ["in_doubt", "planned"])


def test_an_unrepeatable_part_is_rejected_with_the_record_though_it_was_sent(
    at: Place,
) -> None:
    plan = at.plan(both_parts(1))
    at.answered(plan, REFUSED, *[answer_of(400, state="in_doubt")] * 2)
    with Ledger.open(at.ledger) as ledger, ledger.transaction() as connection:
        connection.execute(  # as 0.3.0 left it: each part was sent once
            "UPDATE operations SET state = 'in_doubt', status = 404, attempts = 1, doubt_at = 1.0"
        )
    pushed, client = at.answered(plan, REFUSED)
    assert (pushed.exit_code, at.states(plan), len(client.sent)) == (5, ["rejected"] * 2, 1)


BUSY = answer_of(429, retry_after_s=3600.0)
"""A limit of requests that the push does not wait for: it ends."""
NO_TURN = answer_of(429, retry_after_s=0.0)


@pytest.mark.parametrize(
    "nights",
    [
        [[NO_TURN, REFUSED, REFUSED]],
        [[BUSY], [REFUSED, REFUSED]],
        [[REFUSED, BUSY], [REFUSED]],
        [[REFUSED, answer_of(0, state="not_sent"), REFUSED]],
    ],
)
def test_an_update_that_a_limit_kept_waiting_is_rejected_as_any_other(
    at: Place, nights: list[list[WriteOutcome]]
) -> None:
    plan = at.plan([patch(1, 1)])
    for answers in nights:
        pushed, client = at.answered(plan, *answers, asked=WAITS)
        assert len(client.sent) == len(answers)
    assert (pushed.exit_code, at.states(plan)) == (5, ["rejected"])
    assert {row.doubt_at for row in at.rows(plan)} == {None}


@pytest.mark.parametrize(
    "nights",
    [
        [[LOST, NO_TURN, REFUSED, REFUSED]],
        [[REFUSED, LOST, REFUSED]],
        [[REFUSED, LOST, BUSY], [REFUSED, REFUSED]],
        [[LOST, BUSY], [REFUSED, REFUSED]],
    ],
)
def test_a_refusal_ends_no_update_of_which_an_attempt_before_may_still_arrive(
    at: Place, nights: list[list[WriteOutcome]]
) -> None:
    plan = at.plan([patch(1, 1)])
    for answers in nights:
        pushed, client = at.answered(plan, *answers, asked=WAITS)
        assert len(client.sent) == len(answers)
    assert (pushed.exit_code, at.states(plan)) == (6, ["in_doubt"])


def test_a_refused_update_whose_earlier_attempt_was_lost_is_rejected_and_says_so(
    at: Place,
) -> None:
    for refusal in (REFUSED, answer_of(404)):
        number = 1 if refusal is REFUSED else 2
        plan = at.plan([patch(1, number)])
        pushed, _ = at.answered(plan, LOST, refusal, refusal)
        (row,) = at.rows(plan)
        assert (pushed.exit_code, row.state, row.doubt_at is None) == (5, "rejected", False)
        assert row.words.endswith("; an earlier attempt may have arrived")


@pytest.mark.parametrize("status", [408, 409, 425])
def test_a_4xx_that_is_about_the_moment_rejects_nothing(at: Place, status: int) -> None:
    pushed, _ = at.answered(
        plan := at.plan([patch(1, 1)]), *[answer_of(status, state="in_doubt")] * 3
    )
    assert (pushed.exit_code, at.states(plan)) == (6, ["in_doubt"])


@pytest.mark.parametrize("exists", [True, False])
def test_a_create_that_is_refused_is_looked_up_and_never_sent_again(
    at: Place, *, exists: bool
) -> None:
    at.stop_clock()
    plan = at.plan([customer(1)])
    at.answered(plan, answer_of(422, state="in_doubt", message="no seats"), asked=WAITS)
    assert at.states(plan) == ["in_doubt"]
    client = at.answering(lambda *_: None)
    if exists:
        record = {**customer(1).body, "id": "9"}
        at.means = replace(at.means, read_customers=lambda keys: listed([record], keys))
    at.now += SETTLE_S
    at.means = replace(at.means, read_clock=lambda: ClockReading(at.now, "boot", at.now))
    code = at.code(plan, replace(WAITS, resend=True))
    state, expected = ("confirmed", 0) if exists else ("rejected", 5)
    assert (code, at.states(plan), client.sent) == (expected, [state], [])
    if not exists:
        assert results(plan)["rejected"][0]["platform_message"] == "no seats"


def failing(is_bad: Callable[[bytes], bool]) -> Answer:
    """Answers of a platform that fails for some operations, and takes the others."""
    return lambda _, path, body: answer_of(500, state="in_doubt") if is_bad(body) else None


def test_customers_that_always_fail_hold_up_no_other_and_are_repeated_last(
    at: Place,
) -> None:
    client = at.answering(failing(lambda body: re.search(b"C0000[1-9]", body) is not None))
    plan = at.plan([customer(n) for n in range(1, 31)])
    assert at.code(plan) == 6
    assert at.states(plan) == ["in_doubt"] * 9 + ["confirmed"] * 21
    client.sent.clear()
    assert (at.code(plan), len(client.sent), at.states(plan).count("in_doubt")) == (6, 9, 9)
    assert "failed 2 times" in results(plan)["in_doubt"][0]["words"]
    client, plan = at.answering(failing(bool)), at.plan([customer(n) for n in range(101, 141)])
    assert at.push(plan).broke
    assert at.states(plan).count("in_doubt") == DOUBTS_MAX + PROBES_MAX
    earlier, client.sent, client.answer = client.sent, [], lambda *_: None
    assert at.code(plan) == 0
    first, again = (
        [re.findall(rb"C[0-9]{5}", body)[0] for _, body in sent] for sent in (earlier, client.sent)
    )
    assert sorted(again[-8:]) == sorted(first)


@pytest.mark.parametrize(("kind", "concurrency"), [("customers", 1), ("variants", 4)])
def test_an_intent_is_committed_before_a_byte_leaves(
    at: Place, kind: KindName, concurrency: int
) -> None:
    """What another connection reads in the ledger while a request is being sent; commits are slow."""
    operations, committed, lock, commit = (
        KINDS[kind],
        list[str](),
        threading.Lock(),
        PlanLedger.commit,
    )

    def answer(_: int, path: str, body: bytes) -> None:
        with lock:
            sent = json.loads(body).items()
            (at_place,) = [
                n for n, op in enumerate(operations) if op.path == path and op.body.items() <= sent
            ]
            committed.append(at.rows(plan)[at_place].state)

    def slow_commit(*given: Any) -> None:
        time.sleep(0.005)
        commit(*given)

    plan = at.plan(operations)
    at.answering(answer)
    with mock.patch.object(PlanLedger, "commit", slow_commit):
        assert at.code(plan, concurrency=concurrency) == 0
    assert committed == ["in_flight"] * len(operations)


def test_an_outcome_is_decided_at_once_and_others_are_committed_together(
    at: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers wake the loop for what ends or changes the push, not for each confirmation."""
    monkeypatch.setattr(send, "WAIT_STEP_S", 5.0)
    commits, commit = mock.Mock(), PlanLedger.commit
    monkeypatch.setattr(PlanLedger, "commit", lambda *given: (commits(), commit(*given)))

    def answer(number: int, *_: object) -> WriteOutcome | None:
        if number > 100:
            time.sleep(0.02)  # the loop can react
        return LOST if number > 100 else None

    client = at.answering(answer)
    assert at.push(at.plan([patch(n, n) for n in range(1, 101)]), concurrency=1).states == {
        "confirmed": 100
    }
    assert commits.call_count <= 100 / (INTENTS_AHEAD / 2) + INTENTS_AHEAD
    assert at.push(at.plan([patch(n, n) for n in range(200, 300)]), concurrency=1).broke
    assert len(client.sent) <= 100 + 1 + DOUBTS_MAX + 1 + 2 * PROBES_MAX


def test_two_updates_of_a_target_are_never_under_way_at_once(at: Place) -> None:
    under_way, overlaps = Counter[str](), list[int]()

    def answer(_: int, path: str, body: bytes) -> None:
        overlaps.append(under_way[path])
        under_way[path] += 1
        time.sleep(0.003)
        under_way[path] -= 1

    client = at.answering(answer)
    assert at.code(at.plan([patch(n, n % 3, weight=n) for n in range(1, 60)]), concurrency=4) == 0
    assert set(overlaps) == {0}
    for variant in range(3):
        weights = [
            json.loads(body)["weight"] for path, body in client.sent if path.endswith(f"/{variant}")
        ]
        assert weights == sorted(weights), "in the plan's order"


def test_a_second_push_at_once_and_a_list_that_cannot_be_written_send_nothing(at: Place) -> None:
    plan, walk = at.plan([customer(1)]), at.folder / ".ledger.sqlite.walk"
    with ledger_lock(at.ledger), pytest.raises(LockedError):
        at.push(plan)
    walk.write_bytes(b"")
    assert (at.code(plan), outcomes(plan), at.codes()) == (2, {"2": "unsent.not_sent"}, [])
    walk.unlink()
    assert at.code(plan) == 0


@pytest.mark.parametrize("semantics", ["unknown", "increment"])
def test_what_may_add_is_never_repeated(tmp_path: Path, semantics: str) -> None:
    readings = {"stock_semantics": "increment", "price_semantics": "increment"}
    with place(tmp_path, readings=readings) as at:
        os.environ |= dict.fromkeys(
            ("SOURCES__LEGACY__STOCK_SEMANTICS", "SOURCES__LEGACY__PRICE_SEMANTICS"), semantics
        )
        # that it is called repeatable does not help: the settings of the push count too
        plan = at.lost(
            patch(1, 1, stock=5, repeatable=True), patch(2, 2, price=1.5, repeatable=False)
        )
        assert [at.code(plan) for _ in range(2)] == [6, 6]
        assert (at.variant(1), at.variant(2)) == ({"stock": 5}, {"price": 1.5})
        assert at.code(plan, landed=ids(1, 2)) == 0
        with Ledger.open(at.ledger, readonly=True) as ledger:
            values = ledger.confirmed(at.platform.url)["value"].to_pylist()
        assert sorted(values) == (["1.5", "5"] if semantics == "unknown" else [])


def made(at: Place, **fields: str) -> Path:
    """A plan of a file with these fields of a variant."""
    folder = at.folder / f"made-{len(list(at.folder.glob('made-*')))}"
    file = at.folder / f"{'-'.join(fields.values())}.csv"
    file.write_text(
        f"productId,variantId,{','.join(fields)}\n1,7,{','.join(fields.values())}\n", "utf-8"
    )
    return make_plan(PlanOptions(kind="variants", file=file, out=folder)).folder


def test_a_stock_that_is_set_is_sent_every_night_and_may_be_repeated(at: Place) -> None:
    os.environ["SOURCES__LEGACY__STOCK_SEMANTICS"] = "set"
    for night in range(3):
        plan = made(at, sku="A", stock="39")
        assert [at.code(plan) for _ in range(2)] == [0, 0]  # resumed: nothing is left
        variant = at.platform.state.variants[1, 7]
        assert (variant.fields["stock"], variant.counts["stock"], variant.counts["sku"]) == (
            39,
            night + 1,
            1,
        )
        variant.fields["stock"] = 2  # orders of the day
    assert (at.code(at.lost(patch(1, 1, stock=5, repeatable=True))), at.variant(1)) == (
        0,
        {"stock": 5},
    )


def test_a_doubt_is_not_settled_before_its_time_and_its_advice_says_when(at: Place) -> None:
    at.stop_clock()
    plan, update = at.plan([customer(1)]), at.plan([patch(1, 1)])
    at.lose(update, asked=WAITS)
    assert results(update)["in_doubt"][0]["words"].endswith(
        f"run it again: orderbridge push {update} --yes"
    )
    at.lose(plan, asked=WAITS)
    requests = at.platform.state.requests
    pushed = at.push(plan, WAITS)
    assert (pushed.exit_code, pushed.settles_at, at.platform.state.requests) == (
        6,
        1_000_900.0,
        requests,
    )
    words = f"run it again from 1970-01-12 14:01:40 UTC on: orderbridge push {plan} --yes"
    assert results(plan)["in_doubt"][0]["words"].endswith(words)
    at.now += 900
    assert (at.code(plan, WAITS), at.codes()) == (0, ["C00001"])
    plan, asked = at.plan([customer(2)]), PushOptions(agreed=True)
    at.lose(plan, asked=asked)
    at.platform.set_faults({"late_apply": 0.0})  # a platform that may apply a write later
    assert at.code(plan, asked) == 6
    at.platform.set_faults({})  # the built-in sandbox says that it does not
    assert (at.code(plan, asked), at.codes()) == (0, ["C00001", "C00002"])


def test_production_sends_an_absent_create_again_only_where_it_is_reported(at: Place) -> None:
    os.environ["SOURCES__LEGACY__ENVIRONMENT"] = "production"
    at.stop_clock()
    plan, asked = (
        at.plan([customer(1)], environment="production"),
        PushOptions(confirm=1, settle_s=SETTLE_S),
    )
    at.means = replace(at.means, read_customers=nobody)
    at.lose(plan, "reset_before", asked=asked)
    at.now += 901
    assert (at.code(plan, asked), at.codes()) == (6, [])
    assert "--resend" in results(plan)["in_doubt"][0]["words"]
    assert (at.code(plan, asked, resend=True), at.codes()) == (0, ["C00001"])


def test_a_record_that_differs_or_is_there_twice_is_a_conflict(at: Place) -> None:
    at.means = replace(at.means, read_customers=nobody)
    plan = at.lost(*(customer(n) for n in (1, 2, 3)), fault="reset_before")
    for code, name, email in (
        ("C00001", "Otra", "ana1"),
        ("C00002", "Ana", "x"),
        ("x", "Ana", "ANA2"),
    ):
        there = {"erpCode": code, "firstName": name, "email": f"{email}@example.test"}
        at.platform.state.add("customers", there)
    at.means = means()
    assert (at.code(plan), at.states(plan)) == (6, ["conflict", "conflict", "confirmed"])
    first, second = (row["words"] for row in results(plan)["in_doubt"])
    assert (
        "firstName" in first,
        "orderbridge answer write:" in first,
        "2 customers" in second,
    ) == (
        True,
        True,
        True,
    )
    assert "Otra" not in str(results(plan))
    assert at.code(plan, landed=ids(1), abandon=ids(2)) == 5
    assert at.states(plan) == ["confirmed", "abandoned", "confirmed"]


def test_a_customer_that_exists_by_now_or_whose_address_looks_alike_is_not_created(
    at: Place,
) -> None:
    at.platform.state.add("customers", {"email": "ANA2@example.test"})
    at.platform.state.add("customers", {"email": "ana3@①.test"})
    plan = at.plan([customer(1), customer(2), customer(3, erpCode="", email="ana3@1.test")])
    pushed = at.push(plan)
    assert (pushed.exit_code, ("legacy_first_page", "customers: 1") in pushed.observed) == (5, True)
    assert outcomes(plan) == {
        "2": "confirmed.confirmed",
        "3": "unsent.exists_now",
        "4": "unsent.exists_now",
    }
    for abandoned in (ids(), ids(2, 3), ids()):
        assert at.code(plan, abandon=abandoned) == 5
        with Ledger.open(at.ledger, readonly=True) as ledger:
            assert not ledger.open_plans()
    assert (outcomes(plan)["3"], at.codes()) == ("unsent.exists_now", ["C00001"])


def test_a_customer_deleted_on_the_platform_is_created_again_if_somebody_says_so(
    at: Place,
) -> None:
    at.stop_clock()
    at.push(at.plan([customer(1)]))
    at.platform.state.remove("customers", at.platform.state.ids("customers")[-1])
    early, soon, later = (at.plan([customer(1, phone=str(n))]) for n in range(3))
    assert (at.code(early, WAITS), outcomes(early)) == (5, {"2": "unsent.exists_now"}), "it may lag"
    at.now += SETTLE_S + 1
    assert (at.code(soon, WAITS), outcomes(soon)) == (5, {"2": "unsent.held"})
    (asked,) = Creates().asked()
    assert f"orderbridge answer {asked.id} again" in results(soon)["unsent"][0]["words"]
    answered = at.command("answer", asked.id, "again")
    assert (answered.code, Creates().asked()) == (0, [])
    assert (at.code(later, WAITS), at.codes()) == (0, ["C00001", "C00001"])


def test_a_plan_made_before_a_push_that_changed_the_same_fields_is_refused(at: Place) -> None:
    monday, other, tuesday = made(at, sku="A"), made(at, weight="2"), made(at, sku="B")
    assert [at.code(plan) for plan in (other, tuesday, tuesday)] == [0, 0, 0]
    with pytest.raises(
        UsageError, match="another push has changed fields that this plan changes"
    ) as error:
        at.push(monday)
    assert f"orderbridge plan variants {at.folder}/A.csv" in error.value.hint
    assert at.variant(7) == {"sku": "B", "weight": 2}
    assert (at.code(made(at, sku="A", weight="3")), at.variant(7)) == (0, {"sku": "A", "weight": 3})


def test_a_line_withheld_because_of_a_later_plan_can_be_planned_again(at: Place) -> None:
    """The later plans left the values that the first one replaces, so that the same plan is made from its file."""
    assert at.code(made(at, sku="A")) == 0
    first, stop = made(at, sku="B"), threading.Event()
    stop.set()
    at.push(first, stop=stop)
    assert [at.code(made(at, sku=sku)) for sku in "CA"] == [0, 0]
    assert (at.code(first), outcomes(first)) == (5, {"2": "unsent.superseded"})
    assert (at.code(made(at, sku="B")), at.variant(7)) == (0, {"sku": "B"})
    assert (at.code(first), at.platform.state.requests) == (5, 4)


def refused(at: Place, plan: Path, words: str, *options: PushOptions, **more: Any) -> UsageError:
    """The error of a push that sends nothing."""
    requests = at.platform.state.requests
    with pytest.raises(UsageError, match=words) as caught:
        at.push(plan, *options, **more)
    assert at.platform.state.requests == requests
    return caught.value


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("input", r"plan-0\.csv was changed after the plan was made"),
        ("lookup", r"the lookup /none\.csv was changed after the plan was made"),
        ("mapping", r"the mapping /none\.csv was changed after the plan was made"),
        ("operations.jsonl", "was changed"),
        ("lines.csv", "was changed"),
        ("plan.json", "was changed"),
        ("host", r"plan\.json was changed"),
        ({"BASE_URL": "/other"}, "base_url was"),
        (
            {"ENVIRONMENT": "production", "LOGIN_MODE": "code"},
            r"sandbox, now production; .*login_mode was email, now",
        ),
        ({"LOGIN_MODE": "code"}, "login_mode was email, now code"),
    ],
)
def test_a_plan_that_is_not_as_it_was_made_is_refused_before_anything_is_sent(
    at: Place, what: str | dict[str, str], words: str
) -> None:
    plan, entry = at.plan([customer(1)]), {"path": "/none.csv", "sha256": "of another"}
    if isinstance(what, dict):
        os.environ |= {
            f"SOURCES__LEGACY__{name}": value for name, value in what.items() if value[0] != "/"
        }
        os.environ["SOURCES__LEGACY__BASE_URL"] += what.get("BASE_URL", "")
    elif what in ("lookup", "mapping"):
        altered(plan, **({"lookups": [entry]} if what == "lookup" else {"mapping": entry}))
    elif what == "host":
        altered(plan, host="http://[")
    else:
        file = plan.with_name(f"{plan.name}.csv") if what == "input" else plan / what
        file.write_bytes(file.read_bytes() + b"x")
    hint = refused(at, plan, words).hint
    assert "orderbridge plan " in hint
    assert what not in ("lookup", "mapping") or f"--{what} /none.csv" in hint
    assert not at.ledger.exists()


def test_a_push_under_other_semantics_than_planned_is_refused(at: Place) -> None:
    for field, planned, pushed in (
        ("stock", "increment", "set"),
        ("price", "unknown", "increment"),
    ):
        name = f"SOURCES__LEGACY__{field.upper()}_SEMANTICS"
        os.environ[name] = planned
        plan = at.plan([patch(1, 1, repeatable=False, **{field: -2})])
        os.environ[name] = pushed
        refused(at, plan, f"{field}_semantics was {planned}, now {pushed}")


def test_operations_edited_while_the_push_waits_are_not_sent(at: Place) -> None:
    plan = at.plan([patch(1, 1, sku="A"), patch(2, 2, sku="B")])

    def edit(done: int, total: int) -> None:
        path = plan / "operations.jsonl"
        path.write_text(path.read_text("utf-8").replace('"B"', '"X"'), "utf-8")

    refused(at, plan, r"operations\.jsonl was changed", on_operation=edit)


def stocks(at: Place, count: int = 2) -> Path:
    """A plan of updates that must not be repeated."""
    return at.plan([patch(n, n, stock=5, repeatable=False) for n in range(1, count + 1)])


def test_a_plan_is_not_sent_again_with_another_ledger(
    at: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, replacing = stocks(at), stocks(at)
    with (
        mock.patch(
            "orderbridge.pipelines.push.run.results.ResultsWriter.write", side_effect=SystemExit
        ),
        pytest.raises(SystemExit),
    ):
        at.push(killed)
    assert at.code(replacing) == 0
    (replacing / "results").rename(replacing / ".results.old")
    monkeypatch.setenv("LEDGER__PATH", str(at.folder / "other.sqlite"))
    for plan in (killed, replacing) * 2:
        hint = refused(at, plan, "but not with the ledger").hint
        assert f"take them out of the file. Then plan the rest: mv {plan} {plan}.lost" in hint
        assert f"{plan}.lost && orderbridge " in hint
    monkeypatch.delenv("LEDGER__PATH")
    mark = replacing / ".pushes"
    mark.write_bytes(b"\xff")
    assert "newest ledger, remove that file" in refused(at, replacing, "was changed").hint
    mark.unlink()
    # by a push that was killed at its very end
    (replacing / ".results.old" / "left").mkdir(parents=True)
    assert (at.code(replacing), mark.read_text()) == (0, "4")


@pytest.mark.parametrize("is_during_a_push", [True, False])
def test_an_older_copy_of_the_ledger_is_noticed(at: Place, is_during_a_push: bool) -> None:
    old = at.folder / "old.sqlite"

    def on_operation(done: int, total: int) -> None:
        if done and is_during_a_push:
            with (
                closing(sqlite3.connect(at.ledger)) as source,
                closing(sqlite3.connect(old)) as target,
            ):
                source.backup(target)

    plan = at.stopped(*(patch(n, n, stock=5, repeatable=False) for n in (1, 2)))
    shutil.copy(at.ledger, old)
    at.push(plan, concurrency=1, on_operation=on_operation)
    for path in at.folder.glob("ledger.sqlite*"):
        path.unlink()
    shutil.copy(old, at.ledger)
    for _ in range(2):
        refused(at, plan, "older copy")
    assert at.platform.state.variants[1, 1].applied == 1


def test_a_plan_for_another_organization_or_a_key_of_another_environment_is_refused(
    at: Place,
) -> None:
    plan, key = at.plan(KINDS["variants"]), at.platform.v1_key
    os.environ |= {
        "SOURCES__PUBLIC_V1__BASE_URL": at.platform.url,
        "SOURCES__PUBLIC_V1__API_KEY": at.platform.v1_live_key,
    }
    refused(at, plan, "different environments")
    os.environ["SOURCES__PUBLIC_V1__API_KEY"] = key
    live = replace(public_v1.KEYS[key], environment="PRODUCTION")
    words = "is for production, its prefix is for sandbox"
    with mock.patch.dict(public_v1.KEYS, {key: live}), pytest.raises(UsageError, match=words):
        at.push(plan)
    unknown = altered(plan, organization="org-2")["organization"]
    with pytest.raises(
        UsageError, match="made for the organization org-2, the key of public v1 is of "
    ) as caught:
        at.push(plan)
    assert {entry.path for entry in at.platform.state.log} == {"/public/v1/whoami"}
    (of_the_key,) = re.findall(r"the key of public v1 is of (.+)", caught.value.message)
    for known in (of_the_key, unknown):  # not known: warehouse of one family, or none
        altered(plan, organization=known)
        assert at.code(plan) == 0


@pytest.mark.parametrize(
    ("environment", "asked", "wanted"),
    [
        ("sandbox", PushOptions(), "--yes"),
        ("production", PushOptions(agreed=True), "--confirm 2"),
        ("production", PushOptions(confirm=3), "not the number of operations"),
        ("production", PushOptions(confirm=2, settle_s=60.0), "--settle"),
    ],
)
def test_nothing_is_sent_without_consent(
    at: Place, environment: Any, asked: PushOptions, wanted: str
) -> None:
    os.environ["SOURCES__LEGACY__ENVIRONMENT"] = environment
    error = str(
        refused(at, at.plan(KINDS["customers"], environment=environment, messages=2), ".", asked)
    )
    text = "2 customers would be sent to .*, and the platform would send 2 messages to customers"
    assert (wanted in error, bool(re.search(text, error))) == (True, wanted != "--settle")


def test_what_is_left_of_a_plan_is_said_before_it_goes_on(at: Place) -> None:
    plan = at.plan([customer(1), customer(2)], messages=2)
    at.answered(plan, WriteOutcome("answered", 201), LOST)
    left = "1 of 2 customers would still be sent to .*, 1 of them with unknown outcome: "
    refused(at, plan, f"{left}.*, and the platform would send 1 message to", PushOptions())


@pytest.mark.parametrize("environment", ["sandbox", "production"])
def test_a_plan_with_nothing_left_needs_no_consent(at: Place, environment: Any) -> None:
    os.environ["SOURCES__LEGACY__ENVIRONMENT"] = environment
    plan = at.plan([customer(1)], environment=environment)
    assert at.code(plan, PushOptions(confirm=1)) == 0
    refused(at, plan, "--confirm 2 is not the number", PushOptions(confirm=2))
    pushed = at.push(plan, PushOptions())
    assert (pushed.exit_code, pushed.sent, at.codes()) == (0, 0, ["C00001"])


def test_a_create_that_is_sent_again_by_an_answer_needs_consent(at: Place) -> None:
    plan = at.lost(*KINDS["subcategories"], fault="reset_before")
    assert at.code(plan, replace(YES, abandon=ids(1, 2))) == 5
    assert at.code(plan, PushOptions()) == 5, "given up"
    refused(at, plan, "0 of 2 subcategories", PushOptions(not_landed=ids(1)))


def test_what_is_no_request_of_its_kind_is_an_error_before_anything_is_sent(at: Place) -> None:
    requests: list[tuple[KindName, PlannedOperation]] = [
        ("customers", patch(2, 1001)),
        ("customers", msgspec.structs.replace(customer(2), path="/customers/7")),
        ("variants", msgspec.structs.replace(patch(2, 1001), method="POST")),
    ]
    for kind, operation in requests:
        refused(at, at.plan([KINDS[kind][0], operation], kind), r"operation 2 of .* is not ")


def test_a_person_can_only_speak_of_what_is_in_doubt_and_has_settled(at: Place) -> None:
    plan = at.lost(*KINDS["subcategories"], fault="reset_before")
    refused(at, plan, "not in doubt: operation 9", landed=ids(9))
    refused(at, plan, "named twice", landed=ids(1), abandon=ids(1))
    refused(at, plan, "may still arrive", not_landed=ids(1), settle_s=600.0)
    assert at.states(plan) == ["in_doubt", "in_doubt"]
    at.push(updates := at.lose(stocks(at, 1)), abandon=ids(1))
    assert at.code(at.plan([patch(1, 1, repeatable=False, stock=6)])) == 0
    refused(at, updates, "not in doubt: operation 1", landed=ids(1))  # 6 would be taken for 5


def test_no_password_is_in_a_doubt_and_no_cell_of_their_file_runs_in_a_spreadsheet(
    at: Place,
) -> None:
    plan = at.lost(customer(1, erpCode="=1+1", lastName="=A1"), customer(2, erpCode="-5"))
    sent = json.loads(results(plan)["in_doubt"][0]["values"])
    assert (sent["erpCode"], sent["lastName"], "password" in sent) == ("=1+1", "=A1", False)
    assert kept(plan)["1"] not in str(results(plan))
    assert [*stored(plan, "erpCode").values()] == ["'=1+1", "-5"]
    assert at.codes() == ["=1+1", "-5"]


def test_lines_of_the_input_are_each_in_one_file(at: Place) -> None:
    lines = [
        (10, "rejected", None, "email", "required", "it is missing"),
        *((line, outcome, None, "", "", "") for line, outcome in enumerate(UNSENT, 11)),
        *((line, "merged", same_as, "", "", "") for line, same_as in enumerate((2, 3, 11), 16)),
    ]
    plan = at.plan([customer(1), customer(2, firstName=7)], lines=lines)
    for _ in range(2):  # what was rejected is not sent again
        pushed = at.push(plan)
        assert (
            pushed.exit_code,
            sum(pushed.lines.values()),
            pushed.states["rejected"],
            at.codes(),
        ) == (
            5,
            11,
            1,
            ["C00001"],
        )
    assert {int(line): outcome for line, outcome in outcomes(plan).items()} == {
        2: "confirmed.confirmed", 3: "rejected.rejected", 10: "rejected.rejected",
        **{line: f"{file}.{outcome}" for line, (outcome, file) in enumerate(UNSENT.items(), 11)},
        16: "confirmed.merged", 17: "rejected.merged", 18: "confirmed.merged",
    }  # fmt: skip
    bad, missing, _ = results(plan)["rejected"]
    assert (bad["status"], bad["code"], missing["words"]) == ("400", "TYPE", "email: it is missing")
    assert {stat.S_IMODE(path.stat().st_mode) for path in (plan / "results").iterdir()} == {0o600}


UNSENT = {
    "exists_same": "confirmed",
    "unchanged": "confirmed",
    "exists_differs": "unsent",
    "ambiguous": "unsent",
    "skipped": "unsent",
}
"""The file of results by the outcome of a line that is not sent."""


def test_a_line_of_two_operations_has_the_graver_outcome(at: Place) -> None:
    plan = at.plan(
        [
            patch(1, 1),
            patch(2, 1, line=2, sku=7),
            patch(3, 2, line=3),
            patch(4, 2, line=3, weight=2),
        ]
    )
    assert (at.code(plan), outcomes(plan)) == (
        5,
        {"2": "rejected.rejected", "3": "confirmed.confirmed"},
    )
    plan = at.stopped(patch(1, 6, line=2, sku=7), patch(2, 6, line=2))
    assert (at.code(plan, abandon=ids(2)), outcomes(plan)) == (5, {"2": "rejected.rejected"})
    plan = at.lost(patch(1, 5, line=2, sku="A"), patch(2, 5, line=2, price=2.5, repeatable=False))
    # the one that waits for a person
    assert [row["operation"] for row in results(plan)["in_doubt"]] == ["2"]
    assert (at.code(plan), at.states(plan)) == (6, ["confirmed", "in_doubt"])
    assert at.code(plan, landed=ids(2)) == 0


def test_what_was_given_up_is_neither_done_nor_in_doubt(at: Place) -> None:
    plan = at.stopped(*KINDS["subcategories"])
    assert at.code(plan, abandon=ids(2)) == 5
    assert outcomes(plan) == {"2": "confirmed.confirmed", "3": "unsent.abandoned"}
    assert results(plan)["unsent"][0]["words"] == "given up before it was sent"
    refused(at, plan, "not in doubt: operation 2", landed=ids(2))
    plan = at.lost(subcategory(3), lines=[(9, "merged", 4, "", "", "")])
    for abandoned in (ids(3), ids()):
        pushed = at.push(plan, abandon=abandoned)
        assert (pushed.exit_code, outcomes(plan)) == (
            5,
            {"4": "in_doubt.abandoned", "9": "in_doubt.abandoned"},
        )
        assert results(plan)["in_doubt"][0]["words"] == "given up: not known whether it arrived"


def test_an_abandoned_create_that_may_have_landed_waits_for_an_answer_in_every_plan(
    at: Place,
) -> None:
    at.stop_clock()
    first = at.lost(subcategory(1), subcategory(2))
    assert at.code(first, abandon=ids(1, 2)) == 5
    refused(at, first, "operation 2 may still arrive", not_landed=ids(2), settle_s=900.0)
    at.now += 2 * 900
    other = at.plan([subcategory(1, order=9), subcategory(2), subcategory(3)])
    for _ in range(2):
        assert at.code(other) == 5
        assert outcomes(other) == {
            "2": "unsent.blocked",
            "3": "unsent.blocked",
            "4": "confirmed.confirmed",
        }
        assert "orderbridge answer write:" in results(other)["unsent"][0]["words"]
    refused(at, first, "not in doubt: operation 1", abandon=ids(1))
    assert (at.code(first, landed=ids(1), not_landed=ids(2)), at.states(first)) == (
        0,
        ["confirmed", "confirmed"],
    )
    assert at.code(other) == 5
    assert outcomes(other) == {
        "2": "unsent.exists_now",
        "3": "unsent.exists_now",
        "4": "confirmed.confirmed",
    }


def test_an_abandoned_create_of_a_lost_plan_is_made_by_another_if_a_person_agrees(
    at: Place,
) -> None:
    at.stop_clock()
    first = at.lost(subcategory(1), fault="reset_before")
    assert at.code(first, abandon=ids(1)) == 5
    shutil.rmtree(first)
    other = at.plan([subcategory(1, order=9)])
    absent = replace(YES, accept_unproven=True, settle_s=900.0)
    for options in (YES, absent):  # also while it may still arrive
        assert (at.code(other, options), outcomes(other)) == (5, {"2": "unsent.blocked"})
    at.now += 901
    assert [at.code(other, options) for options in (YES, absent)] == [5, 0]


def test_results_that_do_not_add_up_fail_the_push(at: Place) -> None:
    twice, orphan = (2, "skipped", None, "", "", ""), (3, "merged", 9, "", "", "")
    lacking = at.plan([customer(1)])
    altered(lacking, lines=2)
    for plan, words in (
        (lacking, "2 lines, the results have 1"),
        (at.plan([customer(1)], lines=[twice]), "line 2 of the input has two results"),
        (at.plan([customer(1)], lines=[orphan]), "line 3 .* has no result"),
    ):
        with pytest.raises(BridgeError, match=words):
            at.push(plan)


def stored(plan: Path, column: str) -> dict[str, str]:
    """A column of the file of passwords, by operation."""
    rows = spreadsheet_rows(plan / passwords.PASSWORDS_FILE)
    return {row["operation"]: row[column] for row in rows}


def kept(plan: Path) -> dict[str, str]:
    return stored(plan, "password")


def sent_passwords(at: Place) -> list[str]:
    return [body["password"] for body in at.platform.state.customer_inputs]


def is_on_disk(at: Place, secret: str) -> bool:
    return any(
        secret.encode() in path.read_bytes() for path in at.folder.rglob("*") if path.is_file()
    )


def test_made_passwords_are_on_disk_before_the_send_and_mailed_ones_never(
    at: Place,
) -> None:
    seen: list[dict[str, str]] = []

    def answer(number: int, *_: object) -> WriteOutcome | None:
        seen.append(kept(plan))
        return None if number else LOST

    plan, client = at.plan(KINDS["customers"]), at.answering(answer)
    assert [at.code(plan) for _ in range(2)] == [6, 0]
    assert seen == [kept(plan)] * 3
    sent = [json.loads(body)["password"] for _, body in client.sent]
    assert sent == [seen[0]["1"], seen[0]["2"], seen[0]["1"]]
    assert len(set(sent)) == 2
    assert at.code(at.plan([customer(3, password="mailed")])) == 0
    mailed = json.loads(client.sent[-1][1])
    assert mailed["notification"] == {"send": True, "withCredentials": True}
    assert (len(mailed["password"]), is_on_disk(at, mailed["password"])) == (
        passwords.LENGTH,
        False,
    )
    assert stat.S_IMODE((plan / passwords.PASSWORDS_FILE).stat().st_mode) == 0o600


def test_each_password_of_a_plan_and_its_copy_is_reported_once(at: Place) -> None:
    plan, stop = at.plan([customer(number) for number in range(1, 5)]), threading.Event()
    copy = Path(shutil.copytree(plan, plan.with_name("copy")))
    at.push(plan, stop=stop, on_operation=lambda done, total: stop.set() if done else None)
    first = kept(plan)
    assert 0 < len(first) < 4
    assert [at.code(copy), at.code(plan), kept(plan)] == [0, 0, first]
    reported = {**first, **kept(copy)}
    assert len(first) + len(kept(copy)) == len(reported) == 4
    assert sent_passwords(at) == [reported[str(n)] for n in range(1, 5)]


def test_passwords_of_the_file_are_read_again_by_line_and_all_must_be_there(at: Place) -> None:
    by_line = {2: "planted-one"}
    reader = mock.Mock(return_value=by_line)
    at.means = replace(at.means, read_passwords=reader)
    plan = at.plan([customer(1, password="input"), customer(2, password="input")])
    pushed = at.push(plan)
    assert (pushed.exit_code, at.codes(), "line 3" in str(pushed.error)) == (2, [], True)
    by_line[3] = "planted-two"
    assert at.code(plan) == 0
    assert (sent_passwords(at), reader.call_args.args[1]) == (
        ["planted-one", "planted-two"],
        {2, 3},
    )
    assert not is_on_disk(at, "planted-")


@pytest.mark.parametrize(
    ("changed", "before", "after"), [("csv", "planted-", ""), ("toml", "phone", "firstName")]
)
def test_passwords_of_an_input_or_mapping_edited_while_the_push_waits_are_not_sent(
    at: Place, changed: str, before: str, after: str
) -> None:
    columns = 'kind = "customers"\n[columns]\nCorreo = "email"\nClave = "password"\nTel = "phone"\n'
    contents = {
        "csv": "Correo;Clave;Tel\nana1@example.test;planted-one;600111222\n",
        "toml": columns,
    }
    files = {name: at.folder / f"clientes.{name}" for name in contents}
    for name, file in files.items():
        file.write_text(contents[name], "utf-8")
    source, mapping = ({"path": str(file), "sha256": file_sha256(file)} for file in files.values())
    altered(plan := at.plan([customer(1, password="input")]), input=source, mapping=mapping)
    edited = contents[changed].replace(before, after)
    pushed = at.push(plan, on_page=lambda *_: files[changed].write_text(edited, "utf-8"))
    assert (pushed.exit_code, f"{changed} was changed" in str(pushed.error), at.codes()) == (
        2,
        True,
        [],
    )
    files[changed].write_text(contents[changed], "utf-8")
    assert (at.code(plan), sent_passwords(at)) == (0, ["planted-one"])


def test_a_changed_password_file_is_not_overwritten_and_a_planted_one_not_used(
    at: Place,
) -> None:
    plan = at.plan([customer(1)])
    path = plan / passwords.PASSWORDS_FILE
    path.write_text("my own notes\n")
    assert (at.code(plan), path.read_text(), at.codes()) == (2, "my own notes\n", [])
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [passwords.PASSWORD_COLUMNS, (1, 2, "C00001", "", "", "planted-password")]
        )
    assert at.code(plan) == 0
    assert sent_passwords(at) == [kept(plan)["1"]] != ["planted-password"]


def test_the_exit_code_is_that_of_the_gravest(at: Place) -> None:
    def code(**result: Any) -> int:
        return PushResult(plan, **{"lines": Counter(), **result}).exit_code

    plan, doubt = Plan(at.plan([customer(1)])), {"in_doubt": 1}
    assert code(stopped=True, states=doubt) == 130
    assert code(error=Unreachable("no"), states=doubt) == 4
    assert code(states={"conflict": 1}, lines=Counter({("rejected", "rejected"): 1})) == 6
    assert code(lines=Counter({("unsent", "exists_differs"): 1, ("confirmed", "merged"): 1})) == 0


@pytest.mark.parametrize("code", ["C00007", "c-7"])
def test_a_long_push_reads_the_list_again_and_creates_nobody_of_another_project(
    at: Place, code: str
) -> None:
    at.stop_clock()
    email = "ana7@example.test" if code == "C00007" else "other@example.test"
    plan = at.plan([customer(n, erpCode=f"C{n:05d}") for n in range(1, 9)])

    def on_operation(ended: int, total: int) -> None:
        at.now += 100.0
        if ended == 2:
            at.platform.state.add("customers", {"erpCode": code, "email": email})

    assert at.code(plan, on_operation=on_operation) == 5
    assert at.codes() == [f"C0000{n}" for n in (1, 2, 3, 4, 5, 6, 8)]
    (row,) = [row for row in results(plan)["unsent"] if row["line"] == "8"]
    assert row["outcome"] == "exists_now"


@pytest.mark.parametrize("fails", [True, False])
def test_a_list_that_cannot_be_read_or_proven_again_does_not_end_a_long_push(
    at: Place, *, fails: bool
) -> None:
    at.stop_clock()
    reads = 0

    def read(keys: Container[Key]) -> CustomerListing:
        nonlocal reads
        reads += 1
        if reads == 1:
            return nobody(keys)
        if fails:
            raise Unreachable("gone")
        return listed([{**customer(7).body, "id": "9"}], keys, is_whole=False)

    at.means = replace(at.means, read_customers=read)
    plan = at.plan([customer(n) for n in range(1, 9)])

    def on_operation(ended: int, total: int) -> None:
        at.now += 100.0

    assert at.code(plan, on_operation=on_operation) == (0 if fails else 5)
    assert reads >= 2
    assert len(at.codes()) == (8 if fails else 7)


def test_a_price_of_a_variant_is_rejected_once_another_update_shows_it_is_gone(
    at: Place,
) -> None:
    at.stop_clock()
    prices = at.plan([patch(n, n, price=7, repeatable=False) for n in (1, 2, 3)])
    at.answered(prices, *[REFUSED] * 3)
    assert at.states(prices) == ["in_doubt"] * 3
    at.now += 1.0
    codes = at.plan([patch(1, 1, sku="A"), patch(2, 2, sku="B"), patch(3, 3, sku="C")])
    other = answer_of(422, state="in_doubt")
    confirmed = WriteOutcome("answered", 204)
    at.answered(codes, REFUSED, confirmed, other, REFUSED, other)
    assert at.states(codes) == ["rejected", "confirmed", "rejected"]
    assert at.states(prices) == ["rejected", "in_doubt", "in_doubt"], (
        "one is there, and one was refused for another reason"
    )
    assert at.code(prices) == 6
    assert "refused the record since" in results(prices)["rejected"][0]["words"]
