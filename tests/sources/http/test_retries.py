from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.contract import Verb
from sources.http.failures import Failure, FailureKind
from sources.http.retries import (
    RetryPolicy,
    delay_s,
    retry_after_s,
    retry_delay_s,
    should_retry,
)
from tests.sources.http.backoff import without_backoff

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("verb", "what", "again"),
    [
        ("GET", "dns", True),
        ("GET", "connect", True),
        ("GET", "timeout", True),
        ("GET", "protocol", True),
        ("GET", "broken_body", True),
        ("GET", "certificate", False),
        ("GET", "contract", False),
        ("GET", 200, False),
        ("GET", 301, False),
        ("GET", 400, False),
        ("GET", 401, False),
        ("GET", 403, False),
        ("GET", 404, False),
        ("GET", 407, False),
        ("GET", 408, True),
        ("GET", 409, False),
        ("GET", 428, False),
        ("GET", 429, True),
        ("GET", 499, False),
        ("GET", 500, True),
        ("GET", 502, True),
        ("GET", 503, True),
        ("GET", 504, True),
        ("GET", 599, True),
        ("GET", 600, False),
        ("POST", "connect", False),
        ("POST", 429, False),
        ("POST", 503, False),
        ("PATCH", "timeout", False),
        ("PATCH", 500, False),
    ],
)
def test_should_retry(verb: Verb, what: int | FailureKind, again: bool) -> None:
    assert should_retry(verb, what) is again


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        pytest.param(None, None, id="absent"),
        pytest.param("", None, id="empty"),
        pytest.param("0", 0.0, id="now"),
        pytest.param("7", 7.0, id="seconds"),
        pytest.param(" 7 ", 7.0, id="blanks"),
        pytest.param("300", 300.0, id="the longest"),
        pytest.param("999999999999", 999999999999.0, id="huge"),
        pytest.param("9" * 400, None, id="longer than any number"),
        pytest.param("-5", None, id="negative"),
        pytest.param("1.5", None, id="no integer"),
        pytest.param("1e9", None, id="exponent"),
        pytest.param("٣", None, id="another script's digit"),
        pytest.param("soon", None, id="words"),
        pytest.param("Sun, 01 Mar 2026 12:00:30 GMT", 30.0, id="date"),
        pytest.param("Sun, 01 Mar 2026 13:00:30 +0100", 30.0, id="date of another zone"),
        pytest.param("Sun Mar  1 12:00:30 2026", 30.0, id="asctime"),
        pytest.param("Sun, 01 Mar 2026 11:00:00 GMT", 0.0, id="date that has passed"),
        pytest.param("Sun, 99 Mar 2026 11:00:00 GMT", None, id="impossible date"),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, NOW) == seconds


def test_a_date_without_a_zone_is_utc_wherever_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as local:
        local.setenv("TZ", "America/Lima")
        time.tzset()
        seconds = retry_after_s("Sun Mar  1 12:00:30 2026", NOW)
    time.tzset()
    assert seconds == 30.0


@given(st.text())
def test_retry_after_never_raises_and_is_never_negative(header: str) -> None:
    assert (retry_after_s(header, NOW) or 0.0) >= 0.0


@given(st.integers(0, 10**6))
def test_retry_after_reads_every_http_date(seconds: int) -> None:
    header = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after_s(header, NOW) == seconds


@pytest.mark.parametrize(
    ("attempt", "retry_after", "random", "seconds"),
    [
        (1, None, 0.0, 0.0),
        (1, None, 1.0, 0.5),
        (2, None, 1.0, 1.0),
        (3, None, 0.5, 1.0),
        (6, None, 1.0, 16.0),
        (7, None, 1.0, 30.0),
        (10_000, None, 1.0, 30.0),
        (1, 0.0, 0.0, 0.0),
        (1, 120.0, 0.0, 120.0),
        (5, 120.0, 1.0, 120.5),
    ],
)
def test_delay(attempt: int, retry_after: float | None, random: float, seconds: float) -> None:
    assert delay_s(attempt, retry_after, random) == seconds


def run(policy: RetryPolicy, *failures: Failure) -> tuple[object, int, list[float]]:
    """Attempts with these failures, of which a further one succeeds: the result, the attempts, the waits."""
    slept: list[float] = []
    for attempts, failure in enumerate(failures, 1):
        wait_s = retry_delay_s(failure, attempts, policy.budget_s - sum(slept), policy)
        if wait_s is None:
            return failure, attempts, slept
        slept.append(wait_s)
    return "fine", len(failures) + 1, slept


BUSY = Failure(503, "busy")


def test_the_loop_ends_with_the_first_success() -> None:
    result, calls, slept = run(RetryPolicy(), BUSY, BUSY)
    assert (result, calls, len(slept)) == ("fine", 3, 2)


def test_the_loop_returns_the_last_failure_after_all_attempts() -> None:
    assert run(RetryPolicy(attempts=3), *[BUSY] * 9)[:2] == (BUSY, 3)


def test_a_permanent_failure_is_returned_at_once() -> None:
    refused = Failure(404, "refused")
    assert run(RetryPolicy(), refused) == (refused, 1, [])


def test_a_name_that_does_not_resolve_is_tried_twice() -> None:
    failure = Failure("dns", "the host name does not resolve")
    result, calls, slept = run(RetryPolicy(), *[failure] * 9)
    assert (result, calls) == (failure, 2)
    assert sum(slept) <= 0.5


def test_retry_after_is_waited_for() -> None:
    _, _, slept = run(RetryPolicy(), Failure(429, "slow down", retry_after_s=300.0))
    assert 300.0 <= slept[0] <= 300.5


@pytest.mark.parametrize("asked", [300.5, 86_400.0])
def test_a_longer_retry_after_ends_the_loop_at_once(asked: float) -> None:
    failure = Failure(429, "slow down", retry_after_s=asked)
    with without_backoff():
        assert run(RetryPolicy(), failure) == (failure, 1, [])


def test_a_wait_past_the_budget_is_not_begun() -> None:
    failure = Failure(503, "busy", retry_after_s=60.0)
    assert run(RetryPolicy(budget_s=59.0), failure) == (failure, 1, [])


def test_without_backoff_reaches_other_threads_and_ends() -> None:
    slept: list[float] = []
    waits = Failure(503, "busy", retry_after_s=5.0)
    with without_backoff():
        thread = threading.Thread(target=lambda: slept.extend(run(RetryPolicy(), waits)[2]))
        thread.start()
        thread.join()
    assert slept == [0.0]
    assert run(RetryPolicy(), waits)[2][0] >= 5.0
