from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.http.failures import Failure, FailureKind
from sources.http.retries import RetryPolicy, delay_s, retry_after_s, retry_delay_s, should_retry

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
REPEATED: tuple[int | FailureKind, ...] = (
    *("dns", "connect", "timeout", "protocol", "broken_body"),
    *(408, 429, 500, 502, 503, 504, 599),
)
FINAL: tuple[int | FailureKind, ...] = (
    *("certificate", "contract"),
    *(200, 301, 400, 401, 403, 404, 407, 409, 428, 499, 600),
)


@pytest.mark.parametrize("what", [*REPEATED, *FINAL])
def test_only_reads_are_repeated_and_only_what_may_pass(what: int | FailureKind) -> None:
    assert should_retry(what) is (what in REPEATED)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        *((header, None) for header in (None, "", "9" * 400, "-5", "1.5", "1e9", "٣", "soon")),
        *(("0", 0.0), ("7", 7.0), (" 7 ", 7.0), ("999999999999", 999999999999.0)),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 13:00:30 +0100", 30.0),
        ("Sun Mar  1 12:00:30 2026", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 99 Mar 2026 11:00:00 GMT", None),
    ],
)
def test_retry_after(monkeypatch: pytest.MonkeyPatch, header: str | None, seconds: float | None) -> None:
    with monkeypatch.context() as local:
        local.setenv("TZ", "America/Lima")
        time.tzset()
        assert retry_after_s(header, NOW) == seconds
    time.tzset()


@given(st.binary().map(lambda data: data.decode("latin-1")), st.integers(0, 10**6))
def test_retry_after_never_raises_and_reads_every_http_date(header: str, seconds: int) -> None:
    assert (retry_after_s(header, NOW) or 0.0) >= 0.0
    assert retry_after_s(format_datetime(NOW + timedelta(seconds=seconds), usegmt=True), NOW) == seconds


@pytest.mark.parametrize(
    ("attempt", "retry_after", "random", "seconds"),
    [
        *((1, None, 0.0, 0.0), (1, None, 1.0, 0.5), (2, None, 1.0, 1.0), (3, None, 0.5, 1.0), (6, None, 1.0, 16.0)),
        *((7, None, 1.0, 30.0), (10_000, None, 1.0, 30.0)),
        *((1, 0.0, 0.0, 0.0), (1, 120.0, 0.0, 120.0), (5, 120.0, 1.0, 120.5)),
    ],
)
def test_delay(attempt: int, retry_after: float | None, random: float, seconds: float) -> None:
    assert delay_s(attempt, retry_after, random, RetryPolicy()) == seconds


def run(policy: RetryPolicy, *failures: Failure) -> tuple[object, int, list[float]]:
    """Attempts with these failures, of which a further one succeeds: the result, the attempts, the waits."""
    slept: list[float] = []
    for attempts, failure in enumerate(failures, 1):
        wait_s = retry_delay_s(failure, attempts, policy.budget_s - sum(slept), policy)
        if wait_s is None:
            return failure, attempts, slept
        slept.append(wait_s)
    return "fine", len(failures) + 1, slept


BUSY, WAIT = Failure(503, "busy"), Failure(503, "busy", retry_after_s=60.0)
UNKNOWN = Failure("dns", "the host name does not resolve")


@pytest.mark.parametrize(
    ("policy", "failures", "calls", "is_fine"),
    [
        (RetryPolicy(), [BUSY, BUSY], 3, True),
        (RetryPolicy(attempts=3), [BUSY] * 9, 3, False),
        (RetryPolicy(), [Failure(404, "refused")], 1, False),
        (RetryPolicy(), [UNKNOWN] * 9, 2, False),
        (RetryPolicy(), [Failure(429, "slow down", retry_after_s=300.0)], 2, True),
        (RetryPolicy(), [Failure(429, "slow down", retry_after_s=300.5)], 1, False),
        (RetryPolicy(budget_s=59.0), [WAIT], 1, False),
        (RetryPolicy(budget_s=61.0), [WAIT], 2, True),
    ],
)
def test_reads_are_attempted_as_often_and_as_long_as_the_policy_says(
    policy: RetryPolicy, failures: list[Failure], calls: int, is_fine: bool
) -> None:
    result, attempts, slept = run(policy, *failures)
    assert (result == "fine", attempts) == (is_fine, calls)
    waits = [failure.retry_after_s or 0.0 for failure in failures[: len(slept)]]
    assert all(least <= wait for least, wait in zip(waits, slept, strict=True))
