"""The send loop at low rates and over long pauses, on a clock that only moves while a request waits for its turn."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from orderbridge.pipelines.ledger.model import StateChange
from orderbridge.pipelines.plan.model import PlannedOperation
from orderbridge.pipelines.push import pace
from orderbridge.pipelines.push.model import PushOptions
from orderbridge.pipelines.push.outcome import classify
from orderbridge.pipelines.push.rules import PushRules
from orderbridge.pipelines.push.run import push
from orderbridge.pipelines.push.send import INTENT_MAX_AGE_S, RATE_MIN, SendLoop, SendTask
from orderbridge.sources.errors import ExitCode, HttpRejected, Unreachable, UsageError
from orderbridge.sources.http.exchange import WriteOutcome
from orderbridge.sources.http.retries import RetryPolicy
from tests.pipelines.push.plans import customer, patch, subcategory, warehouse
from tests.pipelines.push.simulation import simulate

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
        ledger: Any = mock.Mock(
            now=lambda: self.now, commit=self.commit, unsettled=lambda since: []
        )
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
        seconds, outcome = (
            self.answers.pop(0) if self.answers else (0.0, WriteOutcome("answered", 204))
        )
        self.now += seconds
        return outcome

    def run(self) -> None:
        with mock.patch.object(pace, "WAIT_STEP_S", 1.0):
            self.loop.run(SendTask(patch(n, n), is_repeatable=True) for n in range(1, COUNT + 1))


def test_intents_are_sent_in_time_at_the_lowest_rate_and_expired_ones_use_no_turn() -> None:
    bench = Bench(RATE_MIN)
    bench.run()
    assert (len(bench.sent), len(bench.intents)) == (COUNT, COUNT)
    assert (
        max(sent - at for sent, at in zip(bench.sent, bench.intents, strict=True))
        <= INTENT_MAX_AGE_S
    )
    busy = WriteOutcome("answered", 429, error=Unreachable("busy"), retry_after_s=300.0)
    bench = Bench(0.1, (20.0, busy))  # all other intents are too old after this pause
    bench.run()
    assert len(bench.sent) == COUNT + 1
    assert len(bench.intents) > COUNT + 10, "they were committed again"
    assert bench.sent[1] - bench.sent[0] == pytest.approx(320, abs=1)
    assert bench.sent[-1] - bench.sent[1] == pytest.approx(10 * (COUNT - 1), abs=5)


def test_a_stop_ends_a_hanging_request_after_the_time_allowed_and_in_doubt() -> None:
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


def test_requests_in_flight_together_are_one_setback_and_too_many_end_the_push() -> None:
    now = 10.0
    gate = pace.Pace(None, RetryPolicy(base_s=0.0, cap_s=0.0), threading.Event(), lambda: now)
    for round_number in range(pace.SETBACKS_MAX + 1):
        started_at, now = now, now + 1.0
        answers = {gate.set_back(started_at, None) for _ in range(4)}
        assert answers == {round_number < pace.SETBACKS_MAX}
    gate.reset()
    assert gate.set_back(now, None)


@pytest.mark.parametrize("rate", [0.0066, float("nan")])
def test_a_rate_at_which_an_intent_cannot_be_sent_in_time_is_a_usage_error(rate: float) -> None:
    with pytest.raises(
        UsageError, match=r"^--rate \S+ is less than one request in 150 seconds"
    ) as raised:
        push(Path("no-plan"), PushOptions(rate=rate))
    assert raised.value.exit_code == ExitCode.USAGE


CREATE, UPDATE, PART = customer(1), patch(1, 7, sku="A"), subcategory(1)
JSON = {"content_type": "application/json"}
HTML = {"content_type": "text/html"}
OTHER = b'{"id":9,"erpCode":"C00002","email":"other@example.test"}'
ERROR = b'{"errors":[{"code":"X1","message":"no"}]}'

DOUBTFUL: dict[str, tuple[PlannedOperation, int, bytes, dict[str, Any]]] = {
    "a cut body of a create": (CREATE, 200, b"", {"is_broken": True, **JSON}),
    "a status other than the one that is shown": (warehouse(1), 200, b"", {}),
    "invalid UTF-8": (CREATE, 200, b'{"id":"\xff"}', JSON),
    "another customer's record": (CREATE, 200, OTHER, JSON),
    "another variant's record": (UPDATE, 200, b'{"id":8}', JSON),
    "a record with an id that is part of its own": (
        patch(1, 1003, sku="A"),
        200,
        b'{"id":100}',
        JSON,
    ),
    "another subcategory's record": (PART, 200, b'{"id":3,"name":"Other"}', JSON),
    "the family's error body": (CREATE, 200, ERROR, JSON),
    "the other family's error body": (CREATE, 201, b'{"error":{"code":"x","message":"no"}}', JSON),
    "no success": (UPDATE, 200, b'{"success":false,"data":null}', JSON),
    "false": (UPDATE, 200, b"false", JSON),
    "another customer's record in data beside an id": (
        CREATE,
        201,
        b'{"id":7,"data":%b}' % OTHER,
        JSON,
    ),
    "another customer's record in two wrappers": (
        CREATE,
        200,
        b'{"result":{"customer":%b}}' % OTHER,
        JSON,
    ),
    "another customer's record beside a code": (
        CREATE,
        200,
        b'{"code":200,"customer":%b}' % OTHER,
        JSON,
    ),
    "another customer's code with documents": (
        CREATE,
        201,
        b'{"erpCode":"X","documents":[{"number":"1"}]}',
        JSON,
    ),
    "another customer's record after its own": (
        CREATE,
        201,
        b'[{"erpCode":"C00001"},%b]' % OTHER,
        JSON,
    ),
    "an error of one item": (CREATE, 200, b'{"results":[{"status":409}]}', JSON),
    "an error with capitals": (CREATE, 201, b'{"Errors":[{"Message":"no"}]}', JSON),
    "a failed item": (CREATE, 200, b'{"created":0,"failed":1}', JSON),
    "an error status": (UPDATE, 200, b'{"statusCode":500,"message":"Internal error"}', JSON),
    "an error code with a message": (UPDATE, 200, b'{"code":422,"message":"invalid"}', JSON),
    "a status that says so": (CREATE, 200, b'{"status":"error","message":"x"}', JSON),
    "a result that says so": (CREATE, 200, b'{"result":"rejected"}', JSON),
    "a rejected item": (CREATE, 200, b'{"created":0,"rejected":1}', JSON),
    "no success as a number": (UPDATE, 200, b'{"ok":0}', JSON),
    "a bare text that says so": (CREATE, 201, b'"Error"', JSON),
    "a body nested too deeply": (CREATE, 201, b"[" * 990 + b"]" * 990, JSON),
    "an empty page with blanks": (CREATE, 200, b" \n", HTML),
    "a page": (CREATE, 200, b"<html>", HTML),
    "another status": (CREATE, 202, b"", JSON),
}
EMPTY_BODIES = (b"{}", b"[]", b"null", b'{"data":{}}', b'{"data":[]}')
CONFIRMING: dict[str, tuple[PlannedOperation, int, bytes, dict[str, Any]]] = {
    "201 with a cut body": (CREATE, 201, b"", {"is_broken": True}),
    "the status that is shown": (warehouse(1), 201, b"", {}),
    "200 without a body": (UPDATE, 200, b"", {}),
    "200 with an empty JSON body": (CREATE, 200, b"", JSON),
    "its own record": (
        CREATE,
        200,
        b'{"id":9,"erpCode":"C00001 ","email":"ANA1@example.test"}',
        JSON,
    ),
    "an id": (CREATE, 201, b'{"data":{"id":"9"}}', JSON),
    "no rejected item": (CREATE, 201, b'{"created":1,"rejected":[],"invalid":0}', JSON),
    "success": (UPDATE, 200, b'{"success":true,"errors":[],"error":null}', JSON),
    "its own record in a wrapper": (
        CREATE,
        201,
        b'{"code":201,"message":"ok","customer":{"id":9}}',
        JSON,
    ),
    "a bare text": (CREATE, 201, b'"created"', JSON),
    "null": (UPDATE, 200, b"null", JSON),
    **{f"a create with {body.decode()}": (CREATE, 200, body, JSON) for body in EMPTY_BODIES},
    "documents beside another id": (
        CREATE,
        201,
        b'{"customerId":9,"documents":[{"id":7,"email":"o@x.test"}]}',
        JSON,
    ),
    "its images without its id": (UPDATE, 200, b'{"stock":3,"images":[{"id":55,"url":"u"}]}', JSON),
    "no error as text": (UPDATE, 200, b'{"errorCode":"0","errorMessage":"None"}', JSON),
    "a count in the record": (UPDATE, 200, b'{"id":7,"failedLogins":3}', JSON),
    "a status of the record": (UPDATE, 200, b'{"id":7,"status":"active","code":450}', JSON),
    "its own code in other letters": (
        customer(1, erpCode="c1"),
        201,
        b'{"id":7,"erpCode":"C1"}',
        JSON,
    ),
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_response_that_may_not_be_about_this_write_leaves_it_in_doubt(name: str) -> None:
    operation, status, body, more = DOUBTFUL[name]
    change = classify(operation, WriteOutcome("answered", status, body, **more), False, 100.0)
    assert (change.to, change.doubt_at) == ("in_doubt", 100.0)
    assert change.words.startswith(f"status {status}, but ")
    assert "Other" not in change.words


@pytest.mark.parametrize("name", CONFIRMING)
def test_a_response_of_the_platform_confirms(name: str) -> None:
    operation, status, body, more = CONFIRMING[name]
    assert (
        classify(operation, WriteOutcome("answered", status, body, **more), False, 100.0).to
        == "confirmed"
    )


@pytest.mark.parametrize(
    ("operation", "id_text", "kept"),
    [
        (CREATE, '"Zq37w7-2930kR"', None),  # it may be the password
        (CREATE, '"1042"', "1042"),
        (PART, "1042", "1042"),
        *((PART, text, None) for text in ("true", "[7]", "7.5", '"a b"', f'"{65 * "7"}"')),
    ],
)
def test_an_id_that_is_a_number_or_a_short_text_is_kept(
    operation: PlannedOperation, id_text: str, kept: str | None
) -> None:
    change = classify(
        operation, WriteOutcome("answered", 201, b'{"id":%b}' % id_text.encode()), False, 0.0
    )
    assert (change.to, change.remote_id) == ("confirmed", kept)


@pytest.mark.parametrize(
    ("attempt", "state", "doubted", "doubt_at"),
    [
        (None, "planned", "in_doubt", None),
        (WriteOutcome("not_sent"), "planned", "in_doubt", None),
        *(
            (WriteOutcome("answered", status), "planned", "in_doubt", None)
            for status in (401, 403, 429)
        ),
        (
            WriteOutcome("answered", 400, error=HttpRejected("no", status=400)),
            "rejected",
            "in_doubt",
            None,
        ),
        (WriteOutcome("in_doubt", 503), "in_doubt", "in_doubt", 100.0),
    ],
)
def test_an_attempt_that_failed_does_not_end_an_earlier_doubt(
    attempt: WriteOutcome | None, state: str, doubted: str, doubt_at: float | None
) -> None:
    changes = [classify(UPDATE, attempt, is_doubted, 100.0) for is_doubted in (False, True)]
    assert [(one.to, one.doubt_at, one.clear) for one in changes] == [
        (to, doubt_at, False) for to in (state, doubted)
    ]


SEEDS = sorted({*range(32), *(seed + more for seed in (4, 13, 16, 71, 82) for more in range(3))})
"""The first ones, and those that showed planted bugs; `make soak CAMPAIGNS=push` runs any number of them."""


def test_no_crash_and_no_fault_makes_a_write_happen_twice_or_a_state_wrong() -> None:
    for seed in SEEDS:
        simulate(seed)
