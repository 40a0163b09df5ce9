"""The limits of the ledger and of a push, and its times to the second: grace, settle time, the age of an intent."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from orderbridge.pipelines.ledger import clock
from orderbridge.pipelines.ledger.clock import Anchor, ClockReading, LedgerClock, elapsed_s
from orderbridge.pipelines.push import identity, pace, rules, run, send
from orderbridge.pipelines.push.listing import CustomerListing
from orderbridge.pipelines.push.model import PushOptions
from orderbridge.pipelines.push.resolutions import Answers
from orderbridge.pipelines.push.rules import check_settle_s
from orderbridge.pipelines.push.run import push
from orderbridge.pipelines.push.send import SendTask
from orderbridge.pipelines.push.settle import settle
from orderbridge.sources.errors import Unreachable, UsageError
from orderbridge.sources.http.exchange import WriteOutcome
from orderbridge.sources.http.retries import RetryPolicy
from orderbridge.sources.settings import legacy_settings
from tests.limits.border import BELOW, FROM, UP_TO, limit, refused_unless
from tests.pipelines.push.plans import LOST, Place, customer, ids, nobody, outcomes, patch, results
from tests.pipelines.push.test_send import Bench

DOUBT = WriteOutcome("in_doubt", 503, error=Unreachable("lost"))
DEADLINE_S = 17.0
SETTLE_S = 907.0
"""Primes, like no other time: a term that an expression lacks shows."""
SETTLED_AT = "1970-01-12 14:01:47"
"""The settle time after the time at which the clock of a `Place` stands still."""


# the loop


@limit(send, "DOUBTS_MAX", FROM)
def test_so_many_doubts_in_a_row_end_a_round(n: int, holds: bool) -> None:
    bench = Bench(100.0, *[(0.0, DOUBT)] * n)
    bench.run()
    assert bench.loop.result.broke is holds


@limit(send, "INTENT_MAX_AGE_S", UP_TO)
def test_an_older_intent_is_committed_again(n: int, holds: bool) -> None:
    bench = Bench(100.0)
    assert bench.loop._is_expired(bench.now - n) is not holds


@limit(send, "RATE_MIN", FROM, of=1500)
def test_a_lower_rate_is_refused(n: int, holds: bool) -> None:
    with pytest.raises(UsageError) as raised:
        push(Path("no-plan"), PushOptions(rate=n / 1500))
    assert ("--rate" not in raised.value.message) is holds


@limit(send, "WAITING_MAX", BELOW, to=5)
def test_no_more_are_read_while_so_many_wait_for_a_target(n: int, holds: bool) -> None:
    bench = Bench(100.0)
    same = [SendTask(patch(number, 1), is_repeatable=True) for number in range(1, n + 2)]
    tasks = iter([*same, SendTask(patch(99, 2), is_repeatable=True)])
    begun = [task.operation.id for task in bench.loop._intents(tasks)]
    assert begun == ([1, 99] if holds else [1])


@limit(pace, "SETBACKS_MAX", UP_TO)
def test_so_many_setbacks_in_a_row_are_waited_for(n: int, holds: bool) -> None:
    now = 10.0
    gate = pace.Pace(None, RetryPolicy(base_s=0.0, cap_s=0.0), threading.Event(), lambda: now)
    for _ in range(n):
        now += 1.0
        goes_on = gate.set_back(now, None)
    assert goes_on is holds


@limit(run, "PROBES_MAX", UP_TO)
def test_so_many_other_places_of_a_plan_are_tried(at: Place, n: int, holds: bool) -> None:
    """The probe after which something is confirmed is the last one that fails, and one more."""
    plan = at.plan([customer(number) for number in range(1, 41)])
    pushed, _ = at.answered(plan, *[LOST] * (send.DOUBTS_MAX + n - 1))
    assert ("confirmed" in pushed.states) is holds


@limit(run, "ROUNDS_MAX", UP_TO)
def test_an_update_is_sent_so_often(at: Place, n: int, holds: bool) -> None:
    """Answers are lost, or each doubt is another one: a status that repeats ends the rounds at once."""
    other = [replace(DOUBT, status=500 + number) for number in range(n - 1)]
    for doubts in ([LOST] * (n - 1), other):
        pushed, client = at.answered(at.plan([patch(1, 1)]), *doubts)
        assert pushed.states == {"confirmed" if holds else "in_doubt": 1}
        assert len(client.sent) == min(n, run.ROUNDS_MAX)
    pushed, client = at.answered(at.plan([patch(1, 1)]), *[replace(DOUBT, status=500)] * (n - 1))
    assert len(client.sent) == min(n, 2)


@limit(run, "RELIST_S", FROM)
def test_the_list_is_read_again_after_so_long(at: Place, n: int, holds: bool) -> None:
    at.stop_clock()
    reads: list[float] = []

    def read(keys: object) -> CustomerListing:
        reads.append(at.now)
        return nobody(keys)

    def answer(number: int, *_: object) -> None:
        if number == 0:
            at.now += n

    at.answering(answer)
    at.means = replace(at.means, read_customers=read)
    assert at.code(at.plan([customer(number) for number in (1, 2, 3)])) == 0
    assert (len(reads) == 2) is holds


@limit(identity, "PAGES_MAX", UP_TO)
def test_so_many_first_pages_are_looked_at(n: int, holds: bool) -> None:
    client = mock.Mock()
    client.get.side_effect = lambda path, params, check, is_probe: (
        check(b'{"data":[{"id":%d}]}' % int(params["page"])),
        None,
    )
    pages = [*identity._first_pages(client, 1)]
    assert (len(pages) >= n) is holds


# times


@limit(rules, "SETTLE_S", FROM)
def test_production_settles_no_sooner(at: Place, n: int, holds: bool) -> None:
    legacy = replace(legacy_settings(), environment="production")
    with refused_unless(holds, UsageError):
        check_settle_s(float(n), legacy)
    check_settle_s(float(n), legacy_settings())


@limit(clock, "_TOLERANCE_S", BELOW, to=7)
def test_clocks_that_are_further_apart_were_set(n: int, holds: bool) -> None:
    before = ClockReading(1_000_003.0, "boot", 5_009.0)
    for ahead, behind in ((1_013 + n, 1_013), (1_013 - n, 1_013)):
        after = ClockReading(before.wall + ahead, "boot", before.uptime + behind)
        assert elapsed_s(before, after) == (ahead if holds else min(ahead, behind))
    readings = [ClockReading(before.wall + 1_013 + n, "boot", before.uptime + 1_013)]
    ledger = LedgerClock(lambda: readings[-1], Anchor(before, 1_000.0))
    now = ledger.now()
    assert now == 1_000.0 + 1_013 + (n if holds else 0)
    assert ledger.wall_time(now) == readings[-1].wall


def killed(at: Place, plan: Path) -> None:
    """A push that is killed while its requests are in flight."""
    ended = mock.patch("orderbridge.pipelines.push.send.SendLoop._receive", side_effect=SystemExit)
    with ended, pytest.raises(SystemExit):
        at.push(plan, PushOptions(agreed=True, settle_s=SETTLE_S))


def test_what_a_killed_push_left_settles_after_intent_request_and_settle_time(
    at: Place,
) -> None:
    """A request may leave as late as its intent allows, take as long as its deadline, and arrive later still."""
    whole = send.INTENT_MAX_AGE_S + DEADLINE_S + SETTLE_S
    for number, is_by_push in ((1, False), (2, True)):
        at.stop_clock()
        at.means = replace(at.means, deadline_s=DEADLINE_S)
        plan = at.plan([customer(number)])
        killed(at, plan)
        at.means = replace(at.means, read_customers=nobody)
        options = PushOptions(agreed=True, settle_s=SETTLE_S)
        begun = at.now
        for passed, is_settled in ((1_201.0, False), (whole - 1, False), (whole, True)):
            at.now = begun + passed
            if is_by_push:
                at.push(plan, options)
                words = "confirmed" if is_settled else "in_doubt"
                assert at.states(plan) == [words], passed
            else:
                left = settle(None, Answers(), SETTLE_S, dependencies=at.means).left
                assert [one.advice.startswith("run it again: ") for one in left] == [is_settled]


def test_a_doubt_settles_after_its_answer_was_lost_and_not_after_its_intent(at: Place) -> None:
    at.stop_clock()
    plan = at.plan([customer(1), customer(2)])

    def answer(*_: object) -> WriteOutcome:
        at.now += 101.0
        return LOST

    options = PushOptions(agreed=True, settle_s=SETTLE_S)
    at.answering(answer)
    sent_at = at.now
    assert at.push(plan, options).settles_at == sent_at + 101.0 + SETTLE_S
    client = at.answering(lambda *_: None)
    at.means = replace(at.means, read_clock=lambda: ClockReading(at.now, "boot", at.now))
    for passed, sent in (
        (101.0 + SETTLE_S - 1, 0),
        (101.0 + SETTLE_S, 1),
        (202.0 + SETTLE_S - 1, 1),
        (202.0 + SETTLE_S, 2),
    ):
        at.now = sent_at + passed
        at.push(plan, options)
        assert len(client.sent) == sent


def test_a_create_in_doubt_keeps_that_of_another_plan_waiting_to_the_second(at: Place) -> None:
    at.stop_clock()
    options = PushOptions(agreed=True, settle_s=SETTLE_S)
    first = at.plan([customer(1)])
    at.answered(first, LOST, asked=options)
    lost_at = at.now
    tonight = at.plan([customer(1, phone="2")])
    client = at.answering(lambda *_: None)
    at.means = replace(at.means, read_clock=lambda: ClockReading(at.now, "boot", at.now))
    at.now = lost_at + SETTLE_S - 1
    assert at.code(tonight, options) == 5
    assert f"run it again from {SETTLED_AT} UTC" in results(tonight)["unsent"][0]["words"]
    assert client.sent == []
    at.now = lost_at + SETTLE_S
    at.push(tonight, options)
    assert outcomes(tonight) == {"2": "confirmed.confirmed"}


def test_a_created_customer_that_no_list_has_is_asked_about_after_the_settle_time(
    at: Place,
) -> None:
    """Until then the list may be behind."""
    at.stop_clock()
    options = PushOptions(agreed=True, settle_s=SETTLE_S)
    at.answered(at.plan([customer(1)]), asked=options)
    created_at = at.now
    for passed, outcome in ((SETTLE_S - 1, "exists_now"), (SETTLE_S, "held")):
        at.now = created_at + passed
        again = at.plan([customer(1, phone=str(passed))])
        client = at.answering(lambda *_: None)
        at.means = replace(at.means, read_clock=lambda: ClockReading(at.now, "boot", at.now))
        at.push(again, options)
        assert (outcomes(again), client.sent) == ({"2": f"unsent.{outcome}"}, [])


def test_an_abandoned_create_keeps_that_of_another_plan_waiting_to_the_second(at: Place) -> None:
    """It may have arrived, and is in the list by then."""
    at.stop_clock()
    options = PushOptions(agreed=True, settle_s=SETTLE_S)
    first = at.plan([customer(1)])
    at.answered(first, LOST, asked=options)
    lost_at = at.now
    at.now += 101.0
    at.push(first, options, abandon=ids(1))
    tonight = at.plan([customer(1, phone="2")])
    client = at.answering(lambda *_: None)
    at.means = replace(at.means, read_clock=lambda: ClockReading(at.now, "boot", at.now))
    for passed, sent in ((SETTLE_S - 1, 0), (SETTLE_S, 1)):
        at.now = lost_at + passed
        at.push(tonight, options)
        assert len(client.sent) == sent


def test_an_update_in_doubt_keeps_others_of_its_fields_waiting_to_the_second(at: Place) -> None:
    at.stop_clock()
    options = PushOptions(agreed=True, settle_s=SETTLE_S)
    first = at.plan([patch(1, 1, sku="A")])
    at.answered(first, *[LOST] * run.ROUNDS_MAX, asked=options)
    lost_at = at.now
    for passed, states in ((SETTLE_S - 1, ["planned"]), (SETTLE_S, ["confirmed"])):
        later = at.plan([patch(1, 1, sku=f"B{passed}")])
        at.now = lost_at + passed
        client = at.answering(lambda *_: None)
        at.means = replace(at.means, read_clock=lambda: ClockReading(at.now, "boot", at.now))
        at.push(later, options)
        assert (at.states(later), len(client.sent)) == (states, states.count("confirmed"))
        if not client.sent:
            assert f"run it again from {SETTLED_AT} UTC" in results(later)["unsent"][0]["words"]


def test_each_wait_of_a_pace_is_from_the_last_request_or_the_setback() -> None:
    """A rate of one in 7 seconds; the platform asks for 101 seconds, 3 seconds after a request."""
    now = 1_009.0
    policy = RetryPolicy(base_s=0.0, cap_s=0.0, retry_after_max_s=300.0)
    gate = pace.Pace(1 / 7, policy, threading.Event(), lambda: now)
    assert gate.wait(lambda: False) == 1_009.0
    gate.halted = mock.Mock(is_set=lambda: False)

    def pass_time(seconds: float) -> None:
        nonlocal now
        now += 1.0

    gate.halted.wait = pass_time
    assert gate.wait(lambda: False) == 1_016.0
    now = 1_019.0
    assert gate.set_back(1_016.0, 101.0)
    assert gate.wait(lambda: False) == 1_120.0
    assert gate.set_back(now, 300.0)
    assert not gate.set_back(now, 301.0)
