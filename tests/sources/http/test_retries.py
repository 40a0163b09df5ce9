"""The retry decision, Retry-After, the delay and the time for a read, as tables."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from orderbridge.sources.http.failures import Failure, FailureKind
from orderbridge.sources.http.retries import (
    PERSON_WAITS,
    RetryPolicy,
    delay_s,
    retry_after_s,
    retry_delay_s,
    should_retry,
    time_budget_s,
)

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
POLICY = RetryPolicy()
ALWAYS: list[int | FailureKind] = [
    "dns", "connect", "timeout", "protocol", "broken_body", 408, 429, 500, 599,
]  # fmt: skip
NEVER: list[int | FailureKind] = [
    "certificate", "contract", 200, 301, 400, 401, 403, 404, 422, 499, 600,
]  # fmt: skip
WITH_A_PROVEN_KEY: list[int | FailureKind] = [409, 425]


@pytest.mark.parametrize("is_key_proven", [False, True])
def test_only_what_may_pass_is_repeated(is_key_proven: bool) -> None:
    every = [Failure(what, "") for what in (*ALWAYS, *WITH_A_PROVEN_KEY, *NEVER)]
    repeated = [one.what for one in every if should_retry(one, is_key_proven=is_key_proven)]
    assert repeated == [*ALWAYS, *(WITH_A_PROVEN_KEY if is_key_proven else [])]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_of_somebody_in_between_is_repeated_once_the_key_is_proven(status: int) -> None:
    own, foreign = Failure(status, ""), Failure(status, "", is_foreign=True)
    assert [should_retry(one, is_key_proven=True) for one in (own, foreign)] == [False, True]
    assert not should_retry(foreign)


def test_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    epoch = int(NOW.timestamp())
    seconds: dict[str | None, float | None] = {
        "Sun, 01 Mar 2026 13:00:30 +0100": 30.0,
        "Sun Mar  1 12:00:30 2026": 30.0,
        "Sun, 01 Mar 2026 11:00:00 GMT": 0.0,
        " 7 ": 7.0,
        "999999999": 999999999.0,
        f"{epoch + 45}": 45.0,
        f"{epoch - 45}": 0.0,
    }
    seconds |= dict.fromkeys(
        (None, "9" * 400, "-5", "1.5", "soon", "Sun, 99 Mar 2026 11:00:00 GMT")
    )
    with monkeypatch.context() as local:
        local.setenv("TZ", "America/Lima")
        time.tzset()
        assert {header: retry_after_s(header, NOW) for header in seconds} == seconds
    time.tzset()


def test_delay() -> None:
    drawn = [delay_s(*one, POLICY) for one in ((1, None, 0.0), (1, None, 1.0), (3, None, 0.5))]
    assert drawn == [0.0, 0.5, 1.0]
    assert delay_s(10_000, None, 1.0, POLICY) == 30.0
    asked = [delay_s(*one, POLICY) for one in ((1, 120.0, 1.0), (9, 120.0, 1.0), (9, 0.0, 1.0))]
    assert asked == [120.5, 150.0, 30.0]


@pytest.mark.parametrize(
    ("what", "has_answered", "is_probe", "budget_s"),
    [
        ("connect", False, False, 120.0),
        ("dns", False, False, 120.0),
        ("broken_body", False, False, 120.0),
        ("connect", True, False, 600.0),
        (503, True, False, 600.0),
        (500, True, True, 30.0),
        ("broken_body", True, True, 30.0),
        (503, True, True, 600.0),
    ],
)
def test_the_time_for_a_read(
    what: int | FailureKind, has_answered: bool, is_probe: bool, budget_s: float
) -> None:
    found = time_budget_s(Failure(what, ""), POLICY, has_answered=has_answered, is_probe=is_probe)
    assert found == budget_s


def test_a_person_waits_for_a_limit_of_the_platform_and_for_no_other_repetition() -> None:
    def budget_s(what: int | FailureKind) -> float:
        failure = Failure(what, "")
        return time_budget_s(failure, PERSON_WAITS, has_answered=True, is_probe=False)

    assert [budget_s(what) for what in (503, "timeout", "broken_body", 429)] == [0, 0, 0, 10]


WAIT = Failure(503, "busy", retry_after_s=60.0)


@pytest.mark.parametrize(
    ("failure", "attempts", "left_s", "is_repeated"),
    [
        (Failure(503, "busy"), 1_000, 31.0, True),
        (Failure(503, "busy"), 1, 0.0, False),
        (Failure(404, "refused"), 1, 600.0, False),
        (Failure(429, "slow down", retry_after_s=300.0), 1, 600.0, True),
        (Failure(429, "slow down", retry_after_s=300.5), 1, 600.0, False),
        (WAIT, 1, 61.0, True),
        (WAIT, 1, 59.0, False),
    ],
)
def test_reads_are_attempted_as_long_as_the_policy_says(
    failure: Failure, attempts: int, left_s: float, is_repeated: bool
) -> None:
    wait_s = retry_delay_s(failure, attempts, left_s, POLICY)
    assert (wait_s is not None) == is_repeated
    assert wait_s is None or wait_s >= (failure.retry_after_s or 0.0)
