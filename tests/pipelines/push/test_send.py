"""The send loop at low rates and over long pauses, on a clock that only moves while a request waits for its turn."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from pipelines.ledger.model import StateChange
from pipelines.push import pace
from pipelines.push.eligibility import PushRules
from pipelines.push.model import PushOptions
from pipelines.push.run import push
from pipelines.push.send import INTENT_MAX_AGE_S, RATE_MIN, SendLoop, SendTask
from sources.errors import ExitCode, Unreachable, UsageError
from sources.http.exchange import WriteOutcome
from sources.http.retries import RetryPolicy
from tests.pipelines.push.plans import patch

COUNT = 20


class Bench:
    """The loop with updates to send; records when each intent was committed and when each request left."""

    def __init__(self, rate: float, *answers: tuple[float, WriteOutcome]) -> None:
        self.now = 1000.0
        self.answers = list(answers)
        self.sent: list[float] = []
        self.intents: list[float] = []
        self.stop = threading.Event()
        gate = pace.Pace(rate, RetryPolicy(base_s=0.0, cap_s=0.0), self.stop, lambda: self.now)
        gate.halted = mock.Mock(is_set=gate.halted.is_set, wait=self.pass_time)
        ledger: Any = mock.Mock(now=lambda: self.now, commit=self.commit, unsettled=lambda since: [])
        self.loop = SendLoop(
            ledger=ledger,
            client=mock.Mock(send=self.send),
            pace=gate,
            concurrency=1,
            grace_s=1.0,
            stop=self.stop,
            uptime=lambda: self.now,
            body=mock.Mock(return_value=b"{}"),
            on_end=mock.Mock(),
            on_message=mock.Mock(),
            rules=PushRules(settle_s=0.0, resend=False),
        )

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def commit(self, changes: list[StateChange], now: float) -> None:
        self.intents += [now for change in changes if change.to == "in_flight"]
        if len(self.intents) > 10 * COUNT:
            self.stop.set()

    def send(self, *request: object) -> WriteOutcome:
        self.sent.append(self.now)
        seconds, outcome = self.answers.pop(0) if self.answers else (0.0, WriteOutcome("answered", 204))
        self.now += seconds
        return outcome

    def run(self) -> None:
        with mock.patch.object(pace, "WAIT_STEP_S", 1.0):
            self.loop.run(SendTask(patch(n, n), is_repeatable=True) for n in range(1, COUNT + 1))


def test_at_the_lowest_rate_each_intent_is_committed_once_and_sent_in_time() -> None:
    bench = Bench(RATE_MIN)
    bench.run()
    assert (len(bench.sent), len(bench.intents)) == (COUNT, COUNT)
    assert max(sent - at for sent, at in zip(bench.sent, bench.intents, strict=True)) <= INTENT_MAX_AGE_S


def test_intents_that_expire_in_a_pause_use_no_turn_of_a_request() -> None:
    """The first response comes after 20 s and asks for 300 s: all other intents are too old by then."""
    busy = WriteOutcome("answered", 429, error=Unreachable("busy"), retry_after_s=300.0)
    bench = Bench(0.1, (20.0, busy))
    bench.run()
    assert len(bench.sent) == COUNT + 1
    assert len(bench.intents) > COUNT + 10, "they were committed again"
    assert bench.sent[1] - bench.sent[0] == pytest.approx(320, abs=1)
    assert bench.sent[-1] - bench.sent[1] == pytest.approx(10 * (COUNT - 1), abs=5)


def test_a_stop_ends_a_request_that_hangs_after_the_time_allowed_and_leaves_it_in_doubt() -> None:
    bench, closed = Bench(1.0), threading.Event()

    def send(*request: object) -> WriteOutcome:
        bench.stop.set()
        closed.wait(5.0)
        return WriteOutcome("in_doubt", error=Unreachable("closed"))

    bench.loop.client = mock.Mock(send=send, close=closed.set)
    bench.loop.grace_s = 0.0
    bench.run()
    assert closed.is_set()
    assert bench.loop.run(iter(())).in_doubt == 1


def test_requests_in_flight_together_are_one_setback_and_too_many_in_a_row_end_the_push() -> None:
    now = 10.0
    gate = pace.Pace(None, RetryPolicy(base_s=0.0, cap_s=0.0), threading.Event(), lambda: now)
    for round_number in range(pace.SETBACKS_MAX + 1):
        started_at, now = now, now + 1.0
        answers = {gate.set_back(started_at, None) for _ in range(4)}
        assert answers == {round_number < pace.SETBACKS_MAX}
    gate.reset()
    assert gate.set_back(now, None)


@pytest.mark.parametrize("rate", [0.0066, 0.0, -1.0, float("nan")])
def test_a_rate_at_which_an_intent_cannot_be_sent_in_time_is_a_usage_error(rate: float) -> None:
    with pytest.raises(UsageError, match=r"^--rate \S+ is less than one request in 150 seconds") as raised:
        push(Path("no-plan"), PushOptions(rate=rate))
    assert raised.value.exit_code == ExitCode.USAGE
